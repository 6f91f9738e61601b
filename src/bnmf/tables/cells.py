"""Cells: which are missing, which are numbers, limits or dates, and how they are written."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from bnmf.utils.typing import Floats

# In any case of letters; "nan" is a number for `float`, and so is not listed.
MISSING_WORDS = frozenset({"", "na", "n/a", "#n/a", "#na", "<na>", "null", "none"})
LIMIT = re.compile(r"\s*(?P<sign><=|>=|[<>≤≥])\s*(?P<value>\S+)\s*")
DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([T ].*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}( .*)?")


class NotANumber(ValueError):
    """A cell is neither a number nor missing; `place` is its position in the row."""

    def __init__(self, place: int) -> None:
        super().__init__(place)
        self.place = place


@dataclass(frozen=True)
class ReadOptions:
    """How a table is read; the fields are parameters of :func:`bnmf.tables.read_table`."""

    missing: Sequence[str] = ()
    unstored: str | None = None
    header: bool | None = None
    row_names: bool | None = None
    delimiter: str | None = None
    layer: str | None = None
    words: Collection[str] | None = None

    @cached_property
    def missing_words(self) -> frozenset[str]:
        """Words that count as missing, in small letters."""
        return MISSING_WORDS | {word.strip().lower() for word in self.missing}

    @cached_property
    def missing_numbers(self) -> list[float]:
        """Numbers that stand for missing entries, however they are written."""
        found = (number(word, decimal) for word in self.missing for decimal in ".,")
        return [x for x in found if x is not None]

    def is_missing(self, cell: str) -> bool:
        """Return whether a cell is one of the words for a missing entry."""
        return cell.strip().lower() in self.missing_words

    def hide(self, values: Any) -> Any:
        """Return numbers with NaN in place of those that stand for missing entries."""
        if not self.missing_numbers:
            return values
        values = values.copy()
        stored = values.data if isinstance(values, sp.csr_array) else values
        stored[np.isin(stored, self.missing_numbers)] = np.nan
        return values

    def hide_words(self, column: pd.Series) -> pd.Series:
        """Return a column of words, or of anything else, without those that stand for missing entries."""
        words = self.missing_words | {"nan"}
        return column.mask(np.array([isinstance(cell, str) and cell.strip().lower() in words for cell in column], bool))


def number(cell: str, decimal: str = ".") -> float | None:
    """Return the number that a cell holds, None if it is not one."""
    if decimal == ",":
        if "." in cell:  # it separates thousands, or the file is mixed
            return None
        cell = cell.replace(",", ".")
    if "_" in cell:  # which Python allows in numbers
        return None
    try:
        return float(cell)
    except ValueError:
        return None


def limit(cell: str, decimal: str = ".") -> tuple[float, float] | None:
    """Return the limits that a cell such as "<0.01" stands for, None if it is not one."""
    found = LIMIT.fullmatch(cell)
    value = None if found is None else number(found["value"], decimal)
    if found is None or value is None or not math.isfinite(value):
        return None
    return (-math.inf, value) if found["sign"][0] in "<≤" else (value, math.inf)


def numbers_of(
    cells: list[str], decimal: str, options: ReadOptions, limits: list[tuple[int, float, float]]
) -> list[float]:
    """Return the numbers of a row of cells, NaN where a cell is missing or a limit; limits are appended to `limits`."""
    if decimal == "." and "_" not in "".join(cells):
        try:
            return list(map(float, cells))
        except ValueError:
            pass  # some are missing or wrong
    found = []
    for place, cell in enumerate(cells):
        value = number(cell, decimal) if cell else None
        if value is None and not options.is_missing(cell):
            between = limit(cell, decimal)
            if between is None:
                raise NotANumber(place)
            limits.append((place, *between))
        found.append(math.nan if value is None else value)
    return found


def holds_dates(column: pd.Series) -> bool:
    """Return whether everything in a column that is not missing is a date."""
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return True
    seen = column.dropna().tolist()
    return bool(seen) and all(isinstance(cell, str) and DATE.fullmatch(cell) for cell in seen)


def are_almost_numbers(column: pd.Series) -> bool:
    """Return whether everything in a column of words is a number with a sign of a unit or of thousands."""
    seen = column.dropna().astype(str).tolist()
    return bool(seen) and all(number(re.sub(r"[%$€£¥,' ]", "", cell)) is not None for cell in seen)


def written(value: Any, decimal: str = ".") -> str:
    """Return a prediction as text: a word as it is, a number with six digits, which is more than any is exact to."""
    if isinstance(value, str | bool):
        return str(value)
    text = f"{value:.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:.6g}"
    return text.replace(".", decimal)


def csv_text(records: Iterable[Sequence[str]], delimiter: str = ",", line_end: str = "\n") -> str:
    """Return records as delimited text, with quotes where a cell needs them."""
    buffer = io.StringIO(newline="")
    csv.writer(buffer, delimiter=delimiter, lineterminator=line_end).writerows(records)
    return buffer.getvalue()


def grid_bytes(values: Floats, row_names: list[str], column_names: list[str]) -> bytes:
    """Return results as CSV with a header and row names, numbers with six digits."""
    frame = pd.DataFrame(values, row_names, column_names)
    return frame.to_csv(float_format=written, lineterminator="\n").encode()
