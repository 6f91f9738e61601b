"""ShardedMatrix: the data of a fit in blocks on a cluster. No process holds all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NoReturn, cast

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask import delayed

from bnmf.data import identity
from bnmf.data.observed import DENSE_FRACTION, ObservedMatrix
from bnmf.data.views import View
from bnmf.distributed import blocks as on_workers
from bnmf.distributed.blocks import Survey
from bnmf.distributed.cluster import Cluster, current_client
from bnmf.distributed.layout import bounds_of, chunks_of, views_of
from bnmf.distributed.shards import ShardedView
from bnmf.distributed.sources import as_dask_array
from bnmf.posterior import notes
from bnmf.utils.typing import Bools, Floats, Indices, Words

# Memory of one listed entry: its value and its position.
LISTED_BYTES = 12


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
        cluster = Cluster(current_client())
        source = as_dask_array(X, cluster)
        shape = tuple(int(n) for n in source.shape)
        found = cluster.compute([delayed(on_workers.survey)(chunk, unstored) for chunk in chunks_of(source)])
        whole = joined(found)
        check_survey(whole, negative=negative)
        if sp.issparse(source._meta):
            sparse_kind = "listed" if unstored == "missing" else "sparse"
            kind = "dense" if whole.n_stored >= DENSE_FRACTION * shape[0] * shape[1] else sparse_kind
        else:
            kind = "dense" if whole.n_observed / (shape[0] * shape[1]) >= DENSE_FRACTION else "listed"
        n_bytes = 8 * shape[0] * shape[1] if kind == "dense" else LISTED_BYTES * whole.n_stored
        n_threads = sum(cluster.threads().values())
        bounds = [bounds_of(n, n_bytes, n_threads, cluster.block_bytes()) for n in shape]
        views = views_of(source, kind, unstored, None, cluster, bounds)
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
        self.refuse_implicit_zeros("min")
        assert self.source is not None
        assert self.cluster is not None
        found = self.cluster.compute([delayed(on_workers.column_minima)(chunk) for chunk in chunks_of(self.source)])
        n_across = self.source.numblocks[1]
        lowest = np.concatenate([np.min(found[column::n_across], axis=0) for column in range(n_across)])
        return np.where(np.isfinite(lowest), lowest, 0.0)

    def shifted(self, offset: Floats) -> ShardedMatrix:
        """Return the data with a number subtracted from each column."""
        assert self.source is not None
        assert self.cluster is not None
        bounds = [view.bounds for view in self.shards]
        views = views_of(self.source, self.kind, self.unstored, offset, self.cluster, bounds)
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
            "X must be nonnegative unless an offset or the prior allows others, got "
            f"{whole.n_negative} negative entries, the lowest "
            f"{whole.lowest:g}"
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
