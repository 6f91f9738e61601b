"""Tables as arrays: .npy, .npz (dense, and sparse as SciPy writes them), Matrix Market, AnnData."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from bnmf.data.containers import refuse_padding
from bnmf.tables.table import Fills, Layout, OptionError, Table, TableError
from bnmf.tables.text import ReadOptions
from bnmf.utils import memory
from bnmf.utils.files import content_of, npz_bytes
from bnmf.utils.text import size
from bnmf.utils.typing import Array

NAME_ARRAYS = ("row_names", "column_names")
"""Arrays of an .npz file that hold names."""
LIMIT_ARRAYS = ("limit_rows", "limit_columns", "limit_lower", "limit_upper")
"""Arrays of an .npz file that hold limits of entries."""
# Part of the free memory that a compressed file may take, because reading it takes several times that.
MEMORY_FRACTION = 0.125
DEFAULT_LIMIT = 2**30
HDF5 = b"\x89HDF\r\n\x1a\n"
FORMATS = {"csr_matrix": sp.csr_array, "csc_matrix": sp.csc_array}
"""Sparse matrices of AnnData files."""


def largest_content() -> int:
    """Return how many bytes a compressed file may hold."""
    free = memory.available()
    return DEFAULT_LIMIT if free is None else int(MEMORY_FRACTION * free)


def check_size(n_bytes: int) -> None:
    """Raise an error if a compressed file holds more than the memory is good for."""
    if n_bytes > largest_content():
        raise TableError(f"uncompressed it takes more than {size(largest_content())}, an eighth of the free memory")


def library(name: str, kind: str, extra: str) -> Any:
    """Return a module, or raise an error that says what to install to read and write a kind of file."""
    try:
        return import_module(name)
    except ImportError:
        raise TableError(f"{kind} need {name}: pip install 'bnmf[{extra}]'") from None


def table_of(
    matrix: Any,
    layout: Layout,
    options: ReadOptions,
    row_names: list[str] | None = None,
    column_names: list[str] | None = None,
) -> Table:
    """Return the table of a dense or sparse matrix, or raise an error if it is not one of finite numbers."""
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        raise TableError(f"a table is a matrix of numbers, this array has shape {matrix.shape} and type {matrix.dtype}")
    if 0 in matrix.shape:
        raise TableError(f"the table is empty: it has {matrix.shape[0]} rows and {matrix.shape[1]} columns")
    is_sparse, unstored = sp.issparse(matrix), "zero"
    if is_sparse:
        unstored = "missing" if 0.0 in options.missing_numbers else options.unstored or "zero"
        if options.unstored == "missing" and 0.0 not in options.missing_numbers:
            try:
                refuse_padding(matrix)
            except ValueError as error:
                raise TableError(str(error)) from None
        values: Any = sp.csr_array(matrix.astype(float))
        values.sum_duplicates()
    else:
        values = np.ascontiguousarray(matrix, float)
    values = options.hide(values)
    if np.isinf(values.data if is_sparse else values).any():
        coo = sp.coo_array(values)
        first = np.flatnonzero(np.isinf(coo.data))[0]
        raise TableError(f"the entry in row {coo.row[first] + 1}, column {coo.col[first] + 1} is infinite")
    return Table(values, layout, row_names, column_names, unstored)


def filled_matrix(matrix: Any, fills: Fills) -> Any:
    """Return a copy with the fills, in the precision of the matrix if that is floating."""
    is_sparse = sp.issparse(matrix)
    filled: Any = sp.csr_array(matrix, copy=True) if is_sparse else matrix.copy()
    if len(fills.values) and filled.dtype.kind != "f":
        filled = filled.astype(np.float64)
    with warnings.catch_warnings(action="ignore"):  # of SciPy, that other formats are faster for many entries
        filled[fills.rows, fills.columns] = fills.values
    return filled


# --- NumPy and SciPy


@dataclass(frozen=True)
class ArrayFile(Layout):
    """A matrix in an .npy, .npz or .mtx file; an .npz file has a name for it, and names of rows and columns."""

    matrix: Any
    name: str = "X"
    names: Mapping[str, Array] | None = None

    def render(self, fills: Fills) -> bytes:
        filled = filled_matrix(self.matrix, fills)
        if self.endings == (".npz",):
            return npz_bytes(_matrix_arrays(filled, self.name) | dict(self.names or {}))
        if self.endings == (".npy",):
            return content_of(np.save, filled)
        return content_of(scipy.io.mmwrite, filled, symmetry="general")


def read_npy(content: bytes, options: ReadOptions) -> Table:
    """Read an .npy file."""
    array = np.load(io.BytesIO(content), allow_pickle=False)
    return table_of(array, ArrayFile(f"NumPy array of {array.dtype}", (".npy",), array), options)


def read_npz(content: bytes, options: ReadOptions) -> Table:
    """Read an .npz file: a sparse matrix of SciPy, or one dense matrix, with or without names and limits."""
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        arrays = dict(file)
    names = {name: arrays.pop(name).astype(str) for name in NAME_ARRAYS if name in arrays}
    limits = [arrays.pop(name) for name in LIMIT_ARRAYS] if set(LIMIT_ARRAYS) <= arrays.keys() else None
    name, matrix = next(iter(arrays.items()))
    description = f"NumPy array of {matrix.dtype}"
    if "format" in arrays and "shape" in arrays:
        name, matrix, description = "X", sp.load_npz(io.BytesIO(content)), "sparse matrix of SciPy"
    elif len(arrays) != 1 or matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        raise TableError(f"an .npz file must hold one matrix of numbers, this one holds {', '.join(arrays)}")
    for side, length in zip(NAME_ARRAYS, matrix.shape, strict=True):
        if side in names and len(names[side]) != length:
            raise TableError(f"{side} has {len(names[side])} names, the matrix needs {length}")
    layout = ArrayFile(description, (".npz",), matrix, name, names)
    table = table_of(matrix, layout, options, **{side: array.tolist() for side, array in names.items()})
    return table if limits is None else table.with_limits(*limits)


def read_market(content: bytes, options: ReadOptions) -> Table:
    """Read a Matrix Market file."""
    matrix = scipy.io.mmread(io.BytesIO(content), spmatrix=False)
    form = "sparse" if sp.issparse(matrix) else "dense"
    return table_of(matrix, ArrayFile(f"{form} Matrix Market file", (".mtx",), matrix), options)


def name_arrays(table: Table) -> dict[str, Array]:
    """Return the names of a table as an .npz file holds them."""
    names = {"row_names": table.row_names, "column_names": table.column_names}
    return {side: np.array(given, dtype=np.str_) for side, given in names.items() if given is not None}


def _matrix_arrays(matrix: Any, name: str = "X") -> dict[str, Array]:
    """Return a matrix as an .npz file holds it, which for a sparse one is the format of SciPy."""
    if not sp.issparse(matrix):
        return {name: matrix}
    with np.load(io.BytesIO(content_of(sp.save_npz, matrix, compressed=False))) as file:
        return dict(file)


def table_bytes(table: Table) -> bytes:
    """Return any table as an .npz file that :func:`read_npz` reads, for keeping beside its fit."""
    arrays = _matrix_arrays(table.values) | name_arrays(table)
    of = table.limits
    if len(of):
        arrays |= dict(zip(LIMIT_ARRAYS, (of.rows, of.columns, of.lower, of.upper), strict=True))
    return npz_bytes(arrays, compressed=True)


# --- AnnData: observations x variables with names, in HDF5


@dataclass(frozen=True)
class AnnDataFile(Layout):
    """An AnnData file, of which one matrix was read: ``X`` or ``layers/NAME``."""

    content: bytes
    place: str
    matrix: Any

    def render(self, fills: Fills) -> bytes:
        return with_elements(self.content, {self.place: filled_matrix(self.matrix, fills)})


def read_h5ad(content: bytes, options: ReadOptions) -> Table:
    """Read ``X`` or a layer of an AnnData file, with the names of observations and variables."""
    with _opened(io.BytesIO(content), "r") as file:
        if not {"obs", "var"} <= file.keys():
            raise TableError("this HDF5 file is not one of AnnData")
        place = "X" if options.layer is None else f"layers/{options.layer}"
        if place not in file:
            raise OptionError(f"there is no {place}: its layers are {', '.join(file.get('layers', ())) or 'none'}")
        matrix = _matrix_of(file[place])
        names = [_index_of(file[side]) for side in ("obs", "var")]
    description = f"AnnData file, {place.replace('layers/', 'layer ')} of obs x var"
    return table_of(matrix, AnnDataFile(description, (".h5ad",), content, place, matrix), options, *names)


def with_elements(content: bytes, elements: Mapping[str, Any]) -> bytes:
    """Return an AnnData file with other elements by their place: arrays, sparse matrices, words, numbers or dicts."""
    buffer = io.BytesIO(content)
    with _opened(buffer, "r+") as file:
        for place, value in elements.items():
            if place in file:
                del file[place]
            _write(file, place, value)
    return buffer.getvalue()


def _opened(content: io.BytesIO, mode: str) -> Any:
    return library("h5py", "AnnData files", "anndata").File(content, mode)


def _matrix_of(element: Any) -> Any:
    """Return a matrix, dense or sparse as it is stored."""
    if not hasattr(element, "keys"):
        check_size(8 * element.size)
        return element[()]
    kind = FORMATS.get(element.attrs.get("encoding-type"))
    if kind is None:
        raise TableError(f"{element.name[1:]} is neither an array nor a sparse matrix")
    check_size(16 * element["data"].size)
    return kind(tuple(element[part][()] for part in ("data", "indices", "indptr")), shape=element.attrs["shape"])


def _index_of(frame: Any) -> list[str]:
    """Return the index of a stored DataFrame."""
    index = frame[frame.attrs["_index"]]
    index = index["values"] if hasattr(index, "keys") else index  # a nullable array keeps its mask beside it
    return [str(name) for name in (index.asstr() if index.dtype.kind == "O" else index)[()]]


def _write(file: Any, place: str, value: Any) -> None:
    """Store an element with the attributes that tell AnnData its type."""
    parent = place.rpartition("/")[0]
    if parent and parent not in file:
        _write(file, parent, {})
    if isinstance(value, Mapping):
        element, kind, version = file.create_group(place), "dict", "0.1.0"
        for name, part in value.items():
            _write(element, name, part)
    elif isinstance(value, sp.csr_array):
        element, kind, version = file.create_group(place), "csr_matrix", "0.1.0"
        element.attrs["shape"] = value.shape
        for name in ("data", "indices", "indptr"):
            element.create_dataset(name, data=getattr(value, name))
    else:
        element, version = file.create_dataset(place, data=value), "0.2.0"
        kind = "string" if isinstance(value, str) else "array" if element.ndim else "numeric-scalar"
    element.attrs["encoding-type"], element.attrs["encoding-version"] = kind, version
