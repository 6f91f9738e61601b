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


class Display:
    """Shows how far each of several tasks is, and how long it will take; nothing unless `is_shown`."""

    def __init__(self, totals: Mapping[str, int], unit: str, *, is_shown: bool = True) -> None:
        self._totals, self._unit, self._is_shown = totals, unit, is_shown
        self._begun: dict[str, tuple[int, float]] = {}
        self._shown = dict.fromkeys(totals, time.monotonic())
        self._lock = threading.Lock()
        in_notebook = "ipykernel" in sys.modules
        self._bars = _bars(in_notebook) if is_shown and (sys.stderr.isatty() or in_notebook) else None
        self._has_room = self._bars is None or self._bars.console.width >= WIDE
        self._seconds_between = SECONDS_BETWEEN_LINES if self._bars is None else SECONDS_BETWEEN_FRAMES
        if self._bars is not None:
            self._tasks = {name: self._bars.add_task(name, total=n, facts="") for name, n in totals.items()}

    def __enter__(self) -> Display:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def update(self, task: str, done: int, facts: Callable[[], str] | None = None) -> None:
        """Report progress; it is shown if enough time has passed since the last update, or if it is the last one."""
        # The first update only starts the clock: the time before it may include what is prepared once.
        now, total = time.monotonic(), self._totals[task]
        first, began = self._begun.setdefault(task, (done, now))
        is_due = now - self._shown[task] >= self._seconds_between or done >= total
        if not self._is_shown or done == first < total or not is_due:
            return
        self._shown[task] = now
        speed = (done - first) / max(now - began, 1e-9)
        is_known = done >= min(first + 2, total)
        parts = [f"{speed:,.0f} {self._unit}/s"] if speed >= 1.0 else []
        if done > first:
            parts.append(f"{duration(round((total - done) / speed))} left" if is_known else "time left unknown")
        if facts is not None and self._has_room:
            parts.append(facts())
        with self._lock:
            if self._bars is not None:
                self._bars.update(self._tasks[task], completed=done, facts=", ".join(parts))
            else:
                name = "" if task == self._unit else f"{task}: "
                print(", ".join([f"{name}{done}/{total} {self._unit}", *parts]), file=sys.stderr, flush=True)


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
    with Display({unit: total}, unit, is_shown=progress) as display:
        display.update(unit, done)
        yield lambda done: display.update(unit, done)
