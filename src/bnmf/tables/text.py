"""Delimited text: its records, written back with some cells filled, and its dialect, recognised by its content."""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise

from bnmf.tables.cells import LIMIT, ReadOptions, csv_text, limit, number, written
from bnmf.tables.table import Fills, Layout, Table, TableError

BYTE_ORDER_MARK = "\ufeff"
DELIMITERS = ("\t", ";", "|", ",", " ")
"""In the order of preference: decimal commas make a file of semicolons look like one of commas."""
NAMES = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas", " ": "blanks"}
N_SAMPLE_RECORDS = 200
"""Records that are looked at to recognise a dialect."""
N_SAMPLE_CHARACTERS = 2**21
DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
YEARS = (1800, 2100)
ID = re.compile(r"(^|[\W_])id$", re.IGNORECASE)
"""Names of a first column of numbers that name rows: id, ID, sample_id."""

Record = tuple[int, list[str]]
"""The number of a line, and its cells."""


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
    commented: list[str] | None = None
    """Names of columns in the last of these comments."""
    notes: tuple[str, ...] = ()
    """How names were told from data, where that could be wrong."""

    @property
    def delimiter_name(self) -> str:
        """The delimiter in a word."""
        return NAMES.get(self.delimiter, repr(self.delimiter))

    @property
    def endings(self) -> tuple[str, ...]:
        """How names of such files end."""
        return {"\t": (".tsv", ".tab"), " ": ()}.get(self.delimiter, (".csv",)) + (".txt", ".dat")


@dataclass(frozen=True)
class TextFile(Layout):
    """The records of a text, and a function of row and column for the line and the cell that hold an entry."""

    description: str
    endings: tuple[str, ...]
    dialect: Dialect
    records: Callable[[], Iterator[Record]]
    cell_of: Callable[[int, int], tuple[int, int]]

    def render(self, table: Table, fills: Fills) -> bytes:
        filled: dict[int, dict[int, str]] = defaultdict(dict)
        for row, column, value in fills.entries():
            line, place = self.cell_of(row, column)
            filled[line][place] = written(value, self.dialect.decimal)
        cells = (_replaced(cells, filled[line]) if line in filled else cells for line, cells in self.records())
        return (self.dialect.preamble + csv_text(cells, self.dialect.delimiter, self.dialect.line_end)).encode()


def _replaced(cells: list[str], new: dict[int, str]) -> list[str]:
    """Return a record with other cells at some places, which may be after its end."""
    return [new.get(at, cells[at] if at < len(cells) else "") for at in range(max(len(cells), max(new) + 1))]


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


def line_end_of(text: str) -> str:
    """Return the line ending of a text."""
    return "\r\n" if "\r\n" in text else "\n"


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
        except csv.Error:
            size = csv.field_size_limit()
            raise TableError(f"line {line}: its quote is not closed within {size:,} characters") from None
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


def first_of(found: Iterator[Record]) -> list[Record]:
    """Return the first records, up to one that is torn: reading that will say where."""
    first = []
    with contextlib.suppress(TableError):
        for record in islice(found, N_SAMPLE_RECORDS):
            first.append(record)  # noqa: PERF402
    return first


# --- what is recognised


def recognise(text: str, options: ReadOptions) -> Dialect:
    """Return the dialect of a text, judged by its first records."""
    comments = re.match(f"{BYTE_ORDER_MARK}?(?:#(?!N/?A\\b)[^\r\n]*(?:\r\n|\r|\n|$))*", text)
    preamble = comments[0] if comments is not None else ""
    body = text[len(preamble) : len(preamble) + N_SAMPLE_CHARACTERS]
    if len(text) - len(preamble) > len(body) and "\n" in body:
        body = body[: body.rindex("\n") + 1]

    def sample(delimiter: str) -> list[list[str]]:
        return [cells for _, cells in first_of(records(body, Dialect(delimiter)))]

    delimiter = options.delimiter
    if delimiter is None:
        consistency = {sign: _consistency(sample(sign)) for sign in DELIMITERS}
        best = max(DELIMITERS, key=consistency.__getitem__)  # the first of equals
        delimiter = best if consistency[best] else ","
    found, dialect = sample(delimiter), Dialect(delimiter, line_end=line_end_of(text), preamble=preamble)
    if re.match(r"\s*(<(!|\?|html\b)|[\[{]\s*[\[{\"])", body, re.IGNORECASE):
        raise TableError("this is HTML, XML or JSON, not a table")
    if not found:
        next(records(text, dialect), None)  # perhaps the first record is torn
        raise TableError("the file is empty")
    dialect = judged(found, dialect, options)
    last = preamble.removeprefix(BYTE_ORDER_MARK).strip().rpartition("\n")[2].lstrip("#").strip()
    names = [cell.strip() for cell in next(csv.reader([last], delimiter=delimiter), [])]
    if "#" not in preamble:
        return dialect
    notes = [*dialect.notes, "lines that begin with # are comments"]
    if options.header is None and not dialect.header and len(names) == len(found[0]) > 1:
        notes = [*dialect.notes[1:], "column names are taken from the comment above the numbers"]
        dialect = replace(dialect, commented=names)
    return replace(dialect, notes=tuple(notes))


def judged(found: list[list[str]], dialect: Dialect, options: ReadOptions) -> Dialect:
    """Return a dialect with the decimal sign, and whether the first records and cells are names."""
    cells = [cell.strip() for record in found for cell in record]
    cells = [cell if (of := LIMIT.fullmatch(cell)) is None else of["value"] for cell in cells]
    has_comma = dialect.delimiter != "," and any(map(DECIMAL_COMMA.fullmatch, cells))
    has_point = any("." in cell and number(cell) is not None for cell in cells)
    decimal = "," if has_comma and not has_point else "."

    def mostly_text(cells: list[str]) -> bool:
        return is_mostly_text(cells, decimal, options)

    first, others = found[0], found[1:]
    header, row_names, notes = options.header, options.row_names, []
    leading = [record[0] for record in others]
    corner = not first[0].strip() and bool(others) and all(cell.strip() for cell in leading)
    lacks_corner = bool(others) and len(first) == len(others[0]) - 1
    if header is None:
        is_word = first[0].strip() and not any(map(str.isdigit, first[0])) and not options.is_missing(first[0])
        above_numbers = bool(others) and is_word and is_text(first[0], decimal) and not mostly_text(leading)
        header = bool(corner or lacks_corner or mostly_text(first[1:] or first) or above_numbers)
        numbers = [record[1:] if mostly_text(leading) else record for record in found]
        if not header and len(others) > 1 and is_numbering(numbers[0]) and not any(map(is_numbering, numbers[1:])):
            are_years = int(numbers[0][0]) > 1
            header = are_years or not any(map(by_one, numbers[1:]))
            what = "holds years" if are_years else "only counts"
            if header:
                notes.append(f"the first line {what}, and is taken as column names: --no-header takes it as data")
        if not header:
            notes.append("the first line is all numbers, and is taken as data: --header takes it as column names")
    if row_names is None:
        unnamed = corner or first[0] == "Unnamed: 0"
        leading = [record[0] for record in (others if header else found)]
        wide = max(map(len, found)) > 1
        row_names = (header and (unnamed or lacks_corner)) or (wide and mostly_text(leading))
        is_id = header and ID.search(first[0].strip()) is not None and are_ids(leading)
        counts = is_numbering(leading)
        if not row_names and wide and len(leading) > 3 and (is_id or counts):
            row_names = True
            name = f"column {first[0].strip()!r}" if header else "the first column"
            what = "holds identifiers"
            if counts:
                what = "holds years" if int(leading[0]) > 1 else "only counts the rows"
            notes.append(f"{name} {what}, and is taken as row names: --no-row-names takes it as data")
    return replace(dialect, decimal=decimal, header=header, row_names=row_names, notes=tuple(notes))


def is_text(cell: str, decimal: str) -> bool:
    """Return whether a cell is neither a number nor a limit."""
    return number(cell, decimal) is None and limit(cell, decimal) is None


def is_mostly_text(cells: Iterable[str], decimal: str, options: ReadOptions) -> bool:
    """Return whether most of the cells that are not missing are text."""
    seen = [cell for cell in cells if not options.is_missing(cell)]
    return 2 * sum(is_text(cell, decimal) for cell in seen) > len(seen)


def are_ids(cells: list[str]) -> bool:
    """Return whether cells are whole numbers, all of them different."""
    return len(set(cells)) == len(cells) and all(cell.strip().isdecimal() for cell in cells)


def by_one(cells: list[str]) -> bool:
    """Return whether cells are whole numbers, each one more than the one before."""
    return len(cells) > 1 and are_ids(cells) and all(int(after) - int(before) == 1 for before, after in pairwise(cells))


def is_numbering(cells: list[str]) -> bool:
    """Return whether cells count from 0 or 1 on, or are years in order."""
    if len(cells) < 2 or not are_ids(cells):
        return False
    numbers = [int(cell) for cell in cells]
    if numbers[0] <= 1:
        return len(cells) > 2 and by_one(cells)
    return YEARS[0] <= numbers[0] and numbers[-1] <= YEARS[1] and numbers == sorted(numbers)


def _consistency(found: list[list[str]]) -> float:
    """Return the fraction of records with the most common number of cells and no torn quotes, 0 if that is one."""
    counts = Counter(map(len, found[1:] or found))
    if not counts:
        return 0.0
    width, _ = counts.most_common(1)[0]
    widths = [len(cells) if all(cell.count('"') % 2 == 0 for cell in cells) else 0 for cells in found]
    fitting = sum(each == width for each in widths[1:]) + (widths[0] in (width, width - 1))
    return fitting / len(found) if width > 1 else 0.0
