"""Reading a table from a file of any kind, recognised by its content, and writing it to one, by its name."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from bnmf.tables.arrays import (
    BOOLEANS,
    ArrayFile,
    Parquet,
    Workbook,
    check_size,
    largest_content,
    parquet_bytes,
    read_market,
    read_npy,
    read_parquet,
    read_zip,
    rounded,
    workbook_bytes,
)
from bnmf.tables.cells import ReadOptions, csv_text, written
from bnmf.tables.grid import read_grid
from bnmf.tables.h5ad import HDF5, read_h5ad
from bnmf.tables.table import Layout, Part, Table, TableError
from bnmf.tables.text import Dialect, TextFile, decoded
from bnmf.tables.triples import read_triples
from bnmf.utils.files import write_bytes

BINARY: dict[bytes, Callable[[bytes, ReadOptions], Table]] = {
    b"\x93NUMPY": read_npy,
    b"PK\x03\x04": read_zip,
    b"PAR1": read_parquet,
    HDF5: read_h5ad,
    b"%%MatrixMarket": read_market,
}
"""Readers of files that are not text, by the first bytes of these."""
GZIP = b"\x1f\x8b"
OLD_EXCEL = b"\xd0\xcf\x11\xe0"
ENDINGS = (".csv", ".tsv", ".npy", ".npz", ".mtx", ".parquet", ".pq", ".xlsx")
"""Endings of files that any table can be written to."""
LISTS = (".csv", ".tsv", ".parquet", ".pq", ".xlsx")
"""Endings of files for a list of results."""


def read_table(
    source: str | os.PathLike[str],
    *,
    triples: bool = False,
    missing: Sequence[str] = (),
    unstored: str | None = None,
    header: bool | None = None,
    row_names: bool | None = None,
    delimiter: str | None = None,
    layer: str | None = None,
    ignore: Sequence[str] = (),
    words: Collection[str] | None = None,
) -> Table:
    r"""Read a table: delimited text, triples, GCT, .npy, .npz, .mtx, Parquet, .xlsx, .h5ad, or one of them in gzip.

    Parameters
    ----------
    source : path-like
        The file; "-" for standard input.
    triples : bool, default=False
        A text holds a row, a column and a value in each line.
    missing : sequence of str
        What counts as missing beside empty cells, NA, nan and the like; "0" for zeros.
    unstored : {"zero", "missing"}, optional
        Meaning of what a sparse file does not store; by default zeros, and missing for triples.
    header, row_names : bool, optional
        Whether the first line and the first column of a text hold names; None to judge by their content.
    delimiter : str, optional
        What separates the cells of a text; None to judge by its content.
    layer : str, optional
        Layer of an AnnData file; by default its X.
    ignore : sequence of str
        Names of columns that are no part of the table, and are written back as they are.
    words : collection of str, optional
        Names of columns that hold words even if these are numbers; columns of text are then words too. By default
        they are an error.

    Returns
    -------
    Table
        The numbers and names.

    Raises
    ------
    TableError
        With the name of the file and what is wrong with it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "table.csv"
    ...     _ = path.write_text("name,height,weight\nAnn,1.7,NA\nBen,1.8,80\n")
    ...     table = read_table(path)
    >>> table.row_names, table.column_names
    (['Ann', 'Ben'], ['height', 'weight'])
    >>> table.values
    array([[ 1.7,  nan],
           [ 1.8, 80. ]])
    """
    name = "standard input" if os.fspath(source) == "-" else os.fspath(source)
    content = sys.stdin.buffer.read() if os.fspath(source) == "-" else Path(source).read_bytes()
    options = ReadOptions(missing, unstored, header, row_names, delimiter, layer, words)
    try:
        if content.startswith(GZIP):
            content = _decompressed(content)
        if layer is not None and not content.startswith(HDF5):
            raise TableError("--layer is for AnnData files, .h5ad")
        table = read_triples(decoded(content), options) if triples else _read(content, options)
        table = table.without(ignore)
        if words is None:
            table.refuse_words()
        return table
    except TableError as error:
        raise TableError(f"{name}: {error}") from None


def _decompressed(content: bytes) -> bytes:
    """Return the content of a file compressed by gzip, of one or several members, if it fits into the memory."""
    try:
        with gzip.open(io.BytesIO(content)) as file:
            found = file.read(largest_content() + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise TableError(f"the compressed file is damaged ({error})") from None
    check_size(len(found))
    return found


def _read(content: bytes, options: ReadOptions) -> Table:
    """Return the table of a file, by its first bytes."""
    read = next((read for magic, read in BINARY.items() if content.startswith(magic)), None)
    if read is None:
        if content.startswith(OLD_EXCEL):
            raise TableError("this is an Excel workbook of the old kind: save it as .xlsx or CSV first")
        return read_grid(decoded(content), options)
    try:
        return read(content, options)
    except TableError:
        raise
    except Exception as error:  # a damaged file can raise almost anything
        raise TableError(f"the file cannot be read, or is damaged ({type(error).__name__}: {error})") from error


def ending(path: str | os.PathLike[str]) -> str:
    """Return how the name of a file ends, without .gz and in small letters."""
    return Path(os.fspath(path).removesuffix(".gz")).suffix.lower()


def writer(table: Table, out: str | os.PathLike[str], source: str | os.PathLike[str]) -> Table:
    """Return a table whose `render` writes the kind of file that the name of the output asks for, if it says one."""
    wanted = ending(out)
    if not wanted or wanted in table.layout.endings or wanted == ending(source):  # not wanted: no ending, or "-"
        return table
    if wanted not in ENDINGS:
        known = dict.fromkeys([*table.layout.endings, *ENDINGS])
        raise TableError(f"{out}: this table is written as {', '.join(known)}")
    if isinstance(table.layout, Part):
        return replace(table, layout=replace(table.layout, whole=writer(table.layout.whole, out, source)))
    if wanted in (".csv", ".tsv") and isinstance(table.layout, TextFile):
        dialect, is_gct = table.layout.dialect, ".gct" in table.layout.endings
        sign = "\t" if wanted == ".tsv" else ";" if dialect.decimal == "," else ","
        dialect = replace(dialect, delimiter=sign, preamble="" if is_gct else dialect.preamble)
        return replace(table, layout=replace(table.layout, dialect=dialect))
    if table.asked is not None:
        raise TableError(f"{out}: triples are written as .csv or .tsv")
    if table.is_sparse and wanted not in (".npz", ".mtx"):
        raise TableError(f"{out}: a sparse table is written as .npz or .mtx")
    if table.words and wanted in (".npy", ".npz", ".mtx"):
        raise TableError(f"{out}: such a file holds numbers only, and this table has words; name it .csv or .parquet")
    if wanted in (".npy", ".mtx") and (table.row_names or table.column_names):
        raise TableError(f"{out}: such a file has no names of rows and columns; name it .npz or .csv")
    if wanted in (".npy", ".npz", ".mtx"):
        return replace(table, layout=ArrayFile(f"{wanted} file", (wanted,)))
    if wanted in (".parquet", ".pq"):
        return replace(table, layout=Parquet(table.frame().rename_axis(table.corner)))
    return replace(table, layout=_converted(table, wanted))


def _converted(table: Table, wanted: str) -> Layout:
    """Return how a dense table is written as text or as a workbook."""
    frame = table.frame().astype(object)
    cells: list[list[Any]] = frame.where(frame.notna(), None).to_numpy().tolist()
    top, left = 1 + bool(table.column_names), int(bool(table.row_names))
    if table.row_names:
        cells = [[name, *row] for name, row in zip(table.row_names, cells, strict=True)]
    if table.column_names:
        cells = [[table.corner or ""] * left + table.column_names, *cells]
    text = TextFile(
        f"{wanted} file",
        (wanted,),
        Dialect("\t" if wanted == ".tsv" else ","),
        lambda: enumerate(([_exact(cell) for cell in row] for row in cells), start=1),
        lambda row, column: (row + top, column + left),
    )
    if wanted != ".xlsx":
        return text
    return Workbook(workbook_bytes([[BOOLEANS.get(cell, cell) for cell in row] for row in cells]), text)


def _exact(cell: Any) -> str:
    """Return a cell as text, whole numbers without a point."""
    if not isinstance(cell, float):
        return "" if cell is None else str(cell).removesuffix(" 00:00:00")  # of a date
    return repr(int(cell)) if cell == int(cell) and abs(cell) < 1e15 else repr(cell)


def list_bytes(path: str | os.PathLike[str], header: list[str], rows: list[list[Any]]) -> bytes:
    """Return a list of results, with six digits, as the kind of file that its name says."""
    if ending(path) in (".csv", ".tsv"):
        cells = [["" if value is None else written(value) for value in row] for row in rows]
        return csv_text([header, *cells], "\t" if ending(path) == ".tsv" else ",").encode()
    cells = [[rounded(value) for value in row] for row in rows]
    if ending(path) == ".xlsx":
        return workbook_bytes([header, *cells])
    frame = pd.DataFrame(cells, columns=header)
    for name in frame.columns[frame.map(lambda cell: isinstance(cell, str)).any()]:  # numbers among words
        frame[name] = [None if cell is None else written(cell) for cell in frame[name]]
    return parquet_bytes(frame)


def write_content(path: Path, content: bytes) -> None:
    """Write a file, compressed if its name ends with .gz, or standard output for "-"."""
    if str(path) == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        write_bytes(path, gzip.compress(content, mtime=0) if path.name.endswith(".gz") else content)
