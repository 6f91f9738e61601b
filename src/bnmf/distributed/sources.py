"""From data of a user to Dask arrays, whose chunks are dense arrays with NaN or sparse matrices."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask import delayed

from bnmf.data.containers import as_csr, as_floats
from bnmf.data.limits import full
from bnmf.distributed import is_on_cluster
from bnmf.distributed.blocks import Part, Side
from bnmf.distributed.cluster import Cluster
from bnmf.utils.arguments import whole_number
from bnmf.utils.typing import Floats

SPARSE: Any = sp.csr_array((0, 0))
DENSE: Any = np.empty((0, 0))
"""Empty chunks of each kind, from which Dask takes the type."""


ROWS_PER_BLOCK = 2**14
"""Rows of the matrix in one block of triples, by default."""


@dataclass(repr=False, eq=False)
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

    blocks: Sequence[Any]
    shapes: Sequence[tuple[int, int]] | None = None

    def __repr__(self) -> str:
        return f"<RowBlocks: {len(self.blocks)} blocks>"


class Source(NamedTuple):
    """A matrix and its limits, if it has any: of each entry as an array of its shape, else as one that broadcasts."""

    array: da.Array
    lower: Side | None = None
    upper: Side | None = None

    @classmethod
    def of(cls, X: Any, lower: Any, upper: Any) -> Source:
        """Return the data that a user has passed to fit."""
        array = as_dask_array(X)
        if lower is None and upper is None:
            return cls(array)
        return cls(array, _limits(lower, "lower", array), _limits(upper, "upper", array))

    def parts(self, new_chunks: Any = None, **how: Any) -> list[Part]:
        """Return the chunks as delayed objects, row by row, each with its limits and where it starts."""
        array = self.array if new_chunks is None else self.array.rechunk(new_chunks, **how)
        starts = list(product(*(np.cumsum((0, *sizes[:-1])).tolist() for sizes in array.chunks)))

        def parts_of(side: Side | None) -> list[Side | None]:
            if side is None or side[0] is None:  # limits of a sparse matrix may be missing
                return [side] * len(starts)
            limits, is_by_entry = side
            if is_by_entry:
                found = limits.rechunk(array.chunks, **how)
            else:
                chunks = tuple(sizes if n > 1 else 1 for n, sizes in zip(limits.shape, array.chunks, strict=True))
                found = da.broadcast_to(da.from_array(limits, chunks), array.shape, array.chunks)
            return [(part, is_by_entry) for part in chunks_of(found)]

        return list(zip(chunks_of(array), parts_of(self.lower), parts_of(self.upper), starts, strict=True))


def chunks_of(array: da.Array) -> list[Any]:
    """Return the chunks of an array as delayed objects, row by row."""
    # Not optimised: rows and columns would get different tasks of the same name.
    return array.to_delayed(optimize_graph=False).ravel().tolist()


def _limits(given: Any, name: str, array: da.Array) -> Side:
    """Return limits, and whether there is one for each entry."""
    is_sparse = sp.issparse(array._meta)
    if is_sparse and sp.issparse(given):
        ends = np.cumsum((0, *array.chunks[0])).tolist()
        matrix = as_csr(given)
        given = RowBlocks([matrix[a:b] for a, b in pairwise(ends)])
    if is_on_cluster(given):
        limits = as_dask_array(given, name)
        if limits.shape != array.shape or sp.issparse(limits._meta) != is_sparse:
            form = "sparse" if is_sparse else "dense"
            raise ValueError(f"{name} on a cluster must be {form} as X is, and of its shape {array.shape}")
        return limits, True
    if is_sparse:
        if given is not None:
            raise ValueError(f"{name} of a sparse X must be sparse too, got {type(given).__name__}")
        return None, True
    numbers, is_by_entry = full(given, name, array.shape, None)
    return (da.from_array(numbers, chunks=array.chunks) if is_by_entry else np.atleast_2d(numbers)), is_by_entry


def as_dask_array(X: Any, name: str = "X") -> da.Array:
    """Return X as a Dask array of two dimensions and float64."""
    if isinstance(X, (list, tuple)):
        X = RowBlocks(X)
    if isinstance(X, RowBlocks):
        X = _joined(X, name)
    if not isinstance(X, da.Array):
        raise TypeError(
            f"{name} must be a dask.array, a RowBlocks or a list of delayed blocks or futures, got a "
            f"{type(X).__module__}.{type(X).__name__}"
        )
    if X.ndim != 2:
        raise ValueError(f"{name} must be a matrix of two dimensions, got {X.ndim}")
    if any(np.isnan(size) for sizes in X.chunks for size in sizes):
        raise ValueError(f"{name} has chunks of unknown size: call {name}.compute_chunk_sizes() first")
    if 0 in X.shape:
        raise ValueError(f"{name} must not be empty, got shape {X.shape}")
    if X.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, got an array of dtype {X.dtype}")
    convert, meta = (as_csr, SPARSE) if sp.issparse(X._meta) else (as_floats, DENSE)
    return da.map_blocks(convert, X, dtype=np.float64, meta=meta)


def _joined(X: RowBlocks, name: str) -> da.Array:
    """Return blocks of rows as one Dask array."""
    if not len(X.blocks):
        raise ValueError(f"{name} must have at least one block of rows, got none")
    blocks = [delayed(block) for block in X.blocks]
    looked_at = blocks if X.shapes is None else blocks[:1]
    found_shapes, are_sparse = zip(*Cluster().compute([delayed(_shape)(block) for block in looked_at]), strict=True)
    shapes = found_shapes if X.shapes is None else X.shapes
    if len(set(are_sparse)) > 1:
        raise TypeError(f"the blocks of {name} must be all sparse or all dense, got both")
    if len(shapes) != len(blocks):
        raise ValueError(f"shapes must have one shape for each of {len(blocks)} blocks, got {len(shapes)}")
    if tuple(shapes[0]) != tuple(found_shapes[0]):
        raise ValueError(f"the first block of {name} has shape {found_shapes[0]}, but shapes says {shapes[0]}")
    widths = sorted({n_columns for _, n_columns in shapes})
    if len(widths) > 1:
        raise ValueError(f"all blocks of {name} must have the same columns, got {widths} of them")
    meta = SPARSE if are_sparse[0] else DENSE
    filled = [(block, shape) for block, shape in zip(blocks, shapes, strict=True) if shape[0]]
    return da.concatenate([da.from_delayed(block, shape, np.float64, meta) for block, shape in filled])


def _shape(block: Any) -> tuple[tuple[int, int], bool]:
    return block.shape, sp.issparse(block)


# --- directories of Parquet parts, of which each worker reads what it needs, and loads pandas only then


def read_triples(
    directory: str | os.PathLike[str],
    *,
    row: str = "row",
    column: str = "column",
    value: str = "value",
    shape: tuple[int, int] | None = None,
    rows_per_block: int = ROWS_PER_BLOCK,
) -> RowBlocks:
    """Open a directory of Parquet parts that hold one entry of the matrix in each line.

    Every block of rows is read by the worker that needs it. Parts that are sorted by row are read once in all; from
    others, each block picks its lines. Fit with ``BayesianNMF(unstored="missing")`` if entries that are not there are
    missing, as ratings are.

    Parameters
    ----------
    directory : path-like
        A directory that all workers see.
    row, column, value : str
        Names of the fields: numbers of the row and of the column, from 0, and the value.
    shape : (int, int), optional
        Rows and columns of the matrix; by default one more than the largest numbers.
    rows_per_block : int, default=16384
        Rows of the matrix that are read at a time.

    Returns
    -------
    RowBlocks
        Sparse blocks of rows, for ``BayesianNMF.fit``.
    """
    path = _parts(directory)[0].parent
    whole_number(rows_per_block, "rows_per_block", 1)
    if shape is None:
        ends = Cluster().compute([delayed(_largest)(part, row, column) for part in _parts(directory)])
        n_rows, n_columns = (int(n) + 1 for n in np.max(ends, axis=0))
    else:
        n_rows, n_columns = (whole_number(n, "every number in shape", 1) for n in shape)
    starts = range(0, n_rows, rows_per_block)
    shapes = [(min(start + rows_per_block, n_rows) - start, n_columns) for start in starts]
    names = row, column, value
    blocks = [
        delayed(_read_rows)(os.fspath(path), names, start, shape) for start, shape in zip(starts, shapes, strict=True)
    ]
    return RowBlocks(blocks, shapes)


def read_blocks(directory: str | os.PathLike[str]) -> da.Array:
    """Open a directory of Parquet parts that hold whole rows of the matrix: a field for each column.

    Parameters
    ----------
    directory : path-like
        A directory that all workers see. Parts are taken in the order of their names; missing entries are null or NaN.

    Returns
    -------
    dask.array.Array
        The matrix, for ``BayesianNMF.fit``.
    """
    parts = _parts(directory)
    sizes = Cluster().compute([delayed(_size)(part) for part in parts])
    fields = {names for _, names in sizes}
    if len(fields) > 1:
        raise ValueError(f"directory must hold parts with the same fields, got {len(fields)} kinds of them")
    n_columns = len(sizes[0][1])
    arrays = [
        da.from_delayed(delayed(_read_part)(part), shape=(n, n_columns), dtype=np.float64)
        for part, (n, _) in zip(parts, sizes, strict=True)
        if n
    ]
    return da.concatenate(arrays)


def _parts(directory: str | os.PathLike[str]) -> list[Path]:
    parts = sorted(Path(directory).absolute().glob("*.parquet"))
    if not parts:
        raise ValueError(f"directory must hold files *.parquet, got {os.fspath(directory)!r}")
    return parts


def _largest(part: Path, row: str, column: str) -> tuple[int, int]:
    import pandas as pd

    table = pd.read_parquet(part, columns=[row, column])
    return int(table[row].max()), int(table[column].max())


def _read_rows(path: str, names: tuple[str, str, str], start: int, shape: tuple[int, int]) -> sp.csr_array:
    """Return a block of rows; the reader skips what the statistics of the parts rule out."""
    import pandas as pd

    row, column, value = names
    filters: list[Any] = [(row, ">=", start), (row, "<", start + shape[0])]
    table = pd.read_parquet(path, columns=list(names), filters=filters)
    places = table[row].to_numpy(np.int64) - start, table[column].to_numpy(np.int64)
    return sp.coo_array((table[value].to_numpy(np.float64), places), shape=shape).tocsr()


def _size(part: Path) -> tuple[int, tuple[str, ...]]:
    import pyarrow.parquet

    metadata = pyarrow.parquet.read_metadata(part)
    return metadata.num_rows, tuple(metadata.schema.to_arrow_schema().names)


def _read_part(part: Path) -> Floats:
    import pandas as pd

    return pd.read_parquet(part).to_numpy(np.float64, na_value=np.nan)
