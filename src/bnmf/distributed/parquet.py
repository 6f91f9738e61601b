"""Directories of Parquet parts as data on a cluster: each worker reads what it needs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import scipy.sparse as sp
from dask import delayed

from bnmf.distributed.cluster import Cluster
from bnmf.distributed.sources import RowBlocks
from bnmf.utils.arguments import whole_number
from bnmf.utils.typing import Floats

ROWS_PER_BLOCK = 2**14
"""Rows of the matrix in one block of triples, by default."""


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
    table = pd.read_parquet(part, columns=[row, column])
    return int(table[row].max()), int(table[column].max())


def _read_rows(path: str, names: tuple[str, str, str], start: int, shape: tuple[int, int]) -> sp.csr_array:
    """Return a block of rows; the reader skips what the statistics of the parts rule out."""
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
    return pd.read_parquet(part).to_numpy(np.float64, na_value=np.nan)
