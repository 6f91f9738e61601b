"""Delimited text: its records, and how to recognise delimiter, decimal sign, header and row names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from bnmf.tables.cells import LIMIT, Markers, limit, number, unquoted
from bnmf.tables.table import TableError

BYTE_ORDER_MARK = "\ufeff"
DELIMITERS = ("\t", ";", "|", ",", " ")
"""In the order of preference: decimal commas make a file of semicolons look like one of commas."""
NAMES = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas", " ": "blanks"}
N_SAMPLE_RECORDS = 200
"""Records that are looked at to recognise a dialect."""
DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")


@dataclass(frozen=True)
class Dialect:
    """How a text holds a table.

    Attributes
    ----------
    delimiter : str
        What separates cells.
    decimal : {".", ","}
        The decimal sign.
    header : bool
        Whether the first record holds names of columns.
    row_names : bool
        Whether the first cell of each record is the name of the row.
    line_end : str
        What ends a line.
    mark : str
        The byte order mark that the file begins with, or nothing.
    """

    delimiter: str
    decimal: str
    header: bool
    row_names: bool
    line_end: str
    mark: str


def decoded(content: bytes) -> str:
    """Return the text of a file in UTF-8, or in UTF-16 with a byte order mark."""
    is_utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    if b"\0" in content and not is_utf16:
        raise TableError("this is neither text nor one of the formats that bnmf reads")
    try:
        text = content.decode("utf-16" if is_utf16 else "utf-8")
    except UnicodeDecodeError as error:
        raise TableError(
            f"byte {error.start + 1} is not UTF-8 text: save the file as UTF-8 (in Excel 'CSV UTF-8'), or convert it "
            "with iconv -f WINDOWS-1252 -t UTF-8"
        ) from None
    return text if "\n" in text else text.replace("\r", "\n")


def records(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of each record, as they are in the text; blank lines are skipped."""
    begin, line_number = 0, 1
    while begin < len(text):
        end = _end_of_line(text, begin)
        line, first = text[begin:end], line_number
        while line.count('"') % 2 and end < len(text):  # a line break within quotes
            end = _end_of_line(text, end + 1)
            line = text[begin:end]
        begin, line_number = end + 1, line_number + 1 + line.count("\n")
        line = line.removesuffix("\r")
        if line.strip(" "):
            yield first, _cells(line, delimiter)


def _end_of_line(text: str, begin: int) -> int:
    end = text.find("\n", begin)
    return len(text) if end < 0 else end


def _cells(line: str, delimiter: str) -> list[str]:
    if delimiter == " ":
        return re.findall(r'"(?:[^"]|"")*"|\S+', line) if '"' in line else line.split()
    if '"' not in line:
        return line.split(delimiter)
    sign = re.escape(delimiter)
    return [cell for cell, _ in re.findall(rf'( *"(?:[^"]|"")*" *|[^{sign}]*)({sign}|$)', line + delimiter)[:-1]]


def recognise(text: str, markers: Markers, header: bool | None = None, row_names: bool | None = None) -> Dialect:
    """Return the dialect of a text, judged by its first records."""
    body = text.removeprefix(BYTE_ORDER_MARK)
    consistency = {sign: _consistency(sample(body, sign)) for sign in DELIMITERS}
    delimiter = (
        max(DELIMITERS, key=consistency.__getitem__) if any(consistency.values()) else ","
    )  # the first of equals
    found = sample(body, delimiter)
    if not found:
        raise TableError("the file is empty")
    cells = [unquoted(cell) for record in found for cell in record]
    cells = [cell if (of := LIMIT.fullmatch(cell)) is None else of["value"] for cell in cells]
    has_comma = delimiter != "," and any(map(DECIMAL_COMMA.fullmatch, cells))
    has_point = any("." in cell and number(cell) is not None for cell in cells)
    decimal = "," if has_comma and not has_point else "."

    def is_text(cell: str) -> bool:
        cell = unquoted(cell)
        return not markers.is_missing(cell) and number(cell, decimal) is None and limit(cell, decimal) is None

    first, others = found[0], found[1:]
    corner = not unquoted(first[0]) and bool(others) and all(unquoted(record[0]) for record in others)
    lacks_corner = bool(others) and len(first) == len(others[0]) - 1
    if header is None:
        seen = [cell for cell in first[1:] or first if not markers.is_missing(unquoted(cell))]
        header = corner or lacks_corner or 2 * sum(map(is_text, seen)) > len(seen)
    if row_names is None:
        unnamed = corner or unquoted(first[0]) == "Unnamed: 0"
        leading = [record[0] for record in (others if header else found) if not markers.is_missing(unquoted(record[0]))]
        wide = max(map(len, found)) > 1
        row_names = (header and (unnamed or lacks_corner)) or (wide and 2 * sum(map(is_text, leading)) > len(leading))
    mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
    return Dialect(delimiter, decimal, header, row_names, "\r\n" if "\r\n" in text else "\n", mark)


def sample(text: str, delimiter: str) -> list[list[str]]:
    """Return the cells of the first records."""
    return [cells for _, (_, cells) in zip(range(N_SAMPLE_RECORDS), records(text, delimiter), strict=False)]


def _consistency(found: list[list[str]]) -> float:
    """Return the fraction of records with the most common number of cells and no torn quotes, 0 if that is one."""
    counts = Counter(map(len, found[1:] or found))
    if not counts:
        return 0.0
    width, _ = counts.most_common(1)[0]
    widths = [len(cells) if all(cell.count('"') % 2 == 0 for cell in cells) else 0 for cells in found]
    fitting = sum(each == width for each in widths[1:]) + (widths[0] in (width, width - 1))
    return fitting / len(found) if width > 1 else 0.0
