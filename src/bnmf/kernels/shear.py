"""The shear move: for pairs of components j and k, w_:j + ε w_:k together with z_k: - ε z_j:.

The product W Z and the volume stay as they are, so the likelihood drops out: ε has the density of the priors along the
shear, on the interval where nonnegative factors stay so. That is a truncated normal, drawn exactly; with a max term it
is log-concave, and one slice sampling step updates it. Shears and rescaling together reach every W S, S⁻¹ Z. Factors
with a term in |w| are not sheared.
"""

import math
from typing import Any, NamedTuple

from bnmf.kernels.columns import copy_from_columns, copy_to_columns, lane_maximum, lane_sum, set_kinks
from bnmf.kernels.compile import inlined, kernel, linked
from bnmf.kernels.processor import WIDTH
from bnmf.kernels.random import exponential, stream_of, uniform
from bnmf.kernels.rescale import MAX_SHRINKS
from bnmf.kernels.rows import padded_length
from bnmf.kernels.truncated_normal import draw_real, draw_within
from bnmf.kernels.vectors import add_product, broadcast, larger, load, pointer_at, select, store


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
        Coefficients of column k start at k * stride, with a step of 1 or 0 from row to row.
    linear_stride, linear_step, quadratic_stride, quadratic_step : int
        The strides and steps: the length and 1, or WIDTH and 0 if coefficients are the same for all rows.
    pairwise : float
        The pairwise coefficient.
    lowest : float
        The smallest value of an entry: 0 or -inf.
    """

    length: Any
    w: Any
    sums: Any
    kinks: Any
    linear: Any
    linear_stride: Any
    linear_step: Any
    quadratic: Any
    quadratic_stride: Any
    quadratic_step: Any
    pairwise: Any
    lowest: Any


@linked
def columns_size(n_rows, n_components, n_linear, n_quadratic):
    """Return the number of floats in `Columns` of a factor whose prior has so many rows of coefficients: one or all."""
    length = padded_length(n_rows)
    return (n_components + 2) * length + n_components * (stride_of(n_linear, length) + stride_of(n_quadratic, length))


@linked
def stride_of(n_coefficients, length):
    """Return the distance between columns of coefficients that are the same for all rows, or differ."""
    return length if n_coefficients > 1 else WIDTH


def workspace_size(W, Z, prior_W, prior_Z):
    """Return the number of floats that `shear` needs."""
    of_W = columns_size(*W.shape, len(prior_W[0]), len(prior_W[1]))
    return of_W + columns_size(*Z.shape, len(prior_Z[0]), len(prior_Z[1]))


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
    linear, quadratic, _, absolute_W = prior_W
    _, _, _, absolute_Z = prior_Z
    size = columns_size(W.shape[0], n_components, linear.shape[0], quadratic.shape[0])
    columns_Z = columns_of(Z, prior_Z, pointer_at(numbers, size))
    real = first_given(absolute_W, absolute_Z)
    for count in range(partners[0], partners[1]):
        distance = 1 + count % (n_components - 1)
        for j in range(n_components):
            stream = stream_of(key[0], key[1], (count - partners[0]) * n_components + j)
            k = (j + distance) % n_components
            shear_pair(j, k, n_components, columns_W, columns_Z, max_term_W, max_term_Z, real, stream)
    copy_from_columns(columns_W.w, columns_W.length, W)
    copy_from_columns(columns_Z.w, columns_Z.length, Z)


@inlined
def first_given(x, y):
    """Return the first of two arguments that is not None, or None."""
    if x is None:
        return y
    return x


@linked
def columns_of(W, prior, numbers):
    """Copy a factor and the coefficients of its prior to columns."""
    linear, quadratic, pairwise, absolute = prior
    n_rows, n_components = W.shape
    length = padded_length(n_rows)
    size = (n_components + 2) * length
    linear_stride, quadratic_stride = stride_of(linear.shape[0], length), stride_of(quadratic.shape[0], length)
    columns = Columns(
        length,
        pointer_at(numbers, 0),
        pointer_at(numbers, n_components * length),
        pointer_at(numbers, (n_components + 1) * length),
        pointer_at(numbers, size),
        linear_stride,
        1 if linear.shape[0] > 1 else 0,
        pointer_at(numbers, size + n_components * linear_stride),
        quadratic_stride,
        1 if quadratic.shape[0] > 1 else 0,
        pairwise,
        0.0 if absolute is None else -math.inf,
    )
    copy_to_columns(W, columns.w, length)
    for i in range(0, length, WIDTH):
        total = broadcast(0.0)
        for k in range(n_components):
            total = total + load(columns.w, k * length + i)
        store(columns.sums, i, total)
    set_coefficients(linear, columns.linear, linear_stride)
    set_coefficients(quadratic, columns.quadratic, quadratic_stride)
    return columns


@inlined
def set_coefficients(coefficients, to, stride):
    """Copy coefficients to columns; those that are the same for all rows fill one vector."""
    if coefficients.shape[0] > 1:
        copy_to_columns(coefficients, to, stride)
    else:
        for k in range(coefficients.shape[1]):
            store(to, k * stride, broadcast(coefficients[0, k]))


@linked
def shear_pair(j, k, n_components, W, Z, max_term_W, max_term_Z, real, stream):
    """Draw ε for w_:j + ε w_:k and z_k: - ε z_j:, and apply it; `real` is None if both factors are nonnegative."""
    slope_W, curvature_W, ratio_W = terms_along(j, k, W)
    slope_Z, curvature_Z, ratio_Z = terms_along(k, j, Z)
    low, high = -reach(ratio_W, curvature_W, W), reach(ratio_Z, curvature_Z, Z)
    if low > 0.0 or high < 0.0:  # a component that has underflowed to zero has nothing to move
        return
    b, p = slope_Z - slope_W, curvature_W + curvature_Z
    if max_term_W is None and max_term_Z is None:
        if real is None:
            change, stream = draw_within(b - p * low, p, high - low, stream)
            epsilon = low + change
        else:
            epsilon, stream = draw_between(b, p, low, high, stream)
    else:
        if max_term_W is not None:
            set_kinks(j, n_components, W.w, W.length, W.kinks)
        if max_term_Z is not None:
            set_kinks(k, n_components, Z.w, Z.length, Z.kinks)
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
def reach(ratio, curvature, columns):
    """Return how far ε can go before an entry leaves its range; a negative number if there is nothing to add."""
    if columns.lowest < 0.0:  # a normal prior, whose curvature is positive
        return math.inf if curvature > 0.0 else -1.0
    return 1.0 / ratio if ratio > 0.0 else -1.0


@inlined
def draw_between(b, p, low, high, stream):
    """Draw from exp(b ε - p ε²/2) on an interval, each end of which may be infinite."""
    if low > -math.inf:
        change, stream = draw_within(b - p * low, p, high - low, stream)
        return low + change, stream
    if high < math.inf:
        change, stream = draw_within(p * high - b, p, math.inf, stream)
        return high - change, stream
    return draw_real(b, p, 0.0, stream)


@inlined
def terms_along(j, k, columns):
    """Return slope and curvature of the penalty of w_:j + ε w_:k at ε = 0, and the largest w_:k / w_:j."""
    length = columns.length
    changed, added = pointer_at(columns.w, j * length), pointer_at(columns.w, k * length)
    linear = pointer_at(columns.linear, j * columns.linear_stride)
    quadratic = pointer_at(columns.quadratic, j * columns.quadratic_stride)
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
def add_column(j, k, epsilon, columns):
    """Add a multiple of column k to column j; what rounding makes negative is zero, and what is no number stays."""
    length, factor, lowest = columns.length, broadcast(epsilon), broadcast(columns.lowest)
    for i in range(0, length, WIDTH):
        old = load(columns.w, j * length + i)
        new = add_product(old, factor, load(columns.w, k * length + i))
        new = select(new < lowest, lowest, new)
        store(columns.w, j * length + i, new)
        store(columns.sums, i, load(columns.sums, i) + (new - old))


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
