"""ShardedMatrix: the data of a fit in blocks on a cluster. No process holds all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NoReturn, cast

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask import delayed

from bnmf.data import identity
from bnmf.data.observed import DENSE_FRACTION, ObservedMatrix
from bnmf.data.views import ROWS_PER_TILE, ScaledView, View
from bnmf.distributed import blocks as on_workers
from bnmf.distributed.blocks import Given, Own, Survey
from bnmf.distributed.cluster import Blocks, Cluster, current_client
from bnmf.distributed.sources import as_dask_array
from bnmf.posterior import notes
from bnmf.priors.base import Coefficients
from bnmf.sampler import gibbs
from bnmf.sampler.streams import Key
from bnmf.sampler.threads import Workers
from bnmf.utils.typing import Bools, Floats, Indices, Ints, Words

# Size of a block that is aimed at, in bytes; making one takes a few times as much for a moment.
BLOCK_BYTES = 2**25
# Blocks for each thread of the cluster, if there are enough tiles of rows: with one, a slow worker stops all others.
BLOCKS_PER_THREAD = 2
# Memory of one listed entry: its value and its position.
LISTED_BYTES = 12


class ShardedView:
    """Rows of the data, or of its transpose, in blocks: what the model and the sampler ask of a view.

    Parameters
    ----------
    cluster : Cluster
        Where the blocks are.
    blocks : Blocks
        Blocks of whole rows, which begin at multiples of the number of rows in a tile, so that rows share what they
        would share in one process.
    bounds : ndarray of int of shape (blocks + 1,)
        First row of each block, and the number of rows.
    n_columns : int
        Length of a row.
    """

    def __init__(self, cluster: Cluster, blocks: Blocks, bounds: Ints, n_columns: int) -> None:
        self.cluster, self.blocks, self.bounds, self.n_columns = cluster, blocks, bounds, n_columns
        self._numbers: dict[str, Any] = {}

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.bounds[-1])

    def scaled(self, entry_scale: Floats | None = None, row_scale: Floats | None = None) -> ShardedScaledView:
        """Return a view whose data are multiplied by factors of columns and rows, as they are read."""
        return ShardedScaledView(cast(View, self), entry_scale, row_scale)

    def slices(self) -> list[slice]:
        """Return the rows of each block."""
        return [slice(int(a), int(b)) for a, b in zip(self.bounds[:-1], self.bounds[1:], strict=True)]

    def owner(self, row: int) -> int:
        """Return the number of the block that has a row."""
        return int(np.searchsorted(self.bounds, row, side="right")) - 1

    # --- numbers of each row, computed where it is

    @property
    def n_observed(self) -> Ints:
        """Number of observed entries."""
        return self._of_rows("n_observed")

    def resolutions(self) -> Floats:
        """Return the step in which the entries of each row are recorded."""
        return self._of_rows("resolutions")

    def root_mean_squares(self) -> Floats:
        """Return the root of the mean of a² of each row."""
        return self._of_rows("root_mean_squares")

    def largest_magnitudes(self) -> Floats:
        """Return the largest magnitude of the observed entries of each row."""
        return self._of_rows("largest_magnitudes")

    def sums(self) -> Floats:
        """Return the sum of the observed entries of each row."""
        return self._of_rows("sums")

    def _of_rows(self, name: str) -> Any:
        if name not in self._numbers:
            found = self.cluster.over(self.blocks, on_workers.numbers_of_rows, name=name)
            self._numbers[name] = np.concatenate(found)
        return self._numbers[name]

    def observed_values(self, row: int) -> Floats:
        """Return the observed entries of a row."""
        number = self.owner(row)
        own = {number: row - int(self.bounds[number])}
        return self.cluster.over(self.blocks, on_workers.values_of_row, own)[0]


class ShardedScaledView(ScaledView):
    """A sharded view whose data are multiplied by factors; its half-sweeps run on the cluster."""

    @property
    def shards(self) -> ShardedView:
        """The blocks."""
        return cast(ShardedView, self.view)

    def given(self, Z: Floats, entry_variance: Floats) -> Given:
        """Return what all blocks need of the other side."""
        return Given(Z, entry_variance, self.entry_scale)

    def own(self, W: Floats, prior: Coefficients | None, row_variance: Floats) -> dict[int, Own]:
        """Return what each block needs of its rows."""
        row_scale = self.row_scale if self.has_row_scale else None
        return {
            number: Own(
                rows.start,
                W[rows],
                None if prior is None else prior_of(prior, rows),
                part(row_variance, rows),
                None if row_scale is None else part(row_scale, rows),
            )
            for number, rows in enumerate(self.shards.slices())
        }  # fmt: skip

    def squared_errors(self, W: Floats, Z: Floats, start: int, stop: int, out: Floats) -> None:
        """Write the squared errors of rows `start` to `stop`."""
        out[start:stop] = errors_on_cluster(self, W, Z)[start:stop]


def part(array: Any, rows: slice) -> Any:
    """Return the rows of an array that may have one for all."""
    return array[rows] if len(array) > 1 else array


def prior_of(prior: Coefficients, rows: slice) -> Coefficients:
    """Return the prior of some rows."""
    return replace(prior, linear=part(prior.linear, rows), quadratic=part(prior.quadratic, rows))


@gibbs.half_sweep.register(ShardedScaledView)
def half_sweep_on_cluster(
    view: ShardedScaledView,
    W: Floats,
    Z: Floats,
    prior: Coefficients,
    row_variance: Floats,
    entry_variance: Floats,
    key: Key,
    workers: Workers,
    ids: Words | None = None,
    *,
    needs_errors: bool = True,
    n_passes: int = 1,
    roots: None = None,
    drawn: tuple[int, int] | None = None,
) -> Floats:
    """Run :func:`bnmf.sampler.gibbs.half_sweep` on each block, where it is; entries have no weights there."""
    shards = view.shards
    found = shards.cluster.over(
        shards.blocks,
        on_workers.draw_block,
        view.own(W, prior, row_variance),
        view.given(Z, entry_variance),
        stream=key,
        needs_errors=needs_errors,
        n_passes=n_passes,
        drawn=drawn,
    )
    for rows, block in zip(shards.slices(), found, strict=True):
        W[rows] = block.W
    return np.concatenate([block.errors for block in found]) if needs_errors else np.empty(len(W))


@gibbs.squared_errors.register(ShardedScaledView)
def errors_on_cluster(view: ShardedScaledView, W: Floats, Z: Floats, workers: Workers | None = None) -> Floats:
    """Run :func:`bnmf.sampler.gibbs.squared_errors` on each block, where it is."""
    shards, none = view.shards, np.ones(1)
    own, given = view.own(W, None, none), view.given(Z, none)
    return np.concatenate(shards.cluster.over(shards.blocks, on_workers.errors_of_block, own, given))


@dataclass(frozen=True, eq=False)
class ShardedMatrix(ObservedMatrix):
    """A matrix of which some entries were observed, in blocks on a cluster.

    Created by :meth:`from_dask`. It is stored as the same matrix would be in one process: twice, as blocks of rows and
    as blocks of columns, on the workers.

    Attributes
    ----------
    source : dask.array.Array
        Where the blocks come from, and come from again if a worker is lost.
    kind : {"dense", "listed", "sparse"}
        How the matrix is stored.
    unstored : {"zero", "missing"}
        Meaning of the entries that sparse chunks do not store.
    cluster : Cluster
        Where the blocks are.
    """

    source: da.Array | None = None
    kind: str = "dense"
    unstored: str = "zero"
    cluster: Cluster | None = None

    @classmethod
    def from_dask(cls, X: Any, *, unstored: str = "zero", negative: bool = False) -> ShardedMatrix:
        """Take a matrix that is on a cluster, or that its workers can load.

        Parameters
        ----------
        X : dask.array.Array, RowBlocks, or list of delayed blocks or futures
            The data. NaN is missing; zero is not.
        unstored : {"zero", "missing"}, default="zero"
            Meaning of the entries that sparse blocks do not store.
        negative : bool, default=False
            Allow negative entries.

        Returns
        -------
        ShardedMatrix
            The data. Every block was loaded once to check it.
        """
        client = current_client()
        cluster = Cluster(client)
        source = as_dask_array(X, client)
        shape = tuple(int(n) for n in source.shape)
        tiles = source.rechunk((row_chunks(source), -1), method="tasks")
        found = cluster.compute([delayed(on_workers.survey)(chunk, unstored) for chunk in chunks_of(tiles)])
        whole = joined(found)
        check_survey(whole, negative=negative)
        if sp.issparse(source._meta):
            sparse_kind = "listed" if unstored == "missing" else "sparse"
            kind = "dense" if whole.n_stored >= DENSE_FRACTION * shape[0] * shape[1] else sparse_kind
        else:
            kind = "dense" if whole.n_observed / (shape[0] * shape[1]) >= DENSE_FRACTION else "listed"
        n_bytes = 8 * shape[0] * shape[1] if kind == "dense" else LISTED_BYTES * whole.n_stored
        views = views_of(source, kind, unstored, None, cluster, n_bytes)
        options: dict[str, Any] = {"source": source, "kind": kind, "unstored": unstored, "cluster": cluster}
        rows, columns = (cast(View, view) for view in views)
        return cls((shape[0], shape[1]), whole.n_observed, rows, columns, nonnegative=whole.lowest >= 0, **options)

    @property
    def is_sharded(self) -> bool:
        """Whether the data are in blocks on a cluster."""
        return True

    @property
    def has_implicit_zeros(self) -> bool:
        """Whether this is a sparse matrix whose unstored entries are observed zeros."""
        return self.kind == "sparse"

    @property
    def shards(self) -> tuple[ShardedView, ShardedView]:
        """The rows and the columns."""
        return cast(ShardedView, self.rows), cast(ShardedView, self.columns)

    def release(self) -> None:
        """Let the cluster forget the blocks. They are made again when they are needed."""
        for view in self.shards:
            view.blocks.release()

    def column_minima(self) -> Floats:
        """Return the smallest observed entry of each column, 0 for a column without any."""
        self.refuse_implicit_zeros("column")
        assert self.source is not None
        assert self.cluster is not None
        rows = self.source.rechunk((row_chunks(self.source), -1), method="tasks")
        found = self.cluster.compute([delayed(on_workers.column_minima)(chunk) for chunk in chunks_of(rows)])
        lowest = np.min(found, axis=0)
        return np.where(np.isfinite(lowest), lowest, 0.0)

    def shifted(self, offset: Floats) -> ShardedMatrix:
        """Return the data with a number subtracted from each column."""
        bounds = tuple(view.bounds for view in self.shards)
        views = make_views(self.source, self.kind, self.unstored, offset, self.cluster, *bounds)
        return replace(self, rows=cast(View, views[0]), columns=cast(View, views[1]), nonnegative=False)

    def check_listable(self) -> None:
        """Raise an error: each block has its own lists, and weights would have to follow them."""
        raise ValueError(
            "noise that differs between entries needs X in one process: Student's t, noise_scale and "
            "sample_weight do not work on a cluster"
        )

    def dense_rows(self, rows: Indices) -> Floats:
        """Return a range of rows as a dense array with NaN for missing entries."""
        start, stop = int(rows[0]), int(rows[-1]) + 1
        view = self.shards[0]
        own = {
            number: (max(start, own_rows.start) - own_rows.start, min(stop, own_rows.stop) - own_rows.start)
            for number, own_rows in enumerate(view.slices())
            if own_rows.start < stop and start < own_rows.stop
        }
        found = view.cluster.over(view.blocks, on_workers.dense_rows, own, n_columns=self.shape[1])
        return np.concatenate(found)

    # --- what would bring the whole matrix to one place

    def mask(self, start: int = 0, stop: int | None = None) -> Bools:
        """Return the mask of the observed entries of some rows."""
        if stop is None:
            self._refuse("the mask of all entries")
        return ~np.isnan(self.dense_rows(np.arange(start, stop)))

    def observed_entries(self) -> tuple[Indices, Indices, Floats]:
        """Raise an error: there are too many."""
        self._refuse("a list of all observed entries")

    def stored_entries(self) -> tuple[Indices, Indices, Floats]:
        """Raise an error: there are too many."""
        self._refuse("a list of all stored entries")

    def missing_entries(self) -> tuple[Indices, Indices]:
        """Raise an error: there are too many."""
        self._refuse("a list of all missing entries")

    def without(self, rows: Indices, columns: Indices) -> ObservedMatrix:
        """Raise an error: a copy of the data would be needed."""
        self._refuse("a copy of the data with entries hidden")

    def _refuse(self, what: str) -> NoReturn:
        raise ValueError(
            f"{what} is not made of data on a cluster, because it may not fit into memory: go through blocks of rows "
            "(dense_rows), or ask posterior_.mean(rows, columns) for the entries that you need"
        )


def joined(found: list[Survey]) -> Survey:
    """Return the survey of a matrix, given those of its blocks."""
    n_stored, n_observed, n_infinite, n_negative = (int(sum(block[i] for block in found)) for i in range(4))
    return Survey(n_stored, n_observed, n_infinite, n_negative, min(block.lowest for block in found))


def check_survey(whole: Survey, *, negative: bool) -> None:
    """Raise an error if observed values are infinite or, unless allowed, negative, or if there are none."""
    if whole.n_observed == 0:
        raise ValueError("X has no observed entry at all: there is nothing to learn from")
    if whole.n_infinite:
        raise ValueError(f"X must be finite where it is observed, got {whole.n_infinite} infinite entries")
    if whole.n_negative and not negative:
        raise ValueError(
            f"X must be nonnegative unless offset='column', got {whole.n_negative} negative entries, the lowest "
            f"{whole.lowest:g}"
        )


def row_chunks(source: da.Array) -> int:
    """Return rows of a chunk of whole rows that is no larger than a block, but a row at least."""
    return max(1, min(source.shape[0], BLOCK_BYTES // (8 * source.shape[1])))


def chunks_of(array: da.Array) -> list[Any]:
    """Return the chunks of an array as delayed objects, in order."""
    # Not optimised: rows and columns would get different tasks of the same name.
    return array.to_delayed(optimize_graph=False).ravel().tolist()


def bounds_of(n_rows: int, n_bytes: int, n_threads: int) -> Ints:
    """Return where blocks of rows begin, and where the last one ends.

    Parameters
    ----------
    n_rows, n_bytes : int
        Rows, and the memory that they take.
    n_threads : int
        Threads of the cluster.

    Returns
    -------
    ndarray of int
        Multiples of the rows in a tile.

    Examples
    --------
    >>> bounds_of(1000, n_bytes=2**20, n_threads=1)
    array([   0,  512, 1000])
    """
    n_tiles = -(-n_rows // ROWS_PER_TILE)
    n_blocks = max(math.ceil(n_bytes / BLOCK_BYTES), BLOCKS_PER_THREAD * n_threads)
    tiles_per_block = max(1, n_tiles // n_blocks)
    return np.append(np.arange(0, n_rows, tiles_per_block * ROWS_PER_TILE), n_rows)


def views_of(
    source: da.Array, kind: str, unstored: str, offset: Floats | None, cluster: Cluster, n_bytes: int
) -> tuple[ShardedView, ShardedView]:
    """Return rows and columns of a matrix, in blocks that suit the cluster."""
    n_threads = sum(cluster.threads().values())
    bounds = [bounds_of(n, n_bytes, n_threads) for n in source.shape]
    return make_views(source, kind, unstored, offset, cluster, bounds[0], bounds[1])


def make_views(
    source: da.Array | None,
    kind: str,
    unstored: str,
    offset: Floats | None,
    cluster: Cluster | None,
    row_bounds: Ints,
    column_bounds: Ints,
) -> tuple[ShardedView, ShardedView]:
    """Return rows and columns of a matrix in given blocks. Nothing is computed before it is needed."""
    assert source is not None
    assert cluster is not None
    n_rows, n_columns = source.shape
    # Chunks that go through the disks of workers (the default of some clusters) are lost with a worker as a whole.
    how: Any = {"method": "tasks", "block_size_limit": BLOCK_BYTES}
    by_row = chunks_of(source.rechunk((tuple(np.diff(row_bounds).tolist()), -1), **how))
    by_column = chunks_of(source.rechunk((-1, tuple(np.diff(column_bounds).tolist())), **how))
    make = delayed(on_workers.make_view, pure=False)
    shift = None if offset is None else delayed(offset)
    rows = [make(chunk, kind, unstored, shift, "row") for chunk in by_row]
    columns = [
        make(chunk, kind, unstored, None if offset is None else offset[start:stop], "column")
        for chunk, start, stop in zip(by_column, column_bounds[:-1], column_bounds[1:], strict=True)
    ]
    return (
        ShardedView(cluster, Blocks(rows), row_bounds, n_columns),
        ShardedView(cluster, Blocks(columns), column_bounds, n_rows),
    )


# --- functions of data, for data in blocks


@identity.fingerprint.register(ShardedMatrix)
def fingerprint(data: ShardedMatrix) -> str:
    """Return the digest that the same matrix has in one process."""
    rows = data.shards[0]
    tiles = rows.cluster.over(rows.blocks, on_workers.digests_of_tiles)
    return identity.joined(data.shape, [digest for block in tiles for digest in block])


@identity.row_ids.register(ShardedMatrix)
def row_ids(data: ShardedMatrix, scale: Floats | None = None) -> Words:
    """Return the identity of each row."""
    rows = data.shards[0]
    found = rows.cluster.over(rows.blocks, on_workers.ids_of_rows, shared=scale, n_columns=data.shape[1])
    return np.concatenate(found)


@notes.sample_entries.register(ShardedMatrix)
def sample_entries(data: ShardedMatrix) -> tuple[Indices, Indices, Floats]:
    """Return rows, columns and values of some observed entries, from all parts of the data."""
    view, n_rows = data.shards[0], min(notes.MAX_ROWS, data.shape[0])
    chosen = np.sort(np.random.default_rng(0).choice(data.shape[0], n_rows, replace=False)).tolist()
    own: dict[int, list[int]] = {}
    for row in chosen:
        number = view.owner(row)
        own.setdefault(number, []).append(row - int(view.bounds[number]))
    each = -(-notes.MAX_ENTRIES // n_rows)
    parts = view.cluster.over(view.blocks, on_workers.sample_of_rows, own, n_columns=data.shape[1], each=each)
    entries = [entry for found in parts for entry in found]
    rows = np.repeat(chosen, [len(columns) for columns, _ in entries])
    return rows, np.concatenate([columns for columns, _ in entries]), np.concatenate([values for _, values in entries])
