"""Progress in a log and in a terminal."""

import io
import os
import sys

import numpy as np

from bnmf import BayesianNMF
from bnmf.utils import progress
from bnmf.utils.progress import Display, Rate


def test_lines_now_and_then(monkeypatch, capsys):
    clock = iter(np.arange(0.0, 1000.0, 1.0))  # one second for each look at it
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    display = Display({"a": 100, "b": 5}, unit="sweeps")
    for sweep in range(1, 101):
        display.update("a", sweep, lambda: "going well")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10  # one in ten seconds, and an update takes one
    assert lines[0] == "a: 10/100 sweeps, going well"
    assert lines[-1] == "a: 100/100 sweeps, going well"


def test_facts_are_computed_only_when_shown():
    def fail():
        raise AssertionError("computed")

    Display({"a": 100}, unit="sweeps").update("a", 1, fail)


def test_rate(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    rate = Rate(total=50, done=10)
    now[0] += 30.0
    assert rate.left(11) == "time left not known yet"  # the first may include what is prepared once
    now[0] -= 30.0
    now[0] += 5.0
    assert rate.speed(20) == 2.0
    assert rate.left(20) == "15 s left"


def open_terminal(monkeypatch, columns):
    """Make standard error a terminal, and return what is written to it."""
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setitem(os.environ, "COLUMNS", columns)
    monkeypatch.setitem(os.environ, "TERM", "xterm")
    return terminal


def test_bars_in_a_terminal(monkeypatch):
    terminal = open_terminal(monkeypatch, "120")
    X = np.random.default_rng(0).exponential(size=(8, 6))
    BayesianNMF(1, n_chains=2, burn_in=200, n_draws=100, random_state=0, progress=True).fit(X)
    for shown in ("chain 0", "chain 1", "300/300", "training MSE"):
        assert shown in terminal.getvalue()


def test_bars_fit_into_80_columns(monkeypatch):
    terminal = open_terminal(monkeypatch, "80")
    with Display({"chain 0": 5300}, unit="sweeps") as display:
        display.update("chain 0", 5300, lambda: "28 sweeps/s, 2 min 49 s left, training MSE 0.1551")
    assert "5300/5300" in terminal.getvalue()
    assert "training MSE 0.1551" in terminal.getvalue()
    assert "…" not in terminal.getvalue()
