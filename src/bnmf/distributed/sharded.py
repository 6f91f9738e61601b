"""ShardedMatrix: the data of a fit in blocks on a cluster, and half-sweeps over them. No process holds all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partialmethod
from itertools import pairwise
from operator import attrgetter, methodcaller
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from dask import delayed

from bnmf.data.half_sweeps import ScaledView
from bnmf.data.limits import Limits
from bnmf.data.observed import DENSE_FRACTION, ObservedMatrix, every_entry
from bnmf.distributed import blocks as on_workers
from bnmf.distributed.blocks import BlockInput, BlockStats, Broadcast
from bnmf.distributed.cluster import LOST, Blocks, Cluster, Placed
from bnmf.distributed.sources import Source
from bnmf.kernels.compiled import ROWS_PER_TILE
from bnmf.priors.base import Coefficients
from bnmf.utils.typing import Array, Floats, Indices, Ints

# Memory of one listed entry: its value and its position.
LISTED_BYTES = 12
# Blocks for each thread of the cluster, if there are enough tiles of rows: workers that come or go take whole blocks.
BLOCKS_PER_THREAD = 2


class ShardedView:
    """Rows of the data, or of its transpose, in blocks; see :class:`bnmf.data.views.Stored`."""

    def __init__(self, blocks: Blocks, bounds: Ints, n_columns: int) -> None:
        self.blocks, self.bounds = blocks, bounds
        self.n_rows, self.n_columns = int(bounds[-1]), n_columns

    @cached_property
    def n_observed(self) -> Ints:
        """Number of observed entries of each row."""
        return self.of_rows(attrgetter("n_observed"))

    def of_rows(self, function: Callable[[Any], Any]) -> Any:
        """Return the results of a function of rows, one for each, computed where the rows are."""
        return np.concatenate(self.blocks.over(lambda block, *_: function(block.view)))

    def _numbers(self, name: str) -> Floats:
        """Return what a method of rows returns, one number for each."""
        return self.of_rows(methodcaller(name))

    minima = partialmethod(_numbers, "minima")
    sums = partialmethod(_numbers, "sums")
    root_mean_squares = partialmethod(_numbers, "root_mean_squares")
    resolutions = partialmethod(_numbers, "resolutions")
    deviations = partialmethod(_numbers, "deviations")
    gaps = partialmethod(_numbers, "gaps")

    def scaled(self, entry_scale: Floats | None = None, row_scale: Floats | None = None) -> ScaledView:
        """Return a view whose data are multiplied by factors of columns and rows, as they are read."""
        return ShardedScaledView(self, entry_scale, row_scale)

    def observed_values(self, row: int) -> Floats:
        """Return the observed entries of a row."""
        own = self.by_block(np.array([row]))
        return self.blocks.over(lambda block, _, rows: block.view.observed_values(rows[0]), own)[0]

    def by_block(self, rows: Indices) -> dict[int, Indices]:
        """Return the numbers of rows within their block, by block."""
        owners = np.searchsorted(self.bounds, rows, side="right") - 1
        return {int(number): rows[owners == number] - self.bounds[number] for number in np.unique(owners)}

    def slices(self) -> list[slice]:
        """Return the rows of each block."""
        return [slice(*ends) for ends in pairwise(self.bounds.tolist())]


class ShardedScaledView(ScaledView):
    """A sharded view whose data are multiplied by factors; its half-sweeps run on the cluster."""

    def half_sweep(  # type: ignore[override]
        self,
        W: Floats,
        Z: Floats,
        prior: Coefficients,
        row_variance: Floats,
        entry_variance: Floats,
        key: tuple[int, int],
        workers: Any,
        **options: Any,
    ) -> Floats:
        own, given = self.inputs(W, Z, prior, row_variance, entry_variance)
        found = self.view.blocks.over(on_workers.draw_block, own, given, stream=key, **options)
        for rows, (drawn_W, _) in zip(self.view.slices(), found, strict=True):
            W[rows] = drawn_W
        return np.concatenate([errors for _, errors in found]) if options["needs_errors"] else np.empty(len(W))

    def squared_errors(self, W: Floats, Z: Floats, workers: Any = None) -> Floats:
        own, given = self.inputs(W, Z, None, np.ones(1), np.ones(1))
        return np.concatenate(self.view.blocks.over(on_workers.errors_of_block, own, given))

    def refresh(self) -> None:
        """Do nothing: blocks with new latent values are made together with their sums."""

    def inputs(
        self, W: Floats, Z: Floats, prior: Coefficients | None, row_variance: Floats, entry_variance: Floats
    ) -> tuple[dict[int, BlockInput], Broadcast]:
        """Return the arguments of each block for its rows, and those of all blocks."""
        own = {}
        for number, rows in enumerate(self.view.slices()):
            variance, scale = (x[rows] if len(x) > 1 else x for x in (row_variance, self.row_scale))
            of_prior = None if prior is None else prior.of_rows(rows)
            own[number] = BlockInput(rows.start, W[rows], of_prior, variance, scale)
        return own, Broadcast(Z, entry_variance, self.entry_scale)


class ShardedLimits:
    """Limits of entries, which are with the blocks of rows."""

    def __init__(self, rows: ShardedView, n: int) -> None:
        self.view, self._n = rows, n

    def __len__(self) -> int:
        """Return the number of these entries."""
        return self._n

    def of_rows(self, rows: Indices) -> Limits | None:
        """Return the limits of some rows, renumbered from 0; `rows` must ascend."""
        by_block = self.view.by_block(rows)
        found = self.view.blocks.over(lambda block, _, rows: block.limits and block.limits.of_rows(rows), by_block)
        starts = np.cumsum([0, *map(len, by_block.values())])
        parts = [replace(part, rows=part.rows + start) for part, start in zip(found, starts, strict=False) if part]
        if not parts:
            return None
        joined = (np.concatenate([getattr(part, n) for part in parts]) for n in ("rows", "columns", "lower", "upper"))
        return Limits((len(rows), self.view.n_columns), *joined)

    def at(self, rows: Array, columns: Array) -> tuple[Floats, Floats]:
        """Return lower and upper limits at paired positions, NaN where an entry is exact."""
        distinct, place = np.unique(rows, return_inverse=True)
        found = self.of_rows(distinct)
        return (np.full(len(place), np.nan),) * 2 if found is None else found.at(place, columns)


@dataclass(frozen=True, eq=False)
class ShardedMatrix(ObservedMatrix):
    """A matrix of which some entries were observed, as blocks of rows and of columns on the workers of a cluster."""

    rows: ShardedView  # type: ignore[assignment]
    columns: ShardedView  # type: ignore[assignment]
    layout: Any = None
    in_memory: ClassVar[bool] = False

    @classmethod
    def from_dask(
        cls, X: Any, *, lower: Any = None, upper: Any = None, unstored: str = "zero", negative: bool = False
    ) -> ShardedMatrix:
        """Take a matrix that is on a cluster, or that its workers can load: every block is loaded once to check it."""
        cluster, source = Cluster(), Source.of(X, lower, upper)
        shape = int(source.array.shape[0]), int(source.array.shape[1])
        surveys = [delayed(on_workers.survey)(part, unstored, negative) for part in source.parts()]
        found: list[BlockStats] = cluster.compute(surveys)
        n_stored, n_observed, n_limited = (int(sum(block[i] for block in found)) for i in range(3))
        if n_observed == 0:
            raise ValueError("X has no observed entry at all: there is nothing to learn from")
        kind = "listed" if not sp.issparse(source.array._meta) or unstored == "missing" else "sparse"
        if n_stored >= DENSE_FRACTION * shape[0] * shape[1]:
            kind = "dense"
        n_bytes = 8 * shape[0] * shape[1] if kind == "dense" else LISTED_BYTES * n_stored
        n_threads = sum(cluster.threads().values())
        bounds = [bounds_of(n, n_bytes, n_threads, cluster.block_bytes()) for n in shape]
        layout = Layout(cluster, source, kind, unstored, bounds)
        rows, columns = layout.views()
        nonnegative = min(block.lowest for block in found) >= 0
        limits: Any = ShardedLimits(rows, n_limited) if n_limited else None
        return cls(shape, n_observed, rows, columns, nonnegative=nonnegative, limits=limits, layout=layout)

    @property
    def has_implicit_zeros(self) -> bool:
        return bool(self.layout.kind == "sparse")

    def shifted(self, offset: Floats) -> ShardedMatrix:
        self.layout.cluster.release()  # what was needed to find the offset
        rows, columns = self.layout.views(offset)
        limits: Any = None if self.limits is None else ShardedLimits(rows, len(self.limits))
        return replace(self, rows=rows, columns=columns, nonnegative=False, limits=limits)

    def filled(self, has_outliers: bool) -> ShardedFilled:
        return ShardedFilled(self)

    def of_rows(self, function: Callable[[Any, Limits | None], Any]) -> Any:
        return np.concatenate(self.rows.blocks.over(lambda block, *_: function(*block)))

    def every(self, step: int) -> tuple[Indices, Floats, Floats, Floats]:
        before = [int(self.rows.n_observed[: rows.start].sum()) for rows in self.rows.slices()]
        first = {number: -n % step for number, n in enumerate(before)}
        found = self.rows.blocks.over(lambda block, _, first: every_entry(block.view, block.limits, first, step), first)
        columns, values, lower, upper = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return columns, values, lower, upper

    def check_listable(self) -> None:
        # Each block has its own lists, and weights would have to follow them.
        raise ValueError(
            "noise that differs between entries needs X in one process: Student's t, noise_scale and "
            "sample_weight do not work on a cluster"
        )

    def dense_rows(self, rows: Indices) -> Floats:
        found = self.rows.blocks.over(
            lambda block, _, rows: block.view.select(rows).dense_with_nan(), self.rows.by_block(rows)
        )
        return np.concatenate(found)

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        with self.released():
            yield from super().blocks()

    @contextmanager
    def released(self) -> Iterator[None]:
        try:
            yield
        finally:
            self.layout.cluster.release()


# --- latent values


class FilledBlocks(Blocks):
    """Blocks of rows (side 0) or of columns (side 1) with latent values."""

    def __init__(self, like: Blocks, filled: ShardedFilled, side: int) -> None:
        super().__init__(like.cluster, like.recipes)
        self.filled, self.side = filled, side

    def on(self, threads: Mapping[str, int]) -> Placed:
        return self.filled.made(threads)[self.side]


class ShardedFilled:
    """Rows and columns with the latent values of one chain, drawn when they are needed, and again if they were lost."""

    # Those of a block of rows are drawn where it is, from the streams of its rows, and only the values that differ from
    # the data are sent on, from worker to worker, to the blocks of columns.

    def __init__(self, data: ShardedMatrix) -> None:
        self.data, self._views = data, []
        self._sides: tuple[Placed, ...] = ()
        self._workers: set[str] = set()
        for side, view in enumerate((data.rows, data.columns)):
            _ = view.n_observed  # which does not change
            self._views.append(copy(view))
            self._views[-1].blocks = FilledBlocks(view.blocks, self, side)

    def draw_all(
        self,
        scaled: ShardedScaledView,
        key: tuple[int, int],
        workers: Any,
        *,
        W: Floats,
        Z: Floats,
        row_variance: Floats,
        column_variance: Floats,
        **options: Any,
    ) -> None:
        """Keep what all latent values are drawn from: W and Z will have changed when columns are needed."""
        self._given = scaled.inputs(W.copy(), Z.copy(), None, row_variance, column_variance)
        self._options = {**options, "stream": key, "is_dense": self.data.is_mostly_observed}
        self._sides = ()

    def made(self, threads: Mapping[str, int]) -> tuple[Placed, ...]:
        """Return blocks of rows and of columns with latent values."""
        is_lost = any(future.status in LOST for side in self._sides for future, _ in side)
        if self._sides and not is_lost and self._workers <= set(threads):
            return self._sides
        submit, (own, given) = self.data.layout.cluster.client.submit, self._given
        columns, bounds = self.data.columns.blocks.on(threads), self.data.columns.bounds
        columns_of: dict[str, list[int]] = {}
        for number, (_, worker) in enumerate(columns):
            columns_of.setdefault(worker, []).append(number)
        options = {**self._options, "columns_of": columns_of, "bounds": bounds}
        drawn = self.data.rows.blocks.submit(threads, on_workers.draw_latent, own, given, **options)
        futures = [future for future, _ in drawn]
        # One message from each block of rows to each worker.
        pieces = {
            worker: [submit(methodcaller("piece", worker), future, pure=False) for future in futures]
            for worker in columns_of
        }
        filled_rows = [
            (submit(attrgetter("rows"), future, workers=[worker], pure=False), worker) for future, worker in drawn
        ]
        filled_columns = []
        for number, (block, worker) in enumerate(columns):
            what = block, number, int(bounds[number]), pieces[worker]
            filled_columns.append((submit(on_workers.fill_columns, *what, workers=[worker], pure=False), worker))
        self._drawn = futures if "log_odds" in options else []  # others may be forgotten
        self._sides, self._workers = (filled_rows, filled_columns), set(threads)
        return self._sides

    def gross(self) -> Floats:
        """Return the number of gross errors in each column, and their sum of squares in units of the model."""
        cluster = self.data.layout.cluster

        def work(threads: Mapping[str, int]) -> list[Floats]:
            self.made(threads)
            sums = [cluster.client.submit(attrgetter("gross"), future, pure=False) for future in self._drawn]
            return cluster.results(sums, threads)

        return np.concatenate(cluster.until_done(work)).sum(axis=0)

    def scaled(self, rows: ScaledView, columns: ScaledView) -> tuple[ScaledView, ScaledView]:
        """Return rows and columns with the latest values, and the factors of other views."""
        return tuple(  # type: ignore[return-value]
            view.scaled(like.entry_scale, like.row_scale)
            for view, like in zip(self._views, (rows, columns), strict=True)
        )


# --- blocks


def bounds_of(n_rows: int, n_bytes: int, n_threads: int, block_bytes: int) -> Ints:
    """Return where blocks of rows begin, and where the last one ends."""
    n_tiles = -(-n_rows // ROWS_PER_TILE)
    per_thread = max(BLOCKS_PER_THREAD, math.ceil(n_bytes / (block_bytes * n_threads)))
    n_blocks = min(n_tiles, per_thread * n_threads)
    return np.minimum(np.arange(n_blocks + 1) * n_tiles // n_blocks * ROWS_PER_TILE, n_rows)


class Layout(NamedTuple):
    """How data are cut: their source, the form of their blocks, and where blocks of rows and of columns begin."""

    cluster: Cluster
    source: Source
    kind: str
    unstored: str
    bounds: Sequence[Ints]

    def views(self, offset: Floats | None = None) -> tuple[ShardedView, ShardedView]:
        """Return rows and columns less an offset, of which no block is computed before it is needed."""
        row_bounds, column_bounds = self.bounds
        # Chunks that go through the disks of workers (the default of some clusters) are lost with a worker as a whole.
        how: Any = {"method": "tasks", "block_size_limit": self.cluster.block_bytes()}
        by_row = self.source.parts((tuple(np.diff(row_bounds)), -1), **how)
        by_column = self.source.parts((-1, tuple(np.diff(column_bounds))), **how)
        make = delayed(on_workers.make_block, pure=False)
        shift = None if offset is None else delayed(offset)
        rows = [make(part, self.kind, self.unstored, shift, "row") for part in by_row]
        columns = [
            make(part, self.kind, self.unstored, None if offset is None else offset[slice(*ends)], "column")
            for part, ends in zip(by_column, pairwise(column_bounds.tolist()), strict=True)
        ]
        return (
            ShardedView(Blocks(self.cluster, rows), row_bounds, int(column_bounds[-1])),
            ShardedView(Blocks(self.cluster, columns), column_bounds, int(row_bounds[-1])),
        )
