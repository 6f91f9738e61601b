"""How a matrix is divided into blocks of rows and of columns, and how workers make them from its source."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import dask.array as da
import numpy as np
from dask import delayed

from bnmf.data.views import ROWS_PER_TILE
from bnmf.distributed import blocks as on_workers
from bnmf.distributed.cluster import Blocks, Cluster
from bnmf.distributed.shards import ShardedView
from bnmf.utils.typing import Floats, Ints

# Blocks for each thread of the cluster, if there are enough tiles of rows: workers that come or go take whole blocks.
BLOCKS_PER_THREAD = 2


def chunks_of(array: da.Array) -> list[Any]:
    """Return the chunks of an array as delayed objects, row by row."""
    # Not optimised: rows and columns would get different tasks of the same name.
    return array.to_delayed(optimize_graph=False).ravel().tolist()


def bounds_of(n_rows: int, n_bytes: int, n_threads: int, block_bytes: int) -> Ints:
    """Return where blocks of rows begin, and where the last one ends.

    Examples
    --------
    >>> bounds_of(1500, n_bytes=2**20, n_threads=1, block_bytes=2**25)
    array([   0,  768, 1500])
    """
    n_tiles = -(-n_rows // ROWS_PER_TILE)
    per_thread = max(BLOCKS_PER_THREAD, math.ceil(n_bytes / (block_bytes * n_threads)))
    n_blocks = min(n_tiles, per_thread * n_threads)
    return np.minimum(np.arange(n_blocks + 1) * n_tiles // n_blocks * ROWS_PER_TILE, n_rows)


def views_of(
    source: da.Array, kind: str, unstored: str, offset: Floats | None, cluster: Cluster, bounds: Sequence[Ints]
) -> tuple[ShardedView, ShardedView]:
    """Return rows and columns of a matrix in given blocks. Nothing is computed before it is needed."""
    (n_rows, n_columns), (row_bounds, column_bounds) = source.shape, bounds
    # Chunks that go through the disks of workers (the default of some clusters) are lost with a worker as a whole.
    how: Any = {"method": "tasks", "block_size_limit": cluster.block_bytes()}
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
