"""Sums over complete rows, by tiles that stay in registers: ZᵀZ of a factor, and A Z for a range of rows.

BLAS would be as fast for large matrices. For small ones its calls cost more than the sums, and it rounds differently
on every processor and with every number of threads.
"""

import numpy as np

from bnmf.kernels.compile import inlined, kernel, linked
from bnmf.kernels.processor import HALF, TILE, WIDTH
from bnmf.kernels.vectors import add_product, add_tile, broadcast, load, pointer_at, store

TILE_ROWS, TILE_COLUMNS, TILE_ODD_COLUMNS = TILE
# Columns of tiles of three, two and one vectors, and of those that end with half a vector.
THREE, TWO, ONE = 3 * WIDTH, 2 * WIDTH, WIDTH
TWO_AND_HALF, ONE_AND_HALF = TWO + HALF, ONE + HALF
# Rows of the factor that are summed at a time, so that they stay in the cache.
LINES_PER_CHUNK = 128


@kernel
def set_other(given, deviation, entry_scale, other):
    """Write a factor in the forms of `Other`, given as a plain tuple, padding included.

    Rows of the factor are divided by `deviation`, which is empty or has one number for each; `entry_scale` likewise.
    """
    Z, scaled, gram = other
    n_rows, n_components = given.shape
    side = Z.shape[1]
    for row in range(n_rows):
        inverse = 1.0 / deviation[row] if deviation.size else 1.0
        for k in range(n_components):
            Z[row, k] = given[row, k] * inverse
            if entry_scale.size:
                scaled[row, k] = Z[row, k] * entry_scale[row]
        for k in range(n_components, side):
            Z[row, k] = scaled[row, k] = 0.0
    for k in range(side):
        Z[n_rows, k] = scaled[n_rows, k] = 0.0
    system = pointer_at(gram, 0)
    for i in range(0, side * side, WIDTH):
        store(system, i, broadcast(0.0))
    for begin in range(0, n_rows, LINES_PER_CHUNK):
        lines = pointer_at(Z, begin * side)
        add_outer_products(1.0, lines, min(LINES_PER_CHUNK, n_rows - begin), system, side)
    for k in range(side):
        for j in range(k):
            system[k * side + j] = system[j * side + k]


@linked
def add_outer_products(factor, lines, n, system, side):
    """Add factor * Σ z zᵀ over n lines to the 8 x 8 submatrices on and above the diagonal of a matrix."""
    for k in range(0, side, TILE_ROWS):
        j = k // WIDTH * WIDTH
        x = pointer_at(lines, k)
        while j < side:
            y, to = pointer_at(lines, j), pointer_at(system, k * side + j)
            if TILE_COLUMNS >= THREE and side - j >= THREE:
                add_tile(x, side, 1, y, side, n, factor, to, side, TILE_ROWS, THREE)
                j += THREE
            elif TILE_COLUMNS >= TWO and side - j >= TWO:
                add_tile(x, side, 1, y, side, n, factor, to, side, TILE_ROWS, TWO)
                j += TWO
            else:
                add_tile(x, side, 1, y, side, n, factor, to, side, TILE_ROWS, ONE)
                j += ONE


@linked
def set_dense_product(dense, scaled, n_components, row_scale, start, stop, product):
    """Write rows `start` to `stop` of A Z, given Z with the scales of the columns and zeros after its components."""
    side, n_columns = scaled.shape[1], dense.shape[1]
    z = pointer_at(scaled, 0)
    width = (n_components + HALF - 1) // HALF * HALF
    for i in range(0, (stop - start) * side, WIDTH):
        store(product, i, broadcast(0.0))
    for begin in range(0, n_columns, LINES_PER_CHUNK):
        n = min(LINES_PER_CHUNK, n_columns - begin)
        row = start
        while row < stop:
            a, to = pointer_at(dense, row * n_columns + begin), pointer_at(product, (row - start) * side)
            if row + TILE_ROWS <= stop:
                add_row_products(a, n_columns, pointer_at(z, begin * side), n, to, side, width)
                row += TILE_ROWS
            else:
                for j in range(0, side, WIDTH):
                    y = pointer_at(z, begin * side + j)
                    add_tile(a, 1, 1, y, side, n, 1.0, pointer_at(to, j), side, 1, ONE)
                row += 1
    scale_rows(row_scale, start, stop, side, product)


@linked
def set_sparse_product(indptr, indices, values, scaled, row_scale, start, stop, product):
    """Write rows `start` to `stop` of A Z for a matrix in CSR form."""
    side, z = scaled.shape[1], pointer_at(scaled, 0)
    for i in range(0, (stop - start) * side, WIDTH):
        store(product, i, broadcast(0.0))
    for row in range(start, stop):
        to = pointer_at(product, (row - start) * side)
        for i in range(indptr[row], indptr[row + 1]):
            line, value = pointer_at(z, np.int64(indices[i]) * side), broadcast(values[i])
            for j in range(0, side, WIDTH):
                store(to, j, add_product(load(to, j), value, load(line, j)))
    scale_rows(row_scale, start, stop, side, product)


@inlined
def scale_rows(row_scale, start, stop, side, product):
    """Multiply the rows of a product by their scales."""
    for row in range(start, stop):
        scale = broadcast(row_scale[row if row_scale.size > 1 else 0])
        for j in range((row - start) * side, (row - start + 1) * side, WIDTH):
            store(product, j, load(product, j) * scale)


@inlined
def add_row_products(a, line_a, z, n, to, side, width):
    """Add the products of n numbers of TILE_ROWS rows with the first `width` numbers of n lines of Z.

    The width is a multiple of half a vector. A tile with the odd half comes first, because alone it would be too small
    to keep the processor busy.
    """
    j = 0
    while j < width:
        left, y, out = width - j, pointer_at(z, j), pointer_at(to, j)
        if left % WIDTH:
            if TILE_ODD_COLUMNS >= TWO_AND_HALF and left >= TWO_AND_HALF:
                add_tile(a, 1, line_a, y, side, n, 1.0, out, side, TILE_ROWS, TWO_AND_HALF)
                j += TWO_AND_HALF
            elif TILE_ODD_COLUMNS >= ONE_AND_HALF and left >= ONE_AND_HALF:
                add_tile(a, 1, line_a, y, side, n, 1.0, out, side, TILE_ROWS, ONE_AND_HALF)
                j += ONE_AND_HALF
            else:
                add_tile(a, 1, line_a, y, side, n, 1.0, out, side, TILE_ROWS, HALF)
                j += HALF
        elif TILE_COLUMNS >= THREE and left >= THREE:
            add_tile(a, 1, line_a, y, side, n, 1.0, out, side, TILE_ROWS, THREE)
            j += THREE
        elif TILE_COLUMNS >= TWO and left >= TWO:
            add_tile(a, 1, line_a, y, side, n, 1.0, out, side, TILE_ROWS, TWO)
            j += TWO
        else:
            add_tile(a, 1, line_a, y, side, n, 1.0, out, side, TILE_ROWS, ONE)
            j += ONE
