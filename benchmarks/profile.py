"""Time of each part of a sweep: ``python -m benchmarks.profile``.

The kernels are called as in every sweep with the default moves, with a clock around each call: the minimum CPU time of
one thread over many sweeps, so that other load on the machine matters little. Rows that share a system and rows with
residuals are drawn in two calls, and the time of A Z, which both compute, is measured once more and subtracted.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks import pages
from benchmarks.environment import ROOT
from benchmarks.matrices import describe, make
from bnmf.data import half_sweeps
from bnmf.data.containers import pointers
from bnmf.data.half_sweeps import Split, min_sharing
from bnmf.data.observed import ObservedMatrix
from bnmf.data.views import Stored
from bnmf.kernels.compiled import LEVEL, ROWS_PER_TILE, HalfSweep, Memory, Prior, Rows
from bnmf.model.model import Model
from bnmf.sampler import gibbs, moves
from bnmf.sampler.moves import MIXING
from bnmf.sampler.streams import Stream
from bnmf.sampler.threads import Workers
from bnmf.utils.typing import Floats

MATRICES = (
    ("gdsc", 20),
    ("gdsc", 50),
    ("complete-160x254", 20),
    ("scattered-1000x400-20", 20),
    ("scattered-1000x400-80", 20),
    ("scattered-1000x400-80", 100),
    ("scattered-100x50-20", 5),
)
BURN_IN_SWEEPS, MIN_SWEEPS = 100, 20
GRAM, PRODUCT = "ZᵀZ and copies of Z", "A Z"
SHARING, RESIDUALS = "rows that share a system", "rows with residuals"
MOVES, REST = "rescaling and shear moves", "Python, noise and the rest"
WHOLE = "whole sweep"
# Name of a part, and the number of rows of the half-sweep if it is kept apart.
Part = tuple[str, int]


class Clock:
    """CPU time of each part in the current sweep, and its minimum over the sweeps, in microseconds."""

    def __init__(self) -> None:
        self.now: dict[Part, float] = {}
        self.fastest: dict[Part, float] = {}

    def timed(self, part: Part, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that adds its time to a part."""

        def wrapped(*args: Any, **options: Any) -> Any:
            began = time.thread_time_ns()
            result = call(*args, **options)
            self.now[part] = self.now.get(part, 0.0) + (time.thread_time_ns() - began) / 1e3
            return result

        return wrapped

    def end_sweep(self) -> None:
        """Keep the smallest time of each part."""
        for part, spent in self.now.items():
            self.fastest[part] = min(spent, self.fastest.get(part, spent))
        self.now = {}


def split_of(view: Stored, part: str, n_components: int) -> Split | None:
    """Return the rows that share a system, the others, or no row for the product; None if there is no such part."""
    split = view.split(min_sharing(n_components))
    shares = np.arange(view.n_rows) % ROWS_PER_TILE < np.repeat(split.n_sharing, np.diff(split.indptr))
    kept = {SHARING: shares, RESIDUALS: ~shares, PRODUCT: shares & False}[part]
    if not (view.form == "dense" if part == PRODUCT else kept.any()):
        return None
    counts = np.bincount(split.rows[kept] // ROWS_PER_TILE, minlength=len(split.n_sharing))
    return Split(pointers(counts), split.rows[kept], counts * (part == SHARING), split.repeats[kept])


class ClockedHalfSweep:
    """A half-sweep whose parts are drawn one after the other, each with a clock. It takes the place of `HalfSweep`."""

    def __init__(
        self, clock: Clock, views: dict[int, Stored], rows: Rows, W: Floats, Z: Floats, prior: Prior, *arguments: Any
    ) -> None:
        self.clock, (self.n_rows, self.n_components) = clock, W.shape
        view = views[self.n_rows]
        clock.timed((GRAM, 0), HalfSweep)(rows, W, Z, prior, *arguments)
        self.parts = {}
        for part in (PRODUCT, SHARING, RESIDUALS):
            split = split_of(view, part, self.n_components)
            if split is not None:
                some = Rows(
                    data=view.kernel_data, **split._asdict(), entry_scale=None, row_scale=np.ones(1),
                    squares=view.scaled().squares, ids=view.ids,
                )  # fmt: skip
                self.parts[part] = HalfSweep(some, W, Z, prior, Memory(), *arguments[1:])

    def draw(self, first: int, end: int, memory: Memory) -> None:
        """Draw the rows of some tiles."""
        for part, half in self.parts.items():
            self.clock.timed((part, self.n_rows), half.draw)(first, end, memory)


@contextmanager
def clocked(clock: Clock, data: ObservedMatrix) -> Iterator[None]:
    """Put clocks around the kernels that a sweep calls. Parts of a half-sweep are kept apart by its number of rows."""
    views = {view.n_rows: view for view in (data.rows, data.columns)}
    with (
        mock.patch.object(gibbs, "_runs_in_one_call", return_value=False),
        mock.patch.object(
            half_sweeps, "HalfSweep", lambda rows, *arguments, **_: ClockedHalfSweep(clock, views, rows, *arguments)
        ),
        mock.patch.object(moves, "rescale", clock.timed((MOVES, 0), moves.rescale)),
        mock.patch.object(moves, "shear", clock.timed((MOVES, 0), moves.shear)),
    ):
        yield


def parts_of(fastest: dict[Part, float]) -> dict[str, float]:
    """Return the time of each part over both half-sweeps. Both ways to draw rows have computed A Z, once in each."""
    parts: dict[str, float] = {}
    for (part, n_rows), spent in fastest.items():
        product = fastest.get((PRODUCT, n_rows), 0.0) if part in (SHARING, RESIDUALS) else 0.0
        parts[part] = parts.get(part, 0.0) + spent - product
    return parts


def profile(A: Floats, n_components: int, seconds: float = 2.0) -> dict[str, float]:
    """Return the time of each part of a sweep and of the whole, in microseconds."""
    model = Model(ObservedMatrix.from_data(A, negative=True), n_components, "gee")
    stream, workers, clock = Stream(0), Workers(), Clock()
    state = gibbs.start(model, stream)

    def sweep() -> None:
        nonlocal state
        state = gibbs.step(model, state, stream, workers, MIXING)

    def run(call: Callable[[], None]) -> None:
        call()
        clock.now = {}
        end, done = time.perf_counter() + seconds, 0
        while time.perf_counter() < end or done < MIN_SWEEPS:
            call()
            clock.end_sweep()
            done += 1

    for _ in range(BURN_IN_SWEEPS):
        sweep()
    run(clock.timed((WHOLE, 0), sweep))
    whole = clock.fastest.pop((WHOLE, 0))
    with clocked(clock, model.data):
        run(sweep)
    found = parts_of(clock.fastest)
    parts = {part: found[part] for part in (GRAM, PRODUCT, SHARING, RESIDUALS) if part in found}
    return {**parts, MOVES: found[MOVES], REST: whole - sum(found.values()), WHOLE: whole}


def page(profiles: dict[tuple[str, int], dict[str, float]]) -> str:
    """Return a table with a column for each matrix and K: the time of a sweep, and the share of each part."""
    names = [f"{describe(name)}, K = {k}" for name, k in profiles]
    rows = [["µs per sweep", *(f"{parts[WHOLE]:,.0f}" for parts in profiles.values())]]
    for part in (GRAM, PRODUCT, SHARING, RESIDUALS, MOVES, REST):
        shares = (f"{parts[part] / parts[WHOLE]:.0%}" if part in parts else "" for parts in profiles.values())
        rows.append([part, *shares])
    return f"Level {LEVEL}.\n\n{pages.table(['', *names], rows)}"


def main() -> None:
    """Measure, print the table, and put it into a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--write", type=Path, help="the page whose table is replaced")
    options = parser.parse_args()
    os.environ["BNMF_DATA"] = str(options.data_dir)
    text = page({case: profile(make(case[0]), case[1]) for case in MATRICES})
    print(text)
    if options.write:
        pages.write(options.write, profile=text)


if __name__ == "__main__":
    main()
