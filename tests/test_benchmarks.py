"""The benchmarks: timing and tables on made-up timings, and the implementations that need no other package."""

import dataclasses
import json
import sys

import numpy as np
import pytest
from benchmarks import client, matrices, pages, profile, race, results, sections, targets
from benchmarks.client import Client, Contestant, PeerError
from benchmarks.peers import PEERS, find
from benchmarks.sections import QUICK, Row, Section

# Peers without further requirements, and their options.
BUNDLED = {
    "bnmf": {"burn_in": 0.01},
    "bnmf-fastest": {"burn_in": 0.01},
    "bnmf-chains": {"burn_in": 0.01},
    "bnmf-ess": {"warmup": 2, "thinning": 1},
    "reference": {},
    "sklearn": {},
}


class FakeClient:
    """A client on which times are in proportion to K, and longer with AVX2, a max term and an earlier version."""

    def __init__(self):
        self.calls = []

    def set_up(self, contestant):
        if contestant.peer == "smurff":
            raise PeerError("no such module")

    def repeat(self, contestant, n):
        self.calls.append(contestant.label)
        if contestant.label == "crashes":
            raise PeerError("crashed")
        factor = 1.2 if contestant.processor == "AVX2" else 1.0
        factor *= 2.0 if contestant.version else 1.0
        factor *= 1.4 if contestant.options.get("prior") == "gl22inf" else 1.0
        seconds = 1e-4 * contestant.rank * factor
        return {"seconds": seconds, "elapsed": n * seconds}


def silent(line):
    pass


def test_a_race_rotates_the_order_and_a_failure_does_not_affect_others():
    fake, effort = FakeClient(), dataclasses.replace(QUICK.effort, repeats=2)
    labels = {"a": "bnmf", "crashes": "bnmf", "absent": "smurff", "b": "bnmf"}
    entered = [Contestant(label, peer, "gdsc", 20) for label, peer in labels.items()]
    lanes, failures = race.run(entered, fake, effort, silent, n=1)
    assert fake.calls == ["a", "crashes", "b", "b", "a"]
    assert [(lane.contestant.label, lane.seconds) for lane in lanes] == [("a", [2e-3, 2e-3]), ("b", [2e-3, 2e-3])]
    assert failures == {"absent": "no such module", "crashes": "in repeat 1: crashed"}


def test_results_are_saved_and_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "DIRECTORY", tmp_path)
    monkeypatch.setattr(results, "versions", lambda: {"bnmf": "0"})
    assert results.load(QUICK) == {}
    section = Section(FakeClient(), QUICK, {}, silent)
    section.rows += [
        Row("gdsc", 20, 1, "bnmf", "s per iteration", [1.0, 2.0, 3.0]),
        Row("gdsc", 20, 1, "scikit-learn cd", "s per iteration", [0.5, 0.5, None], "bnmf"),
        Row("gdsc", 20, 1, "SMURFF", "s per iteration", [30.0, 60.0, 90.0], "bnmf"),
    ]
    startup = Section(FakeClient(), QUICK, {}, silent, [Row("", 0, 1, "bnmf --help", "s", [0.05, 0.05])])
    section.failures.append({"data": "gdsc", "rank": 20, "label": "NUTS", "reason": "not installed: no wheel"})
    facts = {"date": "2000-01-01 00:00", "seconds": 1.0, "processor": results.machine()["processor"]}
    parts = {"gdsc": facts | section.found(), "startup": facts | startup.found()}
    found = {"sections": parts, "machine": results.machine()}
    page = results.save(found, QUICK)
    assert (tmp_path / "results-quick.md").read_text(encoding="utf-8") == page
    assert results.load(QUICK) == json.loads(json.dumps(found))["sections"]
    for line in (
        "| GDSC, K = 20 | SMURFF | 60 (36-84) s per iteration | 30x of bnmf |",
        "- Not measured: NUTS on GDSC, K = 20: not installed: no wheel",
        "| GDSC, K = 20: SMURFF sweep / bnmf sweep | 30x | ≥ 25x | yes |",
        "| GDSC, K = 20: NumPy reference sweep / bnmf sweep |  | ≥ 150x | not measured |",
        "| `bnmf --help` | 50 ms | ≤ 0.5 s | yes |",
    ):
        assert line in page


def test_texts_between_marks_are_replaced(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("a\n<!-- x -->\nold\n<!-- /x -->\nb\n", encoding="utf-8")
    pages.write(path, x=pages.table(["n"], [["1|2"]]))
    assert path.read_text(encoding="utf-8") == "a\n<!-- x -->\n\n| n |\n| --- |\n| 1\\|2 |\n\n<!-- /x -->\nb\n"
    with pytest.raises(ValueError, match="no marks <!-- y -->"):
        pages.write(path, y="")


@pytest.mark.parametrize("name", ["gdsc", "incomplete-10x5", "ratings-200-60x40"])
def test_matrices_are_created_once(name, tmp_path, monkeypatch):
    monkeypatch.setenv("BNMF_DATA", str(tmp_path / "no data"))
    made = matrices.entries(matrices.load(name, tmp_path))
    monkeypatch.delattr(matrices, "make")
    assert (matrices.entries(matrices.load(name, tmp_path)) != made).nnz == 0 < made.nnz


def test_bundled_peers_measure():
    assert set(BUNDLED) == {name for name, (_, package) in PEERS.items() if package is None}
    X = matrices.make("complete-16x25")
    for name, options in BUNDLED.items():
        measured = find(name)(X, 2, 1, **options).measure(8)
        assert np.isfinite(measured["seconds"])
        if name != "sklearn":  # its timing is a difference, which may be negative
            assert measured["seconds"] > 0


@pytest.mark.proof  # starts processes
def test_workers_answer_and_report_errors(tmp_path, monkeypatch):
    monkeypatch.setattr(client, "python", lambda: sys.executable)
    with Client(tmp_path, tmp_path / "no data", timeout=120.0) as workers:
        good = Contestant("good", "reference", "incomplete-10x5", 2)
        workers.set_up(good)
        assert workers.repeat(good, 3)["seconds"] > 0
        with pytest.raises(PeerError, match=r"TypeError: .*'unknown'"):
            workers.set_up(dataclasses.replace(good, label="wrong", options={"unknown": 1}))
        assert workers.repeat(good, 3)["seconds"] > 0


def test_table_of_sweeps():
    section = Section(FakeClient(), QUICK, {}, silent)
    sections.sweeps(section)
    page = results.sweeps_table(section.found()["rows"])
    assert "| GDSC | 20 | 2,000 | 0.50 | 2,400 | 0.50 |" in page
    assert "| 1,000 x 400, 80% missing at random | 100 | 10,000 | 0.50 | 12,000 | 0.50 |" in page
    assert "| GL2²,∞ / GL2² | 1.40 |" in page
    lines = [target.line({"sweeps": section.found()}) for target in targets.targets(QUICK)]
    assert ["1,000 x 400, 80% missing at random: exponent of K, from 10 to 100", "1", "≤ 1.1", "yes"] in lines
    numba = "1,000 x 400, 80% missing at random, K = 20: bnmf sweep / sweep of 5c6f095, Numba"
    assert [numba, "0.5x", "≤ 0.8x", "yes"] in lines
    assert ["GDSC, K = 20: sweep of GL2²,∞ / sweep of GL2²", "1.4x", "≤ 1.3x", "no"] in lines


@pytest.mark.parametrize("name", ["complete-16x25", "scattered-40x30-20"])
def test_parts_of_a_sweep_add_up(name):
    parts = profile.profile(matrices.make(name), 2, seconds=0.01)
    assert (profile.SHARING in parts) == name.startswith("complete")
    assert (profile.RESIDUALS in parts) == name.startswith("scattered")
    assert sum(parts.values()) == pytest.approx(2 * parts[profile.WHOLE])
