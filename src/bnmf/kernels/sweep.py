"""The half-sweep: draw every entry of W, row by row, given Z. For Z it is called with the roles exchanged.

A row sees the data only through sums over its *observed* entries: Σ z zᵀ, Σ z a and Σ a². They are one symmetric
matrix, the *system* of the row: Σ y yᵀ where y = (z, a) has the data as one more column. Each row of the data lists
either its observed or its missing positions, whichever are fewer:

- observed ones listed:  the system is the sum over the list;
- missing ones listed:   it is that of the full row with zeros in the holes, from the products A Z and ZᵀZ that BLAS
  made, less the sum over the list.

So a row costs O(listed K² / 2 + K²) whatever its length, and each listed row of Z is read once. Real holes come in
blocks (a drug that was not tried on a batch of cell lines), so rows with the same holes share their system.

Rows are independent given Z, so eight are drawn side by side, one a lane of a vector: within a row every entry waits
for the one before, and most of that time would pass unused. Rows that share a system are moved on together as well.
"""

from typing import Any, NamedTuple

import numpy as np

from bnmf.kernels.compile import inlined, kernel
from bnmf.kernels.lanes import draw_lanes, first_lanes, set_stream, stream_at, streams_in
from bnmf.kernels.random import stream_of
from bnmf.kernels.systems import CHUNK, aligned, fill, padded, set_system
from bnmf.kernels.truncated_normal import draw_positive, draw_two_piece
from bnmf.kernels.vectors import (
    WIDTH,
    add_product,
    load,
    load_strided,
    pointer_at,
    repeated,
    root,
    select,
    splat,
    store,
)

# From so many rows with the same holes on, they are drawn apart from others, for what they share.
ALIKE = 3
NO_SYSTEM = -1
# Numbers in the systems of rows that are drawn together: they are to stay in the nearer caches.
CACHE = 2**16


class Lanes(NamedTuple):
    """Pointers to what the draws of eight rows need.

    Most hold a vector for every component, with one entry of each row: `w`, the numbers to draw; `zz`, Σ z²;
    `linear` and `quadratic`, the prior; `p`, `inverse` and `scale`, the precision, its inverse and the root of that.
    `errors`, `sums` and `changes` are one vector: the squared error and the sum of each row, and room for a change.

    With y = (z, a) and v = (w, -1), the residuals are r = -v y, and `c` is Σ y r: the data's part less system v. A
    change of entry k moves c by line k of the system. The c of rows with the same holes are kept like the rest, and
    those of other rows one row after the other, as `v` is.
    """

    v: Any
    c: Any
    w: Any
    zz: Any
    linear: Any
    quadratic: Any
    p: Any
    inverse: Any
    scale: Any
    errors: Any
    sums: Any
    changes: Any
    words: Any
    system_of: Any


@kernel
def sweep_rows(
    W, Z, product, gram, blocks, indptr, indices, values, block_indptr, block_indices, member_indptr, members,
    lists_missing, order, repeats, ids, linear, quadratic, coupling, slope, published, precision, key_high, key_low,
    start, stop, squares, squared_error,
):  # fmt: skip
    """Draw rows `start` to `stop` of W in place, and write the squared error that each is left with.

    Parameters
    ----------
    W, Z : (rows, K) and (columns, K)
        The factor to draw and the one that is given.
    product, gram : (stop - start, K) and (K, K)
        A Z for these rows, and ZᵀZ. Read only for rows that list their missing entries.
    blocks : (number of blocks * side * side,)
        Σ z zᵀ over the positions of each block, from `sum_blocks`.
    indptr, indices, values, block_indptr, block_indices, member_indptr, members
        Positions and blocks that each row lists, and the data there; see `holes.Lists`.
    lists_missing : (rows,) of bool
        Whether the missing positions of a row are listed, and not the observed ones.
    order, repeats : (rows,)
        In which order to draw the rows `start` to `stop`, and whether a row has the same holes as the one before it.
    ids : (rows,) of uint64
        Which random stream each row reads.
    linear, quadratic : (1 or rows, K)
        Coefficients of the prior, with the numbers `coupling` and `slope`.
    published : bool
        Use the rule that the paper prints for L∞ in place of the exact conditional.
    precision : float
        1 / σ².
    squares, squared_error : (rows,)
        Σ a² over the observed entries of each row (in), and the squared error there (out).
    """
    n_components, n_columns, n_listed = Z.shape[1], Z.shape[0], indices.size
    side = padded(n_components + 1)
    size = side * side
    room, words, system_of = aligned(room_for(side)), np.zeros(4 * WIDTH, np.uint64), np.zeros(WIDTH, np.int64)
    # The system of a full row, but for its data, those of the rows at hand, and the one before them, which they share.
    systems = pointer_at(room, 0)
    for k in range(n_components):
        for j in range(n_components):
            systems[k * side + j] = gram[k, j]
    chunk = pointer_at(systems, (WIDTH + 2) * size)
    lanes = lanes_at(pointer_at(chunk, CHUNK * side + WIDTH), side, pointer_at(words, 0), pointer_at(system_of, 0))
    W, Z, product, blocks = pointer_at(W, 0), pointer_at(Z, 0), pointer_at(product, 0), pointer_at(blocks, 0)
    indptr, indices, values = pointer_at(indptr, 0), pointer_at(indices, 0), pointer_at(values, 0)
    block_indptr, block_indices = pointer_at(block_indptr, 0), pointer_at(block_indices, 0)
    member_indptr, members = pointer_at(member_indptr, 0), pointer_at(members, 0)
    linear_by_row, quadratic_by_row = linear.shape[0] > 1, quadratic.shape[0] > 1
    one_rate = not (linear_by_row or quadratic_by_row)
    linear, quadratic = pointer_at(linear, 0), pointer_at(quadratic, 0)
    for k in range(n_components):
        store(lanes.linear, k * WIDTH, repeated(linear, k))
        store(lanes.quadratic, k * WIDTH, repeated(quadratic, k))
    most_lanes = max(1, min(WIDTH, CACHE // size))

    latest = 0
    scaled_for = NO_SYSTEM  # which system the scales of all lanes are for
    begin = start
    while begin < stop:
        n_lanes = 1
        while n_lanes < WIDTH and begin + n_lanes < stop and repeats[begin + n_lanes]:
            n_lanes += 1
        alike = n_lanes >= ALIKE
        if not alike:
            n_lanes = min(most_lanes, stop - begin)

        for lane in range(n_lanes):
            row = order[begin + lane]
            by_missing = lists_missing[row]
            lists_none = indptr[row] == indptr[row + 1] and block_indptr[row] == block_indptr[row + 1]
            system = latest * size
            if by_missing and lists_none:
                system = 0
            elif not repeats[begin + lane]:
                latest = latest % (WIDTH + 1) + 1
                system = latest * size
                scaled_for = NO_SYSTEM
                set_system(
                    row, by_missing, n_components, Z, n_columns, indptr, indices, n_listed, values, block_indptr,
                    block_indices, member_indptr, members, blocks, chunk, systems, system, side,
                )  # fmt: skip
            lanes.system_of[lane] = system
            set_stream(lanes.words, lane, stream_of(key_high, key_low, ids[row]))
            set_row(W, row * n_components, n_components, lanes, lane, side)
            if linear_by_row:
                to_lane(linear, row * n_components, 1, n_components, lanes.linear, lane)
            if quadratic_by_row:
                to_lane(quadratic, row * n_components, 1, n_components, lanes.quadratic, lane)
            data = (row - start) * n_components
            if alike:
                to_lane(product, data, 1, n_components, lanes.c, lane)
                lanes.errors[lane] = squares[row]
            else:
                to_lane(systems, system, side + 1, n_components, lanes.zz, lane)
                set_apart(by_missing, product, data, squares[row], n_components, systems, system, side, lanes, lane)
        if alike:
            set_together(systems, lanes.system_of[0], side, n_components, lanes)
        if not (alike and one_rate and scaled_for == lanes.system_of[0]):
            if alike:
                for k in range(n_components):
                    store(lanes.zz, k * WIDTH, repeated(systems, lanes.system_of[0] + k * side + k))
            set_scales(n_components, precision, lanes)
            scaled_for = lanes.system_of[0] if alike and one_rate else NO_SYSTEM

        draw_entries(alike, n_lanes, n_components, precision, coupling, slope, published, systems, side, lanes)
        for lane in range(n_lanes):
            row = order[begin + lane]
            squared_error[row] = lanes.errors[lane]
            for k in range(n_components):
                W[row * n_components + k] = lanes.w[k * WIDTH + lane]
        begin += n_lanes
    room[0] = words[0] + system_of[0]  # used last, because the pointers do not keep them


@inlined
def room_for(side):
    """Return how many numbers the systems, the chunk and the lanes take."""
    return (WIDTH + 2) * side * side + CHUNK * side + WIDTH + 9 * WIDTH * side + 3 * WIDTH


@inlined
def lanes_at(room, side, words, system_of):
    """Return lanes in a room, with the words of their streams and where their systems are."""
    size = WIDTH * side
    return Lanes(
        pointer_at(room, 0),
        pointer_at(room, size),
        pointer_at(room, 2 * size),
        pointer_at(room, 3 * size),
        pointer_at(room, 4 * size),
        pointer_at(room, 5 * size),
        pointer_at(room, 6 * size),
        pointer_at(room, 7 * size),
        pointer_at(room, 8 * size),
        pointer_at(room, 9 * size),
        pointer_at(room, 9 * size + WIDTH),
        pointer_at(room, 9 * size + 2 * WIDTH),
        words,
        system_of,
    )


@inlined
def to_lane(source, start, stride, length, lanes, lane):
    """Copy `length` numbers of a flat array to one lane."""
    for k in range(length):
        lanes[k * WIDTH + lane] = source[start + k * stride]


@inlined
def set_row(W, start, n_components, lanes, lane, side):
    """Write a row of W to its lane, and its sum."""
    v = pointer_at(lanes.v, lane * side)
    total = 0.0
    for k in range(n_components):
        value = W[start + k]
        total += value
        v[k] = value
        lanes.w[k * WIDTH + lane] = value
    v[n_components] = -1.0
    lanes.sums[lane] = total


@inlined
def set_apart(by_missing, product, data, square, n_components, systems, system, side, lanes, lane):
    """Write c and the squared error of a row with holes of its own."""
    c, v = pointer_at(lanes.c, lane * side), pointer_at(lanes.v, lane * side)
    fill(c, 0, side, 0.0)
    if by_missing:  # the system does not hold the data
        for k in range(n_components):
            c[k] = product[data + k]
            square -= v[k] * product[data + k]
        c[n_components] = square
    for j in range(0, side, WIDTH):
        even = odd = splat(0.0)  # two sums, because each addition waits for the one before
        for k in range(0, side, 2):
            line = system + k * side + j
            even = add_product(even, repeated(v, k), load(systems, line))
            odd = add_product(odd, repeated(v, k + 1), load(systems, line + side))
        store(c, j, load(c, j) - even - odd)
    error = c[n_components]
    for k in range(n_components):
        error -= v[k] * c[k]
    lanes.errors[lane] = error


@inlined
def set_together(systems, system, side, n_components, lanes):
    """Write c and the squared errors of rows that share a system, given their data and Σ a² in the same places.

    The sums are those of `set_apart`, term by term, so that a row is drawn alike alone and among others.
    """
    w, c = lanes.w, lanes.c
    error = load(lanes.errors, 0)
    for j in range(n_components):
        even = odd = splat(0.0)
        for k in range(0, n_components - 1, 2):
            line = system + k * side + j
            even = add_product(even, load(w, k * WIDTH), repeated(systems, line))
            odd = add_product(odd, load(w, (k + 1) * WIDTH), repeated(systems, line + side))
        if n_components % 2 == 1:
            k = n_components - 1
            even = add_product(even, load(w, k * WIDTH), repeated(systems, system + k * side + j))
        data = load(c, j * WIDTH)
        rest = data - even - odd
        error = error - load(w, j * WIDTH) * (data + rest)
        store(c, j * WIDTH, rest)
    store(lanes.errors, 0, error)


@inlined
def set_scales(n_components, precision, lanes):
    """Write the precision of every entry, its inverse and the root of that; Σ z² is never below zero."""
    for at in range(0, n_components * WIDTH, WIDTH):
        zz = load(lanes.zz, at)
        zz = select(zz > splat(0.0), zz, splat(0.0))
        p = zz * splat(precision) + load(lanes.quadratic, at)
        inverse = splat(1.0) / p
        store(lanes.zz, at, zz)
        store(lanes.p, at, p)
        store(lanes.inverse, at, inverse)
        store(lanes.scale, at, root(inverse))


@inlined
def draw_entries(alike, n_lanes, n_components, precision, coupling, slope, published, systems, side, lanes):
    """Draw the entries of all rows in turn, and keep c and the squared errors up to date."""
    everyone, streams = first_lanes(n_lanes), streams_in(lanes.words)
    error, total = load(lanes.errors, 0), load(lanes.sums, 0)
    for k in range(n_components):
        at = k * WIDTH
        zr = load(lanes.c, at) if alike else load_strided(lanes.c, k, side)
        old, zz = load(lanes.w, at), load(lanes.zz, at)
        b = (zr + zz * old) * splat(precision) - load(lanes.linear, at)
        if coupling != 0.0:
            b = b - splat(coupling) * (total - old)
        if slope == 0.0:
            p, inverse, scale = load(lanes.p, at), load(lanes.inverse, at), load(lanes.scale, at)
            new, streams = draw_lanes(b, p, inverse, scale, everyone, streams)
        else:
            store(lanes.changes, 0, b)
            draw_cornered(lanes.changes, k, n_lanes, slope, published, side, n_components, lanes)
            new = load_strided(lanes.v, k, side)
        store(lanes.w, at, new)
        change = new - old
        total = total + change
        error = error - change * (zr + zr - zz * change)
        if alike:
            move_together(splat(0.0) - change, k, n_components, systems, lanes.system_of[0], side, lanes.c)
        else:
            store(lanes.changes, 0, splat(0.0) - change)
            for lane in range(n_lanes):
                factor = repeated(lanes.changes, lane)
                move_one(factor, k, systems, lanes.system_of[lane], side, lanes.c, lane * side)
    store(lanes.errors, 0, error)


@inlined
def draw_cornered(b, k, n_lanes, slope, published, side, n_components, lanes):
    """Draw entry k of every row under a prior with a slope, whose corner is the largest other entry of the row."""
    for lane in range(n_lanes):
        v = pointer_at(lanes.v, lane * side)
        corner = largest_other(v, n_components, k)
        p, stream = lanes.p[k * WIDTH + lane], stream_at(lanes.words, lane)
        if not published:
            v[k], stream = draw_two_piece(b[lane], p, corner, slope, stream)
        else:
            v[k], stream = draw_positive(b[lane] - slope if v[k] >= corner else b[lane], p, stream)
        set_stream(lanes.words, lane, stream)


@inlined
def move_together(factor, k, n_components, systems, system, side, c):
    """Add factor * line k of the system that all rows share to what is left of their c."""
    for j in range(k + 1, n_components):
        at = j * WIDTH
        store(c, at, add_product(load(c, at), factor, repeated(systems, system + k * side + j)))


@inlined
def move_one(factor, k, systems, system, side, c, at):
    """Add factor * line k of the system of one row to what is left of its c."""
    line = system + k * side
    for j in range(k // WIDTH * WIDTH, side, WIDTH):
        store(c, at + j, add_product(load(c, at + j), factor, load(systems, line + j)))


@inlined
def largest_other(w, length, k):
    """Return the largest of the first `length` entries of w but the k-th, and 0 if there is no other."""
    largest = 0.0
    for j in range(length):
        if j != k:
            largest = max(largest, w[j])
    return largest


@inlined
def dot(x, y):
    """Return Σ x y."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@kernel
def squared_residuals(W, Z, dense, indptr, indices, values, lists_missing, start, stop):
    """Return the squared error of rows `start` to `stop` from the residuals themselves."""
    total = 0.0
    for row in range(start, stop):
        if lists_missing[row]:
            i, end = indptr[row], indptr[row + 1]
            for column in range(dense.shape[1]):
                if i < end and indices[i] == column:
                    i += 1
                else:
                    total += (dense[row, column] - dot(W[row], Z[column])) ** 2
        else:
            for i in range(indptr[row], indptr[row + 1]):
                total += (values[i] - dot(W[row], Z[indices[i]])) ** 2
    return total
