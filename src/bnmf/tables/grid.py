"""Tables of text: numbers, limits and words in a grid of cells, or one entry in each line."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice

import numpy as np
import pandas as pd
import scipy.sparse as sp

from bnmf.tables.table import Table, TableError
from bnmf.tables.text import (
    BYTE_ORDER_MARK,
    N_SAMPLE_RECORDS,
    Dialect,
    ReadOptions,
    Record,
    TextFile,
    decimal_of,
    is_mostly_text,
    is_text,
    judged,
    numbers_of,
    recognise,
    records,
    without_comments,
)
from bnmf.utils.text import counted


def read_grid(text: str, options: ReadOptions) -> Table:
    """Read a table of text."""
    if text.removeprefix(BYTE_ORDER_MARK).startswith(("#1.2", "#1.3")):
        return _read_gct(text, options)
    dialect = recognise(text, options)
    rows = without_comments(records(text, dialect), options)
    return grid_of(rows, judged(rows, dialect, options), options, lambda: records(text, dialect))


def grid_of(
    rows: list[Record],
    dialect: Dialect,
    options: ReadOptions,
    again: Callable[[], Iterable[Record]],
    n_meta: tuple[int, int] = (0, 0),
) -> Table:
    """Return the table of records, which `again` returns too, with `n_meta` rows and columns before the numbers."""
    header = [cell.strip() for cell in rows[0][1]] if dialect.header else None
    rows = rows[int(dialect.header) + n_meta[0] :]
    if not rows:
        raise TableError("there is a header and nothing below it")
    width, skipped = len(rows[0][1]), int(dialect.row_names) + n_meta[1]
    n_columns = width - skipped
    lacks_corner = bool(header and skipped and len(header) == width - 1)
    if header is not None and len(header) != width and not lacks_corner:
        raise TableError(f"the header has {counted(len(header), 'cell')}, but line {rows[0][0]} has {width}")
    for line, cells in rows:
        if len(cells) != width:
            raise TableError(f"line {line} has {counted(len(cells), 'cell')}, but the lines above it have {width}")
    if n_columns < 1:
        raise TableError("there is a column of names and nothing beside it")
    names = header and [name or f"column {at}" for at, name in enumerate(header[-n_columns:], start=1)]
    labels = names or [str(at) for at in range(1, n_columns + 1)]

    values = np.full((len(rows), n_columns), np.nan)
    words, limits = {}, []
    for at, label in enumerate(labels):
        cells = [record[at + skipped] for _, record in rows]
        if label in (options.words or ()) or is_mostly_text(cells[:N_SAMPLE_RECORDS], dialect.decimal, options):
            words[at] = options.hide_words(pd.Series([cell.strip() for cell in cells], dtype="str"))
            continue

        def where(row: int, column: str = repr(label) if names else label) -> str:
            line, record = rows[row]
            of_row = f"row {record[0].strip()!r} (line {line})" if skipped else f"line {line}"
            return f"{of_row}, column {column}"

        values[:, at], of_column = numbers_of(cells, dialect.decimal, options, where)
        limits += [(row, at, *between) for row, between in of_column.items()]
    lines = [line for line, _ in rows]
    description = f"text {dialect.description}, {'row names' if dialect.row_names else 'no row names'}"
    table = Table(
        values,
        TextFile(description, dialect.endings, dialect, again, lambda row, column: (lines[row], column + skipped)),
        [cells[0].strip() for _, cells in rows] if dialect.row_names else None,
        names,
        notes=list(dialect.notes),
        words=words,
        corner=header[0] or None if header and dialect.row_names and not lacks_corner else None,
    )
    return table.with_limits(*(np.array(part) for part in zip(*limits, strict=True))) if limits else table


def _read_gct(text: str, options: ReadOptions) -> Table:
    """Read a GCT file: version, sizes, header, and rows with a name, descriptions and numbers between tabs."""
    version, sizes = (*text.split("\n", 2), "")[:2]
    try:
        counts = [int(cell) for cell in sizes.split("\t")]
        n_rows, n_columns, n_row_meta, n_column_meta = counts if "#1.3" in version else (*counts[:2], 1, 0)
    except ValueError:
        raise TableError(f"line 2 of a GCT file holds its numbers of rows and columns, not {sizes.strip()!r}") from None
    dialect = recognise(text, replace(options, delimiter="\t"))
    dialect = replace(dialect, header=True, row_names=True, preamble=f"{version}\n{sizes}\n")
    rows = without_comments(records(text, dialect), options)
    again, n_meta = lambda: records(text, dialect), (n_column_meta, n_row_meta)
    table = grid_of(rows, dialect, replace(options, words=None), again, n_meta)
    if table.shape != (n_rows, n_columns):
        raise TableError(
            f"line 2 says {n_rows} rows x {n_columns} columns, but there are {table.shape[0]} x {table.shape[1]}"
        )
    return replace(table, layout=replace(table.layout, description="GCT file", endings=(".gct",)))


def read_triples(text: str, options: ReadOptions) -> Table:
    """Read triples: row, column and value, which may be a limit; further cells of a line are ignored."""
    unstored = options.unstored or "missing"
    dialect = recognise(text, options)
    sample = list(islice(records(text, dialect), N_SAMPLE_RECORDS))
    if not sample:
        raise TableError("the file is empty")
    first_record = sample[0][1]
    if len(first_record) < 3:
        raise TableError(f"triples need three columns (row, column, value), but the first line has {len(first_record)}")
    decimal, header = decimal_of(sample, dialect.delimiter), options.header
    if header is None:
        header = not options.is_missing(first_record[2]) and is_text(first_record[2], decimal)
    dialect = replace(dialect, decimal=decimal, header=header)
    places: tuple[dict[str, int], dict[str, int]] = ({}, {})
    entries, lines, cells = (array("q"), array("q")), array("q"), []
    for line, record in islice(records(text, dialect), int(header), None):
        *pair, value = (*record[:3], "", "")[:3]
        if not all(name.strip() for name in pair):
            raise TableError(f"line {line} does not name a row and a column")
        for side, name, known in zip(entries, pair, places, strict=True):
            side.append(known.setdefault(name.strip(), len(known)))
        lines.append(line)
        cells.append(value)
    if not lines:
        raise TableError("there is a header and nothing below it")
    rows, columns = (np.array(side, np.int64) for side in entries)
    row_names, column_names = (list(known) for known in places)
    again = np.flatnonzero(pd.DataFrame({"row": rows, "column": columns}).duplicated())
    if len(again):
        row, column = rows[again[0]], columns[again[0]]
        first = np.flatnonzero((rows == row) & (columns == column))[0]
        raise TableError(
            f"row {row_names[row]!r}, column {column_names[column]!r} has values in lines {lines[first]} and "
            f"{lines[again[0]]}: keep one of them"
        )
    values, limits = numbers_of(cells, decimal, options, lambda at: f"line {lines[at]}")
    missing, limited = np.isnan(values), np.array(list(limits), np.intp)
    # A pair without a value is stored only where pairs that are not listed are zeros.
    stored = ~missing if unstored == "missing" else np.ones(len(values), bool)
    stored[limited] = True
    asked = rows[missing], columns[missing]
    line_of = {(rows[at], columns[at]): lines[at] for at in np.flatnonzero(missing).tolist()}
    layout = TextFile(
        f"triples (row, column, value) {dialect.description}",
        dialect.endings,
        dialect,
        lambda: records(text, dialect),
        lambda row, column: (line_of[row, column], 2),
    )
    shape = len(row_names), len(column_names)
    matrix = sp.coo_array((values[stored], (rows[stored], columns[stored])), shape=shape).tocsr()
    notes = ["columns after the third are ignored"] if len(first_record) > 3 else []
    table = Table(matrix, layout, row_names, column_names, unstored, asked=asked, notes=notes)
    low, high = np.array(list(limits.values())).reshape(-1, 2).T
    return table.with_limits(rows[limited], columns[limited], low, high)
