"""The logic of the benchmarks on made-up timings: no peer is needed."""

import dataclasses
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import matrices, race, tables, targets
from benchmarks.client import Contestant, PeerError
from benchmarks.sections import SECTIONS, Context, Outcome, Row, compete
from benchmarks.settings import QUICK
from benchmarks.spread import exponent, ratios, spread


class MadeUp:
    """Contestants whose iterations take what their options say."""

    def __init__(self):
        self.order = []

    def set_up(self, contestant):
        if contestant.peer == "implicit":
            raise PeerError("no such module")
        return 0

    def repeat(self, contestant, slot, n):
        self.order.append(contestant.label)
        seconds = contestant.options["seconds"]
        if seconds is None:
            raise PeerError("crashed")
        return {"seconds": seconds, "elapsed": contestant.options.get("overhead", 0.0) + n * abs(seconds)}

    def release(self):
        self.order.append("release")


def contestant(label, seconds, peer="bnmf", **options):
    return Contestant(label, peer, "gdsc", 20, 1, {"seconds": seconds, **options})


def silent(line):
    pass


def made_up_sections():
    rows = [
        Row("gdsc", 20, 1, "bnmf", "s per iteration", [1.0, 2.0, 3.0]),
        Row("gdsc", 20, 1, "scikit-learn cd", "s per iteration", [0.5, 0.5, None], "bnmf"),
        Row("gdsc", 20, 1, "SMURFF", "s per iteration", [30.0, 60.0, 90.0], "bnmf"),
    ]
    outcome = Outcome(
        rows, ["a note"], [{"data": "gdsc", "rank": 20, "label": "cmfrec", "reason": "not installed: no wheel"}]
    )
    return {"gdsc": {"date": "2000-01-01 00:00", "seconds": 1.0, **outcome.as_dict()}}


def test_a_ratio_is_taken_within_each_repeat_that_both_took_part_in():
    assert ratios([2.0, None, 9.0, 4.0], [1.0, 1.0, 3.0]) == [2.0, 3.0]


def test_the_spread_skips_repeats_that_are_not_there():
    assert spread([3.0, None, 1.0, 2.0]) == pytest.approx((2.0, 1.2, 2.8))


def test_the_exponent_of_a_power_is_that_power():
    assert exponent([2, 5, 10, 20], [n**1.5 for n in (2, 5, 10, 20)]) == pytest.approx(1.5)


def test_a_race_takes_turns_and_begins_each_with_another():
    track = MadeUp()
    lanes, failures = race.run([contestant(label, 1.0) for label in "ab"], track, QUICK, silent, n=1, repeats=2)
    assert track.order == ["a", "b", "b", "a", "release"]
    assert not failures
    assert [lane.seconds for lane in lanes] == [[1.0, 1.0], [1.0, 1.0]]


def test_iterations_are_as_many_as_take_long_enough_beside_what_setting_up_takes():
    fast, heavy = contestant("fast", 1e-3), contestant("heavy", 1e-3, overhead=0.2)
    (one, other), _ = race.run([fast, heavy], MadeUp(), QUICK, silent)
    assert one.n * 1e-3 >= QUICK.repeat_seconds / 2
    assert other.n * 1e-3 >= 0.2


def test_a_slow_contestant_sits_out_when_its_budget_is_spent():
    (lane,), _ = race.run([contestant("slow", 100.0)], MadeUp(), QUICK, silent)
    assert lane.seconds == [100.0] * QUICK.min_repeats + [None] * (QUICK.repeats - QUICK.min_repeats)


def test_one_that_fails_does_not_lose_the_rest():
    entered = [contestant("good", 1.0), contestant("crashes", None), contestant("absent", 1.0, peer="implicit")]
    lanes, failures = race.run(entered, MadeUp(), QUICK, silent, n=1)
    assert [lane.contestant.label for lane in lanes] == ["good"]
    assert failures == {"absent": "no such module", "crashes": "in repeat 1: crashed"}


def test_differences_that_drown_in_noise_are_not_timings():
    lanes, failures = race.run([contestant("noisy", -1.0)], MadeUp(), QUICK, silent, n=1)
    assert not lanes
    assert "too noisy" in failures["noisy"]


def test_a_peer_that_did_not_install_is_reported_with_the_reason():
    outcome = Outcome()
    context = Context(MadeUp(), QUICK, {"smurff": "no wheel"}, silent)
    compete(context, outcome, [contestant("bnmf", 1.0), contestant("SMURFF", 1.0, "smurff")], over="bnmf", unit="s")
    assert [row.label for row in outcome.rows] == ["bnmf"]
    assert outcome.failures == [{"label": "SMURFF", "reason": "not installed: no wheel"}]


def test_targets_compare_the_right_rows_in_the_right_direction():
    lines = tables.target_table(made_up_sections(), QUICK)
    assert lines[0][1:] == ["3x (2.2-3.8)", "at most 3.5x", "at most 2x", "yes"]
    assert lines[2][1:] == ["30x", "12x", "25x", "yes, and the aim"]
    assert lines[3][1:] == ["", "60x", "150x", "not measured"]


def test_growth_is_per_entry():
    first, last = QUICK.growth_entries[0], QUICK.growth_entries[-1]
    rows = [
        Row(f"ratings-{n}", 20, 1, f"{n / 1e6:g} million entries", "s per iteration", [seconds])
        for n, seconds in ((first, 1.0), (last, 1.2 * last / first))
    ]
    (target,) = (target for target in targets.targets(QUICK) if target.scale != 1)
    found = target.measured({"growth": {"rows": [dataclasses.asdict(row) for row in rows]}})
    assert found.median == pytest.approx(1.2)
    assert target.verdict(found) == "yes"


def test_results_are_saved_and_go_on_from_there(tmp_path):
    results = {"sections": made_up_sections(), "machine": tables.machine({"bnmf": "0"})}
    tables.save(results, QUICK, tmp_path)
    assert tables.load(QUICK, tmp_path) == json.loads(json.dumps(results))
    page = (tmp_path / "results-quick.md").read_text()
    assert "| GDSC, K = 20 | SMURFF | 60 (36-84) s per iteration | 30x of bnmf |" in page
    assert "- Not measured: cmfrec on GDSC, K = 20: not installed: no wheel" in page
    tables.show(results, QUICK)


@pytest.mark.parametrize("name", ["gdsc", "complete-16x25", "incomplete-10x5", "ratings-2000"])
def test_a_matrix_is_the_same_when_loaded_again(name, tmp_path, monkeypatch):
    monkeypatch.setenv("BNMF_DATA", str(tmp_path / "nothing here"))
    made, loaded = matrices.load(name, tmp_path), matrices.load(name, tmp_path)
    assert made.shape == loaded.shape
    assert (matrices.entries(made) != matrices.entries(loaded)).nnz == 0
    assert matrices.is_complete(made) == name.startswith("full")
    assert matrices.describe(name)


def test_every_target_has_its_section():
    keys = [key for target in targets.targets(QUICK) for key in (target.over, target.under) if key]
    assert {key[0] for key in keys} <= set(SECTIONS)
