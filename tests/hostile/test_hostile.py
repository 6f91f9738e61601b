"""The short form of the hostile tests: fixed seeds, every attempt ends in the right result or in a clear error."""

import faulthandler
import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings

from tests.hostile import calls, checkpoints, inputs, interruptions
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


@settings(max_examples=25, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(inputs.cases())
def test_inputs(case):
    outcome = inputs.attempt(case)
    assert outcome.kind != BAD, outcome.what


def test_files_of_checkpoints():
    counts = collected(checkpoints.run, 0, 40)
    assert counts[RIGHT] > 3
    assert counts[CLEAR] > 15


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("n", [1, pytest.param(6, marks=pytest.mark.proof)])
def test_kills(n):
    assert collected(interruptions.run_kills, 0, n)[RIGHT] == n


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_full_and_read_only_disks():
    assert collected(interruptions.run_disks, 0, 4)[CLEAR] > 0


def test_wrong_calls():
    assert collected(calls.run, 0, 200)[CLEAR] > 120


# --- the judge itself


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("X is wrong"), CLEAR),
        (ValueError("index 3"), BAD),
        (AttributeError("X"), BAD),
        (Wrong("NaN"), BAD),
    ],
)
def test_errors_are_judged_by_kind_and_words(error, kind):
    def attempt():
        raise error

    assert judged(attempt, "it", (ValueError,), r"\bX\b").kind == kind


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
