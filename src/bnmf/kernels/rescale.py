"""The rescaling move: draw the scale of each component from its exact conditional.

(w_:k, z_k:) and (s w_:k, z_k: / s) have the same likelihood, and plain Gibbs sampling moves slowly along that ridge.
With penalties R_W and R_Z, minus the log densities of the priors, the log density of u = log s is
(M - N) u - R_W(s) - R_Z(1/s). One slice sampling step (Neal 2003: stepping out, then shrinkage) updates each component
in turn. The log density need not be concave: under a truncated normal prior with a positive mean it is not.
"""

import math

import numpy as np

from bnmf.kernels.columns import copy_to_columns, lane_maximum, lane_sum, set_kinks
from bnmf.kernels.compile import inlined, kernel, linked
from bnmf.kernels.processor import WIDTH
from bnmf.kernels.random import exponential, stream_of, uniform
from bnmf.kernels.rows import padded_length
from bnmf.kernels.vectors import broadcast, larger, load, pointer_at, store

# Largest |u| of an interval, beyond which exp(u) or exp(-u) overflows and the density is zero.
MAX_LOG_SCALE = 750.0
# Proposals of a slice sampling step. Each failure shrinks the interval towards a point of the slice, so that only
# densities beyond the range of floating point use them up; the result is NaN then.
MAX_SHRINKS = 1000


def workspace_size(n_rows, n_columns, n_components):
    """Return the number of floats that `rescale` needs if a prior has a max term: columns and kinks."""
    return (n_components + 1) * (padded_length(n_rows) + padded_length(n_columns))


@kernel
def rescale(W, Z, prior_W, prior_Z, max_term_W, max_term_Z, key_high, key_low, numbers):
    """Rescale the columns of W and Z, both (rows, K), in place.

    Parameters
    ----------
    W, Z : (M, K) and (N, K)
        The factors.
    prior_W, prior_Z : tuple
        Coefficients of the priors apart from their max terms: the fields of `Separable`.
    max_term_W, max_term_Z : MaxTerm or None
        The max terms.
    key_high, key_low : uint64
        Key of the random streams, one for each component.
    numbers : (n,)
        Memory to work in, aligned; only a max term needs it.
    """
    n_components = W.shape[1]
    linear_W, quadratic_W, pairwise_W, absolute_W = prior_W
    linear_Z, quadratic_Z, pairwise_Z, absolute_Z = prior_Z
    scales, inverse = np.ones(n_components), np.ones(n_components)
    power = float(W.shape[0] - Z.shape[0])
    width = 3.0 / math.sqrt(W.shape[0] + Z.shape[0])
    sums_W, quadratics_W = separable_terms(W, linear_W, quadratic_W)
    sums_Z, quadratics_Z = separable_terms(Z, linear_Z, quadratic_Z)
    add_absolute(W, absolute_W, sums_W)
    add_absolute(Z, absolute_Z, sums_Z)
    of_W = pointer_at(numbers, 0)
    of_Z = pointer_at(numbers, (n_components + 1) * padded_length(W.shape[0]))
    columns_of(W, max_term_W, of_W)
    columns_of(Z, max_term_Z, of_Z)
    for k in range(n_components):
        a1, a2 = sums_W[k] + pairwise_term(W, scales, k, pairwise_W), quadratics_W[k]
        b1, b2 = sums_Z[k] + pairwise_term(Z, inverse, k, pairwise_Z), quadratics_Z[k]
        max_W, max_Z = column_with_kinks(W, k, max_term_W, of_W), column_with_kinks(Z, k, max_term_Z, of_Z)
        # A component that has underflowed to zero has no scale to draw.
        if a1 == 0.0 and a2 == 0.0 and is_zero(max_W):
            continue
        if b1 == 0.0 and b2 == 0.0 and is_zero(max_Z):
            continue

        terms = power, a1, a2, b1, b2
        stream = stream_of(key_high, key_low, k)
        drop, stream = exponential(stream)  # the level of the slice is uniform below the density
        level = log_density(0.0, terms, max_W, max_Z) - drop
        fraction, stream = uniform(stream)
        low = -width * fraction
        high = low + width
        while low > -MAX_LOG_SCALE and log_density(low, terms, max_W, max_Z) > level:
            low -= width
        while high < MAX_LOG_SCALE and log_density(high, terms, max_W, max_Z) > level:
            high += width
        chosen = math.nan
        for _ in range(MAX_SHRINKS):
            fraction, stream = uniform(stream)
            u = low + fraction * (high - low)
            if log_density(u, terms, max_W, max_Z) >= level:
                chosen = u
                break
            if u < 0.0:
                low = u
            else:
                high = u
        scales[k] = math.exp(chosen)
        inverse[k] = math.exp(-chosen)
        scale_column(scales[k], max_W)
        scale_column(inverse[k], max_Z)
    scale_columns(W, scales)
    scale_columns(Z, inverse)


@linked
def log_density(u, terms, max_W, max_Z):
    """Return the log density of the log scale u, up to a constant.

    The penalties are a1 s + a2 s²/2 + max_penalty(s) for W with s = exp(u), and likewise with b1 and b2 for Z with 1/s.
    """
    power, a1, a2, b1, b2 = terms
    s, t = math.exp(u), math.exp(-u)
    value = power * u - (a1 + 0.5 * a2 * s) * s - (b1 + 0.5 * b2 * t) * t
    return value - max_penalty(s, max_W) - max_penalty(t, max_Z)


@inlined
def max_penalty(s, column):
    """Return rate * Σ max(s w, kink) over a column with its kinks; 0 without a max term."""
    if column is None:
        return 0.0
    w, kinks, length, rate = column
    total = broadcast(0.0)
    for i in range(0, length, WIDTH):
        total = total + larger(broadcast(s) * load(w, i), load(kinks, i))
    return rate * lane_sum(total)


@linked
def separable_terms(W, linear, quadratic):
    """Return Σ linear w and Σ quadratic w² over the rows, for each component."""
    sums = np.zeros(W.shape[1])
    quadratics = np.zeros(W.shape[1])
    for row in range(W.shape[0]):
        lin = linear[row if linear.shape[0] > 1 else 0]
        quad = quadratic[row if quadratic.shape[0] > 1 else 0]
        for k in range(W.shape[1]):
            sums[k] += lin[k] * W[row, k]
            quadratics[k] += quad[k] * (W[row, k] * W[row, k])
    return sums, quadratics


@inlined
def add_absolute(W, absolute, sums):
    """Add Σ absolute |w| over the rows to `sums`, for each component; `absolute` is None if entries are nonnegative."""
    if absolute is not None:
        for row in range(W.shape[0]):
            rate = absolute[row if absolute.shape[0] > 1 else 0]
            for k in range(W.shape[1]):
                sums[k] += rate[k] * abs(W[row, k])


@linked
def pairwise_term(W, scales, k, pairwise):
    """Return pairwise * Σ_m w_mk Σ_{j≠k} scales_j w_mj."""
    if pairwise == 0.0:
        return 0.0
    total = 0.0
    for row in range(W.shape[0]):
        others = 0.0
        for j in range(W.shape[1]):
            if j != k:
                others += scales[j] * W[row, j]
        total += W[row, k] * others
    return pairwise * total


@inlined
def columns_of(W, max_term, numbers):
    """Copy a factor to columns at `numbers`; only a max term needs them."""
    if max_term is not None:
        copy_to_columns(W, numbers, padded_length(W.shape[0]))


@inlined
def column_with_kinks(W, k, max_term, numbers):
    """Return column k, the largest other entry of each row, their number, and the rate; None without a max term."""
    if max_term is None:
        return None
    n_components, length = W.shape[1], padded_length(W.shape[0])
    kinks = pointer_at(numbers, n_components * length)
    set_kinks(k, n_components, numbers, length, kinks)
    return pointer_at(numbers, k * length), kinks, length, max_term.rate


@inlined
def is_zero(column):
    """Return whether a column has no positive entry, or there is no max term."""
    if column is None:
        return True
    w, _, length, _ = column
    largest = broadcast(0.0)
    for i in range(0, length, WIDTH):
        largest = larger(largest, load(w, i))
    return lane_maximum(largest) == 0.0


@inlined
def scale_column(scale, column):
    """Multiply a column by a number, so that it enters the kinks of others with its new scale."""
    if column is not None:
        w, _, length, _ = column
        for i in range(0, length, WIDTH):
            store(w, i, broadcast(scale) * load(w, i))


@linked
def scale_columns(W, scales):
    """Multiply column k by scales[k]."""
    for row in range(W.shape[0]):
        for k in range(W.shape[1]):
            W[row, k] *= scales[k]
