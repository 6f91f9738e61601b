"""Tables as triples: one line for each entry, with its row, its column and its value, as ratings come."""

from __future__ import annotations

from array import array
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp

from bnmf.tables.cells import NotANumber, ReadOptions, numbers_of
from bnmf.tables.table import Table, TableError
from bnmf.tables.text import TextFile, is_text, recognise, records


def read_triples(text: str, options: ReadOptions) -> Table:
    """Read triples: row, column and value, which may be a limit; further cells of a line are ignored."""
    unstored = options.unstored or "missing"
    dialect = recognise(text, replace(options, row_names=False))
    _, first = next(records(text, dialect))
    if len(first) < 3:
        raise TableError(f"triples need three columns (row, column, value), but the first line has {len(first)}")
    if options.header is None:
        is_name = not options.is_missing(first[2]) and is_text(first[2], dialect.decimal)
        dialect = replace(dialect, header=is_name)
    names: tuple[dict[str, int], dict[str, int]] = ({}, {})
    places, lines, values = (array("q"), array("q")), array("q"), array("d")
    limits: list[tuple[int, float, float]] = []
    for line, cells in islice(records(text, dialect), int(dialect.header), None):
        if not all(cell.strip() for cell in (*cells[:2], "")[:2]):
            raise TableError(f"line {line} does not name a row and a column")
        between: list[tuple[int, float, float]] = []
        try:
            values.extend(numbers_of(cells[2:3] or [""], dialect.decimal, options, between))
        except NotANumber:
            raise TableError(f"line {line}: the value {cells[2].strip()!r} is not a number") from None
        limits += [(len(lines), low, high) for _, low, high in between]
        for place, name, known in zip(places, cells[:2], names, strict=True):
            place.append(known.setdefault(name.strip(), len(known)))
        lines.append(line)
    if not lines:
        raise TableError("there is a header and nothing below it")
    rows, columns = (np.array(place, np.int64) for place in places)
    numbers = options.hide(np.array(values))
    _check_triples(rows, columns, numbers, lines, names)
    low, high = np.full(len(numbers), np.nan), np.full(len(numbers), np.nan)
    for at, *between_two in limits:
        low[at], high[at] = between_two
    missing, is_limit = np.isnan(numbers), ~np.isnan(low)
    # A pair without a value is stored only where pairs that are not listed are zeros.
    stored = ~missing | is_limit if unstored == "missing" else np.ones(len(numbers), bool)
    shape = len(names[0]), len(names[1])
    asked = rows[missing], columns[missing]
    pairs = zip(*(part.tolist() for part in asked), strict=True)
    line_of = dict(zip(pairs, np.array(lines)[missing].tolist(), strict=True))
    header = "a header" if dialect.header else "no header"
    description = f"triples (row, column, value) with {dialect.delimiter_name}, {header}"
    layout = TextFile(
        description, dialect.endings, dialect, lambda: records(text, dialect), lambda *entry: (line_of[entry], 2)
    )
    table = Table(
        sp.coo_array((numbers[stored], (rows[stored], columns[stored])), shape=shape).tocsr(),
        layout,
        list(names[0]),
        list(names[1]),
        unstored,
        asked=asked,
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
