"""Delimited text: tables, triples and GCT files, their delimiters, headers and names recognised by their content."""

from __future__ import annotations

import contextlib
import csv
import io
import re
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, islice, pairwise

import numpy as np
import pandas as pd

from bnmf.tables.cells import LIMIT, Markers, NotANumber, csv_text, limit, number, numbers_of, written
from bnmf.tables.table import Fills, Table, TableError

BYTE_ORDER_MARK = "\ufeff"
DELIMITERS = ("\t", ";", "|", ",", " ")
"""In the order of preference: decimal commas make a file of semicolons look like one of commas."""
NAMES = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas", " ": "blanks"}
N_SAMPLE_RECORDS = 200
"""Records that are looked at to recognise a dialect."""
N_SAMPLE_CHARACTERS = 2**21
DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
YEARS = (1800, 2100)
MAX_RECURRING = 100
"""Values in a first column of words that are categories, rather than names, if they recur."""

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
    def endings(self) -> tuple[str, ...]:
        """How names of such files end."""
        return {"\t": (".tsv", ".tab"), " ": ()}.get(self.delimiter, (".csv",)) + (".txt", ".dat")

    @property
    def delimiter_name(self) -> str:
        """The delimiter in a word."""
        return NAMES.get(self.delimiter, repr(self.delimiter))

    def text(self, cells: Iterable[list[str]]) -> bytes:
        """Return records as a file."""
        return (self.preamble + csv_text(cells, self.delimiter, self.line_end)).encode()


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


def records(text: str, delimiter: str, first_line: int = 1) -> Iterator[Record]:
    """Yield line number and cells of each record; blank lines are skipped."""
    end = "\0"  # a quote that is never closed swallows it
    lines: Iterable[str] = chain(io.StringIO(text, newline=""), [end])
    if delimiter == " ":
        lines = (line.rstrip() + "\n" if line != end else end for line in lines)
    skips_blanks = delimiter == " " or re.search(rf'{re.escape(delimiter)} +"', text) is not None
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=skips_blanks)
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
            yield line, cells


def first_of(found: Iterator[Record]) -> list[Record]:
    """Return the first records, up to one that is torn: reading that will say where."""
    first = []
    with contextlib.suppress(TableError):
        for record in islice(found, N_SAMPLE_RECORDS):
            first.append(record)  # noqa: PERF402
    return first


def sample(text: str, delimiter: str) -> list[list[str]]:
    """Return the cells of the first records."""
    return [cells for _, cells in first_of(records(text, delimiter))]


# --- what is recognised


def recognise(
    text: str,
    markers: Markers,
    header: bool | None = None,
    row_names: bool | None = None,
    delimiter: str | None = None,
) -> Dialect:
    """Return the dialect of a text, judged by its first records."""
    comments = re.match(f"{BYTE_ORDER_MARK}?(?:#(?!N/?A\\b)[^\r\n]*(?:\r\n|\r|\n|$))*", text)
    preamble = comments[0] if comments is not None else ""
    body = text[len(preamble) : len(preamble) + N_SAMPLE_CHARACTERS]
    if len(text) - len(preamble) > len(body) and "\n" in body:
        body = body[: body.rindex("\n") + 1]
    if delimiter is None:
        consistency = {sign: _consistency(sample(body, sign)) for sign in DELIMITERS}
        best = max(DELIMITERS, key=consistency.__getitem__)  # the first of equals
        delimiter = best if consistency[best] else ","
    found = sample(body, delimiter)
    if not found:
        next(records(body, delimiter, 1 + preamble.count("\n")), None)  # perhaps the first record is torn
        raise TableError("the file is empty")
    line_end = "\r\n" if "\r\n" in text else "\n"
    dialect = judged(found, Dialect(delimiter, line_end=line_end, preamble=preamble), markers, header, row_names)
    last = preamble.removeprefix(BYTE_ORDER_MARK).strip().rpartition("\n")[2].lstrip("#").strip()
    names = [cell.strip() for cell in next(csv.reader([last], delimiter=delimiter), [])]
    if "#" not in preamble:
        return dialect
    notes = [*dialect.notes, "lines that begin with # are comments"]
    if header is None and not dialect.header and len(names) == len(found[0]) > 1:
        notes = [*dialect.notes[1:], "column names are taken from the comment above the numbers"]
        dialect = replace(dialect, commented=names)
    return replace(dialect, notes=tuple(notes))


def judged(
    found: list[list[str]], dialect: Dialect, markers: Markers, header: bool | None, row_names: bool | None
) -> Dialect:
    """Return a dialect with the decimal sign, and whether the first records and cells are names."""
    cells = [cell.strip() for record in found for cell in record]
    cells = [cell if (of := LIMIT.fullmatch(cell)) is None else of["value"] for cell in cells]
    has_comma = dialect.delimiter != "," and any(map(DECIMAL_COMMA.fullmatch, cells))
    has_point = any("." in cell and number(cell) is not None for cell in cells)
    decimal = "," if has_comma and not has_point else "."

    def mostly_text(cells: list[str]) -> bool:
        return is_mostly_text(cells, decimal, markers)

    first, others = found[0], found[1:]
    notes = []
    leading = [record[0] for record in others]
    corner = not first[0].strip() and bool(others) and all(cell.strip() for cell in leading)
    lacks_corner = bool(others) and len(first) == len(others[0]) - 1
    if header is None:
        is_word = first[0].strip() and not any(map(str.isdigit, first[0])) and not markers.is_missing(first[0])
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
        if not row_names and wide and len(leading) > 3 and is_numbering(leading):
            row_names = True
            name = f"column {first[0].strip()!r}" if header else "the first column"
            what = "holds years" if int(leading[0]) > 1 else "only counts the rows"
            notes.append(f"{name} {what}, and is taken as row names: --no-row-names takes it as data")
    return replace(dialect, decimal=decimal, header=header, row_names=row_names, notes=tuple(notes))


def is_text(cell: str, decimal: str) -> bool:
    """Return whether a cell is neither a number nor a limit."""
    return number(cell, decimal) is None and limit(cell, decimal) is None


def is_mostly_text(cells: Iterable[str], decimal: str, markers: Markers) -> bool:
    """Return whether most of the cells that are not missing are text."""
    seen = [cell for cell in cells if not markers.is_missing(cell)]
    return 2 * sum(is_text(cell, decimal) for cell in seen) > len(seen)


def by_one(cells: list[str]) -> bool:
    """Return whether cells are whole numbers, each one more than the one before."""
    if len(cells) < 2 or not all(cell.strip().isdecimal() for cell in cells):
        return False
    return all(int(after) - int(before) == 1 for before, after in pairwise(cells))


def is_numbering(cells: list[str]) -> bool:
    """Return whether cells count from 0 or 1 on, or are years in order.

    Examples
    --------
    >>> is_numbering(["0", "1", "2"]), is_numbering(["1990", "1995"]), is_numbering(["3", "4", "5"])
    (True, True, False)
    """
    if len(cells) < 2 or not all(cell.strip().isdecimal() for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    if numbers[0] <= 1:
        return len(cells) > 2 and by_one(cells)
    return YEARS[0] <= numbers[0] and numbers[-1] <= YEARS[1] and all(a < b for a, b in pairwise(numbers))


def _consistency(found: list[list[str]]) -> float:
    """Return the fraction of records with the most common number of cells and no torn quotes, 0 if that is one."""
    counts = Counter(map(len, found[1:] or found))
    if not counts:
        return 0.0
    width, _ = counts.most_common(1)[0]
    widths = [len(cells) if all(cell.count('"') % 2 == 0 for cell in cells) else 0 for cells in found]
    fitting = sum(each == width for each in widths[1:]) + (widths[0] in (width, width - 1))
    return fitting / len(found) if width > 1 else 0.0


# --- tables


@dataclass(frozen=True)
class Grid:
    """The text of a table, cell by cell: entry (i, j) is cell `columns[j]` of record `places[i]`; others are kept."""

    dialect: Dialect
    cells: list[list[str]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    columns: range = range(0)
    is_gct: bool = False

    @property
    def endings(self) -> tuple[str, ...]:
        """How names of such files end."""
        return (".gct",) if self.is_gct else self.dialect.endings

    @property
    def description(self) -> str:
        """The kind of file in a few words."""
        if self.is_gct:
            return "GCT file"
        decimal = ", decimal commas" if self.dialect.decimal == "," else ""
        header = "a header" if self.dialect.header or self.dialect.commented else "no header"
        names = "row names" if self.dialect.row_names else "no row names"
        return f"text with {self.dialect.delimiter_name}{decimal}, {header}, {names}"

    def render(self, table: Table, fills: Fills) -> bytes:
        """Return the text with values in some cells; the content of every other cell is as it was."""
        cells = list(self.cells)
        for row in np.unique(fills.rows).tolist():
            cells[self.places[row]] = list(cells[self.places[row]])
        for row, column, value in fills.entries():
            cells[self.places[row]][self.columns[column]] = written(value, self.dialect.decimal)
        return self.dialect.text(cells)


def read_grid(
    text: str,
    markers: Markers,
    *,
    header: bool | None = None,
    row_names: bool | None = None,
    delimiter: str | None = None,
    words: Collection[str] | None = None,
    keep_cells: bool = False,
) -> Table:
    """Read a table of text; see :func:`grid_of` for `words`."""
    if text.removeprefix(BYTE_ORDER_MARK).startswith(("#1.2", "#1.3")):
        return _read_gct(text, markers, keep_cells)
    dialect = recognise(text, markers, header, row_names, delimiter)
    first_line = 1 + dialect.preamble.count("\n")
    body = text[len(dialect.preamble) :]
    return grid_of(
        lambda: records(body, dialect.delimiter, first_line),
        dialect,
        markers,
        words=words,
        is_judged=row_names is None,
        keep_cells=keep_cells,
    )


def grid_of(
    found: Callable[[], Iterator[Record]],
    dialect: Dialect,
    markers: Markers,
    *,
    words: Collection[str] | None,
    is_judged: bool,
    keep_cells: bool,
    n_meta: tuple[int, int] = (0, 0),
) -> Table:
    """Return the table of the records that `found` returns.

    Columns named in `words`, and those of which most cells are text, hold words. If the column of row names was judged
    by the first records (`is_judged`), all records are judged again; values that recur are names only if `words` is
    None. `n_meta` rows and columns before the numbers are kept.
    """
    iterator = found()
    kept = [cells for _, cells in islice(iterator, int(dialect.header) + n_meta[0])]
    header = [cell.strip() for cell in kept[0]] if dialect.header else dialect.commented
    reader = Reader(dialect, markers, header, n_meta[1], first_of(islice(found(), len(kept), None)), words or ())
    rows: list[str] = []
    lines, places, values = array("q"), array("q"), array("d")
    limits: list[tuple[int, int, float, float]] = []
    for line, cells in iterator:
        if reader.is_comment(cells):
            kept += [cells] * keep_cells
            continue
        between: list[tuple[int, float, float]] = []
        values.extend(reader.numbers(line, cells, between))
        limits += [(len(lines), *limit) for limit in between]
        lines.append(line)
        places.append(len(kept))
        if dialect.row_names:
            rows.append(cells[0].strip())
        if keep_cells:
            kept.append(cells)
    if not lines:
        raise TableError("there is a header and nothing below it" if dialect.header else "the file is empty")
    if is_judged and dialect.row_names and not reader.are_names(rows, words):
        notes = tuple(note for note in dialect.notes if "taken as row names" not in note)
        dialect = replace(dialect, row_names=False, notes=notes)
        return grid_of(found, dialect, markers, words=words, is_judged=False, keep_cells=keep_cells, n_meta=n_meta)
    matrix = np.frombuffer(values).reshape(len(lines), -1).copy()
    if matrix.shape[1] == 0:
        raise TableError("there is a column of names and nothing beside it")
    if np.isinf(matrix).any():
        row, column = np.argwhere(np.isinf(matrix))[0]
        raise TableError(f"line {lines[row]}, {reader.name(column)}: the number is infinite")
    columns = range(reader.skipped, reader.width)
    table = Table(
        markers.hide(matrix),
        Grid(dialect, kept, places.tolist(), columns) if keep_cells else Grid(dialect),
        rows if dialect.row_names else None,
        reader.names,
        notes=list(dialect.notes),
        words={place: markers.hide_words(pd.Series(cells, dtype="str")) for place, cells in reader.words.items()},
        corner=reader.corner,
    )
    if not limits:
        return table
    return table.with_limits(*(np.array(part) for part in zip(*limits, strict=True)))


class Reader:
    """Converts the records of a table, and names what is wrong with them.

    `first` are the first records below the `header`: they tell the number of cells and the columns of words, which are
    those with a name in `words`, and those that are mostly text. `n_meta` columns after the row names are skipped.
    """

    def __init__(
        self,
        dialect: Dialect,
        markers: Markers,
        header: list[str] | None,
        n_meta: int,
        first: list[Record],
        words: Collection[str],
    ) -> None:
        self.dialect, self.markers, self.skipped = dialect, markers, int(dialect.row_names) + n_meta
        self.width = len(header or [""])
        rows = [record for record in first if not self.is_comment(record[1])]
        line, self.width = (rows[0][0], len(rows[0][1])) if rows else (0, self.width)
        lacks_corner = bool(header and self.skipped and len(header) == self.width - 1)
        if header is not None and len(header) != self.width and not lacks_corner:
            raise TableError(f"the header has {len(header)} cells, but line {line} has {self.width}")
        self.corner = header[0] or None if header and dialect.row_names and not lacks_corner else None
        n_columns = self.width - self.skipped
        names = header[-n_columns:] if header and n_columns else header and []
        self.names = None if names is None else [name or f"column {at}" for at, name in enumerate(names, start=1)]
        labels = self.names or [str(at) for at in range(1, n_columns + 1)]
        columns = zip(*(cells[self.skipped :] for _, cells in rows if len(cells) == self.width), strict=True)
        self.words: dict[int, list[str]] = {
            place: []
            for place, (label, cells) in enumerate(zip(labels, columns, strict=False))
            if label in words or is_mostly_text(cells, dialect.decimal, markers)
        }

    def is_comment(self, cells: list[str]) -> bool:
        """Return whether a record begins with # and is not a row."""
        return cells[0].startswith("#") and not self.markers.is_missing(cells[0]) and len(cells) != self.width

    def numbers(self, line: int, cells: list[str], limits: list[tuple[int, float, float]]) -> list[float]:
        """Return the numbers of a record, NaN for words, or raise an error that names the line and the column."""
        if len(cells) != self.width:
            broken = any("\n" in cell for cell in cells)
            hint = ": a quote in it is closed only in another line" if broken else ""
            raise TableError(f"line {line} has {len(cells)} cells, but the lines above it have {self.width}{hint}")
        numbers = cells[self.skipped :]
        for place, words in self.words.items():
            words.append(numbers[place].strip())
            numbers[place] = "nan"
        try:
            return numbers_of(numbers, self.dialect.decimal, self.markers, limits)
        except NotANumber as error:
            cell = numbers[error.place].strip()
            where = f"row {cells[0].strip()!r} (line {line})" if self.skipped else f"line {line}"
            where = f"{where}, {self.name(error.place)}: {cell!r}"
        if self.dialect.decimal == "," and "." in cell:
            raise TableError(f"{where} has a point, but other cells have decimal commas")
        raise TableError(f"{where} is not a number (if it means missing, use --missing {cell!r})")

    def are_names(self, rows: list[str], words: Collection[str] | None) -> bool:
        """Return whether what the first records have as names of rows are names in all of them."""
        if any("taken as row names" in note for note in self.dialect.notes) and not is_numbering(rows):
            return False
        return words is None or self.corner is None or not is_data(rows, self.corner, words)

    def name(self, place: int) -> str:
        """Return a column as errors name it."""
        return f"column {place + 1}" if self.names is None else f"column {self.names[place]!r}"


def is_data(names: list[str], corner: str, words: Collection[str]) -> bool:
    """Return whether a first column of words is data: it is named in `words`, or few values recur in it."""
    given = [name for name in names if name]
    return corner in words or len(set(given)) <= min(MAX_RECURRING, len(given) // 2)


def _read_gct(text: str, markers: Markers, keep_cells: bool) -> Table:
    """Read a GCT file: version, sizes, header, and rows with a name, descriptions and numbers between tabs."""
    version, sizes, rest = (*text.split("\n", 2), "")[:3]
    try:
        counts = [int(cell) for cell in sizes.split("\t")]
        n_rows, n_columns, n_row_meta, n_column_meta = counts if "#1.3" in version else (*counts[:2], 1, 0)
    except ValueError:
        raise TableError(f"line 2 of a GCT file holds its numbers of rows and columns, not {sizes.strip()!r}") from None
    line_end = "\r\n" if "\r\n" in text else "\n"
    dialect = Dialect("\t", ".", True, True, line_end, f"{version}\n{sizes}\n")
    table = grid_of(
        lambda: records(rest, "\t", 3),
        dialect,
        markers,
        words=None,
        is_judged=False,
        keep_cells=keep_cells,
        n_meta=(n_column_meta, n_row_meta),
    )
    if table.shape != (n_rows, n_columns):
        raise TableError(
            f"line 2 says {n_rows} rows x {n_columns} columns, but there are {table.shape[0]} x {table.shape[1]}"
        )
    return replace(table, layout=replace(table.layout, is_gct=True))  # type: ignore[type-var]
