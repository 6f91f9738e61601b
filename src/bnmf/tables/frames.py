"""Tables as DataFrames: Parquet and Excel workbooks, and any dense table written as another kind of file."""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass, replace
from itertools import dropwhile
from typing import Any

import numpy as np
import pandas as pd

from bnmf.tables.arrays import check_size, library, table_of
from bnmf.tables.grid import grid_of
from bnmf.tables.table import Fills, Layout, Table, TableError
from bnmf.tables.text import (
    Dialect,
    ReadOptions,
    Record,
    TextFile,
    judge_words,
    judged,
    rounded,
    written,
)
from bnmf.utils.files import content_of
from bnmf.utils.typing import Array, Floats, Indices

BOOLEANS = {"True": True, "False": False}
"""Truth values of a workbook, by the words that they are read as."""
PARQUET = (".parquet", ".pq")


@dataclass(frozen=True)
class FrameFile(Layout):
    """A file of a DataFrame, of which the first `n_names` (0 or 1) columns hold names of rows."""

    frame: pd.DataFrame
    n_names: int = 0

    def render(self, fills: Fills) -> bytes:
        frame = self.frame.copy()
        for column in np.unique(fills.columns).tolist():
            here, place = fills.columns == column, column + self.n_names
            values = [rounded(value) for value in fills.values[here].tolist()]
            frame.isetitem(place, put(frame.iloc[:, place], fills.rows[here], values).array)
        return frame_bytes(frame, self.endings[0])


def put(column: pd.Series, rows: Indices, values: Any) -> pd.Series:
    """Return a column with some values, in its precision if they are numbers."""
    numbers = _as_numbers(column)
    if numbers is not None and not pd.api.types.is_bool_dtype(column.dtype):
        column = pd.Series(numbers, column.index, column.dtype if column.dtype.kind == "f" else np.float64)
    column = column.copy()
    column.iloc[rows] = values
    return column


def frame_bytes(frame: pd.DataFrame, ending: str) -> bytes:
    """Return a table of pandas as a file, with the names that it has; numbers of a text have all of their digits."""
    if ending in PARQUET:
        library("pyarrow", "Parquet files", "parquet")
        return content_of(frame.to_parquet, engine="pyarrow")
    names: dict[str, Any] = {
        "index": not isinstance(frame.index, pd.RangeIndex),
        "header": not isinstance(frame.columns, pd.RangeIndex),
    }
    if ending == ".xlsx":
        library("openpyxl", "Excel workbooks", "xlsx")
        frame = frame.map(lambda cell: BOOLEANS.get(cell, cell))
        return content_of(frame.to_excel, engine="openpyxl", **names)
    sign = "\t" if ending == ".tsv" else ","
    text: str = frame.to_csv(sep=sign, float_format=_exact, lineterminator="\n", **names)
    return text.encode()


def _exact(number: Any) -> str:
    """Return a number with all of its digits, whole ones without a point."""
    return repr(float(number)).removesuffix(".0")


def grid_bytes(values: Floats, row_names: list[str], column_names: list[str]) -> bytes:
    """Return results as CSV with a header and row names, numbers with six digits."""
    frame = pd.DataFrame(values, row_names, column_names)
    return frame.to_csv(float_format=written, lineterminator="\n").encode()


# --- Parquet


def read_parquet(content: bytes, options: ReadOptions) -> Table:
    """Read a Parquet file, with the index that pandas stored, or a first column of text, as names of rows."""
    library("pyarrow", "Parquet files", "parquet")
    from pyarrow.parquet import read_metadata

    facts = read_metadata(io.BytesIO(content))
    check_size(8 * facts.num_rows * facts.num_columns)
    frame = pd.read_parquet(io.BytesIO(content), engine="pyarrow")
    labels, words, row_names, notes = _texts(frame.columns), options.words, options.row_names, list[str]()
    has_index = not isinstance(frame.index, pd.RangeIndex)
    if row_names is None:
        row_names = not has_index and len(labels) > 1 and _as_numbers(frame.iloc[:, 0]) is None
        if row_names:
            row_names, notes = judge_words(_texts(pd.Index(frame.iloc[:, 0])), labels[0], options)
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
    matrix = np.column_stack([np.empty((len(frame), 0)), *numbers])
    names = pd.Index(frame.iloc[:, 0]) if n_names else frame.index if has_index else pd.Index([])
    layout = FrameFile("Parquet file", PARQUET, frame, n_names)
    table = table_of(matrix, layout, options, _texts(names) or None, labels[n_names:])
    return replace(table, words=of_words, notes=notes, corner=None if names.name is None else str(names.name))


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


# --- Excel


@dataclass(frozen=True)
class Workbook(Layout):
    """The first sheet of an Excel workbook, whose other sheets, formulas and formats are kept."""

    content: bytes
    sheet: TextFile

    def render(self, fills: Fills) -> bytes:
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
    table = grid_of(found, judged(found, Dialect(), options), options, lambda: found)
    assert isinstance(table.layout, TextFile)
    notes = [f"only the first of {len(book.worksheets)} sheets is read, {book.worksheets[0].title!r}"]
    notes = [*table.notes, *notes[: len(book.worksheets) - 1]]
    return replace(table, layout=Workbook("Excel workbook", (".xlsx",), content, table.layout), notes=notes)
