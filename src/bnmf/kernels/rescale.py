"""The rescaling move: draw the scale of each component from its exact conditional.

(w_:k, z_k:) and (s w_:k, z_k: / s) have the same likelihood, and plain Gibbs sampling moves slowly along that ridge.
With penalties R_W and R_Z, minus the log densities of the priors, the log density of u = log s is
(M - N) u - R_W(s) - R_Z(1/s). One slice sampling step (Neal 2003: stepping out, then shrinkage) updates each component
in turn. The log density need not be concave: under a truncated normal prior with a positive mean it is not.
"""

import math

import numpy as np

from bnmf.kernels.compile import kernel
from bnmf.kernels.random import exponential, stream_of, uniform


@kernel
def rescale(
    W,
    Z,
    linear_W,
    quadratic_W,
    pairwise_W,
    max_rate_W,
    linear_Z,
    quadratic_Z,
    pairwise_Z,
    max_rate_Z,
    key_high,
    key_low,
):
    """Rescale the columns of W and Z, both (rows, K), in place.

    Parameters
    ----------
    W, Z : (M, K) and (N, K)
        The factors.
    linear_W, quadratic_W, pairwise_W, max_rate_W
        Coefficients of the prior of W: arrays of shape (1 or M, K), and two numbers. Likewise for Z.
    key_high, key_low : uint64
        Key of the random streams, one for each component.
    """
    scales = np.ones(W.shape[1])
    power = float(W.shape[0] - Z.shape[0])
    width = 3.0 / math.sqrt(W.shape[0] + Z.shape[0])
    sums_W, quadratics_W = separable_terms(W, linear_W, quadratic_W)
    sums_Z, quadratics_Z = separable_terms(Z, linear_Z, quadratic_Z)
    inverse = np.ones(W.shape[1])
    for k in range(W.shape[1]):
        a1 = sums_W[k] + pairwise_term(W, scales, k, pairwise_W)
        a2 = quadratics_W[k]
        b1 = sums_Z[k] + pairwise_term(Z, inverse, k, pairwise_Z)
        b2 = quadratics_Z[k]
        w, kinks_w = max_term(W, scales, k, max_rate_W)
        z, kinks_z = max_term(Z, inverse, k, max_rate_Z)
        # A component that has underflowed to zero has no scale to draw.
        if a1 == 0.0 and a2 == 0.0 and max_or_zero(w) == 0.0:
            continue
        if b1 == 0.0 and b2 == 0.0 and max_or_zero(z) == 0.0:
            continue

        stream = stream_of(key_high, key_low, k)
        drop, stream = exponential(stream)  # the level of the slice is uniform below the density
        level = log_density(0.0, power, a1, a2, b1, b2, w, kinks_w, max_rate_W, z, kinks_z, max_rate_Z) - drop
        fraction, stream = uniform(stream)
        low = -width * fraction
        high = low + width
        while log_density(low, power, a1, a2, b1, b2, w, kinks_w, max_rate_W, z, kinks_z, max_rate_Z) > level:
            low -= width
        while log_density(high, power, a1, a2, b1, b2, w, kinks_w, max_rate_W, z, kinks_z, max_rate_Z) > level:
            high += width
        while True:
            fraction, stream = uniform(stream)
            u = low + fraction * (high - low)
            if log_density(u, power, a1, a2, b1, b2, w, kinks_w, max_rate_W, z, kinks_z, max_rate_Z) >= level:
                break
            if u < 0.0:
                low = u
            else:
                high = u
        scales[k] = math.exp(u)
        inverse[k] = math.exp(-u)
    scale_columns(W, scales)
    scale_columns(Z, inverse)


@kernel
def log_density(u, power, a1, a2, b1, b2, w, kinks_w, max_rate_w, z, kinks_z, max_rate_z):
    """Return the log density of the log scale u, up to a constant.

    The penalties are a1 s + a2 s²/2 + max_rate_w Σ max(s w, kinks_w) for W with s = exp(u), and likewise with b1, b2
    and z for Z with 1/s.
    """
    s = math.exp(u)
    t = math.exp(-u)
    value = power * u - (a1 + 0.5 * a2 * s) * s - (b1 + 0.5 * b2 * t) * t
    for i in range(w.size):
        value -= max_rate_w * max(s * w[i], kinks_w[i])
    for i in range(z.size):
        value -= max_rate_z * max(t * z[i], kinks_z[i])
    return value


@kernel
def separable_terms(W, linear, quadratic):
    """Return Σ linear w and Σ quadratic w² over the rows, for each component."""
    sums = np.zeros(W.shape[1])
    quadratics = np.zeros(W.shape[1])
    for row in range(W.shape[0]):
        lin = linear[row if linear.shape[0] > 1 else 0]
        quad = quadratic[row if quadratic.shape[0] > 1 else 0]
        for k in range(W.shape[1]):
            sums[k] += lin[k] * W[row, k]
            quadratics[k] += quad[k] * W[row, k] ** 2
    return sums, quadratics


@kernel
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


@kernel
def max_term(W, scales, k, max_rate):
    """Return column k and the largest other scaled entry of each row; both are empty if max_rate is zero."""
    size = W.shape[0] if max_rate != 0.0 else 0
    column = np.empty(size)
    kinks = np.zeros(size)
    for row in range(size):
        column[row] = W[row, k]
        for j in range(W.shape[1]):
            if j != k:
                kinks[row] = max(kinks[row], scales[j] * W[row, j])
    return column, kinks


@kernel
def max_or_zero(x):
    """Return the largest entry of a nonnegative array, or 0 if it is empty."""
    value = 0.0
    for i in range(x.size):
        value = max(value, x[i])
    return value


@kernel
def scale_columns(W, scales):
    """Multiply column k by scales[k]."""
    for row in range(W.shape[0]):
        for k in range(W.shape[1]):
            W[row, k] *= scales[k]
