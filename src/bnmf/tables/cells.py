"""Cells: which are missing, which are numbers, limits or dates, and how they are written."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from bnmf.tables.table import TableError
from bnmf.utils.typing import Floats

# In any case of letters; "nan" is a number for `float`, and so is not listed.
MISSING_WORDS = frozenset({"", "na", "n/a", "#n/a", "#na", "<na>", "null", "none"})
LIMIT = re.compile(r"\s*(?P<sign><=|>=|[<>≤≥])\s*(?P<value>\S+)\s*")


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
    if not cell or "_" in cell:  # which Python allows in numbers
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
    cells: Sequence[str], decimal: str, options: ReadOptions, where: Callable[[int], str]
) -> tuple[Floats, dict[int, tuple[float, float]]]:
    """Return the numbers of cells, NaN where one is missing or a limit, and limits by place; `where` is for errors."""
    numbers = options.hide(np.array([number(cell, decimal) for cell in cells], float))
    limits = {}
    for place in np.flatnonzero(~np.isfinite(numbers)).tolist():
        cell = cells[place].strip()
        if np.isinf(numbers[place]):
            raise TableError(f"{where(place)}: the number is infinite")
        if options.is_missing(cell) or number(cell, decimal) is not None:
            continue
        between = limit(cell, decimal)
        if between is None:
            raise TableError(f"{where(place)}: {cell!r} is not a number (if it means missing, use --missing {cell!r})")
        limits[place] = between
    return numbers, limits


def is_text(cell: str, decimal: str) -> bool:
    """Return whether a cell is neither a number nor a limit."""
    return number(cell, decimal) is None and limit(cell, decimal) is None


def is_mostly_text(cells: Sequence[str], decimal: str, options: ReadOptions) -> bool:
    """Return whether most of the cells that are not missing are text."""
    seen = [cell for cell in cells if not options.is_missing(cell)]
    return 2 * sum(is_text(cell, decimal) for cell in seen) > len(seen)


def written(value: Any, decimal: str = ".") -> str:
    """Return a prediction as text: a word as it is, a number with six digits, which is more than any is exact to."""
    if isinstance(value, str | bool):
        return str(value)
    text = f"{value:.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:.6g}"
    return text.replace(".", decimal)


def rounded(value: Any) -> Any:
    """Return a number with the digits that are written, and everything else as it is."""
    return value if isinstance(value, str | bool) or value is None else float(written(value))
