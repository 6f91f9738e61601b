"""Where the time of a sweep goes: python benchmarks/profile.py.

Every part is timed by itself, in CPU time of one thread, as the least of many repetitions, so that other work on the
machine matters little. The peak is that of a dot product of two vectors in the nearest cache, by BLAS.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np

from bnmf.gibbs import Model, State, Stream, block_sums, half_sweep, start, step
from bnmf.kernels.lanes import draw_lanes, first_lanes, set_stream, streams_in
from bnmf.kernels.random import stream_of
from bnmf.kernels.rescale import rescale
from bnmf.kernels.sweep import sweep_rows
from bnmf.kernels.systems import CHUNK, aligned, padded, set_system
from bnmf.kernels.vectors import WIDTH, load, pointer_at, root, splat, store
from bnmf.observed import ObservedMatrix, View
from bnmf.priors import Coefficients
from bnmf.workers import TILE, Workers, single_threaded_blas

GDSC = Path(__file__).parents[1].parent / "shared" / "data" / "gdsc" / "ic50.txt"
WARM_UP = 100
BLAS, SUMS = "BLAS: A Z and ZᵀZ", "systems of the rows"
KEYS = ((np.uint64(1), np.uint64(i)) for i in itertools.count())  # new ones: the processor would learn the draws of one


def fastest(work: Callable[[], object], seconds: float = 2.0) -> float:
    """Return the least CPU time of one call, in microseconds."""
    work()
    times: list[int] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        begin = time.thread_time_ns()
        work()
        times.append(time.thread_time_ns() - begin)
    return min(times) / 1e3


@numba.njit(nogil=True)
def draw_all(b, p, times):
    """Draw from every (b, p) in turn, eight at a time, each waiting for the one before, as the entries of a row do."""
    words = np.zeros(4 * WIDTH, np.uint64)
    for lane in range(WIDTH):
        set_stream(words, lane, stream_of(np.uint64(1), np.uint64(2), lane))
    streams = streams_in(words)
    last = splat(0.0)
    for _ in range(times):
        for i in range(0, b.size // WIDTH * WIDTH, WIDTH):
            precisions = load(p, i)
            inverse = splat(1.0) / precisions
            now = load(b, i) + splat(1e-300) * last
            last, streams = draw_lanes(now, precisions, inverse, root(inverse), first_lanes(WIDTH), streams)
    out = np.zeros(WIDTH)
    store(out, 0, last)
    return out


@numba.njit(nogil=True)
def dot_again(x, y, times):
    """Multiply two vectors by BLAS, again and again."""
    total = 0.0
    for _ in range(times):
        total += np.dot(x, y)
    return total


@numba.njit(nogil=True)
def add_all(Z, gram, blocks, lists, lists_missing, rows, side):
    """Make the system of every one of some rows, and draw nothing."""
    indptr, indices, values, block_indptr, block_indices, member_indptr, members = lists
    chunk, systems = aligned(CHUNK * side + WIDTH), aligned(2 * side * side)
    for k in range(len(gram)):
        systems[k * side : k * side + len(gram)] = gram[k]
    for row in rows:
        set_system(
            row, lists_missing[row], Z.shape[1], pointer_at(Z, 0), Z.shape[0], pointer_at(indptr, 0),
            pointer_at(indices, 0), indices.size, pointer_at(values, 0), pointer_at(block_indptr, 0),
            pointer_at(block_indices, 0), pointer_at(member_indptr, 0), pointer_at(members, 0), pointer_at(blocks, 0),
            pointer_at(chunk, 0), pointer_at(systems, 0), side * side, side,
        )  # fmt: skip
    return chunk, systems


def with_own_system(view: View) -> np.ndarray:
    """Return the rows whose system is made: rows with the same holes share it, and full rows have that of all."""
    rows = view.order[~view.repeats]
    listed = np.diff(view.lists.indptr) + np.diff(view.lists.block_indptr)
    return rows[(listed[rows] > 0) | ~view.lists_missing[rows]]


def summed(view: View) -> int:
    """Return how many positions and blocks a half-sweep sums up."""
    rows, lists = with_own_system(view), view.lists
    return int((np.diff(lists.indptr) + np.diff(lists.block_indptr))[rows].sum() + len(lists.members))


def conditionals(view: View, mask: np.ndarray, W: np.ndarray, Z: np.ndarray, sigma2: float) -> np.ndarray:
    """Return b and p of every entry of W, as a sweep meets them."""
    residuals = np.where(mask, view.matrix - W @ Z.T, 0.0)
    zz = mask @ Z**2
    return np.stack([(residuals @ Z + zz * W) / sigma2 - 0.1, zz / sigma2]).reshape(2, -1)


def parts_of_half(
    view: View, seen: np.ndarray, given: np.ndarray, Z: np.ndarray, prior: Coefficients, sigma2: float
) -> dict[str, float]:
    """Return the time of each part of a half-sweep."""
    W = given.copy()
    side = padded(W.shape[1] + 1)
    tiles = [(i, min(i + TILE, view.n_rows)) for i in range(0, view.n_rows, TILE)]
    products = [view.product(*tile, Z) for tile in tiles]
    gram, error = Z.T @ Z, np.empty(view.n_rows)
    rows = with_own_system(view)
    blocks = block_sums(view.lists, Z)
    b, p = conditionals(view, seen, W, Z, sigma2)
    workers = Workers()

    def kernel() -> None:
        for (begin, end), product in zip(tiles, products, strict=True):
            sweep_rows(
                W, Z, product, gram, blocks, *view.lists, view.lists_missing, view.order, view.repeats, view.ids,
                prior.linear, prior.quadratic, prior.coupling, prior.slope, prior.published, 1.0 / sigma2,
                *next(KEYS), begin, end, view.squares, error,
            )  # fmt: skip

    blas = fastest(lambda: (Z.T @ Z, [view.product(*tile, Z) for tile in tiles]))
    lists = tuple(view.lists)
    sums = fastest(lambda: add_all(Z, gram, blocks, lists, view.lists_missing, rows, side)) if rows.size else 0.0
    of_blocks = fastest(lambda: block_sums(view.lists, Z))
    draws = fastest(lambda: draw_all(b, p, 10)) / 10
    whole = fastest(kernel)
    half = fastest(lambda: half_sweep(view, W, Z, prior, sigma2, next(KEYS), workers))
    return {
        BLAS: blas,
        SUMS: sums + of_blocks,
        "truncated normal draws": draws,
        "rest of the kernel": whole - sums - draws,
        "Python of the halves": half - whole - blas - of_blocks,
    }


def parts_of(data: ObservedMatrix, state: State, model: Model) -> dict[str, float]:
    """Return the time of each part of a sweep, both halves together."""
    mask = data.mask()
    prior_W, prior_Z = model.coefficients
    of_rows = parts_of_half(data.rows, mask, state.W, state.Zt, prior_W, state.sigma2)
    of_columns = parts_of_half(data.columns, mask.T, state.Zt, state.W, prior_Z, state.sigma2)
    parts = {part: of_rows[part] + of_columns[part] for part in of_rows}
    of_W, of_Z = ((c.linear, c.quadratic, c.coupling, c.slope) for c in model.coefficients)
    W, Zt = state.W.copy(), state.Zt.copy()
    parts["rescaling move"] = fastest(lambda: rescale(W, Zt, *of_W, *of_Z, *next(KEYS)))
    return parts


def peak() -> float:
    """Return multiply-adds per nanosecond of a dot product in the nearest cache."""
    x, y = aligned(1024), aligned(1024)  # off a cache line it would be a third slower
    return 1000 * x.size / (1e3 * fastest(lambda: dot_again(x, y, 1000)))


def profile(name: str, A: np.ndarray, n_components: int, peak_rate: float) -> list[str]:
    """Return the lines of the table of one data set."""
    data = ObservedMatrix.from_data(A, negative=True)
    model = Model(data, n_components, "gee")
    stream = Stream(0)
    workers = Workers()
    state = start(model, stream, workers=workers)
    for _ in range(WARM_UP):
        state = step(model, state, stream, workers)
    whole = fastest(lambda: step(model, state, stream, workers), 4.0)
    with single_threaded_blas():
        parts = parts_of(data, state, model)
    parts["rest of the step, and error of measurement"] = whole - sum(parts.values())

    entries = sum(data.shape) * n_components
    side = padded(n_components + 1) // WIDTH
    work = {
        BLAS: 2 * A.size * n_components + sum(data.shape) * n_components**2,
        SUMS: sum(map(summed, (data.rows, data.columns))) * WIDTH**2 * side * (side + 1) // 2,
    }
    lines = [f"**{name}**, {A.shape[0]} x {A.shape[1]}, K = {n_components}: {whole:.0f} µs a sweep", ""]
    lines += ["| part | ns an entry | share | rate over a dot product |", "|---|---|---|---|"]
    for part, spent in parts.items():
        share = work[part] / (1e3 * spent) / peak_rate if part in work and spent else None
        of_peak = f"{share:.1f}x" if share else ""
        lines.append(f"| {part} | {1e3 * spent / entries:.1f} | {spent / whole:.0%} | {of_peak} |")
    return [*lines, ""]


def main() -> None:
    """Print the tables."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    rng = np.random.default_rng(0)
    if GDSC.exists():
        holes = np.loadtxt(GDSC)
    else:
        holes = rng.exponential(20.0, (707, 5)) @ rng.exponential(1.0, (5, 139))
        holes[rng.uniform(size=holes.shape) < 0.19] = np.nan
    full = rng.exponential(1.0, (160, 10)) @ rng.exponential(1.0, (10, 254)) + rng.normal(size=(160, 254)) ** 2
    rate = peak()
    print(f"Peak of a dot product in the nearest cache: {rate:.1f} multiply-adds a nanosecond.\n")
    for n_components in (20, 50):
        print("\n".join(profile("GDSC" if GDSC.exists() else "like GDSC", holes, n_components, rate)))
    print("\n".join(profile("full", full, 20, rate)))


if __name__ == "__main__":
    main()
