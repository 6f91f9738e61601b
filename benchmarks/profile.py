"""Time of each part of a sweep: ``python -m benchmarks.profile``.

The kernels are called as in every sweep with the default moves, with a clock around each call: the minimum CPU time of
one thread over many sweeps, so that other load on the machine matters little. Rows that share a system and rows with
residuals are drawn in two calls, and the time of A Z, which both compute, is measured once more and subtracted. Draws
are timed separately, on the conditionals of the last sweep.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
import numpy as np

from benchmarks.environment import ROOT
from benchmarks.matrices import describe, make
from bnmf.data.observed import ObservedMatrix
from bnmf.kernels.lanes import draw_lanes, first_lanes, load_streams
from bnmf.kernels.processor import TILE, WIDTH, registers_of, target_features
from bnmf.kernels.products import set_dense_product
from bnmf.kernels.rows import ROWS_PER_TILE, Data, Other, Scales, aligned_zeros
from bnmf.kernels.vectors import broadcast, load, square_root, store
from bnmf.model.model import Model
from bnmf.sampler import gibbs
from bnmf.sampler.moves import MIXING
from bnmf.sampler.state import State
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
DRAWS, WHOLE = "of these, truncated normal draws", "whole sweep"
# Name of a part, and the number of rows of the half-sweep if it is kept apart.
Part = tuple[str, int]


class Clock:
    """CPU time of each part in the current sweep, and its minimum over the sweeps, in microseconds."""

    def __init__(self) -> None:
        self.now: dict[Part, float] = {}
        self.fastest: dict[Part, float] = {}

    def timed(self, part: Part, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that adds its time to a part."""

        def wrapped(*args: Any) -> Any:
            began = time.thread_time_ns()
            result = call(*args)
            self.now[part] = self.now.get(part, 0.0) + (time.thread_time_ns() - began) / 1e3
            return result

        return wrapped

    def end_sweep(self) -> None:
        """Keep the smallest time of each part."""
        for part, spent in self.now.items():
            self.fastest[part] = min(spent, self.fastest.get(part, spent))
        self.now = {}


@numba.njit(nogil=True)
def dense_product(dense, scaled, n_components, row_scale, begin, end, product):
    """Call what only kernels call in the package."""
    set_dense_product(dense, scaled, n_components, row_scale, begin, end, product)


@contextmanager
def clocked(clock: Clock) -> Iterator[None]:
    """Put clocks around the kernels that a sweep calls. Parts of a half-sweep are kept apart by its number of rows."""
    before = {name: getattr(gibbs, name) for name in ("set_other", "draw_tiles", "rescale", "shear")}
    draw_tiles = before["draw_tiles"]
    product = np.zeros(0)

    def multiply(dense: Floats, scaled: Floats, n_components: int, row_scale: Floats, first: int, last: int) -> None:
        for tile in range(first, last):
            begin, end = tile * ROWS_PER_TILE, min((tile + 1) * ROWS_PER_TILE, len(dense))
            dense_product(dense, scaled, n_components, row_scale, begin, end, product)

    def draw(W, other, data, roots, scales, prior, max_term, streams, tiles, sharing, others, workspace):
        nonlocal product
        common, n_rows = (W, other, data, roots, scales, prior, max_term, streams, tiles), len(W)
        dense, scaled = Data(*data).dense, Other(*other).scaled
        if dense.size:
            if product.size != ROWS_PER_TILE * scaled.shape[1]:
                product = aligned_zeros(ROWS_PER_TILE * scaled.shape[1])
            row_scale = Scales(*scales).row_scale
            clock.timed((PRODUCT, n_rows), multiply)(dense, scaled, W.shape[1], row_scale, *tiles)
        if sharing is not None:
            clock.timed((SHARING, n_rows), draw_tiles)(*common, sharing, None, workspace)
        if others is not None:
            clock.timed((RESIDUALS, n_rows), draw_tiles)(*common, None, others, workspace)

    gibbs.draw_tiles = draw
    gibbs.set_other = clock.timed((GRAM, 0), before["set_other"])
    gibbs.rescale, gibbs.shear = (clock.timed((MOVES, 0), before[name]) for name in ("rescale", "shear"))
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(gibbs, name, function)


def parts_of(fastest: dict[Part, float]) -> dict[str, float]:
    """Return the time of each part over both half-sweeps. Both ways to draw rows have computed A Z, once in each."""
    parts: dict[str, float] = {}
    for (part, n_rows), spent in fastest.items():
        product = fastest.get((PRODUCT, n_rows), 0.0) if part in (SHARING, RESIDUALS) else 0.0
        parts[part] = parts.get(part, 0.0) + spent - product
    return parts


@numba.njit(nogil=True)
def draw_all(b, p, words):
    """Draw from every (b, p), eight at a time. Each draw depends on the one before, as in a row."""
    streams, last = load_streams(words), broadcast(0.0)
    for i in range(0, b.size // WIDTH * WIDTH, WIDTH):
        precisions = load(p, i)
        inverse = broadcast(1.0) / precisions
        now = load(b, i) + broadcast(1e-300) * last
        last, streams = draw_lanes(now, precisions, inverse, square_root(inverse), first_lanes(WIDTH), streams)
    store(words, 0, streams[0])
    out = np.zeros(WIDTH)
    store(out, 0, last)
    return out


def conditionals(A: Floats, W: Floats, Z: Floats, rate: float, sigma2: float) -> tuple[Floats, Floats]:
    """Return b and p of every entry of W, ordered as they are drawn: eight rows of one component at a time."""
    mask = ~np.isnan(A)
    residuals, zz = np.where(mask, A - W @ Z.T, 0.0), mask @ Z**2
    n = len(W) // WIDTH * WIDTH
    b, p = (residuals @ Z + zz * W) / sigma2 - rate, zz / sigma2
    b, p = (np.ascontiguousarray(x[:n].reshape(-1, WIDTH, W.shape[1]).swapaxes(1, 2)) for x in (b, p))
    return b.ravel(), p.ravel()


def time_of_draws(A: Floats, state: State, rate: float, seconds: float) -> float:
    """Return the minimum CPU time of all draws of a sweep, in microseconds."""
    clock, rng, total = Clock(), np.random.default_rng(0), 0.0
    for half, side in (((A, state.W, state.Zt), len(state.W)), ((A.T, state.Zt, state.W), len(state.Zt))):
        b, p = conditionals(*half, rate, state.sigma2)
        draw_all(b, p, np.ones(4 * WIDTH, np.uint64))  # compiles
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or not clock.fastest:
            clock.timed((DRAWS, 0), draw_all)(b, p, rng.integers(2**63, size=4 * WIDTH, dtype=np.uint64))
            clock.end_sweep()
        total += clock.fastest.pop((DRAWS, 0)) * side / (side // WIDTH * WIDTH)
    return total


def profile(A: Floats, n_components: int, seconds: float = 2.0) -> dict[str, float]:
    """Return the time of each part of a sweep and of the whole, in microseconds."""
    model = Model(ObservedMatrix.from_data(A, negative=True), n_components, "gee")
    stream, workers, clock = Stream(0), Workers(), Clock()
    state = gibbs.start(model, stream)

    def sweep() -> None:
        nonlocal state
        state = gibbs.step(model, state, stream, workers, MIXING)

    def run(call: Callable[[], None]) -> None:
        call()  # compiles
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
    with clocked(clock):
        run(sweep)
    found = parts_of(clock.fastest)
    parts = {part: found[part] for part in (GRAM, PRODUCT, SHARING, RESIDUALS) if part in found}
    draws = time_of_draws(A, state, model.coefficients(state.rates)[0].linear.flat[0], seconds / 4)
    draws *= MIXING.n_passes
    rest = whole - sum(found.values())
    return {**parts, DRAWS: draws, MOVES: found[MOVES], REST: rest, WHOLE: whole}


def lines_of(name: str, shape: tuple[int, int], n_components: int, parts: dict[str, float]) -> list[str]:
    """Return the table of one matrix."""
    whole, entries = parts[WHOLE], sum(shape) * n_components
    lines = [f"**{describe(name)}**, K = {n_components}: {whole:.0f} µs per sweep", ""]
    lines += ["| part | ns per entry | share |", "|---|---|---|"]
    lines += [
        f"| {part} | {1e3 * spent / entries:.1f} | {spent / whole:.0%} |"
        for part, spent in parts.items()
        if part != WHOLE
    ]
    return [*lines, ""]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=ROOT.parent / "shared" / "data")
    os.environ["BNMF_DATA"] = str(parser.parse_args().data_dir)
    registers = registers_of(platform.machine(), target_features())
    print(
        f"{registers.number} registers of {registers.lanes} numbers, tiles of {TILE.rows} x {TILE.columns} numbers.\n"
    )
    for name, n_components in MATRICES:
        A = make(name)
        print("\n".join(lines_of(name, A.shape, n_components, profile(A, n_components))), flush=True)


if __name__ == "__main__":
    main()
