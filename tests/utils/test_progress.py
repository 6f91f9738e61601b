"""Progress in a log and in a terminal."""

import io
import sys

import numpy as np
import pytest

from bnmf.utils import progress
from bnmf.utils.progress import Display, Rate


def test_lines_now_and_then(monkeypatch, capsys):
    clock = iter(np.arange(0.0, 1000.0, 1.0))  # one second for each look at it
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    display, shown = Display({"a": 100, "b": 5}, unit="sweeps"), []
    for sweep in range(1, 101):
        display.update("a", sweep, lambda: shown.append(0) or "going well")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(shown) == 10  # one in ten seconds, and an update takes one
    assert lines[0] == "a: 10/100 sweeps, going well"
    assert lines[-1] == "a: 100/100 sweeps, going well"


def test_rate(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    rate = Rate(total=50, done=10)
    now[0] += 5.0
    assert rate.left(11) == "time left not known yet"  # the first may include what is prepared once
    assert rate.speed(20) == 2.0
    assert rate.left(20) == "15 s left"


@pytest.mark.parametrize("columns", ["80", "120"])
def test_bars_fit_into_a_terminal(monkeypatch, columns):
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("TERM", "xterm")
    with Display({"chain 0": 5300}, {"chain 0": 300}, unit="sweeps") as display:
        display.update("chain 0", 5300, lambda: "28 sweeps/s, 2 min 49 s left, training MSE 0.1551")
    assert "5300/5300" in terminal.getvalue()
    assert "training MSE 0.1551" in terminal.getvalue()
    assert "…" not in terminal.getvalue()
