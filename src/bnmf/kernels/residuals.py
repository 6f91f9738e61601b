"""The half-sweep of rows with missing entries of their own: each carries the residuals of its listed positions.

A row lists its observed or its missing positions, whichever are fewer, and keeps e = value - w z there, where the value
of a missing entry is 0:

- observed positions listed: Σ z r and Σ z² are sums over the list;
- missing positions listed: they are those of the complete row, from A Z and ZᵀZ, minus the sums over the list.

If entries have weights of their own, all positions listed are observed, and data and rows of Z are multiplied by the
roots of the weights as they are read.

The listed rows of Z are gathered once, component by component, so that each draw reads two contiguous columns: that of
the last change and its own. A row costs O(listed K) operations, and K²/8 more if it lists its missing positions.
"""

import numpy as np

from bnmf.kernels.compile import inlined, linked
from bnmf.kernels.lanes import NO_LANES, first_lanes, load_streams
from bnmf.kernels.processor import WIDTH
from bnmf.kernels.random import U64
from bnmf.kernels.rows import (
    draw_component,
    lanes_in,
    lanes_size,
    padded_length,
    set_common,
    set_lane,
    set_largest_after,
    set_scales,
    write_lanes,
)
from bnmf.kernels.systems import MIN_REMAINING_FRACTION
from bnmf.kernels.vectors import (
    add_product,
    broadcast,
    load,
    load_broadcast,
    mask_to_bits,
    pointer_at,
    prefetch,
    row_sums,
    store,
    transposed,
)

# Numbers in the partial sums of a vector of rows.
N_PARTIAL = WIDTH**3
# Numbers of the gathered rows of Z that are kept at a time, so that they stay in the L2 cache.
MAX_GATHERED = 2**18
# Numbers in a factor that is assumed to fit the L2 cache; rows of larger factors are prefetched.
MAX_CACHED_NUMBERS = 2**15
# Listed positions between one that is gathered and one that is prefetched.
PREFETCH_DISTANCE = 24


def workspace_size(side, longest):
    """Return the number of floats that `draw_rows` needs if the longest list has `longest` entries."""
    gathered = max(MAX_GATHERED, WIDTH * padded_length(longest))
    return lanes_size(side) + 3 * WIDTH + N_PARTIAL + 2 * WIDTH * side + 2 * max_listed(longest) + gathered


def offsets_size(longest):
    """Return the number of whole numbers that `draw_rows` needs: two for each lane, and offsets of rows of Z."""
    return 2 * WIDTH + max_listed(longest)


def max_listed(longest):
    """Return the largest number of listed positions of the rows that are drawn together."""
    return max(MAX_GATHERED // WIDTH, padded_length(longest))


@linked
def draw_rows(problem, max_term, absolute, roots, rows, n_rows, max_listed, numbers, words, offsets):
    """Draw rows of W that share nothing; `numbers`, `words` and `offsets` are memory to work in.

    `absolute` is a pointer to the coefficients of |w| and the distance from row to row, or None; `roots` points to the
    root of the weight of each listed entry, or is None.
    """
    n_components, side, gram = problem.n_components, problem.side, problem.gram
    lanes = lanes_in(numbers, words, side)
    sign_of = pointer_at(numbers, lanes_size(side))  # -1 for rows that list missing positions, 1 for others
    whole_of = pointer_at(sign_of, WIDTH)  # 1 for rows that list missing positions, 0 for others
    changes = pointer_at(whole_of, WIDTH)
    partial = pointer_at(changes, WIDTH)  # vectors of partial sums
    zeros = pointer_at(partial, N_PARTIAL)
    unused = pointer_at(zeros, WIDTH * side)
    residuals = pointer_at(unused, WIDTH * side)
    listed_roots = pointer_at(residuals, max_listed)
    z = pointer_at(listed_roots, max_listed)
    lengths, complements = pointer_at(offsets, 0), pointer_at(offsets, WIDTH)
    offsets = pointer_at(offsets, 2 * WIDTH)
    exceeds_cache = problem.n_columns * side > MAX_CACHED_NUMBERS
    set_common(problem, absolute, lanes)
    for k in range(side):
        store(zeros, k * WIDTH, broadcast(0.0))
    for lane in range(WIDTH):
        complements[lane] = 0

    begin = np.int64(0)
    while begin < n_rows:
        # As many rows as fit, with as many components at a time as fit.
        n_lanes = n_listed = np.int64(0)  # of one type from the start, or functions are compiled twice
        uses_gram = False
        while n_lanes < WIDTH and begin + n_lanes < n_rows:
            row, is_complement = rows[begin + n_lanes], complements[n_lanes] == 1
            length = problem.indptr[row + 1] - problem.indptr[row]
            length = padded_length(problem.n_columns - length if is_complement else length)
            if n_lanes > 0 and (n_listed + length) * WIDTH > MAX_GATHERED:
                break
            set_lane(row, n_lanes, problem, absolute, lanes)
            set_list(row, is_complement, length, problem, residuals, offsets, n_listed)
            if roots is not None:
                multiply_list(row, length, problem, roots, residuals, listed_roots, n_listed)
            lists_missing = problem.lists_missing[row] != 0
            is_whole = lists_missing and not is_complement
            uses_gram |= is_whole
            sign_of[n_lanes], whole_of[n_lanes] = (-1.0, 1.0) if is_whole else (1.0, 0.0)
            lanes.squares[n_lanes] = problem.squares[row] if lists_missing else 0.0
            product = (row - problem.first_row) * side
            for k in range(n_components):
                lanes.products[k * WIDTH + n_lanes] = problem.product[product + k] if lists_missing else 0.0
            lengths[n_lanes] = length
            n_listed += length
            n_lanes += 1
        panel = max(WIDTH, min(side, MAX_GATHERED // (n_listed + 1) // WIDTH * WIDTH))
        sign, whole = load(sign_of, 0), load(whole_of, 0)

        for first in range(0, side, panel):
            gather(
                problem.Z, first, min(panel, side - first), (n_lanes, lengths, offsets), roots, listed_roots, lanes.w,
                exceeds_cache, residuals, z, partial, lanes.zz,
            )  # fmt: skip
        if uses_gram:
            cancelled = subtract_from_gram(gram, side, n_components, sign, whole, lanes) & first_lanes(n_lanes)
            if mask_to_bits(cancelled) != NO_LANES:
                for lane in range(n_lanes):  # draw these rows from their observed positions instead
                    complements[lane] |= np.int64((mask_to_bits(cancelled) >> U64(lane)) & U64(1))
                continue
        set_scales(n_components, lanes)

        active, total, streams = first_lanes(n_lanes), load(lanes.sums, 0), load_streams(lanes.words)
        error = broadcast(0.0)
        for _turn in range(problem.n_passes):
            set_largest_after(n_components, max_term, lanes)
            largest, error = broadcast(0.0), load(lanes.squares, 0)
            for first in range(0, side, panel):
                width = min(panel, side - first)
                if panel < side:  # the residuals are complete by now
                    gather(
                        problem.Z, first, width, (n_lanes, lengths, offsets), roots, listed_roots, zeros,
                        exceeds_cache, residuals, z, partial, unused,
                    )  # fmt: skip
                last = min(first + width, n_components)
                store(changes, 0, broadcast(0.0))
                for k in range(first, last):
                    previous = max(k - 1, first)
                    add_products(previous - first, k - first, width, n_lanes, lengths, changes, residuals, z, partial)
                    before = after = broadcast(0.0)
                    if uses_gram:
                        before, after = multiply_gram(gram, k, side, n_components, lanes)
                    product = load(lanes.products, k * WIDTH)
                    zr = product + sign * row_sums(partial, 0) - whole * (before + after)
                    new, change, largest, streams = draw_component(
                        k, zr, total, largest, active, streams, problem, max_term, absolute, lanes
                    )
                    total = total + change
                    of_gram = before + before + new * load_broadcast(gram, k * side + k)
                    error = error + new * (whole * of_gram - product - product)
                    store(changes, 0, change)
                add_squares(last - 1 - first, width, n_lanes, lengths, changes, residuals, z, partial)
        store(lanes.squares, 0, error + sign * row_sums(partial, 0))
        write_lanes(rows, begin, n_lanes, problem, lanes)
        for lane in range(WIDTH):  # complements may be so long that not all of these rows were drawn
            complements[lane] = 0
        begin += n_lanes


@inlined
def set_list(row, is_complement, length, problem, residuals, offsets, to):
    """Write the values that a row lists and where the rows of Z start; the list is padded with the row of zeros.

    The complement of a list of missing positions has no values: the product A Z stands for them.
    """
    start, stop, side = problem.indptr[row], problem.indptr[row + 1], problem.side
    n = np.int64(0)
    if is_complement:
        for position in range(problem.n_columns):
            if start < stop and problem.indices[start] == position:
                start += 1
            else:
                residuals[to + n] = 0.0
                offsets[to + n] = position * side
                n += 1
    else:
        scale = problem.row_scale[row * problem.row_scale_stride]
        for i in range(start, stop):
            column = np.int64(problem.indices[i])
            residuals[to + n] = problem.values[i] * (problem.entry_scale[column * problem.entry_scale_stride] * scale)
            offsets[to + n] = column * side
            n += 1
    for i in range(n, length):
        residuals[to + i] = 0.0
        offsets[to + i] = problem.n_columns * side


@inlined
def multiply_list(row, length, problem, roots, residuals, listed_roots, to):
    """Multiply the values that a row lists by the roots of their weights, and write those roots, zeros as padding."""
    start, n = problem.indptr[row], problem.indptr[row + 1] - problem.indptr[row]
    for i in range(n):
        root = roots[start + i]
        residuals[to + i] *= root
        listed_roots[to + i] = root
    for i in range(n, length):
        listed_roots[to + i] = 0.0


@inlined
def subtract_from_gram(gram, side, n_components, sign, whole, lanes):
    """Turn Σ z² over lists of missing positions into that over the others; return where too little remains."""
    cancelled = broadcast(0.0) > broadcast(0.0)
    for k in range(n_components):
        zz = whole * load_broadcast(gram, k * side + k)
        remaining = zz + sign * load(lanes.zz, k * WIDTH)
        cancelled = cancelled | (zz * broadcast(MIN_REMAINING_FRACTION) > remaining)
        store(lanes.zz, k * WIDTH, remaining)
    return cancelled


@linked
def gather(factor, first, width, lists, roots, listed_roots, weights, exceeds_cache, residuals, z, partial, zz):
    """Copy components `first` to `first + width` of the listed rows of Z, one component after the other for each row.

    Subtract the weights times these components from the residuals, and write Σ z² over each list. `factor` and
    `weights` point to component 0 of their first row. Unless `roots` is None, each listed row of Z is multiplied by its
    own of `listed_roots`.
    """
    n_lanes, lengths, offsets = lists
    for k in range(0, width, WIDTH):
        begin = to = np.int64(0)
        for lane in range(n_lanes):
            length = lengths[lane]
            s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = broadcast(0.0)
            w = pointer_at(weights, (first + k) * WIDTH + lane)
            column = pointer_at(z, to + k * length)
            for i in range(0, length, WIDTH):
                listed = pointer_at(offsets, begin + i)
                if exceeds_cache:
                    for j in range(PREFETCH_DISTANCE, min(PREFETCH_DISTANCE + WIDTH, length - i)):
                        prefetch(factor, listed[j] + first + k)
                z0, z1, z2, z3, z4, z5, z6, z7 = transposed(
                    (
                        load(factor, listed[0] + first + k),
                        load(factor, listed[1] + first + k),
                        load(factor, listed[2] + first + k),
                        load(factor, listed[3] + first + k),
                        load(factor, listed[4] + first + k),
                        load(factor, listed[5] + first + k),
                        load(factor, listed[6] + first + k),
                        load(factor, listed[7] + first + k),
                    )
                )
                if roots is not None:
                    root = load(listed_roots, begin + i)
                    z0, z1, z2, z3 = z0 * root, z1 * root, z2 * root, z3 * root
                    z4, z5, z6, z7 = z4 * root, z5 * root, z6 * root, z7 * root
                store(column, i, z0)
                store(column, i + length, z1)
                store(column, i + 2 * length, z2)
                store(column, i + 3 * length, z3)
                store(column, i + 4 * length, z4)
                store(column, i + 5 * length, z5)
                store(column, i + 6 * length, z6)
                store(column, i + 7 * length, z7)
                s0, s1 = add_product(s0, z0, z0), add_product(s1, z1, z1)
                s2, s3 = add_product(s2, z2, z2), add_product(s3, z3, z3)
                s4, s5 = add_product(s4, z4, z4), add_product(s5, z5, z5)
                s6, s7 = add_product(s6, z6, z6), add_product(s7, z7, z7)
                fitted = load_broadcast(w, 0) * z0
                fitted = add_product(fitted, load_broadcast(w, WIDTH), z1)
                fitted = add_product(fitted, load_broadcast(w, 2 * WIDTH), z2)
                fitted = add_product(fitted, load_broadcast(w, 3 * WIDTH), z3)
                fitted = add_product(fitted, load_broadcast(w, 4 * WIDTH), z4)
                fitted = add_product(fitted, load_broadcast(w, 5 * WIDTH), z5)
                fitted = add_product(fitted, load_broadcast(w, 6 * WIDTH), z6)
                fitted = add_product(fitted, load_broadcast(w, 7 * WIDTH), z7)
                store(residuals, begin + i, load(residuals, begin + i) - fitted)
            sums = pointer_at(partial, lane * WIDTH)
            for total in (s0, s1, s2, s3, s4, s5, s6, s7):
                store(sums, 0, total)
                sums = pointer_at(sums, WIDTH * WIDTH)
            begin += length
            to += length * width
        for j in range(WIDTH):
            store(zz, (first + k + j) * WIDTH, row_sums(partial, j * WIDTH * WIDTH))


@inlined
def add_products(last, k, width, n_lanes, lengths, changes, residuals, z, partial):
    """Subtract the last change from the residuals, and write partial sums of Σ z e for component k of the panel."""
    begin = to = np.int64(0)
    for lane in range(n_lanes):
        length, change, total = lengths[lane], broadcast(-changes[lane]), broadcast(0.0)
        e, changed, column = (
            pointer_at(residuals, begin),
            pointer_at(z, to + last * length),
            pointer_at(z, to + k * length),
        )
        for i in range(0, length, WIDTH):
            residual = add_product(load(e, i), change, load(changed, i))
            store(e, i, residual)
            total = add_product(total, residual, load(column, i))
        store(partial, lane * WIDTH, total)
        begin += length
        to += length * width


@inlined
def add_squares(last, width, n_lanes, lengths, changes, residuals, z, partial):
    """Subtract the last change from the residuals, and write partial sums of Σ e²."""
    begin = to = np.int64(0)
    for lane in range(n_lanes):
        length, change, total = lengths[lane], broadcast(-changes[lane]), broadcast(0.0)
        e, changed = pointer_at(residuals, begin), pointer_at(z, to + last * length)
        for i in range(0, length, WIDTH):
            residual = add_product(load(e, i), change, load(changed, i))
            store(e, i, residual)
            total = add_product(total, residual, residual)
        store(partial, lane * WIDTH, total)
        begin += length
        to += length * width


@inlined
def multiply_gram(gram, k, side, n_components, lanes):
    """Return row k of ZᵀZ times w, summed over the components before k, and over the others."""
    before = after = broadcast(0.0)
    for j in range(k):
        before = add_product(before, load_broadcast(gram, k * side + j), load(lanes.w, j * WIDTH))
    for j in range(k, n_components):
        after = add_product(after, load_broadcast(gram, k * side + j), load(lanes.w, j * WIDTH))
    return before, after
