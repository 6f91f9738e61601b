"""Time of each part of a sweep: ``python -m benchmarks.profile``.

Each part is timed separately, as the minimum CPU time of one thread over many repetitions, so that other load on the
machine matters little. The peak rate is that of a BLAS dot product of two vectors in the L1 cache.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np

from bnmf.data.observed import ObservedMatrix
from bnmf.data.views import ROWS_PER_TILE, View
from bnmf.kernels.lanes import draw_lanes, first_lanes, load_streams, store_stream
from bnmf.kernels.random import stream_of
from bnmf.kernels.rescale import rescale
from bnmf.kernels.sweep import sweep_rows
from bnmf.kernels.systems import ROWS_PER_CHUNK, aligned_zeros, padded_length, set_system
from bnmf.kernels.vectors import WIDTH, broadcast, load, pointer_at, square_root, store
from bnmf.model.model import Model
from bnmf.priors.base import Coefficients
from bnmf.sampler.gibbs import block_sums, half_sweep, start, step
from bnmf.sampler.state import State
from bnmf.sampler.streams import Stream
from bnmf.sampler.threads import Workers, single_threaded_blas
from bnmf.utils.typing import Bools, Floats, Indices

GDSC = Path(__file__).parents[1].parent / "shared" / "data" / "gdsc" / "ic50.txt"
WARM_UP_SWEEPS = 100
BLAS, SYSTEMS = "BLAS: A Z and ZᵀZ", "systems of the rows"
# A new key for each call: with the same draws every time, the branch predictor would learn them.
KEYS = ((np.uint64(1), np.uint64(i)) for i in itertools.count())


def min_time(work: Callable[[], object], seconds: float = 2.0) -> float:
    """Return the minimum CPU time of one call, in microseconds."""
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
    """Draw from every (b, p), eight at a time. Each draw depends on the one before, as in a row."""
    words = np.zeros(4 * WIDTH, np.uint64)
    for lane in range(WIDTH):
        store_stream(words, lane, stream_of(np.uint64(1), np.uint64(2), lane))
    streams = load_streams(words)
    last = broadcast(0.0)
    for _ in range(times):
        for i in range(0, b.size // WIDTH * WIDTH, WIDTH):
            precisions = load(p, i)
            inverse = broadcast(1.0) / precisions
            now = load(b, i) + broadcast(1e-300) * last
            last, streams = draw_lanes(now, precisions, inverse, square_root(inverse), first_lanes(WIDTH), streams)
    out = np.zeros(WIDTH)
    store(out, 0, last)
    return out


@numba.njit(nogil=True)
def repeat_dot(x, y, times):
    """Compute the BLAS dot product of two vectors many times."""
    total = 0.0
    for _ in range(times):
        total += np.dot(x, y)
    return total


@numba.njit(nogil=True)
def set_systems(Z, gram, blocks, lists, lists_missing, rows, side):
    """Compute the systems of some rows, without drawing."""
    indptr, indices, values, block_indptr, block_indices, member_indptr, members = lists
    chunk, systems = aligned_zeros(ROWS_PER_CHUNK * side + WIDTH), aligned_zeros(2 * side * side)
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


def rows_with_own_system(view: View) -> Indices:
    """Return the rows whose system is computed: not complete rows, nor rows that reuse the system of the row before."""
    rows = view.order[~view.repeats]
    listed = np.diff(view.lists.indptr) + np.diff(view.lists.block_indptr)
    return rows[(listed[rows] > 0) | ~view.lists_missing[rows]]


def n_summed(view: View) -> int:
    """Return the number of positions and blocks that the systems of a half-sweep sum over."""
    rows, lists = rows_with_own_system(view), view.lists
    return int((np.diff(lists.indptr) + np.diff(lists.block_indptr))[rows].sum() + len(lists.members))


def conditionals(view: View, mask: Bools, W: Floats, Z: Floats, sigma2: float) -> Floats:
    """Return typical b and p of every entry of W."""
    residuals = np.where(mask, view.matrix - W @ Z.T, 0.0)
    zz = mask @ Z**2
    return np.stack([(residuals @ Z + zz * W) / sigma2 - 0.1, zz / sigma2]).reshape(2, -1)


def half_sweep_times(
    view: View, mask: Bools, initial: Floats, Z: Floats, prior: Coefficients, sigma2: float
) -> dict[str, float]:
    """Return the time of each part of a half-sweep, in microseconds."""
    W = initial.copy()
    side = padded_length(W.shape[1] + 1)
    tiles = [(i, min(i + ROWS_PER_TILE, view.n_rows)) for i in range(0, view.n_rows, ROWS_PER_TILE)]
    products = [view.product(*tile, Z) for tile in tiles]
    gram, error = Z.T @ Z, np.empty(view.n_rows)
    rows = rows_with_own_system(view)
    blocks = block_sums(view.lists, Z)
    b, p = conditionals(view, mask, W, Z, sigma2)
    workers, precision, ones = Workers(), np.array([1.0 / sigma2]), np.ones(len(Z))

    def kernel() -> None:
        for (begin, end), product in zip(tiles, products, strict=True):
            sweep_rows(
                W, Z, product, gram, blocks, *view.lists, view.lists_missing, view.order, view.repeats, view.ids,
                prior.linear, prior.quadratic, prior.pairwise, prior.max_rate, prior.paper_rule, precision, ones,
                ones[:1], *next(KEYS), begin, end, view.squares, error,
            )  # fmt: skip

    blas = min_time(lambda: (Z.T @ Z, [view.product(*tile, Z) for tile in tiles]))
    lists = tuple(view.lists)
    systems = (
        min_time(lambda: set_systems(Z, gram, blocks, lists, view.lists_missing, rows, side)) if rows.size else 0.0
    )
    of_blocks = min_time(lambda: block_sums(view.lists, Z))
    draws = min_time(lambda: draw_all(b, p, 10)) / 10
    whole = min_time(kernel)
    half = min_time(lambda: half_sweep(view, W, Z, prior, sigma2, next(KEYS), workers))
    return {
        BLAS: blas,
        SYSTEMS: systems + of_blocks,
        "truncated normal draws": draws,
        "rest of the kernel": whole - systems - draws,
        "Python code of the half-sweeps": half - whole - blas - of_blocks,
    }


def sweep_times(data: ObservedMatrix, state: State, model: Model) -> dict[str, float]:
    """Return the time of each part of a sweep, both half-sweeps together, in microseconds."""
    mask = data.mask()
    prior_W, prior_Z = model.coefficients
    of_rows = half_sweep_times(data.rows, mask, state.W, state.Zt, prior_W, state.sigma2)
    of_columns = half_sweep_times(data.columns, mask.T, state.Zt, state.W, prior_Z, state.sigma2)
    parts = {part: of_rows[part] + of_columns[part] for part in of_rows}
    of_W, of_Z = ((c.linear, c.quadratic, c.pairwise, c.max_rate) for c in model.coefficients)
    W, Zt = state.W.copy(), state.Zt.copy()
    parts["rescaling move"] = min_time(lambda: rescale(W, Zt, *of_W, *of_Z, *next(KEYS)))
    return parts


def dot_product_rate() -> float:
    """Return the multiply-adds per nanosecond of a dot product of vectors in the L1 cache."""
    x, y = aligned_zeros(1024), aligned_zeros(1024)  # unaligned vectors would be a third slower
    return 1000 * x.size / (1e3 * min_time(lambda: repeat_dot(x, y, 1000)))


def profile(name: str, A: Floats, n_components: int, peak_rate: float) -> list[str]:
    """Return the table of one data set, line by line."""
    data = ObservedMatrix.from_data(A, negative=True)
    model = Model(data, n_components, "gee")
    stream = Stream(0)
    workers = Workers()
    state = start(model, stream, workers=workers)
    for _ in range(WARM_UP_SWEEPS):
        state = step(model, state, stream, workers)
    whole = min_time(lambda: step(model, state, stream, workers), 4.0)
    with single_threaded_blas():
        parts = sweep_times(data, state, model)
    parts["rest of the step, and measurement error"] = whole - sum(parts.values())

    entries = sum(data.shape) * n_components
    n_vectors = padded_length(n_components + 1) // WIDTH
    work = {
        BLAS: 2 * A.size * n_components + sum(data.shape) * n_components**2,
        SYSTEMS: sum(map(n_summed, (data.rows, data.columns))) * WIDTH**2 * n_vectors * (n_vectors + 1) // 2,
    }
    lines = [f"**{name}**, {A.shape[0]} x {A.shape[1]}, K = {n_components}: {whole:.0f} µs per sweep", ""]
    lines += ["| part | ns per entry | share | rate relative to a dot product |", "|---|---|---|---|"]
    for part, spent in parts.items():
        rate = work[part] / (1e3 * spent) / peak_rate if part in work and spent else None
        relative = f"{rate:.1f}x" if rate else ""
        lines.append(f"| {part} | {1e3 * spent / entries:.1f} | {spent / whole:.0%} | {relative} |")
    return [*lines, ""]


def main() -> None:
    """Print the tables."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    rng = np.random.default_rng(0)
    if GDSC.exists():
        drug_sensitivity = np.loadtxt(GDSC)
    else:
        drug_sensitivity = rng.exponential(20.0, (707, 5)) @ rng.exponential(1.0, (5, 139))
        drug_sensitivity[rng.uniform(size=drug_sensitivity.shape) < 0.19] = np.nan
    complete = rng.exponential(1.0, (160, 10)) @ rng.exponential(1.0, (10, 254)) + rng.normal(size=(160, 254)) ** 2
    peak_rate = dot_product_rate()
    print(f"Dot product in the L1 cache: {peak_rate:.1f} multiply-adds per nanosecond.\n")
    for n_components in (20, 50):
        print(
            "\n".join(
                profile("GDSC" if GDSC.exists() else "synthetic, GDSC shape", drug_sensitivity, n_components, peak_rate)
            )
        )
    print("\n".join(profile("complete", complete, 20, peak_rate)))


if __name__ == "__main__":
    main()
