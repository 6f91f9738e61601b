"""Delimited text with columns of several kinds: numbers, limits and words, read cell by cell and filled again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bnmf.tables.cells import Markers, limit, number, written
from bnmf.tables.table import TableError
from bnmf.tables.text import Grid, Reader, decoded, recognise, records
from bnmf.utils.typing import Bools, Floats

DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([T ].*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}( .*)?")
WHOLE = re.compile(r"[-+]?\d+")


@dataclass(frozen=True)
class MixedText:
    """A text as a DataFrame of numbers and words, with limits of its entries, and how it is written."""

    frame: pd.DataFrame
    lower: Floats
    upper: Floats
    dates: list[str]
    layout: Grid

    def render(self, filled: pd.DataFrame, missing: Bools) -> bytes:
        """Return the text with the values of a filled table in some cells; every other cell is as it was."""
        cells = [list(record) for record in self.layout.cells]
        for row, column in np.argwhere(missing).tolist():
            value: Any = filled.iat[row, column]
            if not pd.isna(value):
                is_word = isinstance(value, str)
                text = value if is_word else written(float(value), self.layout.dialect.decimal)
                cells[self.layout.places[row]][self.layout.columns[column]] = text
        return self.layout.dialect.text(cells)


def read_mixed(
    source: Path,
    words: Sequence[str],
    *,
    missing: Sequence[str] = (),
    header: bool | None = None,
    row_names: bool | None = None,
    delimiter: str | None = None,
) -> MixedText:
    """Read a text; columns named in `words` hold words even if these are numbers."""
    markers, text = Markers(missing), decoded(source.read_bytes())
    dialect = recognise(text, markers, header, row_names, delimiter)
    body, first_line = text[len(dialect.preamble) :], 1 + dialect.preamble.count("\n")
    found = list(records(body, dialect.delimiter, first_line))
    names = [cells[0] for _, cells in found[int(dialect.header) :]]
    if dialect.row_names and row_names is None and len(set(names)) < len(names) and found[0][1][0].strip():
        dialect = replace(dialect, row_names=False)  # values that recur are no names
    kept = [cells for _, cells in found[: int(dialect.header)]]
    columns = [cell.strip() for cell in kept[0]] if kept else dialect.commented
    reader = Reader(lambda: iter(found), dialect, markers, columns, int(dialect.row_names))
    places = []
    for line, cells in found[int(dialect.header) :]:
        if not reader.is_comment(cells):
            reader.check_width(line, cells)
            places.append(len(kept))
        kept.append(cells)
    if not places:
        raise TableError("the file has no rows")
    used = range(int(dialect.row_names), reader.width)
    labels = reader.names or [str(place) for place in range(1, len(used) + 1)]
    shape = len(places), len(used)
    lower, upper, dates, series = np.full(shape, np.nan), np.full(shape, np.nan), [], {}
    for at, (label, place) in enumerate(zip(labels, used, strict=True)):
        cells = [kept[row][place].strip() for row in places]
        cells = ["" if markers.is_missing(cell) or cell.lower() == "nan" else cell for cell in cells]
        limits = {row: between for row, cell in enumerate(cells) if (between := limit(cell, dialect.decimal))}
        for row, between in limits.items():
            lower[row, at], upper[row, at] = between
        numbers = [
            None if row in limits or not cell else number(cell, dialect.decimal) for row, cell in enumerate(cells)
        ]
        given = [cell for row, cell in enumerate(cells) if cell and row not in limits]
        is_number = label not in words and all(
            value is not None for value, cell in zip(numbers, cells, strict=True) if cell and cell in given
        )
        if is_number and all(map(WHOLE.fullmatch, given)) and not limits and given:
            series[at] = pd.Series([None if value is None else int(value) for value in numbers], dtype="Int64")
        elif is_number:
            column: Any = markers.hide(np.array([np.nan if value is None else value for value in numbers]))
            series[at] = pd.Series(column)
        else:
            lower[:, at] = upper[:, at] = np.nan
            series[at] = pd.Series([cell or None for cell in cells], dtype="str")
            if given and all(map(DATE.fullmatch, given)):
                dates.append(label)
    frame = pd.concat(series, axis=1).set_axis(labels, axis=1)
    return MixedText(frame, lower, upper, dates, Grid(dialect, kept, places, tuple(used)))
