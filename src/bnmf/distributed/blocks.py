"""Work on a block of rows or columns, by workers. Pure functions: what is lost with a worker is computed again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from dask.sizeof import sizeof

from bnmf.data.containers import as_csr, as_dense, as_floats, check_values
from bnmf.data.latent import Filled
from bnmf.data.limits import Limits, between, with_sparse_limits
from bnmf.data.views import Stored, dense_view, listed_view, observed_csr, sparse_view, without_nan
from bnmf.priors.base import Coefficients
from bnmf.sampler.threads import Workers
from bnmf.utils.typing import Array, Floats, Ints, Shape, Words


class Block(NamedTuple):
    """Rows of the data with the limits of their entries, or rows of the transposed data, which do without."""

    view: Stored
    limits: Limits | None = None


@sizeof.register(Block)
def block_bytes(block: Block) -> int:
    """Return the memory of a block: Dask writes data to disk and chooses workers by their size."""
    limits = () if block.limits is None else vars(block.limits).values()
    return sum(getattr(array, "nbytes", 0) for array in (*block.view.kernel_arrays().values(), *limits))


# --- the source

Side = tuple[Any, bool]
"""Lower or upper limits of a chunk, and whether they are meant for each of its entries."""
Part = tuple[Any, Side | None, Side | None, Shape]
"""A chunk of the data, its lower and upper limits, if there are any, and the place where it starts."""


class BlockStats(NamedTuple):
    """Entries that a sparse block stores or observed ones of a dense one, observed and limited ones, and the lowest."""

    n_stored: int
    n_observed: int
    n_limited: int
    lowest: float


def survey(part: Part, unstored: str, negative: bool) -> BlockStats:
    """Check one chunk, and return what must be known of all before the first block of them is stored."""
    array, limits = _limited(part, negative)
    is_sparse = sp.issparse(array)
    stored = array.data if is_sparse else array
    n_missing = int(np.isnan(stored).sum())
    n_stored = n_observed = stored.size - n_missing
    if is_sparse and unstored == "zero":
        n_stored, n_observed = array.nnz, array.shape[0] * array.shape[1] - n_missing
    lowest = check_values(stored, negative=negative)
    return BlockStats(n_stored, n_observed, 0 if limits is None else len(limits), lowest)


def _limited(part: Part, negative: bool) -> tuple[Any, Limits | None]:
    """Return a chunk with numbers that stand for limited entries, and the limits of these."""
    chunk, lower, upper, start = part
    array: Any = as_csr(chunk) if sp.issparse(chunk) else as_floats(chunk)
    if lower is None or upper is None:
        return array, None
    if sp.issparse(chunk):
        return with_sparse_limits(array, lower[0], upper[0], negative=negative, start=start)
    array, _, limits = between(array, ~np.isnan(array), None, lower, upper, negative=negative, start=start)
    return array, limits


def make_block(part: Part, kind: str, unstored: str, offset: Floats | None, by: str) -> Block:
    """Return the rows of a chunk, or its columns, in the form of the sampler."""
    array, limits = _limited(part, negative=True)
    if limits is not None and offset is not None:
        limits = limits.shifted(offset)
    return Block(_view(array, kind, unstored, offset, by), limits if by == "row" else None)


def _view(chunk: Any, kind: str, unstored: str, offset: Floats | None, by: str) -> Stored:
    is_sparse = sp.issparse(chunk)
    if kind == "sparse":
        return sparse_view(chunk if by == "row" else chunk.T.tocsr())
    if kind == "listed":
        matrix = without_nan(chunk) if is_sparse else observed_csr(chunk, ~np.isnan(chunk))
        if offset is not None:
            shifted = matrix.data - offset[matrix.indices]
            matrix = sp.csr_array((shifted, matrix.indices, matrix.indptr), shape=matrix.shape)
        return listed_view(matrix if by == "row" else matrix.tocsc())
    array = as_dense(chunk, unstored) if is_sparse else chunk
    filled = np.array(array if by == "row" else array.T, order="C")  # the only copy: blocks may be all that fits
    if offset is not None:
        filled -= offset if by == "row" else offset[:, None]
    mask = ~np.isnan(filled)
    filled[~mask] = 0.0
    return dense_view(filled, mask)


# --- half-sweeps


class Broadcast(NamedTuple):
    """Arguments of all blocks from the other side: its factor, variances and factors of the entries of a row."""

    Z: Floats
    entry_variance: Floats
    entry_scale: Floats | None


class BlockInput(NamedTuple):
    """Arguments of one block for its rows, the first of which has a number in the whole matrix: its random stream."""

    first: int
    W: Floats
    prior: Coefficients | None
    row_variance: Floats
    row_scale: Floats

    @property
    def ids(self) -> Words:
        """Numbers of the rows in the whole matrix."""
        return np.arange(self.first, self.first + len(self.W), dtype=np.uint64)


def draw_block(
    block: Block, given: Broadcast, own: BlockInput, stream: tuple[int, int], **options: Any
) -> tuple[Floats, Floats | None]:
    """Draw the rows of one block, and return them and their squared errors, if those are needed."""
    W = own.W.copy()
    assert own.prior is not None
    with Workers() as workers:
        errors = block.view.scaled(given.entry_scale, own.row_scale).half_sweep(
            W, _writable(given.Z), own.prior, own.row_variance, given.entry_variance, stream, workers, own.ids,
            **options,
        )  # fmt: skip
    return W, errors if options["needs_errors"] else None


def errors_of_block(block: Block, given: Broadcast, own: BlockInput) -> Floats:
    """Return the squared error of each row of one block, from the residuals."""
    return block.view.scaled(given.entry_scale, own.row_scale).squared_errors(_writable(own.W), _writable(given.Z))


def _writable(array: Floats) -> Floats:
    """Return an array as the kernels take it, by rows and writable: Dask sends arrays that are read-only."""
    return np.require(array, requirements=["C", "W"])


# --- latent values

Entries = tuple[Array, Array, Floats]
"""Rows and columns of some entries in the whole matrix, and their values."""


class Drawn(NamedTuple):
    """Rows with latent values, these for each worker by its blocks of columns, and sums of gross errors by tile."""

    rows: Block
    for_columns: dict[str, dict[int, Entries]]
    gross: Floats | None

    def piece(self, worker: str) -> dict[int, Entries]:
        """Return the latent values that a worker needs for its blocks of columns."""
        return self.for_columns[worker]


def draw_latent(
    block: Block,
    given: Broadcast,
    own: BlockInput,
    stream: tuple[int, int],
    is_dense: bool,
    columns_of: Mapping[str, list[int]],
    bounds: Ints,
    **options: Any,
) -> Drawn:
    """Draw the latent values of one block of rows, given where blocks of columns begin and those of each worker."""
    sums, new, has_outliers = None, block.view, "log_odds" in options
    if block.limits is not None or has_outliers:
        filled = Filled(block.limits, block.view, has_outliers=has_outliers, is_dense=is_dense)
        options |= {"row_variance": own.row_variance, "column_variance": given.entry_variance}
        scaled = block.view.scaled(given.entry_scale, own.row_scale)
        with Workers() as workers:
            filled.draw_all(scaled, stream, workers, own.ids, W=_writable(own.W), Z=_writable(given.Z), **options)
        new = filled.rows
        sums = filled.sums if has_outliers else None
    rows, columns, values = _differing(new, block.view)
    owner = np.searchsorted(bounds, columns, side="right") - 1
    order = np.argsort(owner, kind="stable")
    ends = np.searchsorted(owner[order], np.arange(len(bounds)))
    positions = (own.first + rows).astype(np.uint32), columns.astype(np.uint32)

    def of_block(number: int) -> Entries:
        some = order[ends[number] : ends[number + 1]]
        return positions[0][some], positions[1][some], values[some]

    for_columns = {worker: {number: of_block(number) for number in numbers} for worker, numbers in columns_of.items()}
    return Drawn(Block(new), for_columns, sums)


def _differing(view: Stored, before: Stored) -> Entries:
    """Return the entries of a view that differ from those of another, which stores the same ones."""
    if view.form == "dense":
        rows, columns = np.nonzero(view.matrix != before.dense())
        return rows, columns, view.matrix[rows, columns]
    new = view.csr()
    differs = np.flatnonzero(new.data != before.csr().data)
    return np.searchsorted(new.indptr, differs, side="right") - 1, new.indices[differs], new.data[differs]


def fill_columns(block: Block, number: int, first: int, pieces: list[dict[int, Entries]]) -> Block:
    """Return a block of columns with latent values from all blocks of rows."""
    rows, columns, values = (np.concatenate(parts) for parts in zip(*(piece[number] for piece in pieces), strict=True))
    view = block.view.own()
    for numbers, places in view.targets(columns.astype(np.intp) - first, rows):
        numbers[places[places >= 0]] = values[places >= 0]
    return Block(view)
