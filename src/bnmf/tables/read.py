"""Reading a table from a file of any kind, recognised by its content."""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path

from bnmf.tables.binary import read_market, read_npy, read_npz, read_parquet
from bnmf.tables.cells import Markers
from bnmf.tables.dialect import decoded
from bnmf.tables.grids import read_grid
from bnmf.tables.table import Table, TableError
from bnmf.tables.triples import read_triples

GZIP = b"\x1f\x8b"


def read_table(
    source: str | os.PathLike[str],
    *,
    triples: bool = False,
    missing: Sequence[str] = (),
    unstored: str | None = None,
    header: bool | None = None,
    row_names: bool | None = None,
    keep_cells: bool = False,
) -> Table:
    r"""Read a table: delimited text, triples, .npy, .npz, Matrix Market or Parquet, each also compressed by gzip.

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
    keep_cells : bool, default=False
        Keep the cells of a text, to write it back with :meth:`Table.render`.

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
    markers = Markers(missing)
    try:
        if content.startswith(GZIP):
            content = _decompressed(content)
        if triples:
            default = "missing" if unstored is None else unstored
            return read_triples(decoded(content), markers, header=header, unstored=default, keep_cells=keep_cells)
        return _read(content, markers, unstored or "zero", header, row_names, keep_cells)
    except TableError as error:
        raise TableError(f"{name}: {error}") from None


def _decompressed(content: bytes) -> bytes:
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise TableError(f"the compressed file is damaged ({error})") from None


def _read(
    content: bytes, markers: Markers, unstored: str, header: bool | None, row_names: bool | None, keep_cells: bool
) -> Table:
    try:
        if content.startswith(b"\x93NUMPY"):
            return read_npy(content, markers)
        if content.startswith(b"PK\x03\x04"):
            return read_npz(content, markers, unstored)
        if content.startswith(b"PAR1"):
            return read_parquet(content, markers)
        if content.startswith(b"%%MatrixMarket"):
            return read_market(content, markers, unstored)
    except TableError:
        raise
    except Exception as error:  # a damaged file can raise almost anything
        raise TableError(f"the file cannot be read, or is damaged ({type(error).__name__}: {error})") from error
    return read_grid(decoded(content), markers, header=header, row_names=row_names, keep_cells=keep_cells)
