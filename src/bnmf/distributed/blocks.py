"""What workers do with a block of rows or columns. Pure functions: what is lost with a worker is computed again."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from dask.sizeof import sizeof

from bnmf.data.containers import as_csr, as_dense, as_floats
from bnmf.data.identity import row_ids, tile_digests
from bnmf.data.observed import ObservedMatrix
from bnmf.data.views import View, dense_view, listed_view, observed_csr, sparse_view, without_nan
from bnmf.priors.base import Coefficients
from bnmf.sampler import gibbs
from bnmf.sampler.streams import Key
from bnmf.sampler.threads import Workers, single_threaded_blas
from bnmf.utils.typing import Array, Floats, Indices, Words

# --- the source


@sizeof.register(View)
def view_bytes(view: View) -> int:
    """Return the memory of a block: Dask writes data to disk and chooses workers by their size."""
    arrays: list[Array] = [view.indptr, view.indices, view.values, view.lists_missing, view.squares]
    if isinstance(view.matrix, sp.csr_array):
        arrays += [view.matrix.indptr, view.matrix.indices, view.matrix.data]
    elif view.matrix is not None:
        arrays.append(view.matrix)
    return sum(array.nbytes for array in arrays)


class Survey(NamedTuple):
    """What must be known of all blocks before the first of them is stored.

    Attributes
    ----------
    n_stored : int
        Entries that a sparse block stores, or observed ones of a dense one.
    n_observed, n_infinite, n_negative : int
        Numbers of entries.
    lowest : float
        The smallest observed entry.
    """

    n_stored: int
    n_observed: int
    n_infinite: int
    n_negative: int
    lowest: float


def survey(chunk: Any, unstored: str) -> Survey:
    """Return the survey of one block, given what the entries mean that a sparse one does not store."""
    if sp.issparse(chunk):
        chunk = as_csr(chunk)
        values = chunk.data[~np.isnan(chunk.data)]
        is_listed = unstored == "missing"
        n_observed = len(values) if is_listed else chunk.shape[0] * chunk.shape[1] - (chunk.nnz - len(values))
        n_stored = len(values) if is_listed else chunk.nnz
        lowest = min(values.min(initial=np.inf), 0.0 if not is_listed and n_observed > len(values) else np.inf)
    else:
        array = as_floats(chunk)
        values = array[~np.isnan(array)]
        n_stored = n_observed = len(values)
        lowest = values.min(initial=np.inf)
    return Survey(n_stored, n_observed, int(np.isinf(values).sum()), int((values < 0).sum()), float(lowest))


def column_minima(chunk: Any) -> Floats:
    """Return the smallest observed entry of each column, infinity for a column without any."""
    lowest = np.full(chunk.shape[1], np.inf)
    if sp.issparse(chunk):
        matrix = without_nan(as_csr(chunk))
        np.minimum.at(lowest, matrix.indices, matrix.data)
        return lowest
    array = as_floats(chunk)
    return np.where(np.isnan(array), np.inf, array).min(axis=0)


def make_view(chunk: Any, kind: str, unstored: str, offset: Floats | None, by: str) -> View:
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


class Given(NamedTuple):
    """What a half-sweep is given of the other side, for all blocks.

    Attributes
    ----------
    Z : ndarray of shape (columns, K)
        The other factor.
    entry_variance : ndarray of shape (1 or columns,)
        Variances of the entries of a row.
    entry_scale : ndarray of shape (columns,), or None
        Factors of the data.
    """

    Z: Floats
    entry_variance: Floats
    entry_scale: Floats | None


class Own(NamedTuple):
    """What a half-sweep is given of the rows of one block.

    Attributes
    ----------
    first : int
        Number of the first row in the whole matrix: rows keep their random streams.
    W : ndarray of shape (rows, K)
        The factor to draw.
    prior : Coefficients
        Its prior.
    row_variance : ndarray of shape (1 or rows,)
        Variances of the rows.
    row_scale : ndarray of shape (1 or rows,), or None
        Factors of the data.
    """

    first: int
    W: Floats
    prior: Coefficients | None
    row_variance: Floats
    row_scale: Floats | None


class Drawn(NamedTuple):
    """The rows of a block after their draw, and their squared errors if those were asked for."""

    W: Floats
    errors: Floats | None


def draw_block(
    view: View,
    given: Given,
    own: Own,
    stream: Key,
    needs_errors: bool,
    n_passes: int,
    drawn: tuple[int, int] | None,
) -> Drawn:
    """Draw the rows of one block."""
    W = own.W.copy()
    ids = np.arange(own.first, own.first + len(W), dtype=np.uint64)
    assert own.prior is not None
    with single_threaded_blas(), Workers() as workers:
        errors = gibbs.half_sweep(
            view.scaled(given.entry_scale, own.row_scale), W, writable(given.Z), own.prior, own.row_variance,
            given.entry_variance, stream, workers, ids, needs_errors=needs_errors, n_passes=n_passes,
            drawn=drawn,
        )  # fmt: skip
    return Drawn(W, errors if needs_errors else None)


def errors_of_block(view: View, given: Given, own: Own) -> Floats:
    """Return the squared error of each row of one block, from the residuals."""
    with Workers() as workers:
        scaled = view.scaled(given.entry_scale, own.row_scale)
        return gibbs.squared_errors(scaled, writable(own.W), writable(given.Z), workers)


def writable(array: Floats) -> Floats:
    """Return an array as the kernels take it, by rows and writable: Dask sends arrays that are read-only."""
    return np.require(array, requirements=["C", "W"])


# --- numbers of the rows of a block


def numbers_of_rows(view: View, shared: None, own: None, name: str) -> Any:
    """Return an attribute of a view, or what the method of that name returns."""
    found = getattr(view, name)
    return found() if callable(found) else found


def values_of_row(view: View, shared: None, row: int) -> Floats:
    """Return the observed entries of a row."""
    return view.observed_values(row)


def digests_of_tiles(view: View, shared: None, own: None) -> list[str]:
    """Return a digest of each tile of rows."""
    return tile_digests(view)


def ids_of_rows(view: View, scale: Floats | None, own: None, n_columns: int) -> Words:
    """Return the identity of each row."""
    return row_ids(_matrix(view, n_columns), scale)


def dense_rows(view: View, shared: None, rows: tuple[int, int], n_columns: int) -> Floats:
    """Return a range of rows as a dense array with NaN for missing entries."""
    return _matrix(view, n_columns).dense_rows(np.arange(*rows))


def sample_of_rows(
    view: View, shared: None, rows: list[int], n_columns: int, each: int
) -> list[tuple[Indices, Floats]]:
    """Return columns and values of some observed entries of some rows."""
    matrix, found = _matrix(view, n_columns), []
    for row in rows:
        entries = matrix.dense_rows(np.array([row]))[0]
        columns = np.random.default_rng(row).permutation(np.flatnonzero(~np.isnan(entries)))[:each]
        found.append((columns, entries[columns]))
    return found


def _matrix(view: View, n_columns: int) -> ObservedMatrix:
    """Return the rows of a block as a matrix without its columns, which are elsewhere."""
    return ObservedMatrix((view.n_rows, n_columns), int(view.n_observed.sum()), view, view)
