"""Progress of several tasks, such as chains: bars in a terminal or a notebook, a line now and then in a log."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from bnmf.utils.text import duration

# Seconds between two updates of one task that are shown.
SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_FRAMES = 0.1
# Columns of a terminal in which bars have room for everything.
WIDE = 110


class Silent:
    """Shows nothing."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def update(self, task: str, done: int, facts: Callable[[], str]) -> None:
        """Report that `done` units of a task are finished."""


class Display(Silent):
    """Shows how far each of several tasks is."""

    def __init__(self, totals: Mapping[str, int], done: Mapping[str, int] | None = None, *, unit: str) -> None:
        self._totals, self._unit = dict(totals), unit
        self._shown = dict.fromkeys(totals, time.monotonic())
        self._lock = threading.Lock()
        in_notebook = "ipykernel" in sys.modules
        self._bars = _bars(in_notebook) if sys.stderr.isatty() or in_notebook else None
        self._seconds_between = SECONDS_BETWEEN_LINES if self._bars is None else SECONDS_BETWEEN_FRAMES
        if self._bars is not None:
            at, add = done or {}, self._bars.add_task
            self._tasks = {name: add(name, total=n, completed=at.get(name, 0), facts="") for name, n in totals.items()}

    def __enter__(self) -> Display:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def update(self, task: str, done: int, facts: Callable[[], str]) -> None:
        """Report progress; it is shown if enough time has passed since the last update, or if it is the last one."""
        now = time.monotonic()
        if now - self._shown[task] < self._seconds_between and done < self._totals[task]:
            return
        self._shown[task] = now
        with self._lock:
            if self._bars is not None:
                self._bars.update(self._tasks[task], completed=done, facts=facts())
            else:
                name = "" if task == self._unit else f"{task}: "
                print(f"{name}{done}/{self._totals[task]} {self._unit}, {facts()}", file=sys.stderr, flush=True)


def _bars(in_notebook: bool) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=not in_notebook)
    is_wide = console.width >= WIDE
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24 if is_wide else 6),
        MofNCompleteColumn(),
        TextColumn("{task.fields[facts]}"),
        *([TimeElapsedColumn()] if is_wide else []),
        console=console,
    )


@contextmanager
def counted(total: int, unit: str, progress: bool, done: int = 0) -> Iterator[Callable[[int], None]]:
    """Yield a function that is told how many units are done, and shows that and the time left if asked to."""
    rate = Rate(total, done)
    with Display({unit: total}, {unit: done}, unit=unit) if progress else Silent() as display:
        yield lambda done: display.update(unit, done, lambda: rate.left(done))


class Rate:
    """Speed and time left of one task; create it after the first unit, which may include what is prepared once."""

    def __init__(self, total: int, done: int) -> None:
        self._total, self._first, self._began = total, done, time.monotonic()

    def speed(self, done: int) -> float:
        """Return units per second."""
        return (done - self._first) / max(time.monotonic() - self._began, 1e-9)

    def left(self, done: int) -> str:
        """Return the time left as text, once two units have shown how long one takes."""
        if self._total > done < self._first + 2:
            return "time left not known yet"
        return f"{duration((self._total - done) / max(self.speed(done), 1e-9))} left"
