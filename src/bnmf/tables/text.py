"""Delimited text: its cells, its records, written back with some cells filled, and its dialect, which is recognised."""

from __future__ import annotations

import contextlib
import csv
import io
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from bnmf.tables.table import Fills, Layout, TableError
from bnmf.utils.typing import Floats

# In any case of letters; "nan" is a number for `float`, and so is not listed.
MISSING_WORDS = frozenset({"", "na", "n/a", "#n/a", "#na", "<na>", "null", "none"})
LIMIT = re.compile(r"\s*(?P<sign><=|>=|[<>≤≥])\s*(?P<value>\S+)\s*")
BYTE_ORDER_MARK = "\ufeff"
DELIMITERS = ("\t", ";", "|", ",", " ")
"""In the order of preference: decimal commas make a file of semicolons look like one of commas."""
NAMES = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas", " ": "blanks"}
N_SAMPLE_RECORDS = 200
"""Records that are looked at to recognise a dialect."""
N_SAMPLE_CHARACTERS = 2**21
MINUS = "\u2212"
"""The sign that typeset tables have in place of the hyphen."""
DECIMAL_COMMA = re.compile(rf"[-+{MINUS}]?\d*,\d+([eE][-+]?\d+)?")
YEARS = (1800, 2100)
ID = re.compile(r"(^|[\W_])id$", re.IGNORECASE)
"""Names of a first column of numbers that name rows: id, ID, sample_id."""
MAX_RECURRING = 100
"""Values in a first column of words that are categories, rather than names, if they recur."""

Record = tuple[int, list[str]]
"""The number of a line, and its cells."""


# --- cells


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
        return float(cell.replace(MINUS, "-"))
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
            if any(map(str.isdigit, cell)) and not cell.startswith("#"):  # as "#DIV/0!" does
                advice = "correct it; numbers have no signs of thousands or units"
            else:
                advice = f"if it means missing, use --missing {cell!r}"
            raise TableError(f"{where(place)}: {cell!r} is not a number ({advice})")
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


# --- files


@dataclass(frozen=True)
class Dialect:
    """How a text holds a table."""

    delimiter: str = ","
    decimal: str = "."
    header: bool = False
    row_names: bool = False
    line_end: str = "\n"
    preamble: str = ""
    """Byte order mark and comments before the first record, which are written back."""
    notes: tuple[str, ...] = ()
    """How names were told from data, where that could be wrong."""

    @property
    def description(self) -> str:
        """The delimiter, the decimal sign and the header in words."""
        decimal = ", decimal commas" if self.decimal == "," else ""
        header = "a header" if self.header else "no header"
        return f"with {NAMES.get(self.delimiter, repr(self.delimiter))}{decimal}, {header}"

    @property
    def endings(self) -> tuple[str, ...]:
        """How names of such files end."""
        return {"\t": (".tsv", ".tab"), " ": ()}.get(self.delimiter, (".csv",)) + (".txt", ".dat")


@dataclass(frozen=True)
class TextFile(Layout):
    """The records of a text, and a function of row and column for the line and the cell that hold an entry."""

    dialect: Dialect
    records: Callable[[], Iterable[Record]]
    cell_of: Callable[[int, int], tuple[int, int]]

    def render(self, fills: Fills) -> bytes:
        filled: dict[int, dict[int, str]] = defaultdict(dict)
        for row, column, value in fills.entries():
            line, place = self.cell_of(row, column)
            filled[line][place] = written(value, self.dialect.decimal)
        buffer = io.StringIO(newline="")
        writer = csv.writer(buffer, delimiter=self.dialect.delimiter, lineterminator=self.dialect.line_end)
        for line, cells in self.records():
            for place, text in filled.get(line, {}).items():
                cells = cells + [""] * (place + 1 - len(cells))  # a line may end before its value
                cells[place] = text
            writer.writerow(cells)
        return (self.dialect.preamble + buffer.getvalue()).encode()


# --- records


def decoded(content: bytes) -> str:
    """Return the text of a file in UTF-8, or in UTF-16 with a byte order mark."""
    is_utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    if b"\0" in content and not is_utf16:
        raise TableError("this is neither text nor one of the formats that bnmf reads")
    try:
        return content.decode("utf-16" if is_utf16 else "utf-8")
    except UnicodeDecodeError as error:
        raise TableError(
            f"byte {error.start + 1} is not UTF-8 text: save the file as UTF-8 (in Excel 'CSV UTF-8'), or convert it "
            "with iconv -f WINDOWS-1252 -t UTF-8"
        ) from None


def records(text: str, dialect: Dialect) -> Iterator[Record]:
    """Yield line number and cells of each record after the preamble."""
    # Blank lines between cells of a single column are missing entries; others are skipped.
    delimiter, first_line = dialect.delimiter, 1 + dialect.preamble.count("\n")
    text = text[len(dialect.preamble) :]
    end = "\0"  # a quote that is never closed swallows it
    lines: Iterable[str] = chain(io.StringIO(text, newline=""), [end])
    if delimiter == " ":
        lines = (line.rstrip() + "\n" if line != end else end for line in lines)
    skips_blanks = delimiter == " " or re.search(rf'{re.escape(delimiter)} +"', text) is not None
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=skips_blanks)
    blank: list[Record] = []
    width = 0
    while True:
        line = reader.line_num + first_line
        try:
            cells = next(reader)
        except csv.Error:  # a cell is too long
            cells = ["", end]
        if cells == [end]:
            return
        if cells and end in cells[-1]:
            raise TableError(f"line {line}: its quote is never closed")
        if len(cells) > 1 or (cells and cells[0].strip(" ")):
            width = max(width, len(cells))
            yield from blank if width == 1 else ()
            blank = []
            yield line, cells
        elif width == 1:
            blank.append((line, [""]))
            if cells == [""]:  # a missing entry in quotes, also in the last line
                yield from blank
                blank = []


def without_comments(found: Iterable[Record], options: ReadOptions) -> list[Record]:
    """Return records, of which those that begin with # are rows only if they have as many cells as most others."""
    rows = list(found)
    widths = Counter(len(cells) for _, cells in rows if not cells[0].startswith("#"))
    ((width, _),) = widths.most_common(1) or [(0, 0)]
    kept = [
        (line, cells)
        for line, cells in rows
        if not cells[0].startswith("#") or options.is_missing(cells[0]) or len(cells) == width
    ]
    if not kept:
        raise TableError("the file is empty")
    return kept


# --- what is recognised


def recognise(text: str, options: ReadOptions) -> Dialect:
    """Return the delimiter of a text, judged by its first records, its line ending, and the comments above it."""
    comments = re.match(f"{BYTE_ORDER_MARK}?(?:#(?!N/?A\\b)[^\r\n]*(?:\r\n|\r|\n|$))*", text)
    preamble = comments[0] if comments is not None else ""
    body = text[len(preamble) : len(preamble) + N_SAMPLE_CHARACTERS]
    if len(text) - len(preamble) > len(body) and "\n" in body:
        body = body[: body.rindex("\n") + 1]
    if re.match(r"\s*(<(!|\?|html\b)|[\[{]\s*[\[{\"])", body, re.IGNORECASE):
        raise TableError("this is HTML, XML or JSON, not a table")
    delimiter = options.delimiter
    if delimiter is None:
        consistency = {sign: _consistency(body, sign) for sign in DELIMITERS}
        best = max(DELIMITERS, key=consistency.__getitem__)  # the first of equals
        delimiter = best if consistency[best] else ","
    return Dialect(delimiter, line_end="\r\n" if "\r\n" in text else "\n", preamble=preamble)


def _consistency(body: str, delimiter: str) -> float:
    """Return the fraction of records with the most common number of cells and no torn quotes, 0 if that is one."""
    widths = []
    with contextlib.suppress(TableError):  # of a torn record; reading all of them will say where
        for _, cells in islice(records(body, Dialect(delimiter)), N_SAMPLE_RECORDS):
            if not cells[0].startswith("#"):
                widths.append(len(cells) if all(cell.count('"') % 2 == 0 for cell in cells) else 0)
    if not widths:
        return 0.0
    ((width, _),) = Counter(widths[1:] or widths).most_common(1)
    fitting = sum(each == width for each in widths[1:]) + (widths[0] in (width, width - 1))
    return fitting / len(widths) if width > 1 else 0.0


def decimal_of(rows: Sequence[Record], delimiter: str) -> str:
    """Return the decimal sign of records: a comma if some numbers have one, and none has a point."""
    cells = [cell.strip() for _, record in rows for cell in record]
    cells = [cell if (of := LIMIT.fullmatch(cell)) is None else of["value"] for cell in cells]
    has_comma = delimiter != "," and any(map(DECIMAL_COMMA.fullmatch, cells))
    has_point = any("." in cell and number(cell) is not None for cell in cells)
    return "," if has_comma and not has_point else "."


def judged(rows: list[Record], dialect: Dialect, options: ReadOptions) -> Dialect:
    """Return a dialect with the decimal sign, and whether the first record and the first column are names."""
    sample = [cells for _, cells in rows[:N_SAMPLE_RECORDS]]
    decimal = decimal_of(rows[:N_SAMPLE_RECORDS], dialect.delimiter)
    first, others = sample[0], sample[1:]
    has_corner = bool(others) and not first[0].strip() and all(record[0].strip() for record in others)
    lacks_corner = bool(others) and len(first) == len(others[0]) - 1
    header, notes = options.header, list[str]()
    if header is None and (has_corner or lacks_corner):
        header = True
    elif header is None:
        header, notes = _judge_header(sample, decimal, options)
    if "#" in dialect.preamble:
        notes.append("lines that begin with # are comments")
    row_names = options.row_names
    if row_names is None and header and (has_corner or lacks_corner or first[0] == "Unnamed: 0"):
        row_names = True
    elif row_names is None:
        leading = [cells[0].strip() for _, cells in rows[int(header) :]]
        name, is_wide = first[0].strip() if header else None, max(map(len, sample)) > 1
        row_names, more = _judge_first_column(leading, name, decimal, options) if is_wide else (False, [])
        notes += more
    return replace(dialect, decimal=decimal, header=header, row_names=row_names, notes=tuple(notes))


def _judge_header(sample: list[list[str]], decimal: str, options: ReadOptions) -> tuple[bool, list[str]]:
    """Return whether the first record holds names, and a note about it if it holds numbers only."""
    first, others = sample[0], sample[1:]
    has_names = is_mostly_text([record[0] for record in others], decimal, options)
    is_word = first[0].strip() and not any(map(str.isdigit, first[0])) and not options.is_missing(first[0])
    is_above_numbers = bool(others) and is_word and is_text(first[0], decimal) and not has_names
    if is_mostly_text(first[1:] or first, decimal, options) or is_above_numbers:
        return True, []
    numbers = [record[1:] if has_names else record for record in sample]
    what = numbering(numbers[0])
    is_like_it = by_one if what == "only counts" else numbering
    if what and len(others) > 1 and not any(map(is_like_it, numbers[1:])):
        return True, [f"the first line {what}, and is taken as column names: --no-header takes it as data"]
    return False, ["the first line is all numbers, and is taken as data: --header takes it as column names"]


def _judge_first_column(
    cells: list[str], name: str | None, decimal: str, options: ReadOptions
) -> tuple[bool, list[str]]:
    """Return whether a first column of text or numbers holds names, and a note about it if that could be wrong."""
    if is_mostly_text(cells[:N_SAMPLE_RECORDS], decimal, options):
        return judge_words(cells, name, options)
    what = numbering(cells)
    if what is None and name is not None and ID.search(name) is not None and are_ids(cells):
        what = "holds identifiers"
    if what is None or len(cells) <= 3:
        return False, []
    where = f"column {name!r}" if name else "the first column"
    what = what.replace("counts", "counts the rows")
    return True, [f"{where} {what}, and is taken as row names: --no-row-names takes it as data"]


def judge_words(cells: list[str], name: str | None, options: ReadOptions) -> tuple[bool, list[str]]:
    """Return whether a first column of words holds names, rather than few that recur, or gaps, and why it does not."""
    if options.words is None or name == "":  # below a header without a name for it
        return True, []
    if name in options.words:
        return False, []
    given = [cell for cell in cells if cell]
    if name is not None and len(set(given)) <= min(MAX_RECURRING, len(given) // 2):
        why = f"words recur in column {name!r}"
    elif len(given) < len(cells):
        why = f"{'the first column' if name is None else f'column {name!r}'} has empty cells"
    else:
        return True, []
    return False, [f"{why}, so it is data: --row-names takes it as names"]


def are_ids(cells: list[str]) -> bool:
    """Return whether cells are whole numbers, all of them different."""
    return len(set(cells)) == len(cells) and all(cell.strip().isdecimal() for cell in cells)


def by_one(cells: list[str]) -> bool:
    """Return whether cells are whole numbers, each one more than the one before."""
    return len(cells) > 1 and are_ids(cells) and all(int(after) - int(before) == 1 for before, after in pairwise(cells))


def numbering(cells: list[str]) -> str | None:
    """Return what cells do that number rows or columns: count from 0 or 1 on, or hold years in order."""
    if len(cells) < 2 or not are_ids(cells):
        return None
    numbers = [int(cell) for cell in cells]
    if numbers[0] <= 1:
        return "only counts" if len(cells) > 2 and by_one(cells) else None
    are_years = YEARS[0] <= numbers[0] and numbers[-1] <= YEARS[1] and numbers == sorted(numbers)
    return "holds years" if are_years else None
