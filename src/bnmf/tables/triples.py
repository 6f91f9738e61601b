"""Tables as triples: one line for each entry, with its row, its column and its value, as ratings come."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp

from bnmf.tables.cells import Markers, NotANumber, number, numbers_of, unquoted, written
from bnmf.tables.dialect import NAMES, Dialect, recognise, records, sample
from bnmf.tables.table import Fills, Table, TableError
from bnmf.utils.typing import Floats, Indices


@dataclass(frozen=True)
class Triples:
    """The text of triples.

    Attributes
    ----------
    dialect : Dialect
        How the text holds them.
    cells : list of list of str
        All records with their quotes, empty if they were not kept.
    places : list of int
        The records with an empty value, in the order of `Table.asked`.
    """

    dialect: Dialect
    cells: list[list[str]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)

    endings = (".csv", ".tsv", ".txt", ".dat")

    @property
    def description(self) -> str:
        """The kind of file in a few words."""
        header = "a header" if self.dialect.header else "no header"
        return f"triples (row, column, value) with {NAMES[self.dialect.delimiter]}, {header}"

    def render(self, table: Table, fills: Fills) -> bytes:
        """Return the text with numbers in place of empty values."""
        cells = list(self.cells)
        rows, columns = (part.tolist() for part in table.to_fill())
        places = dict(zip(zip(rows, columns, strict=True), self.places, strict=True))
        for row, column, value in zip(*(part.tolist() for part in fills), strict=True):
            place = places[row, column]
            filled = list(cells[place]) + [""] * (3 - len(cells[place]))
            cells[place] = [*filled[:2], written(value, self.dialect.decimal), *filled[3:]]
        end = self.dialect.line_end
        return (self.dialect.mark + end.join(map(self.dialect.delimiter.join, cells)) + end).encode()


def read_triples(
    text: str,
    markers: Markers,
    *,
    header: bool | None = None,
    unstored: str = "missing",
    keep_cells: bool = False,
) -> Table:
    """Read triples: row, column and value; further cells of a line are ignored."""
    dialect = recognise(text, markers, header, row_names=False)
    found = records(text.removeprefix(dialect.mark), dialect.delimiter)
    first = sample(text.removeprefix(dialect.mark), dialect.delimiter)[0]
    if len(first) < 3:
        raise TableError(f"triples need three columns (row, column, value), but the first line has {len(first)}")
    if header is None:
        value = unquoted(first[2])
        dialect = replace(dialect, header=not markers.is_missing(value) and number(value, dialect.decimal) is None)
    kept = [next(found)[1]] if dialect.header else []
    listed = _Listed()
    for line, cells in found:
        listed.add(line, cells, dialect.decimal, markers)
        if keep_cells:
            kept.append(cells)
    if not listed.lines:
        raise TableError("there is a header and nothing below it")
    rows, columns, values = listed.arrays(markers)
    missing = np.isnan(values)
    # A pair without a value is stored only where pairs that are not listed are zeros.
    stored = ~missing if unstored == "missing" else np.ones(len(values), bool)
    shape = len(listed.row_names), len(listed.column_names)
    return Table(
        sp.coo_array((values[stored], (rows[stored], columns[stored])), shape=shape).tocsr(),
        Triples(dialect, kept, (np.flatnonzero(missing) + int(dialect.header)).tolist()),
        list(listed.row_names),
        list(listed.column_names),
        unstored,
        asked=(rows[missing], columns[missing]),
        notes=["columns after the third are ignored"] if len(first) > 3 else [],
    )


class _Listed:
    """The triples that were read so far, with the number of each name."""

    def __init__(self) -> None:
        self.row_names: dict[str, int] = {}
        self.column_names: dict[str, int] = {}
        self.rows, self.columns, self.lines, self.values = array("q"), array("q"), array("q"), array("d")

    def add(self, line: int, cells: list[str], decimal: str, markers: Markers) -> None:
        """Append the triple of one record."""
        row, column = (unquoted(cell) for cell in (*cells[:2], "")[:2])
        if not row or not column:
            raise TableError(f"line {line} does not name a row and a column")
        try:
            self.values.extend(numbers_of(cells[2:3] or [""], decimal, markers))
        except NotANumber:
            raise TableError(f"line {line}: the value {unquoted(cells[2])!r} is not a number") from None
        self.rows.append(self.row_names.setdefault(row, len(self.row_names)))
        self.columns.append(self.column_names.setdefault(column, len(self.column_names)))
        self.lines.append(line)

    def arrays(self, markers: Markers) -> tuple[Indices, Indices, Floats]:
        """Return rows, columns and values, which are finite or missing, and without repeated pairs."""
        rows, columns, lines = (np.array(part, np.int64) for part in (self.rows, self.columns, self.lines))
        values = np.array(self.values)
        if np.isinf(values).any():
            raise TableError(f"line {lines[np.isinf(values)][0]}: the value is infinite")
        flat = rows * len(self.column_names) + columns
        order = np.argsort(flat, kind="stable")
        again = np.flatnonzero(np.diff(flat[order]) == 0)
        if len(again):
            before, after = order[again[0]], order[again[0] + 1]
            raise TableError(
                f"row {list(self.row_names)[rows[after]]!r}, column {list(self.column_names)[columns[after]]!r} has "
                f"values in lines {lines[before]} and {lines[after]}: keep one of them"
            )
        return rows, columns, markers.hide(values)
