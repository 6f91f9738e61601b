"""From what a user passes to one Dask array, whose chunks are dense arrays with NaN or sparse matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask import delayed

from bnmf.data.containers import as_csr, as_floats
from bnmf.distributed.cluster import Cluster


class RowBlocks:
    """Consecutive blocks of rows of a matrix that are never put together.

    Parameters
    ----------
    blocks : sequence of Delayed, Future, sparse matrix or array
        Blocks of rows, in order, all sparse or all dense.
    shapes : sequence of (int, int), optional
        Shape of each block. By default every block is loaded once to see it.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from dask import delayed
    >>> RowBlocks([delayed(sp.eye_array)(3, 5), delayed(sp.eye_array)(4, 5)], shapes=[(3, 5), (4, 5)])
    <RowBlocks: 2 blocks>
    """

    def __init__(self, blocks: Sequence[Any], shapes: Sequence[tuple[int, int]] | None = None) -> None:
        self.blocks = blocks
        self.shapes = shapes

    def __repr__(self) -> str:
        return f"<RowBlocks: {len(self.blocks)} blocks>"


def as_dask_array(X: Any, cluster: Cluster) -> da.Array:
    """Return X as a Dask array of two dimensions and float64."""
    if isinstance(X, (list, tuple)):
        X = RowBlocks(X)
    if isinstance(X, RowBlocks):
        return _joined(X, cluster)
    if not isinstance(X, da.Array):
        raise TypeError(
            "X must be a dask.array, a RowBlocks or a list of delayed blocks or futures, got a "
            f"{type(X).__module__}.{type(X).__name__}"
        )
    if X.ndim != 2:
        raise ValueError(f"X must be a matrix of two dimensions, got {X.ndim}")
    if any(np.isnan(size) for sizes in X.chunks for size in sizes):
        raise ValueError("X has chunks of unknown size: call X.compute_chunk_sizes() first")
    if 0 in X.shape:
        raise ValueError(f"X must not be empty, got shape {X.shape}")
    if X.dtype.kind not in "fiub":
        raise TypeError(f"X must hold real numbers, got an array of dtype {X.dtype}")
    if sp.issparse(X._meta):
        return da.map_blocks(as_csr, X, dtype=np.float64, meta=sp.csr_array((0, 0)))
    return da.map_blocks(as_floats, X, dtype=np.float64, meta=np.empty((0, 0)))


def _joined(X: RowBlocks, cluster: Cluster) -> da.Array:
    """Return blocks of rows as one Dask array."""
    if not len(X.blocks):
        raise ValueError("X must have at least one block of rows, got none")
    blocks = [delayed(_checked)(block) for block in X.blocks]
    [(first_shape, is_sparse)] = cluster.compute([delayed(_shape)(blocks[0])])
    shapes = X.shapes
    if shapes is None:
        found = cluster.compute([delayed(_shape)(block) for block in blocks])
        shapes = [shape for shape, _ in found]
        if len({is_sparse for _, is_sparse in found}) > 1:
            raise TypeError("the blocks of X must be all sparse or all dense, got both")
    if len(shapes) != len(blocks):
        raise ValueError(f"shapes must have one shape for each of {len(blocks)} blocks, got {len(shapes)}")
    if tuple(shapes[0]) != tuple(first_shape):
        raise ValueError(f"the first block of X has shape {first_shape}, but shapes says {shapes[0]}")
    if len({columns for _, columns in shapes}) > 1:
        raise ValueError(f"all blocks of X must have the same columns, got {sorted({n for _, n in shapes})} of them")
    meta: Any = sp.csr_array((0, 0)) if is_sparse else np.empty((0, 0))
    parts = [
        da.from_delayed(block, shape=shape, dtype=np.float64, meta=meta)
        for block, shape in zip(blocks, shapes, strict=True)
        if shape[0]
    ]
    return da.concatenate(parts)


def _checked(block: Any) -> Any:
    if 0 in getattr(block, "shape", ()):
        return block  # left out
    return as_csr(block) if sp.issparse(block) else as_floats(block)


def _shape(block: Any) -> tuple[tuple[int, int], bool]:
    return block.shape, sp.issparse(block)
