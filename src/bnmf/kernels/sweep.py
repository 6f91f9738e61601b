"""The half-sweep: draw every entry of W, row by row, given Z. Z is drawn by the same kernels with the roles exchanged.

A row depends on the data only through Σ z r and Σ z² over its *observed* entries, where r are its residuals. There are
two ways to draw: rows with the same missing entries share their sums (`systems`), others carry their residuals
(`residuals`). Both draw eight rows at a time (`rows`).
"""

from bnmf.kernels import residuals, systems
from bnmf.kernels.compile import inlined, kernel, linked
from bnmf.kernels.processor import WIDTH
from bnmf.kernels.products import set_dense_product, set_sparse_product
from bnmf.kernels.residuals import draw_rows
from bnmf.kernels.rows import ROWS_PER_TILE, Problem
from bnmf.kernels.systems import draw_sharing_rows
from bnmf.kernels.vectors import pointer_at


def workspace_size(side, longest):
    """Return the number of floats that `draw_tiles` needs if lists have up to `longest` positions."""
    return ROWS_PER_TILE * side + max(systems.workspace_size(side), residuals.workspace_size(side, longest))


@kernel
def draw_tiles(W, other, data, roots, scales, prior, max_term, streams, tiles, sharing, others, workspace):
    """Draw some tiles of rows of W in place, and write the squared error of each row after its draw.

    Parameters
    ----------
    W : (rows, K)
        The factor to draw.
    other, data, scales, prior, streams : tuple
        The other factor, the data, the noise, the prior and the random streams: the fields of `Other`, `Data`,
        `Scales`, `Separable` and `Streams`. Numba takes plain tuples in a third of the time of named ones.
    roots : (listed entries,) or None
        Roots of the weights of the entries, if those differ; then every row lists its observed entries.
    max_term : MaxTerm or None
        The max term of the prior.
    tiles : (int, int)
        Number of the first tile, and of the one after the last.
    sharing, others : tuple or None
        The rows of all tiles: the fields of `Sharing` and `Others`.
    workspace : tuple
        Memory to work in, the fields of `Workspace`, and for the results: the squared error of each row, divided by
        the variance of each column and times the weight of each entry.
    """
    n_rows, n_components = W.shape
    Z, scaled, gram = other
    indptr, indices, values, lists_missing, dense, stored_indptr, stored_indices, stored_values, squares = data
    precision, entry_scale, row_scale = scales
    linear, quadratic, pairwise, absolute = prior
    key_high, key_low, ids, n_passes, first_drawn, end_drawn = streams
    numbers, words, offsets, squared_error = workspace
    side = Z.shape[1]
    product, memory = pointer_at(numbers, 0), pointer_at(numbers, ROWS_PER_TILE * side)
    for tile in range(tiles[0], tiles[1]):
        start, stop = tile * ROWS_PER_TILE, min((tile + 1) * ROWS_PER_TILE, n_rows)
        if dense.size:
            set_dense_product(dense, scaled, n_components, row_scale, start, stop, product)
        elif stored_values.size:
            set_sparse_product(stored_indptr, stored_indices, stored_values, scaled, row_scale, start, stop, product)
        problem = Problem(
            n_components,
            side,
            Z.shape[0] - 1,
            pointer_at(W, 0),
            pointer_at(Z, 0),
            pointer_at(gram, 0),
            product,
            start,
            pointer_at(indptr, 0),
            pointer_at(indices, 0),
            pointer_at(values, 0),
            pointer_at(lists_missing, 0),
            pointer_at(squares, 0),
            pointer_at(precision, 0),
            stride(precision.size, 1),
            pointer_at(entry_scale, 0),
            stride(entry_scale.size, 1),
            pointer_at(row_scale, 0),
            stride(row_scale.size, 1),
            pointer_at(linear, 0),
            stride(linear.shape[0], n_components),
            pointer_at(quadratic, 0),
            stride(quadratic.shape[0], n_components),
            pairwise,
            key_high,
            key_low,
            pointer_at(ids, 0),
            n_passes,
            first_drawn,
            end_drawn,
            pointer_at(squared_error, 0),
        )
        if sharing is not None:
            tile_indptr, rows, repeats = sharing
            first, n = tile_indptr[tile], tile_indptr[tile + 1] - tile_indptr[tile]
            draw_sharing_rows(
                problem, max_term, rates_or_none(absolute), pointer_at(rows, first), pointer_at(repeats, first), n,
                memory, pointer_at(words, 0),
            )  # fmt: skip
        if others is not None:
            tile_indptr, rows = others
            first, n = tile_indptr[tile], tile_indptr[tile + 1] - tile_indptr[tile]
            max_listed = offsets.size - 2 * WIDTH
            draw_rows(
                problem, max_term, rates_or_none(absolute), pointer_or_none(roots), pointer_at(rows, first), n,
                max_listed, memory, pointer_at(words, 0), pointer_at(offsets, 0),
            )  # fmt: skip


@inlined
def pointer_or_none(array):
    """Return a pointer to an array, or None if there is none."""
    if array is None:
        return None
    return pointer_at(array, 0)


@inlined
def rates_or_none(rates):
    """Return a pointer to coefficients by component or by entry and the distance from row to row, or None."""
    if rates is None:
        return None
    return pointer_at(rates, 0), stride(rates.shape[0], rates.shape[1])


@linked
def stride(n_rows, length):
    """Return the distance between rows of an array that may have one row for all."""
    return length if n_rows > 1 else 0
