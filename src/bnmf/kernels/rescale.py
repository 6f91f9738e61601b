"""The rescaling move: draw the scale of each component from its exact conditional.

(w_:k, z_k:) and (s w_:k, z_k: / s) have the same likelihood, and plain Gibbs crawls along that ridge. The density of
u = log s is (M - N) u - R_W(s) - R_Z(1/s); it is concave, and one slice of it is sampled for each component in turn.
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
    coupling_W,
    slope_W,
    linear_Z,
    quadratic_Z,
    coupling_Z,
    slope_Z,
    key_high,
    key_low,
):
    """Rescale the columns of W and Z, both (rows, K), in place."""
    scales = np.ones(W.shape[1])
    power = float(W.shape[0] - Z.shape[0])
    width = 3.0 / math.sqrt(W.shape[0] + Z.shape[0])
    sums_W, quadratics_W = separable_terms(W, linear_W, quadratic_W)
    sums_Z, quadratics_Z = separable_terms(Z, linear_Z, quadratic_Z)
    inverse = np.ones(W.shape[1])
    for k in range(W.shape[1]):
        a1 = sums_W[k] + coupling_term(W, scales, k, coupling_W)
        a2 = quadratics_W[k]
        b1 = sums_Z[k] + coupling_term(Z, inverse, k, coupling_Z)
        b2 = quadratics_Z[k]
        w, corners_w = slope_term(W, scales, k, slope_W)
        z, corners_z = slope_term(Z, inverse, k, slope_Z)
        # A component that has underflowed to nothing has no scale to draw.
        if a1 == 0.0 and a2 == 0.0 and largest(w) == 0.0:
            continue
        if b1 == 0.0 and b2 == 0.0 and largest(z) == 0.0:
            continue

        stream = stream_of(key_high, key_low, k)
        drop, stream = exponential(stream)
        level = log_density(0.0, power, a1, a2, b1, b2, w, corners_w, slope_W, z, corners_z, slope_Z) - drop
        place, stream = uniform(stream)
        low = -width * place
        high = low + width
        while log_density(low, power, a1, a2, b1, b2, w, corners_w, slope_W, z, corners_z, slope_Z) > level:
            low -= width
        while log_density(high, power, a1, a2, b1, b2, w, corners_w, slope_W, z, corners_z, slope_Z) > level:
            high += width
        while True:
            place, stream = uniform(stream)
            u = low + place * (high - low)
            if log_density(u, power, a1, a2, b1, b2, w, corners_w, slope_W, z, corners_z, slope_Z) >= level:
                break
            if u < 0.0:
                low = u
            else:
                high = u
        scales[k] = math.exp(u)
        inverse[k] = math.exp(-u)
    multiply(W, scales)
    multiply(Z, inverse)


@kernel
def log_density(u, power, a1, a2, b1, b2, w, corners_w, slope_w, z, corners_z, slope_z):
    """Return the log density of the log scale u, up to a constant."""
    s = math.exp(u)
    t = math.exp(-u)
    value = power * u - (a1 + 0.5 * a2 * s) * s - (b1 + 0.5 * b2 * t) * t
    for i in range(w.size):
        value -= slope_w * max(s * w[i], corners_w[i])
    for i in range(z.size):
        value -= slope_z * max(t * z[i], corners_z[i])
    return value


@kernel
def separable_terms(W, linear, quadratic):
    """Return Σ linear w and Σ quadratic w² for every component, in one pass."""
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
def coupling_term(W, scales, k, coupling):
    """Return coupling * Σ_m w_mk (sum of the others), the others at their new scales."""
    if coupling == 0.0:
        return 0.0
    total = 0.0
    for row in range(W.shape[0]):
        others = 0.0
        for j in range(W.shape[1]):
            if j != k:
                others += scales[j] * W[row, j]
        total += W[row, k] * others
    return coupling * total


@kernel
def slope_term(W, scales, k, slope):
    """Return column k and the largest of the other entries of each row; empty if they are not needed."""
    size = W.shape[0] if slope != 0.0 else 0
    column = np.empty(size)
    corners = np.zeros(size)
    for row in range(size):
        column[row] = W[row, k]
        for j in range(W.shape[1]):
            if j != k:
                corners[row] = max(corners[row], scales[j] * W[row, j])
    return column, corners


@kernel
def largest(x):
    """Return the largest entry, 0 if there is none."""
    value = 0.0
    for i in range(x.size):
        value = max(value, x[i])
    return value


@kernel
def multiply(W, scales):
    """Multiply column k by scales[k]."""
    for row in range(W.shape[0]):
        for k in range(W.shape[1]):
            W[row, k] *= scales[k]
