"""What workers do with a block of rows or columns. Pure functions: what is lost with a worker is computed again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from dask.sizeof import sizeof

from bnmf.data.containers import as_csr, as_dense, as_floats, check_values
from bnmf.data.views import Stored, dense_view, listed_view, observed_csr, sparse_view, without_nan
from bnmf.priors.base import Coefficients
from bnmf.sampler.threads import Workers
from bnmf.utils.typing import Floats, Indices


@sizeof.register(Stored)
def view_bytes(view: Stored) -> int:
    """Return the memory of a block: Dask writes data to disk and chooses workers by their size."""
    return sum(getattr(array, "nbytes", 0) for array in view.kernel_arrays().values())


# --- the source


class BlockStats(NamedTuple):
    """Entries that a sparse block stores or observed ones of a dense one, all observed ones, and the smallest."""

    n_stored: int
    n_observed: int
    lowest: float


def survey(chunk: Any, unstored: str, negative: bool) -> BlockStats:
    """Check one block, and return what must be known of all blocks before the first of them is stored."""
    if sp.issparse(chunk):
        chunk = as_csr(chunk)
        values = chunk.data[~np.isnan(chunk.data)]
        n_stored = n_observed = len(values)
        if unstored == "zero":
            n_stored, n_observed = chunk.nnz, chunk.shape[0] * chunk.shape[1] - (chunk.nnz - len(values))
    else:
        array = as_floats(chunk)
        values = array[~np.isnan(array)]
        n_stored = n_observed = len(values)
    check_values(values, negative=negative)
    return BlockStats(n_stored, n_observed, float(values.min(initial=0.0)))


def make_view(chunk: Any, kind: str, unstored: str, offset: Floats | None, by: str) -> Stored:
    """Return the rows of a block in the form of the sampler."""
    if kind == "sparse":
        matrix = as_csr(chunk)
        return sparse_view(matrix if by == "row" else matrix.T.tocsr())
    if kind == "listed":
        matrix = without_nan(as_csr(chunk)) if sp.issparse(chunk) else _observed(as_floats(chunk))
        if offset is not None:
            shifted = matrix.data - offset[matrix.indices]
            matrix = sp.csr_array((shifted, matrix.indices, matrix.indptr), shape=matrix.shape)
        return listed_view(matrix if by == "row" else matrix.tocsc())
    array = as_dense(as_csr(chunk), unstored) if sp.issparse(chunk) else as_floats(chunk)
    filled = np.array(array if by == "row" else array.T, order="C")  # the only copy: blocks may be all that fits
    if offset is not None:
        filled -= offset if by == "row" else offset[:, None]
    mask = ~np.isnan(filled)
    filled[~mask] = 0.0
    return dense_view(filled, mask)


def _observed(array: Floats) -> sp.csr_array:
    return observed_csr(array, ~np.isnan(array))


# --- half-sweeps


class Broadcast(NamedTuple):
    """What all blocks are given of the other side: its factor, variances and factors of the entries of a row."""

    Z: Floats
    entry_variance: Floats
    entry_scale: Floats | None


class BlockInput(NamedTuple):
    """What one block is given of its rows, the first of which has a number in the whole matrix: its random stream."""

    first: int
    W: Floats
    prior: Coefficients | None
    row_variance: Floats
    row_scale: Floats


def draw_block(
    view: Stored, given: Broadcast, own: BlockInput, stream: tuple[int, int], **options: Any
) -> tuple[Floats, Floats | None]:
    """Draw the rows of one block, and return them and their squared errors, if those are needed."""
    W = own.W.copy()
    ids = np.arange(own.first, own.first + len(W), dtype=np.uint64)
    assert own.prior is not None
    with Workers() as workers:
        errors = view.scaled(given.entry_scale, own.row_scale).half_sweep(
            W, _writable(given.Z), own.prior, own.row_variance, given.entry_variance, stream, workers, ids,
            **options,
        )  # fmt: skip
    return W, errors if options["needs_errors"] else None


def errors_of_block(view: Stored, given: Broadcast, own: BlockInput) -> Floats:
    """Return the squared error of each row of one block, from the residuals."""
    return view.scaled(given.entry_scale, own.row_scale).squared_errors(_writable(own.W), _writable(given.Z))


def _writable(array: Floats) -> Floats:
    """Return an array as the kernels take it, by rows and writable: Dask sends arrays that are read-only."""
    return np.require(array, requirements=["C", "W"])


# --- numbers of the rows of a block


def of_rows(view: Stored, shared: None, own: None, compute: Callable[[Stored], Any]) -> Any:
    """Return what a function gives for each row."""
    return compute(view)


def values_of_row(view: Stored, shared: None, row: int) -> Floats:
    """Return the observed entries of a row."""
    return view.observed_values(row)


def dense_rows(view: Stored, shared: None, rows: Indices) -> Floats:
    """Return some rows as a dense array with NaN for missing entries."""
    return view.select(rows).dense_with_nan()
