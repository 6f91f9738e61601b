"""Tables as arrays: .npy, .npz (dense, and sparse as SciPy writes them), Matrix Market, Parquet."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.io
import scipy.sparse as sp

from bnmf.tables.cells import Markers
from bnmf.tables.table import Fills, Table, TableError, check_numbers
from bnmf.utils.files import npz_bytes
from bnmf.utils.typing import Array

NAME_ARRAYS = ("row_names", "column_names")
"""Arrays of an .npz file that hold names."""


def _filled(values: Array, fills: Fills) -> Array:
    """Return a copy with the fills, in the precision of the values if that is floating."""
    dense = values.copy()
    if len(fills.values) and dense.dtype.kind != "f":
        dense = dense.astype(np.float64)
    dense[fills.rows, fills.columns] = fills.values
    return dense


@dataclass(frozen=True)
class NumpyArray:
    """An .npy file, or an .npz file with one matrix.

    Attributes
    ----------
    original : ndarray
        The array as it was stored.
    name : str or None
        Its name in an .npz file, None for an .npy file.
    """

    original: Array
    name: str | None = None

    @property
    def endings(self) -> tuple[str, ...]:
        """How names of such files end."""
        return (".npy",) if self.name is None else (".npz",)

    @property
    def description(self) -> str:
        """The kind of file in a few words."""
        return f"NumPy array of {self.original.dtype}"

    def render(self, table: Table, fills: Fills) -> bytes:
        """Return the file with numbers in place of missing entries."""
        filled = _filled(self.original, fills)
        if self.name is not None:
            return npz_bytes({self.name: filled, **name_arrays(table)})
        buffer = io.BytesIO()
        np.save(buffer, filled)
        return buffer.getvalue()


@dataclass(frozen=True)
class SparseFile:
    """A sparse matrix, in an .npz file or in one of Matrix Market.

    Attributes
    ----------
    is_market : bool
        Whether it is a Matrix Market file.
    is_dense : bool
        Whether that file lists all entries.
    """

    is_market: bool
    is_dense: bool = False

    @property
    def endings(self) -> tuple[str, ...]:
        """How names of such files end."""
        return (".mtx",) if self.is_market else (".npz",)

    @property
    def description(self) -> str:
        """The kind of file in a few words."""
        kind = "dense" if self.is_dense else "sparse"
        return f"{kind} Matrix Market file" if self.is_market else "sparse matrix of SciPy"

    def render(self, table: Table, fills: Fills) -> bytes:
        """Return the file with numbers in place of missing entries, which are stored then."""
        filled: Any = (
            _stored(table.values, fills) if isinstance(table.values, sp.csr_array) else _filled(table.values, fills)
        )
        if not self.is_market:
            return npz_bytes(sparse_arrays(filled) | name_arrays(table))
        buffer = io.BytesIO()
        scipy.io.mmwrite(buffer, filled, symmetry="general")
        return buffer.getvalue()


def _stored(matrix: sp.csr_array, fills: Fills) -> sp.csr_array:
    """Return a sparse matrix that stores the fills beside what it stored, but no NaN in their place."""
    coo = matrix.tocoo()
    flat = coo.row.astype(np.int64) * matrix.shape[1] + coo.col
    kept = ~np.isin(flat, np.asarray(fills.rows, np.int64) * matrix.shape[1] + fills.columns)
    rows, columns = np.concatenate([coo.row[kept], fills.rows]), np.concatenate([coo.col[kept], fills.columns])
    return sp.coo_array((np.concatenate([coo.data[kept], fills.values]), (rows, columns)), shape=matrix.shape).tocsr()


@dataclass(frozen=True)
class Parquet:
    """A Parquet file.

    Attributes
    ----------
    frame : DataFrame
        Its content.
    n_names : int
        Number of columns of the frame that hold names of rows: 0 or 1.
    """

    frame: pd.DataFrame
    n_names: int

    description = "Parquet file"
    endings = (".parquet", ".pq")

    def render(self, table: Table, fills: Fills) -> bytes:
        """Return the file with numbers in place of missing entries; columns without them are as they were."""
        frame = self.frame.copy()
        for column in np.unique(fills.columns).tolist():
            here = fills.columns == column
            old = frame.iloc[:, column + self.n_names]
            values = table.values[:, column].copy()
            values[fills.rows[here]] = fills.values[here]
            kind = old.dtype if old.dtype.kind == "f" else np.float64
            frame.isetitem(column + self.n_names, values.astype(kind))
        buffer = io.BytesIO()
        frame.to_parquet(buffer, engine="pyarrow")
        return buffer.getvalue()


def read_npy(content: bytes, markers: Markers) -> Table:
    """Read an .npy file."""
    array = np.load(io.BytesIO(content), allow_pickle=False)
    return _dense_table(array, NumpyArray(array), markers)


def read_npz(content: bytes, markers: Markers, unstored: str) -> Table:
    """Read an .npz file: a sparse matrix of SciPy, or one dense matrix, with or without names."""
    if "xl/workbook.xml" in zipfile.ZipFile(io.BytesIO(content)).namelist():
        raise TableError("this is an Excel workbook: save its sheet as CSV first")
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    names = {name: arrays.pop(name).astype(str).tolist() for name in NAME_ARRAYS if name in arrays}
    has_limits = {"X", "lower", "upper"} <= arrays.keys()
    limits = {name: arrays.pop(name) for name in ("lower", "upper")} if has_limits else {}
    if "format" in arrays and "shape" in arrays:
        table = _sparse_table(
            sp.load_npz(io.BytesIO(npz_bytes(arrays))), SparseFile(is_market=False), markers, unstored
        )
    else:
        matrices = [name for name, array in arrays.items() if array.ndim == 2 and array.dtype.kind in "fiub"]
        if len(matrices) != 1 or len(arrays) != 1:
            raise TableError(f"an .npz file must hold one matrix of numbers, this one holds {', '.join(arrays)}")
        table = _dense_table(arrays[matrices[0]], NumpyArray(arrays[matrices[0]], matrices[0]), markers)
    for name, size in zip(NAME_ARRAYS, table.shape, strict=True):
        if name in names and len(names[name]) != size:
            raise TableError(f"{name} has {len(names[name])} names, the matrix needs {size}")
    if any(side.shape != table.shape or side.dtype.kind != "f" for side in limits.values()):
        raise TableError(f"lower and upper must be limits of all entries, of shape {table.shape}")
    return replace(table, **names, **limits)


def read_market(content: bytes, markers: Markers, unstored: str) -> Table:
    """Read a Matrix Market file."""
    matrix = scipy.io.mmread(io.BytesIO(content), spmatrix=False)
    if sp.issparse(matrix):
        return _sparse_table(matrix, SparseFile(is_market=True), markers, unstored)
    return _dense_table(matrix, SparseFile(is_market=True, is_dense=True), markers)


def read_parquet(content: bytes, markers: Markers) -> Table:
    """Read a Parquet file. Names of rows are the index that pandas stored, or a first column of text."""
    try:
        import pyarrow  # noqa: F401 (needed by pandas)
    except ImportError:
        raise TableError("Parquet files need pyarrow: pip install 'bnmf[parquet]', or save the table as CSV") from None
    frame = pd.read_parquet(io.BytesIO(content), engine="pyarrow")
    is_number = [pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes]
    has_index = not isinstance(frame.index, pd.RangeIndex)
    n_names = int(not has_index and len(is_number) > 1 and not is_number[0])
    wrong = [repr(str(frame.columns[i])) for i in range(n_names, len(is_number)) if not is_number[i]]
    if wrong:
        raise TableError(f"these columns do not hold numbers: {', '.join(wrong[:5])}; remove them or code them")
    names = frame.iloc[:, 0] if n_names else frame.index if has_index else None
    values = frame.iloc[:, n_names:].to_numpy(dtype=np.float64, na_value=np.nan)
    table = _dense_table(values, Parquet(frame, n_names), markers)
    columns = [str(name) for name in frame.columns[n_names:]]
    return replace(table, row_names=None if names is None else names.astype(str).tolist(), column_names=columns)


def _dense_table(array: Array, layout: Any, markers: Markers) -> Table:
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise TableError(f"a table is a matrix of numbers, this array has shape {array.shape} and type {array.dtype}")
    if 0 in array.shape:
        raise TableError(f"the table is empty: it has {array.shape[0]} rows and {array.shape[1]} columns")
    values = np.ascontiguousarray(array, dtype=np.float64)
    check_numbers(values)
    return Table(markers.hide(values), layout)


def _sparse_table(matrix: Any, layout: SparseFile, markers: Markers, unstored: str) -> Table:
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        raise TableError(f"a table is a matrix of numbers, this one has shape {matrix.shape} and type {matrix.dtype}")
    if 0 in matrix.shape:
        raise TableError(f"the table is empty: it has {matrix.shape[0]} rows and {matrix.shape[1]} columns")
    csr = sp.csr_array(matrix.astype(np.float64))
    csr.sum_duplicates()
    check_numbers(csr)
    if 0.0 in markers.numbers:
        unstored = "missing"
    return Table(markers.hide(csr), layout, unstored=unstored)


def name_arrays(table: Table) -> dict[str, Array]:
    """Return the names of a table as arrays."""
    names = {"row_names": table.row_names, "column_names": table.column_names}
    return {key: np.array(value, dtype=np.str_) for key, value in names.items() if value is not None}


def sparse_arrays(matrix: Any) -> dict[str, Array]:
    """Return the arrays by which SciPy stores a sparse matrix in an .npz file."""
    buffer = io.BytesIO()
    sp.save_npz(buffer, matrix, compressed=False)
    buffer.seek(0)
    with np.load(buffer) as file:
        return {name: file[name] for name in file.files}


def table_bytes(table: Table) -> bytes:
    """Return any table as an .npz file that :func:`read_npz` reads, for keeping beside its fit."""
    arrays = sparse_arrays(table.values) if isinstance(table.values, sp.csr_array) else {"X": table.values}
    limits = {name: side for name, side in table.limits.items() if side is not None}
    return npz_bytes(arrays | limits | name_arrays(table), compressed=True)
