"""The short form of the hostile tests: fixed seeds, every attempt ends in the right result or in a clear error."""

import faulthandler
import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings

from tests.hostile import archives, calls, checkpoints, inputs, interruptions
from tests.hostile.__main__ import BEGIN, END, table, write
from tests.hostile.outcomes import BAD, CLEAR, RIGHT, Outcome, Wrong, judged

SECONDS_PER_TEST = 300


@pytest.fixture(autouse=True)
def deadline():
    """End the process, with a traceback of all threads, if a test hangs."""
    faulthandler.dump_traceback_later(SECONDS_PER_TEST, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def collected(run, seed, n):
    """Return the kinds of n attempts, none of which may be bad."""
    found = []
    run(seed, found.append, n)
    assert [outcome.what for outcome in found if outcome.kind == BAD] == []
    return Counter(outcome.kind for outcome in found)


@settings(max_examples=45, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(inputs.cases())
def test_inputs(case):
    outcome = inputs.attempt(case)
    assert outcome.kind != BAD, outcome.what


@pytest.mark.parametrize("seed", range(3))
def test_files_of_checkpoints(seed):
    counts = collected(checkpoints.run, seed, 40)
    assert counts[RIGHT] > 3
    assert counts[CLEAR] > 15


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_kills():
    assert collected(interruptions.run_kills, 0, 2)[RIGHT] == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_full_and_read_only_disks():
    assert collected(interruptions.run_disks, 0, 8)[CLEAR] > 0


@pytest.mark.parametrize("seed", range(2))
def test_files_of_posteriors(seed):
    counts = collected(archives.run, seed, 100)
    assert counts[RIGHT] > 3
    assert counts[CLEAR] > 50


@pytest.mark.parametrize("seed", range(2))
def test_wrong_calls(seed):
    assert collected(calls.run, seed, 250)[CLEAR] > 150


# --- the judge itself


def test_a_result_that_is_wrong_is_bad():
    def attempt():
        raise Wrong("NaN")

    assert judged(attempt, "it", (ValueError,), "").kind == BAD


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("X is wrong"), CLEAR),
        (ValueError("index 3"), BAD),
        (AttributeError("X"), BAD),
        (IndexError("X"), BAD),
    ],
)
def test_errors_are_judged_by_kind_and_words(error, kind):
    def attempt():
        raise error

    assert judged(attempt, "it", (ValueError,), r"\bX\b").kind == kind


def test_table(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write(page, table({"inputs": Counter({RIGHT: 1200, CLEAR: 3, BAD: 1}), "calls": Counter({CLEAR: 2})}))
    text = page.read_text()
    assert "| inputs | 1,204 | 1,200 | 3 | 1 |" in text
    assert "| all | 1,206 | 1,200 | 5 | 1 |" in text
    assert "old" not in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")


def test_a_bad_case_would_be_found(monkeypatch):
    """A fit that returns NaN, and one that changes what was observed."""
    case = {"shape": (5, 4), "values": "exponential", "missing": "none", "exponents": [0], "container": "C"}
    case |= {"numbers": 0, "unstored": "zero", "prior": "gee", "noise": "common", "scale": None, "offset": None}
    case |= {"n_components": 1, "keep_draws": True}
    assert inputs.attempt(case) == Outcome(RIGHT, repr(case))
    impute = inputs.BayesianNMF.impute
    for change in (lambda filled: filled * float("nan"), lambda filled: filled + 1e-9):
        monkeypatch.setattr(inputs.BayesianNMF, "impute", lambda *args, change=change: change(impute(*args)))
        assert inputs.attempt(case).kind == BAD
