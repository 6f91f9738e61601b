"""The half-sweep of rows with the same missing entries: they share one *system*, Σ z zᵀ over the observed columns.

The system of a complete row is ZᵀZ; the missing columns of the pattern are subtracted from it. Eight rows are then
drawn together, and each draw updates Σ z r of the components that follow: O(K²) operations for a row of any length.
Real data are often missing in blocks (a batch of cell lines on which some drugs were not tested), and complete rows
all have the same pattern.
"""

import numpy as np

from bnmf.kernels.compile import inlined, linked
from bnmf.kernels.lanes import first_lanes, load_streams
from bnmf.kernels.processor import WIDTH
from bnmf.kernels.products import add_outer_products
from bnmf.kernels.rows import (
    draw_component,
    lanes_in,
    lanes_size,
    set_common,
    set_lane,
    set_largest_after,
    set_scales,
    write_lanes,
)
from bnmf.kernels.vectors import add_product, broadcast, load, load_broadcast, pointer_at, store

# Rows of Z that are gathered at a time, so that they stay in the L1 cache.
ROWS_PER_CHUNK = 32
# Fraction of a diagonal entry that subtraction must leave; below it, recompute directly to avoid cancellation.
MIN_REMAINING_FRACTION = 1e-6


def min_sharing(n_components):
    """Return the number of rows with the same missing entries from which a shared system pays.

    Measured by ``python -m benchmarks.sharing``: the time to set up a system grows with K², and to draw a row that
    carries its residuals with K.
    """
    return 3 + n_components // 25


def workspace_size(side):
    """Return the number of floats that `draw_sharing_rows` needs: lanes, one system, and gathered rows."""
    return lanes_size(side) + side * side + ROWS_PER_CHUNK * side


@linked
def draw_sharing_rows(problem, max_term, absolute, rows, repeats, n_rows, numbers, words):
    """Draw rows of W that list their missing entries and share them with others.

    `repeats` says whether a row has the missing entries of the row before it. `numbers` and `words` are memory to work
    in. `absolute` is a pointer to the coefficients of |w| and the distance from row to row, or None.
    """
    n_components, side = problem.n_components, problem.side
    lanes = lanes_in(numbers, words, side)
    own = pointer_at(numbers, lanes_size(side))
    chunk = pointer_at(own, side * side)
    is_uniform = not (problem.linear_stride or problem.quadratic_stride or problem.precision_stride)
    set_common(problem, absolute, lanes)

    system = problem.gram
    begin = np.int64(0)
    while begin < n_rows:
        n_lanes = np.int64(1)
        while n_lanes < WIDTH and begin + n_lanes < n_rows and repeats[begin + n_lanes] != 0:
            n_lanes += 1
        first = rows[begin]
        is_new = begin == 0 or repeats[begin] == 0
        if is_new:
            system = problem.gram
            if problem.indptr[first] < problem.indptr[first + 1]:
                system = own
                set_system(first, problem, chunk, own)
        for lane in range(n_lanes):
            row = rows[begin + lane]
            set_lane(row, lane, problem, absolute, lanes)
            lanes.squares[lane] = problem.squares[row]
            for k in range(n_components):
                lanes.products[k * WIDTH + lane] = problem.product[(row - problem.first_row) * side + k]
        if is_new or not is_uniform:
            for k in range(n_components):
                store(lanes.zz, k * WIDTH, load_broadcast(system, k * side + k))
            set_scales(n_components, lanes)

        error = set_residual_products(system, side, n_components, lanes)
        total, streams, active = load(lanes.sums, 0), load_streams(lanes.words), first_lanes(n_lanes)
        for turn in range(problem.n_passes):
            set_largest_after(n_components, max_term, lanes)
            largest = broadcast(0.0)
            for k in range(n_components):
                zr, zz = load(lanes.products, k * WIDTH), load(lanes.zz, k * WIDTH)
                _, change, largest, streams = draw_component(
                    k, zr, total, largest, active, streams, problem, max_term, absolute, lanes
                )
                total = total + change
                error = error - change * (zr + zr - zz * change)
                of_residuals = broadcast(0.0) - change
                if turn + 1 < problem.n_passes:  # components up to k are drawn again
                    for j in range(k + 1):
                        add_change(of_residuals, system, j * side + k, j, lanes)
                for j in range(k + 1, n_components):
                    add_change(of_residuals, system, k * side + j, j, lanes)
        store(lanes.squares, 0, error)
        write_lanes(rows, begin, n_lanes, problem, lanes)
        begin += n_lanes


@inlined
def add_change(change, system, entry, j, lanes):
    """Add a change times an entry of the system to Σ z r of component j."""
    changed = add_product(load(lanes.products, j * WIDTH), change, load_broadcast(system, entry))
    store(lanes.products, j * WIDTH, changed)


@inlined
def set_residual_products(system, side, n_components, lanes):
    """Turn the product A Z into Σ z r = A Z - system w, and return the squared error of each row.

    Only entries on and above the diagonal of the system are read.
    """
    error = load(lanes.squares, 0)
    for j in range(n_components):
        above = after = broadcast(0.0)
        for k in range(j):
            above = add_product(above, load(lanes.w, k * WIDTH), load_broadcast(system, k * side + j))
        for k in range(j, n_components):
            after = add_product(after, load(lanes.w, k * WIDTH), load_broadcast(system, j * side + k))
        data = load(lanes.products, j * WIDTH)
        residual_product = data - above - after
        error = error - load(lanes.w, j * WIDTH) * (data + residual_product)
        store(lanes.products, j * WIDTH, residual_product)
    return error


@linked
def set_system(row, problem, chunk, system):
    """Write the system of a row, on and above the diagonal: ZᵀZ minus the sum over its missing positions."""
    side, gram, z, indices = problem.side, problem.gram, problem.Z, problem.indices
    start, stop = problem.indptr[row], problem.indptr[row + 1]
    for i in range(0, side * side, WIDTH):
        store(system, i, load(gram, i))
    n = np.int64(0)
    for i in range(start, stop):
        n = add_row(-1.0, np.int64(indices[i]), n, z, chunk, system, side)
    add_outer_products(-1.0, chunk, n, system, side)
    if has_cancelled(problem.n_components, gram, system, side):
        for i in range(0, side * side, WIDTH):
            store(system, i, broadcast(0.0))
        i, n = start, np.int64(0)
        for position in range(problem.n_columns):
            if i < stop and indices[i] == position:
                i += 1
            else:
                n = add_row(1.0, position, n, z, chunk, system, side)
        add_outer_products(1.0, chunk, n, system, side)


@inlined
def add_row(sign, position, n, z, chunk, system, side):
    """Copy a row of Z to a chunk of n rows, and return their new number; a full chunk is added to the system."""
    for j in range(0, side, WIDTH):
        store(chunk, n * side + j, load(z, position * side + j))
    n += 1
    if n == ROWS_PER_CHUNK:
        add_outer_products(sign, chunk, n, system, side)
        n = np.int64(0)
    return n


@inlined
def has_cancelled(n_components, gram, system, side):
    """Return whether too little remains of a diagonal entry of ZᵀZ."""
    cancelled = False
    for k in range(n_components):
        diagonal = k * side + k
        cancelled |= system[diagonal] < MIN_REMAINING_FRACTION * gram[diagonal]
    return cancelled
