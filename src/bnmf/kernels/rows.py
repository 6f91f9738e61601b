"""What both ways to draw rows have in common: eight rows side by side, one per lane of a vector.

Rows are independent given the other factor. Within a row each draw depends on the one before, and a single row would
leave most of the processor idle. Given Σ z r and Σ z² of a component, where r are the residuals of a row, its entry has
the density exp(b w - p w²/2) on w >= 0, with a kink if the prior has a max term, or on the real line, with a kink at 0
if the prior has a term in |w|.
"""

from typing import Any, NamedTuple

import numpy as np

from bnmf.kernels.compile import inlined, linked
from bnmf.kernels.lanes import draw_lanes, draw_real_lanes, draw_two_piece_lanes
from bnmf.kernels.processor import WIDTH
from bnmf.kernels.random import stream_of
from bnmf.kernels.vectors import broadcast, larger, load, load_broadcast, pointer_at, select, square_root, store

# Rows in one unit of work, a tile. It does not depend on the number of threads, so neither does the rounding of sums.
ROWS_PER_TILE = 256


class Data(NamedTuple):
    """Rows of the data. Each lists its observed or its missing positions, whichever are fewer, in ascending order.

    Attributes
    ----------
    indptr, indices, values : ndarray of int64, uint32 and float64
        Row i lists the positions `indices[indptr[i]:indptr[i + 1]]` and the data there (0 where missing).
    lists_missing : ndarray of uint8
        Whether a row lists its missing positions: 1 or 0.
    dense : ndarray of shape (rows, columns) or (0, 0)
        The whole rows with zeros in place of missing entries, if they are stored as a dense array. Here and below,
        only rows that list their missing positions are read.
    stored_indptr, stored_indices, stored_values : ndarray of int64, uint32 and float64
        The same in CSR form, if they are stored as a sparse array.
    squares : ndarray of shape (rows,)
        Σ a² over each row, with the scales of the data.
    """

    indptr: Any
    indices: Any
    values: Any
    lists_missing: Any
    dense: Any
    stored_indptr: Any
    stored_indices: Any
    stored_values: Any
    squares: Any


class Other(NamedTuple):
    """The other factor in the forms that the kernels read, with components padded to `side`, whole vectors.

    Attributes
    ----------
    Z : ndarray of shape (columns + 1, side)
        The factor, divided by the standard deviation of the noise of each column; the last row is zero.
    scaled : ndarray of shape (columns + 1, side)
        Z times the scale of the data in each column.
    gram : ndarray of shape (side, side)
        ZᵀZ.
    """

    Z: Any
    scaled: Any
    gram: Any


class Scales(NamedTuple):
    """Precision of the noise of each row, 1 / σ², and factors of the data: entry (i, j) is a_ij times two of them.

    Attributes
    ----------
    precision, row_scale : ndarray of shape (1 or rows,)
        One number for all rows, or one for each.
    entry_scale : ndarray of shape (1 or columns,)
        One factor for all columns, or one for each.
    """

    precision: Any
    entry_scale: Any
    row_scale: Any


class Separable(NamedTuple):
    """Coefficients of the prior apart from its max term: arrays of shape (1 or rows, K), and `pairwise`, a number.

    `absolute`, coefficients of |w|, is None if entries are nonnegative.
    """

    linear: Any
    quadratic: Any
    pairwise: Any
    absolute: Any


class MaxTerm(NamedTuple):
    """Rate of the largest entry of a row, and whether to use the update printed in the paper for it."""

    rate: Any
    paper_rule: Any


class Streams(NamedTuple):
    """Key of the random streams of a half-sweep, the number of each row's stream, how often rows are drawn, and what.

    Given the sums over its entries, a row is drawn `n_passes` times in a row: its components mix better, and the sums
    are what costs most. Components before `first_drawn` and from `end_drawn` on stay as they are.
    """

    key_high: Any
    key_low: Any
    ids: Any
    n_passes: Any
    first_drawn: Any
    end_drawn: Any


class Sharing(NamedTuple):
    """Rows that share their missing entries with others of the same tile.

    Attributes
    ----------
    indptr, rows : ndarray of int64
        Tile t has the rows `rows[indptr[t]:indptr[t + 1]]`.
    repeats : ndarray of uint8
        Whether a row has the missing entries of the row before it: 1 or 0.
    """

    indptr: Any
    rows: Any
    repeats: Any


class Others(NamedTuple):
    """All other rows, by tile as in `Sharing`."""

    indptr: Any
    rows: Any


class Workspace(NamedTuple):
    """Memory of one thread, which the caller keeps: aligned floats, words of streams, and offsets of rows of Z."""

    numbers: Any
    words: Any
    offsets: Any


class Problem(NamedTuple):
    """Pointers to everything that draws of rows read and write; see the classes above, whose fields these are.

    Pointers, unlike arrays, are passed on without counting references, which would take most of the time to compile.
    Row `row` of the product A Z is the row `row - first_row` of `product`. Coefficients, precisions and scales that are
    the same for all rows or columns have a stride of 0 from one to the next.
    """

    n_components: Any
    side: Any
    n_columns: Any
    W: Any
    Z: Any
    gram: Any
    product: Any
    first_row: Any
    indptr: Any
    indices: Any
    values: Any
    lists_missing: Any
    squares: Any
    precision: Any
    precision_stride: Any
    entry_scale: Any
    entry_scale_stride: Any
    row_scale: Any
    row_scale_stride: Any
    linear: Any
    linear_stride: Any
    quadratic: Any
    quadratic_stride: Any
    pairwise: Any
    key_high: Any
    key_low: Any
    ids: Any
    n_passes: Any
    first_drawn: Any
    end_drawn: Any
    squared_error: Any


class Lanes(NamedTuple):
    """Pointers to what eight rows need while they are drawn.

    Most fields hold one vector per component: `w`, the entries; `zz`, Σ z²; `linear` and `quadratic`, coefficients of
    the prior; `p`, `inverse` and `scale`, the precision p of an entry, 1 / p and √(1 / p); `products`, sums with the
    data; `largest_after`, the largest of the entries that are drawn later; `absolute`, coefficients of |w|. `squares`,
    `sums` and `precision` are single vectors: Σ a² over each row, the sum of its entries, and the precision of its
    noise. `words` holds the streams.
    """

    w: Any
    zz: Any
    linear: Any
    quadratic: Any
    p: Any
    inverse: Any
    scale: Any
    products: Any
    largest_after: Any
    absolute: Any
    squares: Any
    sums: Any
    precision: Any
    words: Any


@linked
def lanes_size(side):
    """Return the number of floats in the fields of `Lanes`, for components padded to `side`."""
    return 10 * WIDTH * side + 3 * WIDTH


@linked
def padded_length(length):
    """Return `length` rounded up to a multiple of WIDTH."""
    return (length + WIDTH - 1) // WIDTH * WIDTH


def aligned_zeros(size):
    """Return zeros that start at the alignment of a vector, so that no vector straddles two cache lines."""
    array = np.zeros(size + WIDTH)
    skip = -(array.ctypes.data // 8) % WIDTH
    return array[skip : skip + size]


@inlined
def lanes_in(numbers, words, side):
    """Return the fields of `Lanes` as pointers into a workspace."""
    size = WIDTH * side
    return Lanes(
        pointer_at(numbers, 0),
        pointer_at(numbers, size),
        pointer_at(numbers, 2 * size),
        pointer_at(numbers, 3 * size),
        pointer_at(numbers, 4 * size),
        pointer_at(numbers, 5 * size),
        pointer_at(numbers, 6 * size),
        pointer_at(numbers, 7 * size),
        pointer_at(numbers, 8 * size),
        pointer_at(numbers, 9 * size),
        pointer_at(numbers, 10 * size),
        pointer_at(numbers, 10 * size + WIDTH),
        pointer_at(numbers, 10 * size + 2 * WIDTH),
        pointer_at(words, 0),
    )


@inlined
def set_common(problem, absolute, lanes):
    """Write what is the same for all rows, and zeros as padding."""
    for k in range(problem.n_components):
        store(lanes.linear, k * WIDTH, load_broadcast(problem.linear, k))
        store(lanes.quadratic, k * WIDTH, load_broadcast(problem.quadratic, k))
    if absolute is not None:
        rates, _ = absolute
        for k in range(problem.n_components):
            store(lanes.absolute, k * WIDTH, load_broadcast(rates, k))
    for k in range(problem.n_components, problem.side):
        store(lanes.w, k * WIDTH, broadcast(0.0))
    store(lanes.precision, 0, load_broadcast(problem.precision, 0))


@inlined
def set_lane(row, lane, problem, absolute, lanes):
    """Write a row of W, its sum, its stream, and its coefficients and precision if those differ by row."""
    total = 0.0
    for k in range(problem.n_components):
        value = problem.W[row * problem.n_components + k]
        total += value
        lanes.w[k * WIDTH + lane] = value
    lanes.sums[lane] = total
    s0, s1, s2, s3 = stream_of(problem.key_high, problem.key_low, problem.ids[row])
    lanes.words[lane], lanes.words[WIDTH + lane] = s0, s1
    lanes.words[2 * WIDTH + lane], lanes.words[3 * WIDTH + lane] = s2, s3
    if problem.linear_stride:
        for k in range(problem.n_components):
            lanes.linear[k * WIDTH + lane] = problem.linear[row * problem.linear_stride + k]
    if problem.quadratic_stride:
        for k in range(problem.n_components):
            lanes.quadratic[k * WIDTH + lane] = problem.quadratic[row * problem.quadratic_stride + k]
    if absolute is not None:
        rates, stride = absolute
        for k in range(problem.n_components):
            lanes.absolute[k * WIDTH + lane] = rates[row * stride + k]
    lanes.precision[lane] = problem.precision[row * problem.precision_stride]


@inlined
def write_lanes(rows, begin, n_lanes, problem, lanes):
    """Write the drawn rows of W, and their squared errors, which are in `lanes.squares`."""
    for lane in range(n_lanes):
        row = rows[begin + lane]
        problem.squared_error[row] = lanes.squares[lane]
        for k in range(problem.n_components):
            problem.W[row * problem.n_components + k] = lanes.w[k * WIDTH + lane]


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
def set_largest_after(n_components, max_term, lanes):
    """Write the largest of the entries after each one; only a max term needs it."""
    if max_term is not None:
        largest = broadcast(0.0)
        for k in range(n_components - 1, -1, -1):
            store(lanes.largest_after, k * WIDTH, largest)
            largest = larger(largest, load(lanes.w, k * WIDTH))


@inlined
def draw_component(k, zr, total, largest_before, active, streams, problem, max_term, absolute, lanes):
    """Draw entry k of the active rows given Σ z r, and return it with the streams and the largest entry up to k.

    `total` is the sum of the entries of each row, and `largest_before` the largest of the entries before k. Unless
    `absolute` is None, entries are real numbers.
    """
    offset = k * WIDTH
    old = load(lanes.w, offset)
    if k < problem.first_drawn or k >= problem.end_drawn:
        return old, broadcast(0.0), larger(largest_before, old), streams
    pairwise = problem.pairwise
    b = (zr + load(lanes.zz, offset) * old) * load(lanes.precision, 0) - load(lanes.linear, offset)
    if pairwise != 0.0:
        b = b - broadcast(pairwise) * (total - old)
    p, inverse, scale = load(lanes.p, offset), load(lanes.inverse, offset), load(lanes.scale, offset)
    if absolute is not None:
        new, streams = draw_real_lanes(b, p, inverse, scale, load(lanes.absolute, offset), active, streams)
    elif max_term is None:
        new, streams = draw_lanes(b, p, inverse, scale, active, streams)
    else:
        kink, rate = larger(largest_before, load(lanes.largest_after, offset)), max_term.rate
        if max_term.paper_rule:
            # The rule is a plain draw: at or above the kink with a smaller b, and below it with none of the rate.
            b = select(old >= kink, b - broadcast(rate), b)
            kink, rate = broadcast(0.0), 0.0
        new, streams = draw_two_piece_lanes(b, p, inverse, scale, kink, rate, active, streams)
        largest_before = larger(largest_before, new)
    store(lanes.w, offset, new)
    return new, new - old, largest_before, streams
