"""Tables as triples: one line for each entry, with its row, its column and its value, as ratings come."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from bnmf.tables.cells import NotANumber, ReadOptions, numbers_of, written
from bnmf.tables.table import Fills, Table, TableError
from bnmf.tables.text import Dialect, is_text, recognise, records


@dataclass(frozen=True)
class Triples:
    """The text of triples; `places` are the records of the entries in `Table.asked`, in their order."""

    dialect: Dialect
    cells: list[list[str]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)

    @property
    def endings(self) -> tuple[str, ...]:
        """How names of such files end."""
        return self.dialect.endings

    @property
    def description(self) -> str:
        """The kind of file in a few words."""
        header = "a header" if self.dialect.header else "no header"
        return f"triples (row, column, value) with {self.dialect.delimiter_name}, {header}"

    def render(self, table: Table, fills: Fills) -> bytes:
        """Return the text with numbers in place of empty values."""
        cells = list(self.cells)
        rows, columns = (part.tolist() for part in table.to_fill())
        places = dict(zip(zip(rows, columns, strict=True), self.places, strict=True))
        for row, column, value in fills.entries():
            place = places[row, column]
            filled = list(cells[place]) + [""] * (3 - len(cells[place]))
            cells[place] = [*filled[:2], written(value, self.dialect.decimal), *filled[3:]]
        return self.dialect.text(cells)


def read_triples(text: str, options: ReadOptions) -> Table:
    """Read triples: row, column and value, which may be a limit; further cells of a line are ignored."""
    markers, unstored = options.markers, options.unstored or "missing"
    dialect = recognise(text, replace(options, row_names=False))
    body, first_line = text[len(dialect.preamble) :], 1 + dialect.preamble.count("\n")
    _, first = next(records(body, dialect.delimiter, first_line))
    if len(first) < 3:
        raise TableError(f"triples need three columns (row, column, value), but the first line has {len(first)}")
    if options.header is None:
        is_name = not markers.is_missing(first[2]) and is_text(first[2], dialect.decimal)
        dialect = replace(dialect, header=is_name)
    found = records(body, dialect.delimiter, first_line)
    kept = [next(found)[1]] if dialect.header else []
    names: tuple[dict[str, int], dict[str, int]] = ({}, {})
    places, lines, values = (array("q"), array("q")), array("q"), array("d")
    limits: list[tuple[int, float, float]] = []
    for line, cells in found:
        if not all(cell.strip() for cell in (*cells[:2], "")[:2]):
            raise TableError(f"line {line} does not name a row and a column")
        between: list[tuple[int, float, float]] = []
        try:
            values.extend(numbers_of(cells[2:3] or [""], dialect.decimal, markers, between))
        except NotANumber:
            raise TableError(f"line {line}: the value {cells[2].strip()!r} is not a number") from None
        limits += [(len(lines), low, high) for _, low, high in between]
        for place, name, known in zip(places, cells[:2], names, strict=True):
            place.append(known.setdefault(name.strip(), len(known)))
        lines.append(line)
        if options.keep_cells:
            kept.append(cells)
    if not lines:
        raise TableError("there is a header and nothing below it")
    rows, columns = (np.array(place, np.int64) for place in places)
    _check_triples(rows, columns, np.array(values), lines, names)
    numbers = markers.hide(np.array(values))
    low, high = np.full(len(numbers), np.nan), np.full(len(numbers), np.nan)
    for at, *between_two in limits:
        low[at], high[at] = between_two
    missing, is_limit = np.isnan(numbers), ~np.isnan(low)
    # A pair without a value is stored only where pairs that are not listed are zeros.
    stored = ~missing | is_limit if unstored == "missing" else np.ones(len(numbers), bool)
    shape = len(names[0]), len(names[1])
    table = Table(
        sp.coo_array((numbers[stored], (rows[stored], columns[stored])), shape=shape).tocsr(),
        Triples(dialect, kept, (np.flatnonzero(missing) + int(dialect.header)).tolist()),
        list(names[0]),
        list(names[1]),
        unstored,
        asked=(rows[missing], columns[missing]),
        notes=["columns after the third are ignored"] if len(first) > 3 else [],
    )
    return table.with_limits(rows, columns, low, high)


def _check_triples(rows: Any, columns: Any, values: Any, lines: array[int], names: Any) -> None:
    """Raise an error if a value is infinite, or a pair occurs twice."""
    if np.isinf(values).any():
        raise TableError(f"line {lines[int(np.flatnonzero(np.isinf(values))[0])]}: the value is infinite")
    flat = rows * len(names[1]) + columns
    order = np.argsort(flat, kind="stable")
    again = np.flatnonzero(np.diff(flat[order]) == 0)
    if len(again):
        before, after = order[again[0]], order[again[0] + 1]
        raise TableError(
            f"row {list(names[0])[rows[after]]!r}, column {list(names[1])[columns[after]]!r} has values in lines "
            f"{lines[before]} and {lines[after]}: keep one of them"
        )
