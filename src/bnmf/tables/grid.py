"""Tables of records, cell by cell: numbers, limits and words."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
import pandas as pd

from bnmf.tables.cells import NotANumber, ReadOptions, numbers_of
from bnmf.tables.table import Table, TableError
from bnmf.tables.text import (
    BYTE_ORDER_MARK,
    Dialect,
    Record,
    TextFile,
    are_ids,
    first_of,
    is_mostly_text,
    is_numbering,
    line_end_of,
    recognise,
    records,
)

MAX_RECURRING = 100
"""Values in a first column of words that are categories, rather than names, if they recur."""


def read_grid(text: str, options: ReadOptions) -> Table:
    """Read a table of text."""
    if text.removeprefix(BYTE_ORDER_MARK).startswith(("#1.2", "#1.3")):
        return _read_gct(text, options)
    dialect = recognise(text, options)
    return grid_of(lambda: records(text, dialect), dialect, options)


def grid_of(
    found: Callable[[], Iterator[Record]], dialect: Dialect, options: ReadOptions, n_meta: tuple[int, int] = (0, 0)
) -> Table:
    """Return the table of the records that `found` returns, with `n_meta` rows and columns before the numbers."""
    iterator = found()
    above = [cells for _, cells in islice(iterator, int(dialect.header) + n_meta[0])]
    header = [cell.strip() for cell in above[0]] if dialect.header else dialect.commented
    reader = Reader(dialect, options, header, n_meta[1], first_of(islice(found(), len(above), None)))
    rows: list[str] = []
    lines, values = array("q"), array("d")
    limits: list[tuple[int, int, float, float]] = []
    for line, cells in iterator:
        if reader.is_comment(cells):
            continue
        between: list[tuple[int, float, float]] = []
        values.extend(reader.numbers(line, cells, between))
        limits += [(len(lines), *limit) for limit in between]
        lines.append(line)
        if dialect.row_names:
            rows.append(cells[0].strip())
    if not lines:
        raise TableError("there is a header and nothing below it" if dialect.header else "the file is empty")
    # The first column was judged by the first records: here by all. With words, it has names if none recurs or lacks.
    if options.row_names is None and dialect.row_names and not reader.are_names(rows):
        notes = [note for note in dialect.notes if "taken as row names" not in note]
        if len(notes) == len(dialect.notes) and reader.corner not in (options.words or ()):
            notes.append(note_of_data(rows, reader.corner))
        dialect = replace(dialect, row_names=False, notes=tuple(notes))
        return grid_of(found, dialect, replace(options, row_names=False), n_meta)
    matrix = options.hide(np.frombuffer(values).reshape(len(lines), -1).copy())
    if matrix.shape[1] == 0:
        raise TableError("there is a column of names and nothing beside it")
    if np.isinf(matrix).any():
        row, column = np.argwhere(np.isinf(matrix))[0]
        raise TableError(f"line {lines[row]}, {reader.name(column)}: the number is infinite")
    skipped = reader.skipped
    layout = TextFile(
        _description(dialect), dialect.endings, dialect, found, lambda row, column: (lines[row], column + skipped)
    )
    table = Table(
        matrix,
        layout,
        rows if dialect.row_names else None,
        reader.names,
        notes=list(dialect.notes),
        words={place: options.hide_words(pd.Series(cells, dtype="str")) for place, cells in reader.words.items()},
        corner=reader.corner,
    )
    return table.with_limits(*(np.array(part) for part in zip(*limits, strict=True))) if limits else table


def _description(dialect: Dialect) -> str:
    decimal = ", decimal commas" if dialect.decimal == "," else ""
    header = "a header" if dialect.header or dialect.commented else "no header"
    names = "row names" if dialect.row_names else "no row names"
    return f"text with {dialect.delimiter_name}{decimal}, {header}, {names}"


class Reader:
    """Converts the records of a table, whose width and columns of words the first ones show, and names errors."""

    def __init__(
        self, dialect: Dialect, options: ReadOptions, header: list[str] | None, n_meta: int, first: list[Record]
    ) -> None:
        self.dialect, self.options, self.skipped = dialect, options, int(dialect.row_names) + n_meta
        self.width = len(header or [""])
        rows = [record for record in first if not self.is_comment(record[1])]
        line, self.width = (rows[0][0], len(rows[0][1])) if rows else (0, self.width)
        lacks_corner = bool(header and self.skipped and len(header) == self.width - 1)
        if header is not None and len(header) != self.width and not lacks_corner:
            raise TableError(f"the header has {len(header)} cells, but line {line} has {self.width}")
        self.corner = header[0] or None if header and dialect.row_names and not lacks_corner else None
        n_columns = self.width - self.skipped
        names = header[-n_columns:] if header and n_columns else header and []
        self.names = None if names is None else [name or f"column {at}" for at, name in enumerate(names, start=1)]
        labels = self.names or [str(at) for at in range(1, n_columns + 1)]
        columns = zip(*(cells[self.skipped :] for _, cells in rows if len(cells) == self.width), strict=True)
        self.words: dict[int, list[str]] = {
            place: []
            for place, (label, cells) in enumerate(zip(labels, columns, strict=False))
            if label in (options.words or ()) or is_mostly_text(cells, dialect.decimal, options)
        }

    def is_comment(self, cells: list[str]) -> bool:
        """Return whether a record begins with # and is not a row."""
        return cells[0].startswith("#") and not self.options.is_missing(cells[0]) and len(cells) != self.width

    def numbers(self, line: int, cells: list[str], limits: list[tuple[int, float, float]]) -> list[float]:
        """Return the numbers of a record, NaN for words, or raise an error that names the line and the column."""
        if len(cells) != self.width:
            broken = any("\n" in cell for cell in cells)
            hint = ": a quote in it is closed only in another line" if broken else ""
            raise TableError(f"line {line} has {len(cells)} cells, but the lines above it have {self.width}{hint}")
        numbers = cells[self.skipped :]
        for place, words in self.words.items():
            words.append(numbers[place].strip())
            numbers[place] = "nan"
        try:
            return numbers_of(numbers, self.dialect.decimal, self.options, limits)
        except NotANumber as error:
            cell = numbers[error.place].strip()
            where = f"row {cells[0].strip()!r} (line {line})" if self.skipped else f"line {line}"
            where = f"{where}, {self.name(error.place)}: {cell!r}"
        if self.dialect.decimal == "," and "." in cell:
            raise TableError(f"{where} has a point, but other cells have decimal commas")
        raise TableError(f"{where} is not a number (if it means missing, use --missing {cell!r})")

    def are_names(self, rows: list[str]) -> bool:
        """Return whether what the first records have as names of rows are names in all of them."""
        if any("taken as row names" in note for note in self.dialect.notes):
            return is_numbering(rows) or are_ids(rows)
        words = self.options.words
        if words is None or self.corner is None:
            return words is None or self.dialect.header or all(rows)
        return not is_data(rows, self.corner, words)

    def name(self, place: int) -> str:
        """Return a column as errors name it."""
        return f"column {place + 1}" if self.names is None else f"column {self.names[place]!r}"


def is_data(names: list[str], corner: str, words: Collection[str]) -> bool:
    """Return whether a first column of words is data: it is named in `words`, has gaps, or few values recur in it."""
    return corner in words or not all(names) or _recur(names)


def _recur(names: list[str]) -> bool:
    given = [name for name in names if name]
    return len(set(given)) <= min(MAX_RECURRING, len(given) // 2)


def note_of_data(names: list[str], corner: str | None) -> str:
    """Return why a first column of words is data."""
    where = "the first column" if corner is None else f"column {corner!r}"
    why = f"words recur in {where}" if _recur(names) else f"{where} has empty cells"
    return f"{why}, so it is data: --row-names takes it as names"


def _read_gct(text: str, options: ReadOptions) -> Table:
    """Read a GCT file: version, sizes, header, and rows with a name, descriptions and numbers between tabs."""
    version, sizes = (*text.split("\n", 2), "")[:2]
    try:
        counts = [int(cell) for cell in sizes.split("\t")]
        n_rows, n_columns, n_row_meta, n_column_meta = counts if "#1.3" in version else (*counts[:2], 1, 0)
    except ValueError:
        raise TableError(f"line 2 of a GCT file holds its numbers of rows and columns, not {sizes.strip()!r}") from None
    dialect = Dialect("\t", ".", True, True, line_end_of(text), f"{version}\n{sizes}\n")
    options = replace(options, words=None, row_names=True)
    table = grid_of(lambda: records(text, dialect), dialect, options, (n_column_meta, n_row_meta))
    if table.shape != (n_rows, n_columns):
        raise TableError(
            f"line 2 says {n_rows} rows x {n_columns} columns, but there are {table.shape[0]} x {table.shape[1]}"
        )
    return replace(table, layout=replace(table.layout, description="GCT file", endings=(".gct",)))  # type: ignore[type-var]
