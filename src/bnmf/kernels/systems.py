"""Systems of rows: Σ y yᵀ over the observed entries of a row, where y = (z, a) is a row of Z followed by the data.

A system is a symmetric matrix of side K + 1, padded to whole vectors. Systems are stored one after the other in a flat
array, and functions take the offset of the first number of a system.
"""

import numpy as np

from bnmf.kernels.compile import inlined, kernel
from bnmf.kernels.vectors import (
    WIDTH,
    add_product,
    broadcast,
    load,
    load_broadcast,
    load_scalar,
    pointer_at,
    prefetch,
    store,
    store_scalar,
    transpose,
)

# Rows of Z that are gathered at a time, so that they stay in the L1 cache.
ROWS_PER_CHUNK = 32
# Numbers in a factor that is assumed to fit the L1 and L2 caches; rows of larger factors are prefetched.
MAX_CACHED_NUMBERS = 2**15
# Fraction of a diagonal entry that subtraction must leave; below it, recompute directly to avoid cancellation.
MIN_REMAINING_FRACTION = 1e-6


@kernel
def set_system(
    row, row_lists_missing, n_components, Z, n_rows, indptr, indices, n_listed, values, entry_scale, row_scale,
    block_indptr, block_indices, member_indptr, members, blocks, chunk, systems, system, side,
):  # fmt: skip
    """Write the system of a row at offset `system`; the system of a complete row, without the data, is at offset 0.

    Only rows that list their missing positions list blocks.
    """
    size = side * side
    start, stop = indptr[row], indptr[row + 1]
    start_block, stop_block = block_indptr[row], block_indptr[row + 1]
    if row_lists_missing:
        copy_numbers(systems, 0, size, systems, system)
        for i in range(start_block, stop_block):
            subtract_block(blocks, block_indices[i] * size, systems, system, side)
    else:
        fill_numbers(systems, system, size, 0.0)
    exceeds_cache = n_rows * n_components > MAX_CACHED_NUMBERS
    sign = -1.0 if row_lists_missing else 1.0
    add_rows(
        sign, n_components, Z, exceeds_cache, indices, values, entry_scale, row_scale, start, stop, n_listed, chunk,
        systems, system, side,
    )  # fmt: skip
    if row_lists_missing and has_cancelled(n_components, systems, system, side):
        fill_numbers(systems, system, size, 0.0)
        add_unlisted_rows(
            n_components, Z, n_rows, indices, start, stop, block_indices, start_block, stop_block, member_indptr,
            members, chunk, systems, system, side,
        )  # fmt: skip
    mirror(systems, system, side)


@inlined
def subtract_block(blocks, block, systems, system, side):
    """Subtract Σ z zᵀ over a block of positions from a system, on and above the diagonal."""
    for k in range(side):
        for j in range(k // WIDTH * WIDTH, side, WIDTH):
            entry = k * side + j
            store(systems, system + entry, load(systems, system + entry) - load(blocks, block + entry))


@kernel
def sum_blocks(Z, member_indptr, members, blocks):
    """Write Σ z zᵀ over the positions of each block, as a system without data."""
    n_components = Z.shape[1]
    side = padded_length(n_components + 1)
    size = side * side
    chunk, no_data = aligned_zeros(ROWS_PER_CHUNK * side + WIDTH), np.zeros(max(members.size, Z.shape[0]))
    for block in range(member_indptr.size - 1):
        start, stop = member_indptr[block], member_indptr[block + 1]
        fill_numbers(blocks, block * size, size, 0.0)
        add_rows(
            1.0, n_components, pointer_at(Z, 0), False, pointer_at(members, 0), pointer_at(no_data, 0),
            pointer_at(no_data, 0), 0.0, start, stop, stop, pointer_at(chunk, 0), pointer_at(blocks, 0), block * size,
            side,
        )  # fmt: skip
    chunk[0] = no_data.size  # keeps the arrays alive until here: pointers do not


@inlined
def mirror(systems, system, side):
    """Copy the submatrices above the diagonal to those below it."""
    for k in range(0, side, WIDTH):
        for j in range(k + WIDTH, side, WIDTH):
            transpose(systems, system + k * side + j, system + j * side + k, side)


@inlined
def has_cancelled(n_components, systems, system, side):
    """Return whether too little remains of a diagonal entry of the complete row's system."""
    cancelled = False
    for k in range(n_components):
        diagonal = k * side + k
        cancelled |= systems[system + diagonal] < MIN_REMAINING_FRACTION * systems[diagonal]
    return cancelled


@kernel
def add_unlisted_rows(
    n_components, Z, n_rows, indices, start, stop, block_indices, start_block, stop_block, member_indptr, members,
    chunk, systems, system, side,
):  # fmt: skip
    """Add Σ z zᵀ over the positions that are *not* listed.

    The data part of the system stays zero: the sweep takes it from the product A Z, which does not cancel.
    """
    is_listed = np.zeros(n_rows, np.bool_)
    for i in range(start, stop):
        is_listed[indices[i]] = True
    for i in range(start_block, stop_block):
        block = block_indices[i]
        for j in range(member_indptr[block], member_indptr[block + 1]):
            is_listed[members[j]] = True
    positions, no_data = np.empty(n_rows, np.uint32), np.zeros(n_rows)
    n = 0
    for position in range(n_rows):
        if not is_listed[position]:
            positions[n] = position
            n += 1
    add_rows(
        1.0, n_components, Z, False, pointer_at(positions, 0), pointer_at(no_data, 0), pointer_at(no_data, 0), 0.0, 0,
        n, n, chunk, systems, system, side,
    )  # fmt: skip
    no_data[0] = positions[0]  # keeps the arrays alive until here: pointers do not


@kernel
def add_rows(
    sign, n_components, Z, exceeds_cache, indices, values, entry_scale, row_scale, start, stop, end, chunk, systems,
    system, side,
):  # fmt: skip
    """Add sign * Σ y yᵀ over the rows y = (z, a) listed from `start` to `stop` to a system.

    If Z exceeds the cache, prefetch the next listed rows, up to `end`. Beyond `stop` they belong to the list of the
    next row, which is likely to be needed soon.
    """
    for begin in range(start, stop, ROWS_PER_CHUNK):
        n = min(ROWS_PER_CHUNK, stop - begin)
        if exceeds_cache:
            for i in range(begin + n, min(begin + n + ROWS_PER_CHUNK, end)):
                next_row = np.int64(indices[i]) * n_components
                for j in range(next_row, next_row + n_components, WIDTH):
                    prefetch(Z, j)
        for i in range(n):
            position = np.int64(indices[begin + i])
            copy_numbers(Z, position * n_components, n_components, chunk, i * side)
            chunk[i * side + n_components] = values[begin + i] * (entry_scale[position] * row_scale)
        add_chunk(sign, chunk, n, systems, system, side)


@inlined
def add_chunk(sign, chunk, n, systems, system, side):
    """Add sign * Σ y yᵀ over the n rows y of a chunk to the submatrices on and above the diagonal of a system."""
    factor = broadcast(sign)
    for k in range(0, side, WIDTH):
        for j in range(k, side - WIDTH, 2 * WIDTH):
            add_submatrix_pair(factor, chunk, n, k, j, systems, system, side)
        if (side - k) // WIDTH % 2 == 1:
            add_last_submatrix(factor, chunk, n, k, side - WIDTH, systems, system, side)


@inlined
def add_submatrix_pair(factor, chunk, n, k, j, systems, system, side):
    """Add to two adjacent 8 x 8 submatrices.

    Sixteen vector registers hold the sums over all rows of the chunk, so each loaded number is used many times.
    """
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = broadcast(0.0)
    t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = broadcast(0.0)
    for i in range(0, n * side, side):
        s = load(chunk, i + j)
        t = load(chunk, i + j + WIDTH)
        x = load_broadcast(chunk, i + k)
        s0, t0 = add_product(s0, x, s), add_product(t0, x, t)
        x = load_broadcast(chunk, i + k + 1)
        s1, t1 = add_product(s1, x, s), add_product(t1, x, t)
        x = load_broadcast(chunk, i + k + 2)
        s2, t2 = add_product(s2, x, s), add_product(t2, x, t)
        x = load_broadcast(chunk, i + k + 3)
        s3, t3 = add_product(s3, x, s), add_product(t3, x, t)
        x = load_broadcast(chunk, i + k + 4)
        s4, t4 = add_product(s4, x, s), add_product(t4, x, t)
        x = load_broadcast(chunk, i + k + 5)
        s5, t5 = add_product(s5, x, s), add_product(t5, x, t)
        x = load_broadcast(chunk, i + k + 6)
        s6, t6 = add_product(s6, x, s), add_product(t6, x, t)
        x = load_broadcast(chunk, i + k + 7)
        s7, t7 = add_product(s7, x, s), add_product(t7, x, t)
    offset = system + k * side + j
    add_submatrix(factor, (s0, s1, s2, s3, s4, s5, s6, s7), systems, offset, side)
    add_submatrix(factor, (t0, t1, t2, t3, t4, t5, t6, t7), systems, offset + WIDTH, side)


@inlined
def add_last_submatrix(factor, chunk, n, k, j, systems, system, side):
    """Add to the last 8 x 8 submatrix of a line that has an odd number of them."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = broadcast(0.0)
    for i in range(0, n * side, side):
        s = load(chunk, i + j)
        s0 = add_product(s0, load_broadcast(chunk, i + k), s)
        s1 = add_product(s1, load_broadcast(chunk, i + k + 1), s)
        s2 = add_product(s2, load_broadcast(chunk, i + k + 2), s)
        s3 = add_product(s3, load_broadcast(chunk, i + k + 3), s)
        s4 = add_product(s4, load_broadcast(chunk, i + k + 4), s)
        s5 = add_product(s5, load_broadcast(chunk, i + k + 5), s)
        s6 = add_product(s6, load_broadcast(chunk, i + k + 6), s)
        s7 = add_product(s7, load_broadcast(chunk, i + k + 7), s)
    add_submatrix(factor, (s0, s1, s2, s3, s4, s5, s6, s7), systems, system + k * side + j, side)


@inlined
def add_submatrix(factor, rows, systems, offset, side):
    """Add factor * rows to the 8 x 8 submatrix of a system whose first number is at `offset`."""
    for row in rows:
        store(systems, offset, add_product(load(systems, offset), factor, row))
        offset += side


@inlined
def copy_numbers(source, offset, length, out, to):
    """Copy numbers in whole vectors; the last vector overlaps the one before."""
    if length < WIDTH:
        for i in range(length):
            store_scalar(out, to + i, load_scalar(source, offset + i))
    else:
        for i in range(0, length - WIDTH, WIDTH):
            store(out, to + i, load(source, offset + i))
        store(out, to + length - WIDTH, load(source, offset + length - WIDTH))


@inlined
def fill_numbers(out, offset, length, number):
    """Fill `length` numbers, a multiple of WIDTH, with one number."""
    for i in range(offset, offset + length, WIDTH):
        store(out, i, broadcast(number))


@kernel
def aligned_zeros(size):
    """Return zeros that start at the alignment of a vector, so that no vector straddles two cache lines."""
    array = np.zeros(size + WIDTH)
    skip = (-(array.ctypes.data // 8)) % WIDTH
    return array[skip : skip + size]


@kernel
def padded_length(length):
    """Return `length` rounded up to a multiple of WIDTH."""
    return (length + WIDTH - 1) // WIDTH * WIDTH


def system_size(n_components):
    """Return the number of floats in the padded system of K components."""
    return padded_length(n_components + 1) ** 2
