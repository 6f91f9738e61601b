"""The systems of rows: Σ y yᵀ over what a row observes, y = (z, a) being a row of Z with the data beside it.

A system is a square of `side` numbers, padded to whole vectors, somewhere in an array of many.
"""

import numpy as np

from bnmf.kernels.compile import inlined, kernel
from bnmf.kernels.vectors import (
    WIDTH,
    add_product,
    load,
    load_one,
    pointer_at,
    prefetch,
    repeated,
    splat,
    store,
    store_one,
    transpose,
)

# Listed rows of Z that are gathered at a time: few enough to stay in the nearest cache.
CHUNK = 32
# A factor of more numbers than this is not in the nearer caches: its rows are asked for ahead of their use.
FAR = 2**15
# A component that lives in the holes of a row but for this part would cancel: such rows are summed the other way.
CANCELLED = 1e-6


@kernel
def set_system(
    row, by_missing, n_components, Z, n_rows, indptr, indices, n_listed, values, block_indptr, block_indices,
    member_indptr, members, blocks, chunk, systems, system, side,
):  # fmt: skip
    """Write the system of a row that lists positions and, if its missing ones, blocks; system 0 is a full row's."""
    size = side * side
    first, last = indptr[row], indptr[row + 1]
    first_block, last_block = block_indptr[row], block_indptr[row + 1]
    if by_missing:
        copy(systems, 0, size, systems, system)
        for i in range(first_block, last_block):
            subtract_block(blocks, block_indices[i] * size, systems, system, side)
    else:
        fill(systems, system, size, 0.0)
    is_far = n_rows * n_components > FAR
    sign = -1.0 if by_missing else 1.0
    add_rows(sign, n_components, Z, is_far, indices, values, first, last, n_listed, chunk, systems, system, side)
    if by_missing and is_cancelled(n_components, systems, system, side):
        fill(systems, system, size, 0.0)
        add_complement(
            n_components, Z, n_rows, indices, first, last, block_indices, first_block, last_block, member_indptr,
            members, chunk, systems, system, side,
        )  # fmt: skip
    mirror(systems, system, side)


@inlined
def subtract_block(blocks, block, systems, system, side):
    """Take Σ z zᵀ over a block of positions from a system, on and above the diagonal."""
    for k in range(side):
        for j in range(k // WIDTH * WIDTH, side, WIDTH):
            at = k * side + j
            store(systems, system + at, load(systems, system + at) - load(blocks, block + at))


@kernel
def sum_blocks(Z, member_indptr, members, blocks):
    """Write Σ z zᵀ over the positions of each block."""
    n_components = Z.shape[1]
    side = padded(n_components + 1)
    size = side * side
    room, no_data = aligned(CHUNK * side + WIDTH), np.zeros(members.size)
    for block in range(member_indptr.size - 1):
        first, last = member_indptr[block], member_indptr[block + 1]
        fill(blocks, block * size, size, 0.0)
        add_rows(
            1.0, n_components, pointer_at(Z, 0), False, pointer_at(members, 0), pointer_at(no_data, 0), first, last,
            last, pointer_at(room, 0), pointer_at(blocks, 0), block * size, side,
        )  # fmt: skip
    room[0] = no_data.size  # used last, because the pointers do not keep them


@inlined
def mirror(systems, system, side):
    """Copy the blocks above the diagonal to those below it."""
    for k in range(0, side, WIDTH):
        for j in range(k + WIDTH, side, WIDTH):
            transpose(systems, system + k * side + j, system + j * side + k, side)


@inlined
def is_cancelled(n_components, systems, system, side):
    """Tell whether next to nothing is left of a diagonal entry of the full row."""
    cancelled = False
    for k in range(n_components):
        diagonal = k * side + k
        cancelled |= systems[system + diagonal] < CANCELLED * systems[diagonal]
    return cancelled


@kernel
def add_complement(
    n_components, Z, n_rows, indices, first, last, block_indices, first_block, last_block, member_indptr, members,
    chunk, systems, system, side,
):  # fmt: skip
    """Add Σ z zᵀ over the positions that are *not* listed; the data come from the product, which does not cancel."""
    is_listed = np.zeros(n_rows, np.bool_)
    for i in range(first, last):
        is_listed[indices[i]] = True
    for i in range(first_block, last_block):
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
        1.0, n_components, Z, False, pointer_at(positions, 0), pointer_at(no_data, 0), 0, n, n, chunk, systems,
        system, side,
    )  # fmt: skip
    no_data[0] = positions[0]  # used last, because the pointers do not keep them


@kernel
def add_rows(sign, n_components, Z, is_far, indices, values, first, last, end, chunk, systems, system, side):
    """Add sign * Σ y yᵀ over the rows y = (z, a) listed from `first` to `last` to a system.

    Of a Z that is far, the rows listed next, up to `end`, are asked for ahead: the list goes on with that of the next
    row, so they are used whatever ends here.
    """
    for begin in range(first, last, CHUNK):
        n = min(CHUNK, last - begin)
        if is_far:
            for i in range(begin + n, min(begin + n + CHUNK, end)):
                ahead = np.int64(indices[i]) * n_components
                for j in range(ahead, ahead + n_components, WIDTH):
                    prefetch(Z, j)
        for i in range(n):
            copy(Z, np.int64(indices[begin + i]) * n_components, n_components, chunk, i * side)
            chunk[i * side + n_components] = values[begin + i]
        add_chunk(sign, chunk, n, systems, system, side)


@inlined
def add_chunk(sign, chunk, n, systems, system, side):
    """Add sign * Σ y yᵀ over the n rows y of a chunk to the blocks on and above the diagonal of a system."""
    factor = splat(sign)
    for k in range(0, side, WIDTH):
        for j in range(k, side - WIDTH, 2 * WIDTH):
            add_two_blocks(factor, chunk, n, k, j, systems, system, side)
        if (side - k) // WIDTH % 2 == 1:
            add_one_block(factor, chunk, n, k, side - WIDTH, systems, system, side)


@inlined
def add_two_blocks(factor, chunk, n, k, j, systems, system, side):
    """Add to two blocks side by side: sixteen vectors hold them while the rows go by, so each number serves many."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = splat(0.0)
    t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = splat(0.0)
    for i in range(0, n * side, side):
        s = load(chunk, i + j)
        t = load(chunk, i + j + WIDTH)
        x = repeated(chunk, i + k)
        s0, t0 = add_product(s0, x, s), add_product(t0, x, t)
        x = repeated(chunk, i + k + 1)
        s1, t1 = add_product(s1, x, s), add_product(t1, x, t)
        x = repeated(chunk, i + k + 2)
        s2, t2 = add_product(s2, x, s), add_product(t2, x, t)
        x = repeated(chunk, i + k + 3)
        s3, t3 = add_product(s3, x, s), add_product(t3, x, t)
        x = repeated(chunk, i + k + 4)
        s4, t4 = add_product(s4, x, s), add_product(t4, x, t)
        x = repeated(chunk, i + k + 5)
        s5, t5 = add_product(s5, x, s), add_product(t5, x, t)
        x = repeated(chunk, i + k + 6)
        s6, t6 = add_product(s6, x, s), add_product(t6, x, t)
        x = repeated(chunk, i + k + 7)
        s7, t7 = add_product(s7, x, s), add_product(t7, x, t)
    at = system + k * side + j
    add_block(factor, (s0, s1, s2, s3, s4, s5, s6, s7), systems, at, side)
    add_block(factor, (t0, t1, t2, t3, t4, t5, t6, t7), systems, at + WIDTH, side)


@inlined
def add_one_block(factor, chunk, n, k, j, systems, system, side):
    """Add to the last block of a line, which has none beside it."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = splat(0.0)
    for i in range(0, n * side, side):
        s = load(chunk, i + j)
        s0 = add_product(s0, repeated(chunk, i + k), s)
        s1 = add_product(s1, repeated(chunk, i + k + 1), s)
        s2 = add_product(s2, repeated(chunk, i + k + 2), s)
        s3 = add_product(s3, repeated(chunk, i + k + 3), s)
        s4 = add_product(s4, repeated(chunk, i + k + 4), s)
        s5 = add_product(s5, repeated(chunk, i + k + 5), s)
        s6 = add_product(s6, repeated(chunk, i + k + 6), s)
        s7 = add_product(s7, repeated(chunk, i + k + 7), s)
    add_block(factor, (s0, s1, s2, s3, s4, s5, s6, s7), systems, system + k * side + j, side)


@inlined
def add_block(factor, block, systems, at, side):
    """Add factor * block to the eight by eight entries of a system from `at` on."""
    for vector in block:
        store(systems, at, add_product(load(systems, at), factor, vector))
        at += side


@inlined
def copy(source, at, length, out, to):
    """Copy numbers in whole vectors; the last one overlaps the one before."""
    if length < WIDTH:
        for i in range(length):
            store_one(out, to + i, load_one(source, at + i))
    else:
        for i in range(0, length - WIDTH, WIDTH):
            store(out, to + i, load(source, at + i))
        store(out, to + length - WIDTH, load(source, at + length - WIDTH))


@inlined
def fill(out, at, length, number):
    """Fill whole vectors with a number."""
    for i in range(at, at + length, WIDTH):
        store(out, i, splat(number))


@kernel
def aligned(size):
    """Return an array of zeros that starts where a vector can be read at once."""
    array = np.zeros(size + WIDTH)
    skip = (-(array.ctypes.data // 8)) % WIDTH
    return array[skip : skip + size]


@kernel
def padded(length):
    """Return `length` rounded up to whole vectors."""
    return (length + WIDTH - 1) // WIDTH * WIDTH


def system_size(n_components):
    """Return how many numbers a system of K components takes."""
    return padded(n_components + 1) ** 2
