"""Progress of several chains: bars in a terminal or notebook, a line now and then in a log."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

# Seconds between lines of a log; bars are drawn about ten times a second.
LOG_SECONDS = 10.0
DRAW_SECONDS = 0.1


class Silent:
    """Shows nothing."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *args: object) -> None:
        pass

    def update(self, chain: int, sweep: int, mse: float) -> None:
        """Take note of a sweep."""


class Progress(Silent):
    """Shows sweeps, speed, time left and current training error of each chain.

    Parameters
    ----------
    n_chains, n_sweeps : int
        Number of chains, and of sweeps of each.
    done : list of int
        Sweeps of each chain that an earlier run had made.
    """

    def __init__(self, n_chains: int, n_sweeps: int, done: list[int]) -> None:
        self._n_sweeps = n_sweeps
        self._first = done
        self._begin: list[float | None] = [None] * n_chains
        self._shown = [time.monotonic()] * n_chains
        self._lock = threading.Lock()
        self._show: Callable[[int, int, str], None] = self._line
        self._every = LOG_SECONDS
        self._bars: Any = None
        if sys.stderr.isatty() or "ipykernel" in sys.modules:
            self._make_bars(n_chains)

    def _make_bars(self, n_chains: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars

        self._bars = Bars(
            TextColumn("chain {task.fields[number]}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[facts]}"),
            TimeElapsedColumn(),
            console=Console(stderr="ipykernel" not in sys.modules),
        )
        for chain in range(n_chains):
            self._bars.add_task("", total=self._n_sweeps, completed=self._first[chain], number=chain, facts="")
        self._show, self._every = self._bar, DRAW_SECONDS

    def __enter__(self) -> Progress:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, *args: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def update(self, chain: int, sweep: int, mse: float) -> None:
        """Take note of a sweep, and show it if it is time or the last one."""
        now = time.monotonic()
        begin = self._begin[chain]
        if begin is None:  # the first sweep of a chain is not typical: kernels may be compiled in it
            self._begin[chain], self._first[chain] = now, sweep
            return
        if now - self._shown[chain] < self._every and sweep < self._n_sweeps:
            return
        self._shown[chain] = now
        speed = (sweep - self._first[chain]) / max(now - begin, 1e-9)
        left = (self._n_sweeps - sweep) / max(speed, 1e-9)
        with self._lock:
            self._show(chain, sweep, f"{speed:,.0f} sweeps/s, {duration(left)} left, training MSE {mse:.4g}")

    def _bar(self, chain: int, sweep: int, facts: str) -> None:
        self._bars.update(chain, completed=sweep, facts=facts)

    def _line(self, chain: int, sweep: int, facts: str) -> None:
        print(f"chain {chain}: {sweep}/{self._n_sweeps} sweeps, {facts}", file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Return seconds as a person would say them.

    Examples
    --------
    >>> duration(8.2), duration(200), duration(7300)
    ('8 s', '3 min 20 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
