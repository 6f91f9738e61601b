"""Reading a table from a file of any kind, recognised by its content, and writing it to one, by its name."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zipfile
import zlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from bnmf.tables.arrays import (
    HDF5,
    ArrayFile,
    check_size,
    largest_content,
    name_arrays,
    read_h5ad,
    read_market,
    read_npy,
    read_npz,
)
from bnmf.tables.frames import PARQUET, FrameFile, frame_bytes, read_parquet, read_workbook
from bnmf.tables.grid import read_grid, read_triples
from bnmf.tables.table import Layout, OptionError, Part, Table, TableError
from bnmf.tables.text import ReadOptions, TextFile, decoded, rounded, written
from bnmf.utils.files import write_bytes


def read_zip(content: bytes, options: ReadOptions) -> Table:
    """Read an Excel workbook or an .npz file, after a look at the size of what it holds."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        check_size(sum(info.file_size for info in file.infolist()))
        is_workbook = "xl/workbook.xml" in file.namelist()
    return (read_workbook if is_workbook else read_npz)(content, options)


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
LISTS = (".csv", ".tsv", ".xlsx", *PARQUET)
"""Endings of files of numbers and words with names, for dense tables and lists of results."""
ARRAYS = (".npz", ".npy", ".mtx")
"""Endings of files of numbers."""


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
            raise OptionError("--layer is for AnnData files, .h5ad")
        table = read_triples(decoded(content), options) if triples else _read(content, options)
        table = table.without(ignore)
        if words is None:
            table.refuse_words()
        return table
    except TableError as error:
        raise type(error)(f"{name}: {error}") from None


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


def writable(table: Table) -> list[str]:
    """Return the endings of files that a table can be written to, with its words and names."""
    has_names = bool(table.row_names or table.column_names)
    others: tuple[str, ...] = (*LISTS, *ARRAYS)
    if table.asked is not None:
        others = (".csv", ".tsv")
    elif table.is_sparse:
        others = (".npz",) if has_names else (".npz", ".mtx")
    elif table.words:
        others = LISTS
    elif has_names:
        others = (*LISTS, ".npz")
    return list(dict.fromkeys([*table.layout.endings, *others]))


def writer(table: Table, out: str | os.PathLike[str], source: str | os.PathLike[str]) -> Table:
    """Return a table whose `render` writes the kind of file that the name of the output asks for, if it says one."""
    wanted = ending(out)
    if not wanted or wanted in table.layout.endings or wanted == ending(source):  # not wanted: no ending, or "-"
        return table
    if isinstance(table.layout, Part):
        return replace(table, layout=replace(table.layout, whole=writer(table.layout.whole, out, source)))
    if wanted not in writable(table):
        raise TableError(f"{out}: this table is written as {', '.join(writable(table))}")
    layout: Layout
    if isinstance(table.layout, TextFile) and wanted in (".csv", ".tsv"):
        dialect, is_gct = table.layout.dialect, ".gct" in table.layout.endings
        sign = "\t" if wanted == ".tsv" else ";" if dialect.decimal == "," else ","
        dialect = replace(dialect, delimiter=sign, preamble="" if is_gct else dialect.preamble)
        layout = replace(table.layout, dialect=dialect)
    elif wanted in ARRAYS:
        layout = ArrayFile(f"{wanted} file", (wanted,), table.values, names=name_arrays(table))
    else:
        frame = table.frame().rename_axis(table.corner)
        if table.column_names is None and wanted not in PARQUET:  # whose columns have names
            frame = frame.set_axis(range(table.shape[1]), axis=1)
        layout = FrameFile(f"{wanted} file", (wanted,), frame)
    return replace(table, layout=layout)


def list_bytes(path: str | os.PathLike[str], results: pd.DataFrame) -> bytes:
    """Return a list of results, with six digits, as the kind of file that its name says."""
    columns = {}
    for name, column in results.items():
        cells = [None if pd.isna(cell) else cell for cell in column]
        # Numbers among words are text, except in a workbook, whose columns may hold both.
        has_words = ending(path) != ".xlsx" and any(isinstance(cell, str | bool) for cell in cells)
        columns[name] = [None if cell is None else written(cell) if has_words else rounded(cell) for cell in cells]
    return frame_bytes(pd.DataFrame(columns), ending(path))


def write_content(path: Path, content: bytes) -> None:
    """Write a file, compressed if its name ends with .gz, or standard output for "-"."""
    if str(path) == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        write_bytes(path, gzip.compress(content, mtime=0) if path.name.endswith(".gz") else content)
