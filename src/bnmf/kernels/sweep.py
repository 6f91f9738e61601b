"""The half-sweep: draw every entry of W, row by row, given Z. For Z it is called with the roles exchanged.

A row sees the data only through sums over its *observed* entries: Σ z zᵀ, Σ z a and Σ a². They are one symmetric
matrix, the *system* of the row: Σ y yᵀ where y = (z, a) has the data as one more column. Each row of the data lists
either its observed or its missing positions, whichever are fewer:

- observed ones listed:  the system is the sum over the list;
- missing ones listed:   it is that of the full row with zeros in the holes, from the products A Z and ZᵀZ that BLAS
  made, less the sum over the list.

So a row costs O(listed K² / 2 + K²) whatever its length, and each listed row of Z is read once. Real holes come in
blocks (a drug that was not tried on a batch of cell lines), so rows with the same holes are drawn one after the other,
and share their sums.
"""

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
    load_one,
    load_strided,
    pointer_at,
    repeated,
    root,
    select,
    splat,
    store,
    store_one,
)

# From so many rows with the same holes on, they are drawn apart from others, for what they share.
ALIKE = 3
NO_SYSTEM = -1
# Numbers in the systems of rows that are drawn together: they are to stay in the nearer caches.
CACHE = 2**16


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
    size, lanes = side * side, WIDTH * side
    scratch = aligned((WIDTH + 2) * size + CHUNK * side + WIDTH + 9 * lanes + 3 * WIDTH)
    words_kept = np.zeros(4 * WIDTH, np.uint64)
    words = pointer_at(words_kept, 0)
    # The system of a full row, but for its data, those of the rows at hand, and the one before them, which they share.
    systems = pointer_at(scratch, 0)
    system_of = np.zeros(WIDTH, np.int64)
    for k in range(n_components):
        for j in range(n_components):
            systems[k * side + j] = gram[k, j]
    v = pointer_at(systems, (WIDTH + 2) * size)
    # c, and what else the draws need, entry by entry: a vector holds one entry of each row.
    c, w, zz = pointer_at(v, lanes), pointer_at(v, 2 * lanes), pointer_at(v, 3 * lanes)
    lin, quad = pointer_at(v, 4 * lanes), pointer_at(v, 5 * lanes)
    p, inverse, scale = pointer_at(v, 6 * lanes), pointer_at(v, 7 * lanes), pointer_at(v, 8 * lanes)
    errors = pointer_at(v, 9 * lanes)
    sums, changes, chunk = pointer_at(errors, WIDTH), pointer_at(errors, 2 * WIDTH), pointer_at(errors, 3 * WIDTH)
    W, Z, product, blocks = pointer_at(W, 0), pointer_at(Z, 0), pointer_at(product, 0), pointer_at(blocks, 0)
    indptr, indices, values = pointer_at(indptr, 0), pointer_at(indices, 0), pointer_at(values, 0)
    block_indptr, block_indices = pointer_at(block_indptr, 0), pointer_at(block_indices, 0)
    member_indptr, members = pointer_at(member_indptr, 0), pointer_at(members, 0)
    linear_by_row, quadratic_by_row = linear.shape[0] > 1, quadratic.shape[0] > 1
    linear, quadratic = pointer_at(linear, 0), pointer_at(quadratic, 0)
    for k in range(n_components):
        store(lin, k * WIDTH, repeated(linear, k))
        store(quad, k * WIDTH, repeated(quadratic, k))
    one_rate = not (linear_by_row or quadratic_by_row)
    most_lanes = max(1, min(WIDTH, CACHE // size))

    latest = 0
    scaled_for = NO_SYSTEM  # which system `zz` to `scale` hold in every lane
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
            set_stream(words, lane, stream_of(key_high, key_low, ids[row]))
            by_missing = lists_missing[row]
            lists_none = indptr[row] == indptr[row + 1] and block_indptr[row] == block_indptr[row + 1]
            if by_missing and lists_none:
                system_of[lane] = 0
            else:
                if not repeats[begin + lane]:
                    latest = latest % (WIDTH + 1) + 1
                    scaled_for = NO_SYSTEM
                    set_system(
                        row, by_missing, n_components, Z, n_columns, indptr, indices, n_listed, values, block_indptr,
                        block_indices, member_indptr, members, blocks, chunk, systems, latest * size, side,
                    )  # fmt: skip
                system_of[lane] = latest * size
            at, system = lane * side, system_of[lane]
            sum_w = 0.0
            for k in range(n_components):
                value = W[row * n_components + k]
                sum_w += value
                v[at + k] = value
                w[k * WIDTH + lane] = value
            sums[lane] = sum_w
            if linear_by_row:
                to_lane(linear, row * n_components, 1, n_components, lin, lane)
            if quadratic_by_row:
                to_lane(quadratic, row * n_components, 1, n_components, quad, lane)
            if alike:
                errors[lane] = squares[row]
                to_lane(product, (row - start) * n_components, 1, n_components, c, lane)
            else:
                to_lane(systems, system, side + 1, n_components, zz, lane)
                fill(c, at, side, 0.0)
                if by_missing:  # the system does not hold the data
                    set_data(n_components, W, row, product, row - start, squares[row], c, at)
                v[at + n_components] = -1.0
                subtract_product(systems, system, side, v, c, at)
                error = c[at + n_components]
                for k in range(n_components):
                    error -= v[at + k] * c[at + k]
                errors[lane] = error
        if alike:
            subtract_products(systems, system_of[0], side, n_components, w, c, errors)
        if not (alike and one_rate and scaled_for == system_of[0]):
            if alike:
                for k in range(n_components):
                    store(zz, k * WIDTH, repeated(systems, system_of[0] + k * side + k))
            set_scales(n_components, precision, zz, quad, p, inverse, scale)
            scaled_for = system_of[0] if alike and one_rate else NO_SYSTEM

        everyone, streams = first_lanes(n_lanes), streams_in(words)
        error_lanes, sum_lanes = load(errors, 0), load(sums, 0)
        for k in range(n_components):
            of_lanes = k * WIDTH
            zr = load(c, of_lanes) if alike else load_strided(c, k, side)
            old = load(w, of_lanes)
            b = (zr + load(zz, of_lanes) * old) * splat(precision) - load(lin, of_lanes)
            if coupling != 0.0:
                b = b - splat(coupling) * (sum_lanes - old)
            if slope == 0.0:
                new, streams = draw_lanes(
                    b, load(p, of_lanes), load(inverse, of_lanes), load(scale, of_lanes), everyone, streams
                )
            else:
                store(changes, 0, b)
                draw_cornered(changes, p, k, n_lanes, slope, published, v, side, n_components, words)
                new = load_strided(v, k, side)
            store(w, of_lanes, new)
            change = new - old
            sum_lanes = sum_lanes + change
            error_lanes = error_lanes - change * (zr + zr - load(zz, of_lanes) * change)
            if alike:
                move_together(splat(0.0) - change, k, n_components, systems, system_of[0], side, c)
            else:
                store(changes, 0, splat(0.0) - change)
                for lane in range(n_lanes):
                    move_one(repeated(changes, lane), k, systems, system_of[lane], side, c, lane * side)
        store(errors, 0, error_lanes)
        for lane in range(n_lanes):
            row = order[begin + lane]
            squared_error[row] = errors[lane]
            for k in range(n_components):
                W[row * n_components + k] = w[k * WIDTH + lane]
        begin += n_lanes
    scratch[0] = words_kept[0]  # used last, because the pointers do not keep them


@inlined
def to_lane(source, start, stride, length, lanes, lane):
    """Copy `length` numbers of a flat array to one lane."""
    for k in range(length):
        store_one(lanes, k * WIDTH + lane, load_one(source, start + k * stride))


@inlined
def set_scales(n_components, precision, zz, quad, p, inverse, scale):
    """Write the precision of every entry, its inverse and the root of that; Σ z² is never below zero."""
    for at in range(0, n_components * WIDTH, WIDTH):
        square = load(zz, at)
        square = select(square > splat(0.0), square, splat(0.0))
        precisions = square * splat(precision) + load(quad, at)
        inverses = splat(1.0) / precisions
        store(zz, at, square)
        store(p, at, precisions)
        store(inverse, at, inverses)
        store(scale, at, root(inverses))


@inlined
def draw_cornered(b, p, k, n_lanes, slope, published, v, side, n_components, words):
    """Draw entry k of every row under a prior with a slope, whose corner is the largest other entry of the row."""
    for lane in range(n_lanes):
        at = lane * side
        corner = largest_other(v, at, n_components, k)
        p_lane, stream = p[k * WIDTH + lane], stream_at(words, lane)
        if not published:
            v[at + k], stream = draw_two_piece(b[lane], p_lane, corner, slope, stream)
        else:
            v[at + k], stream = draw_positive(b[lane] - slope if v[at + k] >= corner else b[lane], p_lane, stream)
        set_stream(words, lane, stream)


# With y = (z, a) and v = (w, -1), the residuals are r = -v y, and c is Σ y r, which is the data's part less system v.
# A change of entry k moves c by line k of the system; what lies before is done with. The c of rows with the same holes
# are kept lane by lane like everything else, and those of other rows row by row, as their systems are.


@inlined
def move_together(factor, k, n_components, systems, system, side, c):
    """Add factor * line k of the system that all rows share to their c."""
    for j in range(k + 1, n_components):
        at = j * WIDTH
        store(c, at, add_product(load(c, at), factor, repeated(systems, system + k * side + j)))


@inlined
def move_one(factor, k, systems, system, side, c, at):
    """Add factor * line k of the system of one row to its c."""
    line = system + k * side
    for j in range(k // WIDTH * WIDTH, side, WIDTH):
        store(c, at + j, add_product(load(c, at + j), factor, load(systems, line + j)))


@inlined
def subtract_product(systems, system, side, v, c, at):
    """Take system v from c, where both are those of the row `at` on."""
    for j in range(0, side, WIDTH):
        even = odd = splat(0.0)  # two sums, because each addition waits for the one before
        for k in range(0, side, 2):
            line = system + k * side + j
            even = add_product(even, repeated(v, at + k), load(systems, line))
            odd = add_product(odd, repeated(v, at + k + 1), load(systems, line + side))
        store(c, at + j, load(c, at + j) - even - odd)


@inlined
def subtract_products(systems, system, side, n_components, w, c, errors):
    """Do the same for all lanes of rows that share a system, and take from Σ a² what is not error.

    The sums are those of `subtract_product`, term by term, so that a row is drawn alike alone and among others.
    """
    error = load(errors, 0)
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
    store(errors, 0, error)


@inlined
def set_data(n_components, W, row, product, of_product, square, c, at):
    """Write Σ z a and Σ a r of a row whose system does not hold its data, from `at` on."""
    for k in range(n_components):
        data = product[of_product * n_components + k]
        c[at + k] = data
        square -= W[row * n_components + k] * data
    c[at + n_components] = square


@inlined
def largest_other(w, at, length, k):
    """Return the largest of the `length` entries of w from `at` on but the k-th, and 0 if there is no other."""
    largest = 0.0
    for j in range(length):
        if j != k:
            largest = max(largest, w[at + j])
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
