"""The priors that every proof goes through: the five models, sums, rates of every shape, and pairs."""

import numpy as np

from bnmf.priors import L1, L1Squared, L2Squared, Laplace, LInf, Normal, Prior, TruncatedNormal


def rates(rows: int, columns: int) -> np.ndarray:
    """Return a matrix of unlike rates between 0.5 and 2."""
    return 0.5 + 1.5 * (np.arange(rows * columns).reshape(rows, columns) * 0.618 % 1.0)


def pairs(M: int, N: int, K: int) -> dict[str, tuple[Prior, Prior]]:
    """Return priors of W (M x K) and Z (K x N) by name."""
    both = {
        "gee": L1(1.0),
        "gl12": L1Squared(1.0),
        "gl22": L2Squared(1.0),
        "glinf": LInf(2.0),
        "gl22inf": L2Squared(1.0) + LInf(1.0),
        "elastic net": L1(0.5) + L2Squared(1.0),
        "L1Squared + LInf": L1Squared(0.5) + LInf(1.0),
        "L1Squared + L2Squared": L1Squared(0.5) + L2Squared(1.0),
        "L1Squared + L1 + TruncatedNormal": L1Squared(0.5) + L1(0.3) + TruncatedNormal(1.5, 1.0),
        "TruncatedNormal + LInf": TruncatedNormal(1.5, 1.0) + LInf(1.0),
        "rectified normal": TruncatedNormal(0.5, 1.0) + L1(0.3),
        "normal": Normal(0.5, 1.0),
        "Laplace": Laplace(1.0),
        "normal + Laplace": Normal(0.5, rates(1, K)[0]) + Laplace(0.7),
        "vector rates": L1(rates(1, K)[0]) + L2Squared(rates(1, K)[0][::-1]),
    }
    unlike = {
        "matrix rates": (L1(rates(M, K)) + L2Squared(0.3), L2Squared(rates(K, N)) + L1(0.3)),
        "matrix rates + LInf": (TruncatedNormal(rates(M, K), 1.0) + LInf(1.0), L1(rates(K, N)) + LInf(1.0)),
        "matrix rates + L1Squared": (L1(rates(M, K)) + L1Squared(1.0), L2Squared(rates(K, N)) + L1Squared(0.5)),
        "gee and gl22inf": (L1(1.0), L2Squared(1.0) + LInf(1.0)),
        "gee and normal": (L1(1.0), Normal(0.3, 1.0)),
        "normal and gl12": (Normal(0.3, 1.0), L1Squared(1.0)),
        "Laplace and glinf": (Laplace(1.0), LInf(2.0)),
        "Laplace and normal by entry": (Normal(0.0, 0.5) + Laplace(rates(M, K)), Normal(rates(K, N), 1.0)),
        "gl12 and TruncatedNormal": (L1Squared(1.0), TruncatedNormal(0.5, 2.0)),
    }
    return {name: (prior, prior) for name, prior in both.items()} | unlike


NAMES = list(pairs(1, 1, 1))
