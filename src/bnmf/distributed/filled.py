"""Latent values of entries of data on a cluster.

Those of a block of rows are drawn where it is, from the streams of its rows, and only the values that differ from the
data are sent on, from worker to worker, to the blocks of columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np
from distributed import Future

from bnmf.data.half_sweeps import ScaledView
from bnmf.distributed import blocks as on_workers
from bnmf.distributed.cluster import LOST, Blocks, Cluster
from bnmf.utils.typing import Floats

if TYPE_CHECKING:
    from bnmf.distributed.sharded import ShardedMatrix, ShardedScaledView


Placed = list[tuple[Future, str]]
"""Blocks, and the worker of each."""


class FilledBlocks(Blocks):
    """Blocks of rows (side 0) or of columns (side 1) with latent values."""

    def __init__(self, like: Blocks, filled: ShardedFilled, side: int) -> None:
        super().__init__(like.recipes)
        self.filled, self.side = filled, side

    def on(self, cluster: Cluster, threads: Mapping[str, int]) -> Placed:
        sides, self.sources = self.filled.made(cluster, threads)
        return sides[self.side]


class ShardedFilled:
    """Rows and columns with the latent values of one chain, drawn when they are needed, and again if they were lost."""

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

    def made(self, cluster: Cluster, threads: Mapping[str, int]) -> tuple[tuple[Placed, ...], set[str]]:
        """Return blocks of rows and of columns with latent values, and the workers that take part in making them."""
        is_lost = any(future.status in LOST for side in self._sides for future, _ in side)
        if self._sides and not is_lost and self._workers <= set(threads):
            return self._sides, self._workers
        submit, (own, given) = cluster.client.submit, self._given
        rows, columns = (view.blocks.on(cluster, threads) for view in (self.data.rows, self.data.columns))
        bounds = self.data.columns.bounds
        columns_of: dict[str, list[int]] = {}
        for number, (_, worker) in enumerate(columns):
            columns_of.setdefault(worker, []).append(number)
        options = {**self._options, "columns_of": columns_of, "bounds": bounds}
        drawn, workers = cluster.submit(threads, self.data.rows.blocks, on_workers.draw_latent, own, given, **options)
        # One message from each block of rows to each worker.
        pieces = {
            worker: [submit(methodcaller("piece", worker), future, pure=False) for future in drawn]
            for worker in columns_of
        }
        filled_rows = [
            (submit(attrgetter("rows"), future, workers=[worker], pure=False), worker)
            for future, (_, worker) in zip(drawn, rows, strict=True)
        ]
        filled_columns = []
        for number, (block, worker) in enumerate(columns):
            what = block, number, int(bounds[number]), pieces[worker]
            filled_columns.append((submit(on_workers.fill_columns, *what, workers=[worker], pure=False), worker))
        self._drawn = drawn if "log_odds" in options else []
        self._sides, self._workers = (filled_rows, filled_columns), {*workers, *columns_of}
        return self._sides, self._workers

    def gross(self) -> Floats:
        """Return the number of gross errors in each column, and their sum of squares in units of the model."""
        cluster = self.data.cluster

        def work(threads: Mapping[str, int]) -> list[Floats]:
            _, workers = self.made(cluster, threads)
            sums = [cluster.client.submit(attrgetter("gross"), future, pure=False) for future in self._drawn]
            return cluster.results(sums, sorted(workers))

        return np.concatenate(cluster.until_done(work)).sum(axis=0)

    def scaled(self, rows: ScaledView, columns: ScaledView) -> tuple[ScaledView, ScaledView]:
        """Return rows and columns with the latest values, and the factors of other views."""
        return tuple(  # type: ignore[return-value]
            view.scaled(like.entry_scale, like.row_scale)
            for view, like in zip(self._views, (rows, columns), strict=True)
        )
