"""Tables as arrays: .npy, .npz (dense, and sparse as SciPy writes them), Matrix Market, Parquet, Excel workbooks."""

from __future__ import annotations

import io
import warnings
import zipfile
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import dropwhile
from typing import Any

import numpy as np
import pandas as pd
import scipy.io
import scipy.sparse as sp

from bnmf.data.containers import refuse_padding
from bnmf.tables.cells import ReadOptions, written
from bnmf.tables.grid import grid_of, is_data, note_of_data
from bnmf.tables.table import Fills, Layout, Table, TableError
from bnmf.tables.text import N_SAMPLE_RECORDS, Dialect, Record, TextFile, judged
from bnmf.utils import memory
from bnmf.utils.files import content_of, npz_bytes
from bnmf.utils.text import size
from bnmf.utils.typing import Array, Indices

NAME_ARRAYS = ("row_names", "column_names")
"""Arrays of an .npz file that hold names."""
LIMIT_ARRAYS = ("limit_rows", "limit_columns", "limit_lower", "limit_upper")
"""Arrays of an .npz file that hold limits of entries."""
# Part of the free memory that a compressed file may take, because reading it takes several times that.
MEMORY_FRACTION = 0.125
DEFAULT_LIMIT = 2**30
BOOLEANS = {"True": True, "False": False}
"""Truth values of a workbook, by the words that they are read as."""


def largest_content() -> int:
    """Return how many bytes a compressed file may hold."""
    free = memory.available()
    return DEFAULT_LIMIT if free is None else int(MEMORY_FRACTION * free)


def check_size(n_bytes: int) -> None:
    """Raise an error if a compressed file holds more than the memory is good for."""
    if n_bytes > largest_content():
        raise TableError(f"uncompressed it takes more than {size(largest_content())}, an eighth of the free memory")


def rounded(value: Any) -> Any:
    """Return a number with the digits that are written, and everything else as it is."""
    return value if isinstance(value, str | bool) or value is None else float(written(value))


def filled_values(values: Any, fills: Fills) -> Any:
    """Return a copy with the fills, in the precision of the values if that is floating."""
    filled = values.astype(np.float64) if len(fills.values) and values.dtype.kind != "f" else values.copy()
    with warnings.catch_warnings(action="ignore"):  # of SciPy, that other formats are faster for many entries
        filled[fills.rows, fills.columns] = fills.values
    return filled


# --- NumPy and SciPy


@dataclass(frozen=True)
class ArrayFile(Layout):
    """A matrix in an .npy, .npz or .mtx file; an array of NumPy is kept for its precision, with its name in an .npz."""

    description: str
    endings: tuple[str, ...]
    original: Array | None = None
    name: str = "X"

    def render(self, table: Table, fills: Fills) -> bytes:
        filled = filled_values(table.values if self.original is None else self.original, fills)
        if self.endings == (".npz",):
            arrays = _sparse_arrays(filled) if table.is_sparse else {self.name: filled}
            return npz_bytes(arrays | _name_arrays(table))
        if self.endings == (".npy",):
            return content_of(np.save, filled)
        return content_of(scipy.io.mmwrite, filled, symmetry="general")


def numpy_array(array: Array, ending: str = ".npy", name: str = "X") -> ArrayFile:
    """Return how an array of NumPy is stored."""
    return ArrayFile(f"NumPy array of {array.dtype}", (ending,), array, name)


MARKET = ArrayFile("sparse Matrix Market file", (".mtx",))
DENSE_MARKET = ArrayFile("dense Matrix Market file", (".mtx",))
SPARSE = ArrayFile("sparse matrix of SciPy", (".npz",))


def read_npy(content: bytes, options: ReadOptions) -> Table:
    """Read an .npy file."""
    array = np.load(io.BytesIO(content), allow_pickle=False)
    return as_table(array, numpy_array(array), options)


def read_npz(content: bytes, options: ReadOptions) -> Table:
    """Read an .npz file: a sparse matrix of SciPy, or one dense matrix, with or without names and limits."""
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        arrays = dict(file)
    names = {name: arrays.pop(name).astype(str).tolist() for name in NAME_ARRAYS if name in arrays}
    limits = [arrays.pop(name) for name in LIMIT_ARRAYS] if set(LIMIT_ARRAYS) <= arrays.keys() else None
    if "format" in arrays and "shape" in arrays:
        table = as_table(sp.load_npz(io.BytesIO(content)), SPARSE, options)
    else:
        matrices = [name for name, array in arrays.items() if array.ndim == 2 and array.dtype.kind in "fiub"]
        if len(matrices) != 1 or len(arrays) != 1:
            raise TableError(f"an .npz file must hold one matrix of numbers, this one holds {', '.join(arrays)}")
        array = arrays[matrices[0]]
        table = as_table(array, numpy_array(array, ".npz", matrices[0]), options)
    for name, length in zip(NAME_ARRAYS, table.shape, strict=True):
        if name in names and len(names[name]) != length:
            raise TableError(f"{name} has {len(names[name])} names, the matrix needs {length}")
    table = replace(table, **names)
    return table if limits is None else table.with_limits(*limits)


def read_market(content: bytes, options: ReadOptions) -> Table:
    """Read a Matrix Market file."""
    matrix = scipy.io.mmread(io.BytesIO(content), spmatrix=False)
    return as_table(matrix, MARKET if sp.issparse(matrix) else DENSE_MARKET, options)


def as_table(matrix: Any, layout: Any, options: ReadOptions) -> Table:
    """Return the table of a dense or sparse matrix, or raise an error if it is not one of finite numbers."""
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        raise TableError(f"a table is a matrix of numbers, this array has shape {matrix.shape} and type {matrix.dtype}")
    if 0 in matrix.shape:
        raise TableError(f"the table is empty: it has {matrix.shape[0]} rows and {matrix.shape[1]} columns")
    is_sparse, unstored = sp.issparse(matrix), "zero"
    if is_sparse and options.unstored == "missing" and 0.0 not in options.missing_numbers:
        try:
            refuse_padding(matrix)
        except ValueError as error:
            raise TableError(str(error)) from None
    values: Any = sp.csr_array(matrix.astype(float)) if is_sparse else np.ascontiguousarray(matrix, float)
    if is_sparse:
        values.sum_duplicates()
        unstored = "missing" if 0.0 in options.missing_numbers else options.unstored or "zero"
    values = options.hide(values)
    if np.isinf(values.data if is_sparse else values).any():
        coo = sp.coo_array(values)
        first = np.flatnonzero(np.isinf(coo.data))[0]
        raise TableError(f"the entry in row {coo.row[first] + 1}, column {coo.col[first] + 1} is infinite")
    return Table(values, layout, unstored=unstored)


def _name_arrays(table: Table) -> dict[str, Array]:
    names = {"row_names": table.row_names, "column_names": table.column_names}
    return {key: np.array(value, dtype=np.str_) for key, value in names.items() if value is not None}


def _sparse_arrays(matrix: Any) -> dict[str, Array]:
    """Return the arrays that SciPy stores of a sparse matrix in an .npz file."""
    with np.load(io.BytesIO(content_of(sp.save_npz, matrix, compressed=False))) as file:
        return dict(file)


def table_bytes(table: Table) -> bytes:
    """Return any table as an .npz file that :func:`read_npz` reads, for keeping beside its fit."""
    arrays = _sparse_arrays(table.values) if table.is_sparse else {"X": table.values}
    of = table.limits
    if len(of):
        arrays |= dict(zip(LIMIT_ARRAYS, (of.rows, of.columns, of.lower, of.upper), strict=True))
    return npz_bytes(arrays | _name_arrays(table), compressed=True)


# --- Parquet


@dataclass(frozen=True)
class Parquet(Layout):
    """A Parquet file, of which the first `n_names` (0 or 1) columns hold names of rows."""

    frame: pd.DataFrame
    n_names: int = 0

    description = "Parquet file"
    endings = (".parquet", ".pq")

    def render(self, table: Table, fills: Fills) -> bytes:
        frame = self.frame.copy()
        for column in np.unique(fills.columns).tolist():
            here, place = fills.columns == column, column + self.n_names
            frame.isetitem(place, put(frame.iloc[:, place], fills.rows[here], fills.values[here]).array)
        return parquet_bytes(frame)


def put(column: pd.Series, rows: Indices, values: Any) -> pd.Series:
    """Return a column with some values, in its precision if they are numbers."""
    numbers = _as_numbers(column)
    if numbers is None or pd.api.types.is_bool_dtype(column.dtype):
        column = column.copy()
        column.iloc[rows] = values
        return column
    numbers = numbers.copy()
    numbers[rows] = values
    return pd.Series(numbers, column.index, column.dtype if column.dtype.kind == "f" else np.float64)


def parquet_bytes(frame: pd.DataFrame) -> bytes:
    """Return a table of pandas as a Parquet file."""
    library("pyarrow", "Parquet files", "parquet")
    return content_of(frame.to_parquet, engine="pyarrow")


def read_parquet(content: bytes, options: ReadOptions) -> Table:
    """Read a Parquet file, with the index that pandas stored, or a first column of text, as names of rows."""
    library("pyarrow", "Parquet files", "parquet")
    from pyarrow.parquet import read_metadata

    facts = read_metadata(io.BytesIO(content))
    check_size(8 * facts.num_rows * facts.num_columns)
    frame = pd.read_parquet(io.BytesIO(content), engine="pyarrow")
    labels, words, row_names = _texts(frame.columns), options.words, options.row_names
    has_index, notes = not isinstance(frame.index, pd.RangeIndex), []
    if row_names is None:
        row_names = not has_index and len(labels) > 1 and _as_numbers(frame.iloc[:, 0]) is None
        first = _texts(pd.Index(frame.iloc[:, 0])) if row_names and words is not None else []
        if row_names and words is not None and is_data(first, labels[0], words):
            row_names, notes = False, [note_of_data(first, labels[0])] * (labels[0] not in words)
    n_names = int(row_names and not has_index)
    numbers: list[Any] = []
    of_words: dict[int, pd.Series] = {}
    for place, label in enumerate(labels[n_names:]):
        column = frame.iloc[:, place + n_names]
        is_word = words is not None and (label in words or pd.api.types.is_bool_dtype(column.dtype))
        found = None if is_word else _as_numbers(column)
        if found is None:
            of_words[place] = options.hide_words(column.reset_index(drop=True))
        numbers.append(np.full(len(frame), np.nan) if found is None else found)
    table = as_table(np.column_stack([np.empty((len(frame), 0)), *numbers]), Parquet(frame, n_names), options)
    names = pd.Index(frame.iloc[:, 0]) if n_names else frame.index if has_index else None
    return replace(
        table,
        row_names=None if names is None else _texts(names),
        column_names=labels[n_names:],
        words=of_words,
        notes=notes,
        corner=None if names is None or names.name is None else str(names.name),
    )


def _as_numbers(column: pd.Series) -> Array | None:
    """Return a column as numbers, decimals among them; None if it holds something else."""
    is_decimal = column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "decimal"
    if not is_decimal and not pd.api.types.is_numeric_dtype(column.dtype):
        return None
    return column.astype(float).to_numpy() if is_decimal else column.to_numpy(dtype=np.float64, na_value=np.nan)


def _texts(names: pd.Index) -> list[str]:
    """Return names as text: nothing for a missing one, and the parts of several levels after each other."""
    parts = (name if isinstance(name, tuple) else (name,) for name in names)
    return [", ".join("" if pd.isna(part) else str(part) for part in each) for each in parts]


def library(name: str, kind: str, extra: str) -> Any:
    """Return a module, or raise an error that says what to install to read and write a kind of file."""
    try:
        return import_module(name)
    except ImportError:
        raise TableError(f"{kind} need {name}: pip install 'bnmf[{extra}]'") from None


# --- Excel


@dataclass(frozen=True)
class Workbook(Layout):
    """The first sheet of an Excel workbook, whose other sheets, formulas and formats are kept."""

    content: bytes
    sheet: TextFile

    description = "Excel workbook"
    endings = (".xlsx",)

    def render(self, table: Table, fills: Fills) -> bytes:
        book = _workbook(self.content)
        for row, column, value in fills.entries():
            line, place = self.sheet.cell_of(row, column)
            book.worksheets[0].cell(line, place + 1).value = rounded(BOOLEANS.get(value, value))
        return content_of(book.save)


def _workbook(content: bytes, *, data_only: bool = False) -> Any:
    with warnings.catch_warnings(action="ignore"):  # of extensions that openpyxl does not keep
        return library("openpyxl", "Excel workbooks", "xlsx").load_workbook(io.BytesIO(content), data_only=data_only)


def read_workbook(content: bytes, options: ReadOptions) -> Table:
    """Read the first sheet of an Excel workbook."""
    book = _workbook(content, data_only=True)
    rows = enumerate(book.worksheets[0].iter_rows(values_only=True), start=1)
    found: list[Record] = [
        (line, ["" if cell is None else str(cell) for cell in cells])
        for line, cells in rows
        if len(cells) == 1 or any(cell is not None for cell in cells)
    ]
    while found and found[-1][1] == [""]:  # of a single column, whose other empty cells are missing entries
        found.pop()
    found = list(dropwhile(lambda record: record[1] == [""], found))
    if not found:
        raise TableError("the first sheet is empty")
    dialect = judged([cells for _, cells in found[:N_SAMPLE_RECORDS]], Dialect(), options)
    table = grid_of(lambda: iter(found), dialect, options)
    assert isinstance(table.layout, TextFile)
    notes = [f"only the first of {len(book.worksheets)} sheets is read, {book.worksheets[0].title!r}"]
    notes = [*table.notes, *notes[: len(book.worksheets) - 1]]
    return replace(table, layout=Workbook(content, table.layout), notes=notes)


def workbook_bytes(rows: list[list[Any]]) -> bytes:
    """Return cells as an Excel workbook of one sheet."""
    book = library("openpyxl", "Excel workbooks", "xlsx").Workbook(write_only=True)
    sheet = book.create_sheet("filled")
    for row in rows:
        sheet.append(row)
    return content_of(book.save)


def read_zip(content: bytes, options: ReadOptions) -> Table:
    """Read an Excel workbook or an .npz file, after a look at the size of what it holds."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        check_size(sum(info.file_size for info in file.infolist()))
        is_workbook = "xl/workbook.xml" in file.namelist()
    return (read_workbook if is_workbook else read_npz)(content, options)
