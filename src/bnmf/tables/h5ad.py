"""AnnData files (.h5ad): observations x variables with names, in HDF5 as the AnnData format lays it down."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import scipy.sparse as sp

from bnmf.tables.arrays import as_table, check_size, filled_values, library
from bnmf.tables.cells import ReadOptions
from bnmf.tables.table import Fills, Layout, Table, TableError

HDF5 = b"\x89HDF\r\n\x1a\n"
FORMATS = {"csr_matrix": sp.csr_array, "csc_matrix": sp.csc_array}


@dataclass(frozen=True)
class AnnDataFile(Layout):
    """An AnnData file, of which one matrix was read: ``X`` or ``layers/NAME``."""

    description: str
    content: bytes
    place: str

    endings = (".h5ad",)

    def render(self, table: Table, fills: Fills) -> bytes:
        return with_elements(self.content, {self.place: filled_values(table.values, fills)})


def read_h5ad(content: bytes, options: ReadOptions) -> Table:
    """Read ``X`` or a layer of an AnnData file, with the names of observations and variables."""
    with _opened(io.BytesIO(content), "r") as file:
        if not {"obs", "var"} <= file.keys():
            raise TableError("this HDF5 file is not one of AnnData")
        place = "X" if options.layer is None else f"layers/{options.layer}"
        if place not in file:
            raise TableError(f"there is no {place}: its layers are {', '.join(file.get('layers', ())) or 'none'}")
        matrix = _matrix(file[place])
        rows, columns = (_names(file[side]) for side in ("obs", "var"))
    description = f"AnnData file, {place.replace('layers/', 'layer ')} of obs x var"
    table = as_table(matrix, AnnDataFile(description, content, place), options)
    return replace(table, row_names=rows, column_names=columns)


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


def _matrix(element: Any) -> Any:
    """Return a matrix, dense or sparse as it is stored."""
    if not hasattr(element, "keys"):
        check_size(8 * element.size)
        return element[()]
    kind = FORMATS.get(element.attrs.get("encoding-type"))
    if kind is None:
        raise TableError(f"{element.name[1:]} is neither an array nor a sparse matrix")
    check_size(16 * element["data"].size)
    return kind(tuple(element[part][()] for part in ("data", "indices", "indptr")), shape=element.attrs["shape"])


def _names(frame: Any) -> list[str]:
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
