"""Priors of the factors. A prior is a few coefficients, and priors add.

The prior of a row w of W (of a column of Z, by symmetry) is exp(-R(w)) on w >= 0 with

    R(w) = Σ_k linear_k w_k + ½ Σ_k quadratic_k w_k² + pairwise Σ_{j<k} w_j w_k + max_rate max_k w_k

or, if entries may be negative (`Normal`, `Laplace`), on all real w with Σ_k absolute_k |w_k| in place of the last two
terms. So every prior is a penalty on the norms of the rows, and a sum of priors is a prior:
``L2Squared(0.1) + LInf(0.1)`` is the GL2²,∞ model of the paper. A prior without a rate, such as ``L2Squared()``, learns
it.
"""

from bnmf.priors.base import Gamma, Prior
from bnmf.priors.terms import L1, L1Squared, L2Squared, Laplace, LInf, Normal, TruncatedNormal

__all__ = ["L1", "Gamma", "L1Squared", "L2Squared", "LInf", "Laplace", "Normal", "Prior", "TruncatedNormal"]
