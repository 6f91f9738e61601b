"""Progress in a log and in a terminal."""

import io
import sys

import numpy as np
import pytest

from bnmf.utils import progress
from bnmf.utils.progress import Display, counted


def test_lines_now_and_then(monkeypatch, capsys):
    clock = iter(np.arange(0.0, 1000.0, 1.0))  # one second for each look at it
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    display, shown = Display({"a": 100, "b": 5}, "sweeps"), []
    for sweep in range(1, 101):
        display.update("a", sweep, lambda: shown.append(0) or "going well")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(shown) == 10  # one in ten seconds, and an update takes one
    assert lines[0] == "a: 10/100 sweeps, 1 sweeps/s, 1 min 30 s left, going well"
    assert lines[-1] == "a: 100/100 sweeps, 1 sweeps/s, 0 s left, going well"


def test_time_left(monkeypatch, capsys):
    """From the second unit on: the first may include what is prepared once."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with counted(50, "fits", True, done=10) as show:
        for done, at in ((11, 120.0), (20, 140.0)):
            now[0] = at
            show(done)
    assert capsys.readouterr().err == "11/50 fits, time left unknown\n20/50 fits, 2 min 0 s left\n"


def test_what_was_done_before_is_complete(capsys):
    with Display({"chain 0": 350}, "sweeps") as display:
        display.update("chain 0", 350)
    assert capsys.readouterr().err == "chain 0: 350/350 sweeps\n"


@pytest.mark.parametrize("columns", ["80", "120"])
def test_bars_fit_into_a_terminal(monkeypatch, columns):
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("TERM", "xterm")
    with Display({"chain 0": 5300}, "sweeps") as display:
        display.update("chain 0", 300)
        display.update("chain 0", 5300, lambda: "training MSE 0.1551")
    assert "5300/5300" in terminal.getvalue()
    assert ("training MSE 0.1551" in terminal.getvalue()) == (columns == "120")
    assert "…" not in terminal.getvalue()
