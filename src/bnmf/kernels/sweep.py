"""The half-sweep: draw every entry of W, row by row, given Z. Z is drawn by the same kernel with the roles exchanged.

A row depends on the data only through sums over its *observed* entries: Σ z zᵀ, Σ z a and Σ a². They form one symmetric
matrix, the *system* of the row: Σ y yᵀ, where y = (z, a) is z with the data as one more column. Each row of the data
lists either its observed or its missing positions, whichever are fewer:

- observed positions listed: the system is the sum over the list;
- missing positions listed: the system is that of the complete row with zeros in place of missing entries, computed by
  BLAS from A Z and ZᵀZ, minus the sum over the list.

So a row costs O(listed K² / 2 + K²) operations whatever its length, and each listed row of Z is read once. Real data
are often missing in blocks (a drug that was not tested on a batch of cell lines), so rows with identical missing
entries share their system.

Rows are independent given Z, so eight are drawn in parallel, one per lane of a vector. Within a row, each draw depends
on the one before, and a single row would leave most of the processor idle. Rows that share a system are also updated
together, with whole vectors.
"""

from typing import Any, NamedTuple

import numpy as np

from bnmf.kernels.compile import inlined, kernel
from bnmf.kernels.lanes import draw_lanes, first_lanes, load_stream, load_streams, store_stream
from bnmf.kernels.random import stream_of
from bnmf.kernels.systems import ROWS_PER_CHUNK, aligned_zeros, fill_numbers, padded_length, set_system
from bnmf.kernels.truncated_normal import draw_positive, draw_two_piece
from bnmf.kernels.vectors import (
    WIDTH,
    add_product,
    broadcast,
    load,
    load_broadcast,
    load_strided,
    pointer_at,
    select,
    square_root,
    store,
)

# Minimum number of rows with identical missing entries for the shared path.
MIN_SHARED_ROWS = 3
# Maximum number of floats in the systems of rows that are drawn in parallel, so that they stay in the L2 cache.
MAX_SYSTEM_NUMBERS = 2**16
# Offset of a system that stands for "the scales must be recomputed".
NO_OFFSET = -1


class Lanes(NamedTuple):
    """Pointers to the workspace for drawing eight rows in parallel.

    Most fields hold one vector per component, with one lane per row: `w`, the entries to draw; `zz`, Σ z²; `linear` and
    `quadratic`, the coefficients of the prior; `p`, `inverse` and `scale`, the precision p, 1 / p and √(1 / p).
    `errors`, `sums`, `changes` and `precision` are single vectors: the squared error of each row, the sum of its
    entries, workspace for a change, and the precision of the noise. `words` holds the random streams and `system_of`
    the offset of each row's system.

    With y = (z, a) and v = (w, -1), the residuals are r = -vᵀy, and `residual_products` is Σ y r = -system v, plus the
    product A Z if the system does not include the data. A change of entry k adds a multiple of row k of the system. The
    vector is stored like the other fields if the rows share a system, and row by row, like `v`, if they do not.
    """

    v: Any
    residual_products: Any
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
    precision: Any
    words: Any
    system_of: Any


@kernel
def sweep_rows(
    W, Z, product, gram, blocks, indptr, indices, values, block_indptr, block_indices, member_indptr, members,
    lists_missing, order, repeats, ids, linear, quadratic, pairwise, max_rate, paper_rule, precision, entry_scale,
    row_scale, key_high, key_low, start, stop, squares, squared_error,
):  # fmt: skip
    """Draw rows `start` to `stop` of W in place, and write the squared error of each row after its draw.

    Parameters
    ----------
    W, Z : (rows, K) and (columns, K)
        The factor to draw, and the other factor.
    product, gram : (stop - start, K) and (K, K)
        A Z for these rows, and ZᵀZ, with the scaled data. Read only for rows that list their missing entries.
    blocks : (number of blocks * side * side,)
        Σ z zᵀ over the positions of each block, from `sum_blocks`.
    indptr, indices, values, block_indptr, block_indices, member_indptr, members
        Positions and blocks that each row lists, and the data there; see `bnmf.data.patterns.Lists`.
    lists_missing : (rows,) of bool
        Whether a row lists its missing positions rather than its observed ones.
    order, repeats : (rows,)
        Order in which the rows `start` to `stop` are drawn, and whether a row has the same missing entries as the row
        before it in that order.
    ids : (rows,) of uint64
        Numbers that key the random stream of each row.
    linear, quadratic, pairwise, max_rate : two arrays of shape (1 or rows, K) and two floats
        Coefficients of the prior.
    paper_rule : bool
        Use the update printed in the paper for L∞ instead of the exact conditional.
    precision : (1 or rows,)
        Precision of the noise of each row, 1 / σ².
    entry_scale, row_scale : (columns,) and (1 or rows,)
        Factors of the listed values, by position and by row: entry (i, j) of the data is a_ij times both.
    key_high, key_low : uint64
        Key of the random streams.
    start, stop : int
        The range of rows.
    squares, squared_error : (rows,)
        Σ a² over the observed entries of each row (input), with the scaled data, and the squared error there (output).
    """
    n_components, n_columns, n_listed = Z.shape[1], Z.shape[0], indices.size
    side = padded_length(n_components + 1)
    size = side * side
    workspace, words = aligned_zeros(workspace_size(side)), np.zeros(4 * WIDTH, np.uint64)
    system_of = np.zeros(WIDTH, np.int64)
    # Systems: first that of a complete row, without the data, then WIDTH + 1 slots that are used in turn. There is one
    # slot more than lanes, because the first of the rows may share the system of the row drawn before it.
    systems = pointer_at(workspace, 0)
    for k in range(n_components):
        for j in range(n_components):
            systems[k * side + j] = gram[k, j]
    chunk = pointer_at(systems, (WIDTH + 2) * size)
    lanes = lanes_in(
        pointer_at(chunk, ROWS_PER_CHUNK * side + WIDTH), side, pointer_at(words, 0), pointer_at(system_of, 0)
    )
    W, Z, product, blocks = pointer_at(W, 0), pointer_at(Z, 0), pointer_at(product, 0), pointer_at(blocks, 0)
    indptr, indices, values = pointer_at(indptr, 0), pointer_at(indices, 0), pointer_at(values, 0)
    block_indptr, block_indices = pointer_at(block_indptr, 0), pointer_at(block_indices, 0)
    member_indptr, members = pointer_at(member_indptr, 0), pointer_at(members, 0)
    linear_by_row, quadratic_by_row = linear.shape[0] > 1, quadratic.shape[0] > 1
    precision_by_row, scale_by_row = precision.size > 1, row_scale.size > 1
    is_uniform = not (linear_by_row or quadratic_by_row or precision_by_row)
    linear, quadratic = pointer_at(linear, 0), pointer_at(quadratic, 0)
    for k in range(n_components):
        store(lanes.linear, k * WIDTH, load_broadcast(linear, k))
        store(lanes.quadratic, k * WIDTH, load_broadcast(quadratic, k))
    store(lanes.precision, 0, broadcast(precision[0]))
    entry_scale = pointer_at(entry_scale, 0)
    max_separate_lanes = max(1, min(WIDTH, MAX_SYSTEM_NUMBERS // size))

    slot = 0
    scales_of = NO_OFFSET  # offset of the system that the scales of all lanes were computed from
    begin = start
    while begin < stop:
        n_lanes = 1
        while n_lanes < WIDTH and begin + n_lanes < stop and repeats[begin + n_lanes]:
            n_lanes += 1
        shared = n_lanes >= MIN_SHARED_ROWS
        if not shared:
            n_lanes = min(max_separate_lanes, stop - begin)

        for lane in range(n_lanes):
            row = order[begin + lane]
            row_lists_missing = lists_missing[row]
            lists_nothing = indptr[row] == indptr[row + 1] and block_indptr[row] == block_indptr[row + 1]
            system = slot * size
            if row_lists_missing and lists_nothing:
                system = 0
            elif not repeats[begin + lane]:
                slot = slot % (WIDTH + 1) + 1
                system = slot * size
                scales_of = NO_OFFSET
                set_system(
                    row, row_lists_missing, n_components, Z, n_columns, indptr, indices, n_listed, values, entry_scale,
                    row_scale[row if scale_by_row else 0], block_indptr, block_indices, member_indptr, members, blocks,
                    chunk, systems, system, side,
                )  # fmt: skip
            lanes.system_of[lane] = system
            store_stream(lanes.words, lane, stream_of(key_high, key_low, ids[row]))
            set_lane(W, row * n_components, n_components, lanes, lane, side)
            if linear_by_row:
                copy_to_lane(linear, row * n_components, 1, n_components, lanes.linear, lane)
            if quadratic_by_row:
                copy_to_lane(quadratic, row * n_components, 1, n_components, lanes.quadratic, lane)
            if precision_by_row:
                lanes.precision[lane] = precision[row]
            product_row = (row - start) * n_components
            if shared:
                copy_to_lane(product, product_row, 1, n_components, lanes.residual_products, lane)
                lanes.errors[lane] = squares[row]
            else:
                copy_to_lane(systems, system, side + 1, n_components, lanes.zz, lane)
                set_separate_residual_products(
                    row_lists_missing, product, product_row, squares[row], n_components, systems, system, side, lanes,
                    lane,
                )  # fmt: skip
        if shared:
            set_shared_residual_products(systems, lanes.system_of[0], side, n_components, lanes)
        if not (shared and is_uniform and scales_of == lanes.system_of[0]):
            if shared:
                for k in range(n_components):
                    store(lanes.zz, k * WIDTH, load_broadcast(systems, lanes.system_of[0] + k * side + k))
            set_scales(n_components, lanes)
            scales_of = lanes.system_of[0] if shared and is_uniform else NO_OFFSET

        draw_components(shared, n_lanes, n_components, pairwise, max_rate, paper_rule, systems, side, lanes)
        for lane in range(n_lanes):
            row = order[begin + lane]
            squared_error[row] = lanes.errors[lane]
            for k in range(n_components):
                W[row * n_components + k] = lanes.w[k * WIDTH + lane]
        begin += n_lanes
    workspace[0] = words[0] + system_of[0]  # keeps the arrays alive until here: pointers do not


@inlined
def workspace_size(side):
    """Return the number of floats in the systems, the chunk of gathered rows and the lanes."""
    return (WIDTH + 2) * side * side + ROWS_PER_CHUNK * side + WIDTH + 9 * WIDTH * side + 4 * WIDTH


@inlined
def lanes_in(workspace, side, words, system_of):
    """Return pointers into a workspace for lanes, with the given words of the streams and offsets of the systems."""
    size = WIDTH * side
    return Lanes(
        pointer_at(workspace, 0),
        pointer_at(workspace, size),
        pointer_at(workspace, 2 * size),
        pointer_at(workspace, 3 * size),
        pointer_at(workspace, 4 * size),
        pointer_at(workspace, 5 * size),
        pointer_at(workspace, 6 * size),
        pointer_at(workspace, 7 * size),
        pointer_at(workspace, 8 * size),
        pointer_at(workspace, 9 * size),
        pointer_at(workspace, 9 * size + WIDTH),
        pointer_at(workspace, 9 * size + 2 * WIDTH),
        pointer_at(workspace, 9 * size + 3 * WIDTH),
        words,
        system_of,
    )


@inlined
def copy_to_lane(source, start, stride, length, lanes, lane):
    """Copy `length` numbers of a flat array to one lane of as many vectors."""
    for k in range(length):
        lanes[k * WIDTH + lane] = source[start + k * stride]


@inlined
def set_lane(W, start, n_components, lanes, lane, side):
    """Write a row of W and its sum to a lane."""
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
def set_separate_residual_products(
    row_lists_missing, product, product_row, square, n_components, systems, system, side, lanes, lane
):
    """Write the residual products and the squared error of a row with its own system."""
    products, v = pointer_at(lanes.residual_products, lane * side), pointer_at(lanes.v, lane * side)
    fill_numbers(products, 0, side, 0.0)
    if row_lists_missing:  # the system does not include the data
        for k in range(n_components):
            products[k] = product[product_row + k]
            square -= v[k] * product[product_row + k]
        products[n_components] = square
    for j in range(0, side, WIDTH):
        even = odd = broadcast(0.0)  # two sums, because each addition depends on the one before
        for k in range(0, side, 2):
            entry = system + k * side + j
            even = add_product(even, load_broadcast(v, k), load(systems, entry))
            odd = add_product(odd, load_broadcast(v, k + 1), load(systems, entry + side))
        store(products, j, load(products, j) - even - odd)
    error = products[n_components]
    for k in range(n_components):
        error -= v[k] * products[k]
    lanes.errors[lane] = error


@inlined
def set_shared_residual_products(systems, system, side, n_components, lanes):
    """Write the residual products and the squared errors of rows that share a system.

    On entry, the same fields hold the product A Z and Σ a². The terms are summed in the same order as in
    `set_separate_residual_products`, so that both paths agree to rounding and a row can be drawn in either.
    """
    w, products = lanes.w, lanes.residual_products
    error = load(lanes.errors, 0)
    for j in range(n_components):
        even = odd = broadcast(0.0)
        for k in range(0, n_components - 1, 2):
            entry = system + k * side + j
            even = add_product(even, load(w, k * WIDTH), load_broadcast(systems, entry))
            odd = add_product(odd, load(w, (k + 1) * WIDTH), load_broadcast(systems, entry + side))
        if n_components % 2 == 1:
            k = n_components - 1
            even = add_product(even, load(w, k * WIDTH), load_broadcast(systems, system + k * side + j))
        data = load(products, j * WIDTH)
        residual_product = data - even - odd
        error = error - load(w, j * WIDTH) * (data + residual_product)
        store(products, j * WIDTH, residual_product)
    store(lanes.errors, 0, error)


@inlined
def set_scales(n_components, lanes):
    """Write p, 1 / p and √(1 / p) of every entry; a negative Σ z², due to rounding, is replaced by zero."""
    precision = load(lanes.precision, 0)
    for offset in range(0, n_components * WIDTH, WIDTH):
        zz = load(lanes.zz, offset)
        zz = select(zz > broadcast(0.0), zz, broadcast(0.0))
        p = zz * precision + load(lanes.quadratic, offset)
        inverse = broadcast(1.0) / p
        store(lanes.zz, offset, zz)
        store(lanes.p, offset, p)
        store(lanes.inverse, offset, inverse)
        store(lanes.scale, offset, square_root(inverse))


@inlined
def draw_components(shared, n_lanes, n_components, pairwise, max_rate, paper_rule, systems, side, lanes):
    """Draw the rows of all lanes, component by component, and update the residual products and squared errors."""
    active, streams = first_lanes(n_lanes), load_streams(lanes.words)
    error, total, precision = load(lanes.errors, 0), load(lanes.sums, 0), load(lanes.precision, 0)
    for k in range(n_components):
        offset = k * WIDTH
        zr = load(lanes.residual_products, offset) if shared else load_strided(lanes.residual_products, k, side)
        old, zz = load(lanes.w, offset), load(lanes.zz, offset)
        b = (zr + zz * old) * precision - load(lanes.linear, offset)
        if pairwise != 0.0:
            b = b - broadcast(pairwise) * (total - old)
        if max_rate == 0.0:
            p, inverse, scale = load(lanes.p, offset), load(lanes.inverse, offset), load(lanes.scale, offset)
            new, streams = draw_lanes(b, p, inverse, scale, active, streams)
        else:
            store(lanes.changes, 0, b)
            draw_kinked(lanes.changes, k, n_lanes, max_rate, paper_rule, side, n_components, lanes)
            new = load_strided(lanes.v, k, side)
        store(lanes.w, offset, new)
        change = new - old
        total = total + change
        error = error - change * (zr + zr - zz * change)
        if shared:
            update_shared(
                broadcast(0.0) - change, k, n_components, systems, lanes.system_of[0], side, lanes.residual_products
            )
        else:
            store(lanes.changes, 0, broadcast(0.0) - change)
            for lane in range(n_lanes):
                factor = load_broadcast(lanes.changes, lane)
                update_separate(factor, k, systems, lanes.system_of[lane], side, lanes.residual_products, lane * side)
    store(lanes.errors, 0, error)


@inlined
def draw_kinked(b, k, n_lanes, max_rate, paper_rule, side, n_components, lanes):
    """Draw entry k of every row under a prior with a max_rate; the kink is at the largest other entry of the row."""
    for lane in range(n_lanes):
        v = pointer_at(lanes.v, lane * side)
        kink = largest_other(v, n_components, k)
        p, stream = lanes.p[k * WIDTH + lane], load_stream(lanes.words, lane)
        if not paper_rule:
            v[k], stream = draw_two_piece(b[lane], p, kink, max_rate, stream)
        else:
            v[k], stream = draw_positive(b[lane] - max_rate if v[k] >= kink else b[lane], p, stream)
        store_stream(lanes.words, lane, stream)


@inlined
def update_shared(factor, k, n_components, systems, system, side, products):
    """Add factor * row k of the shared system to the residual products of the components after k."""
    for j in range(k + 1, n_components):
        offset = j * WIDTH
        store(
            products,
            offset,
            add_product(load(products, offset), factor, load_broadcast(systems, system + k * side + j)),
        )


@inlined
def update_separate(factor, k, systems, system, side, products, start):
    """Add factor * row k of the system of one row to its residual products, from the vector that holds k on."""
    system_row = system + k * side
    for j in range(k // WIDTH * WIDTH, side, WIDTH):
        store(products, start + j, add_product(load(products, start + j), factor, load(systems, system_row + j)))


@inlined
def largest_other(w, length, k):
    """Return the largest of the first `length` entries of w other than the k-th, or 0 if there is none."""
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
def squared_residuals(
    W, Z, dense, indptr, indices, values, lists_missing, entry_scale, row_scale, start, stop, squared_error
):
    """Write the squared error of rows `start` to `stop`, computed from the residuals: slow, but nothing cancels.

    The arguments are those of `sweep_rows`; `dense` is the data with zeros in place of missing entries.
    """
    for row in range(start, stop):
        total = 0.0
        scale = row_scale[row if row_scale.size > 1 else 0]
        if lists_missing[row]:
            i, end = indptr[row], indptr[row + 1]
            for column in range(dense.shape[1]):
                if i < end and indices[i] == column:
                    i += 1
                else:
                    value = dense[row, column] * (entry_scale[column] * scale)
                    total += (value - dot(W[row], Z[column])) ** 2
        else:
            for i in range(indptr[row], indptr[row + 1]):
                column = indices[i]
                total += (values[i] * (entry_scale[column] * scale) - dot(W[row], Z[column])) ** 2
        squared_error[row] = total
