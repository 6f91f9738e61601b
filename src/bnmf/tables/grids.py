"""Tables as text: one line for each row, cells between delimiters."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from bnmf.tables.cells import Markers, NotANumber, limit, number, numbers_of, quoted, unquoted, written
from bnmf.tables.dialect import NAMES, Dialect, recognise, records, sample
from bnmf.tables.table import Fills, Table, TableError
from bnmf.utils.typing import Floats

# Names of text columns that an error lists.
N_LISTED_COLUMNS = 5


@dataclass(frozen=True)
class Grid:
    """The text of a table, cell by cell.

    Attributes
    ----------
    dialect : Dialect
        How the text holds the table.
    cells : list of list of str
        All records with their quotes, empty if they were not kept.
    """

    dialect: Dialect
    cells: list[list[str]] = field(default_factory=list)

    endings = (".csv", ".tsv", ".txt", ".dat")

    @property
    def description(self) -> str:
        """The kind of file in a few words."""
        decimal = ", decimal commas" if self.dialect.decimal == "," else ""
        header = "a header" if self.dialect.header else "no header"
        names = "row names" if self.dialect.row_names else "no row names"
        return f"text with {NAMES[self.dialect.delimiter]}{decimal}, {header}, {names}"

    def render(self, table: Table, fills: Fills) -> bytes:
        """Return the text with numbers in some cells; every other cell is as it was."""
        cells = list(self.cells)
        first_row, first_column = int(self.dialect.header), int(self.dialect.row_names)
        changed: set[int] = set()
        for row, column, value in zip(*(part.tolist() for part in fills), strict=True):
            if row not in changed:
                cells[row + first_row] = list(cells[row + first_row])
                changed.add(row)
            cells[row + first_row][column + first_column] = written(value, self.dialect.decimal)
        lines = map(self.dialect.delimiter.join, cells)
        end = self.dialect.line_end
        return (self.dialect.mark + end.join(lines) + end).encode()


def read_grid(
    text: str,
    markers: Markers,
    *,
    header: bool | None = None,
    row_names: bool | None = None,
    keep_cells: bool = False,
) -> Table:
    """Read a table of text."""
    dialect = recognise(text, markers, header, row_names)
    found = records(text.removeprefix(dialect.mark), dialect.delimiter)
    first = next(found)[1] if dialect.header else None
    columns = None if first is None else [unquoted(cell) for cell in first]
    reader = _Reader(text, dialect, markers, columns)
    rows: list[str] = []
    lines, values, kept = array("q"), array("d"), [] if first is None else [first]
    limits: list[tuple[int, int, float, float]] = []
    for line, cells in found:
        reader.check_width(line, cells)
        between: list[tuple[int, float, float]] = []
        values.extend(reader.numbers(line, cells, between))
        limits += [(len(lines), *found) for found in between]
        lines.append(line)
        if dialect.row_names:
            rows.append(unquoted(cells[0]))
        if keep_cells:
            kept.append(cells)
    if not lines:
        raise TableError("there is a header and nothing below it" if dialect.header else "the file is empty")
    matrix = np.frombuffer(values).reshape(len(lines), -1).copy()
    if matrix.shape[1] == 0:
        raise TableError("there is a column of names and nothing beside it")
    reader.check_finite(matrix, lines)
    layout = Grid(dialect, kept if keep_cells else [])
    names = rows if dialect.row_names else None
    lower = upper = None
    if limits:
        lower, upper = np.full(matrix.shape, np.nan), np.full(matrix.shape, np.nan)
        for row, column, low, high in limits:
            lower[row, column], upper[row, column] = low, high
    table = Table(markers.hide(matrix), layout, names, reader.names(matrix.shape[1]), notes=reader.notes(matrix))
    return replace(table, lower=lower, upper=upper)


class _Reader:
    """What reading the rows and naming their errors needs."""

    def __init__(self, text: str, dialect: Dialect, markers: Markers, columns: list[str] | None) -> None:
        self.text, self.dialect, self.markers, self.columns = text, dialect, markers, columns
        self.skipped = int(dialect.row_names)
        self.width = 0

    def check_width(self, line: int, cells: list[str]) -> None:
        """Raise an error if a record is longer or shorter than the first one."""
        if not self.width:
            self.width = len(cells)
            n_columns = None if self.columns is None else len(self.columns)
            if n_columns not in (None, self.width) and not (self.skipped and n_columns == self.width - 1):
                raise TableError(f"the header has {n_columns} cells, but line {line} has {self.width}")
        elif len(cells) != self.width:
            raise TableError(f"line {line} has {len(cells)} cells, but the lines above it have {self.width}")

    def numbers(self, line: int, cells: list[str], limits: list[tuple[int, float, float]]) -> list[float]:
        try:
            return numbers_of(cells[self.skipped :], self.dialect.decimal, self.markers, limits)
        except NotANumber as error:
            raise TableError(self._complaint(line, cells, error.place)) from None

    def names(self, n_columns: int) -> list[str] | None:
        """Return the names of the columns, with their number in place of an empty one."""
        if self.columns is None:
            return None
        return [name or f"column {place}" for place, name in enumerate(self.columns[-n_columns:], start=1)]

    def _name(self, place: int) -> str:
        names = self.names(self.width - self.skipped)
        return f"column {place + 1}" if names is None else f"column {names[place]!r}"

    def _complaint(self, line: int, cells: list[str], place: int) -> str:
        """Return what is wrong with a cell, or with its column if that holds text."""
        example = unquoted(cells[place + self.skipped])
        text_columns = self._text_columns()
        if place in text_columns:
            listed = ", ".join(self._name(other) for other in text_columns[:N_LISTED_COLUMNS])
            more = f" and {len(text_columns) - N_LISTED_COLUMNS} more" if len(text_columns) > N_LISTED_COLUMNS else ""
            verb, what = ("hold", "them") if len(text_columns) > 1 else ("holds", "it")
            # Perhaps it was meant as a number: 12% or 1,234.50.
            plain = ", which have no signs of units or thousands" if any(map(str.isdigit, example)) else ""
            return (
                f"{listed}{more} {verb} text, such as {example!r} in line {line}: remove {what}, or code {what} as "
                f"numbers{plain}"
            )
        where = f"row {unquoted(cells[0])!r} (line {line})" if self.skipped else f"line {line}"
        if self.dialect.decimal == "," and "." in example:
            return f"{where}, {self._name(place)}: {example!r} has a point, but other cells have decimal commas"
        hint = f"if it means missing, use --missing {example!r}"
        return f"{where}, {self._name(place)}: {example!r} is not a number ({hint})"

    def _text_columns(self) -> list[int]:
        """Return the columns of which most cells, of the first records, are text."""
        body = text_body(self.text, self.dialect)
        columns = []
        for place in range(self.width - self.skipped):
            cells = [unquoted(record[place + self.skipped]) for record in body if len(record) == self.width]
            seen = [cell for cell in cells if not self.markers.is_missing(cell)]
            decimal = self.dialect.decimal
            if 2 * sum(number(cell, decimal) is None and limit(cell, decimal) is None for cell in seen) > len(seen):
                columns.append(place)
        return columns

    def check_finite(self, matrix: Floats, lines: array[int]) -> None:
        if np.isinf(matrix).any():
            row, column = np.argwhere(np.isinf(matrix))[0]
            raise TableError(f"line {lines[row]}, {self._name(column)}: the number is infinite")

    def notes(self, matrix: Floats) -> list[str]:
        """Return remarks on a first column that only counts, and on a first line that may be a header."""
        notes = []
        leading = matrix[:, 0]
        if not self.skipped and len(leading) > 2 and matrix.shape[1] > 1 and np.all(np.diff(leading) == 1):
            notes.append(f"{self._name(0)} only counts the rows, and is taken as data: --row-names takes it as names")
        if self.columns is None:
            notes.append("the first line is all numbers, and is taken as data: --header takes it as column names")
        return notes


def text_body(text: str, dialect: Dialect) -> list[list[str]]:
    """Return the cells of the first records without the header."""
    return list(islice(sample(text.removeprefix(dialect.mark), dialect.delimiter), int(dialect.header), None))


def grid_bytes(values: Floats, row_names: list[str], column_names: list[str], corner: str = "") -> bytes:
    """Return results as CSV with a header and row names, numbers with six digits.

    Examples
    --------
    >>> print(grid_bytes(np.array([[0.1, np.nan]]), ["a, b"], ["x", "y"]).decode())
    ,x,y
    "a, b",0.1,
    <BLANKLINE>
    """
    lines = [",".join(map(quoted, [corner, *column_names]))]
    for name, row in zip(row_names, values.tolist(), strict=True):
        lines.append(",".join([quoted(name), *("" if x != x else written(x) for x in row)]))
    return ("\n".join(lines) + "\n").encode()
