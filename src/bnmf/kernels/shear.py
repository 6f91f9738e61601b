"""The shear move: for pairs of components j and k, w_:j + ε w_:k together with z_k: - ε z_j:.

The product W Z and the volume stay as they are, so the likelihood drops out: ε has the density of the priors along the
shear, on the interval where both factors stay nonnegative. That is a truncated normal, drawn exactly; with a max term
it is log-concave, and one slice sampling step updates it. Shears and rescaling together reach every W S, S⁻¹ Z.

Components are copied to contiguous columns, padded with zeros to whole vectors.
"""

import math
from typing import Any, NamedTuple

from bnmf.kernels.compile import inlined, kernel
from bnmf.kernels.processor import WIDTH
from bnmf.kernels.random import exponential, stream_of, uniform
from bnmf.kernels.rescale import MAX_SHRINKS
from bnmf.kernels.rows import padded_length
from bnmf.kernels.truncated_normal import draw_within
from bnmf.kernels.vectors import add_product, broadcast, extract_lane, larger, load, pointer_at, select, store


class Columns(NamedTuple):
    """Pointers to the components of a factor and to the coefficients of its prior.

    Attributes
    ----------
    length : int
        Padded number of rows.
    w : pointer
        Column k starts at k * length.
    sums : pointer
        Sum of each row.
    kinks : pointer
        Memory for a number for each row.
    linear, quadratic : pointer
        Coefficients of column k start at k * (length or WIDTH), with a step of 1 or 0 from row to row.
    linear_step, quadratic_step : int
        The steps.
    pairwise : float
        The pairwise coefficient.
    """

    length: Any
    w: Any
    sums: Any
    kinks: Any
    linear: Any
    linear_step: Any
    quadratic: Any
    quadratic_step: Any
    pairwise: Any


def workspace_size(n_rows, n_columns, n_components):
    """Return the number of floats that `shear` needs."""
    return (3 * n_components + 2) * (padded_length(n_rows) + padded_length(n_columns))


@kernel
def shear(W, Z, prior_W, prior_Z, max_term_W, max_term_Z, key, partners, numbers):
    """Shear the columns of W and Z, both (rows, K), in place.

    Parameters
    ----------
    W, Z : (M, K) and (N, K)
        The factors.
    prior_W, prior_Z : tuple
        Coefficients of the priors apart from their max terms: the fields of `Separable`.
    max_term_W, max_term_Z : MaxTerm or None
        The max terms.
    key : (uint64, uint64)
        Key of the random streams, one for each pair.
    partners : (int, int)
        Each component j is sheared with j + d for some distances d, counted around the components: from the first of
        these numbers to the one before the second, in a count that goes around the distances again and again.
    numbers : (n,)
        Memory to work in, aligned.
    """
    n_components = W.shape[1]
    columns_W = columns_of(W, prior_W, pointer_at(numbers, 0))
    columns_Z = columns_of(Z, prior_Z, pointer_at(numbers, (3 * n_components + 2) * columns_W.length))
    for count in range(partners[0], partners[1]):
        distance = 1 + count % (n_components - 1)
        for j in range(n_components):
            stream = stream_of(key[0], key[1], (count - partners[0]) * n_components + j)
            k = (j + distance) % n_components
            shear_pair(j, k, n_components, columns_W, columns_Z, max_term_W, max_term_Z, stream)
    write_columns(columns_W, W)
    write_columns(columns_Z, Z)


@kernel
def columns_of(W, prior, numbers):
    """Copy a factor and the coefficients of its prior to columns."""
    linear, quadratic, pairwise = prior
    n_rows, n_components = W.shape
    length = padded_length(n_rows)
    size = n_components * length
    columns = Columns(
        length,
        pointer_at(numbers, 0),
        pointer_at(numbers, size),
        pointer_at(numbers, size + length),
        pointer_at(numbers, size + 2 * length),
        1 if linear.shape[0] > 1 else 0,
        pointer_at(numbers, 2 * size + 2 * length),
        1 if quadratic.shape[0] > 1 else 0,
        pairwise,
    )
    for i in range(0, (3 * n_components + 2) * length, WIDTH):
        store(columns.w, i, broadcast(0.0))
    for row in range(n_rows):
        for k in range(n_components):
            columns.w[k * length + row] = W[row, k]
            columns.sums[row] += W[row, k]
    set_coefficients(linear, columns.linear, length)
    set_coefficients(quadratic, columns.quadratic, length)
    return columns


@inlined
def set_coefficients(coefficients, to, length):
    """Copy coefficients to columns; those that are the same for all rows fill the first vector of a column."""
    for k in range(coefficients.shape[1]):
        if coefficients.shape[0] == 1:
            store(to, k * length, broadcast(coefficients[0, k]))
        else:
            for row in range(coefficients.shape[0]):
                to[k * length + row] = coefficients[row, k]


@inlined
def write_columns(columns, W):
    """Copy the columns back to a factor."""
    for row in range(W.shape[0]):
        for k in range(W.shape[1]):
            W[row, k] = columns.w[k * columns.length + row]


@kernel
def shear_pair(j, k, n_components, W, Z, max_term_W, max_term_Z, stream):
    """Draw ε for w_:j + ε w_:k and z_k: - ε z_j:, and apply it."""
    slope_W, curvature_W, ratio_W = terms_along(j, k, W)
    slope_Z, curvature_Z, ratio_Z = terms_along(k, j, Z)
    if ratio_W == 0.0 or ratio_Z == 0.0:  # a component that has underflowed to zero has nothing to move
        return
    low, high = -1.0 / ratio_W, 1.0 / ratio_Z
    b, p = slope_Z - slope_W, curvature_W + curvature_Z
    if max_term_W is None and max_term_Z is None:
        change, stream = draw_within(b - p * low, p, high - low, stream)
        epsilon = low + change
    else:
        set_kinks(j, n_components, W, max_term_W)
        set_kinks(k, n_components, Z, max_term_Z)
        drop, stream = exponential(stream)
        level = -max_penalty(j, k, 0.0, W, max_term_W) - max_penalty(k, j, 0.0, Z, max_term_Z) - drop
        epsilon = math.nan
        for _ in range(MAX_SHRINKS):  # the interval holds 0, where the density is above the level
            fraction, stream = uniform(stream)
            x = low + fraction * (high - low)
            value = (b - 0.5 * p * x) * x
            value -= max_penalty(j, k, x, W, max_term_W) + max_penalty(k, j, -x, Z, max_term_Z)
            if value >= level:
                epsilon = x
                break
            if x < 0.0:
                low = x
            else:
                high = x
    add_column(j, k, epsilon, W)
    add_column(k, j, -epsilon, Z)


@inlined
def terms_along(j, k, columns):
    """Return slope and curvature of the penalty of w_:j + ε w_:k at ε = 0, and the largest w_:k / w_:j."""
    length = columns.length
    changed, added = pointer_at(columns.w, j * length), pointer_at(columns.w, k * length)
    linear, quadratic = pointer_at(columns.linear, j * length), pointer_at(columns.quadratic, j * length)
    pairwise = broadcast(columns.pairwise)
    slope = curvature = ratio = broadcast(0.0)
    for i in range(0, length, WIDTH):
        x, y = load(changed, i), load(added, i)
        q = load(quadratic, i * columns.quadratic_step)
        force = load(linear, i * columns.linear_step) + q * x + pairwise * (load(columns.sums, i) - x)
        slope = add_product(slope, force, y)
        curvature = add_product(curvature, q * y, y)
        ratio = larger(ratio, y / x)  # 0 / 0 is no number, and is ignored
    return lane_sum(slope), lane_sum(curvature), lane_maximum(ratio)


@inlined
def lane_sum(x):
    """Return the sum of the lanes of a vector."""
    total = 0.0
    for lane in range(WIDTH):
        total += extract_lane(x, lane)
    return total


@inlined
def lane_maximum(x):
    """Return the largest lane of a vector of nonnegative numbers."""
    largest = 0.0
    for lane in range(WIDTH):
        largest = max(largest, extract_lane(x, lane))
    return largest


@inlined
def add_column(j, k, epsilon, columns):
    """Add a multiple of column k to column j; what rounding makes negative is zero, and what is no number stays."""
    length, factor, zero = columns.length, broadcast(epsilon), broadcast(0.0)
    for i in range(0, length, WIDTH):
        old = load(columns.w, j * length + i)
        new = add_product(old, factor, load(columns.w, k * length + i))
        new = select(new < zero, zero, new)
        store(columns.w, j * length + i, new)
        store(columns.sums, i, load(columns.sums, i) + (new - old))


@inlined
def set_kinks(j, n_components, columns, max_term):
    """Write the largest entry of each row other than the j-th; only a max term needs it."""
    if max_term is not None:
        for i in range(0, columns.length, WIDTH):
            kink = broadcast(0.0)
            for k in range(n_components):
                if k != j:
                    kink = larger(kink, load(columns.w, k * columns.length + i))
            store(columns.kinks, i, kink)


@inlined
def max_penalty(j, k, epsilon, columns, max_term):
    """Return the penalty of the largest entry of each row of w_:j + ε w_:k and the other columns."""
    if max_term is None:
        return 0.0
    length, total = columns.length, broadcast(0.0)
    for i in range(0, length, WIDTH):
        x, y = load(columns.w, j * length + i), load(columns.w, k * length + i)
        total = total + larger(add_product(x, broadcast(epsilon), y), load(columns.kinks, i))
    return max_term.rate * lane_sum(total)
