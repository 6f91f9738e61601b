"""Half-sweeps to test: problems, every form of their data, and draws whose conditionals are computed from scratch."""

from typing import Any

import numpy as np

from bnmf.data.views import ScaledView, View
from bnmf.kernels.compiled import testing
from bnmf.priors.base import Coefficients
from bnmf.sampler.gibbs import half_sweep
from bnmf.sampler.threads import Workers

KEY = np.uint64(21), np.uint64(4)
SIGMA2 = 0.7
FORMS = ["default", "missing listed", "observed listed", "only observed stored"]


def view_of(array: np.ndarray, mask: np.ndarray, form: str | np.ndarray) -> View:
    """Return the rows of the data in one of the forms that the kernels accept, or with rows that list as given."""
    filled = np.where(mask, array, 0.0)
    lists_missing = np.full(len(array), form == "missing listed") if isinstance(form, str) else form
    if isinstance(form, str) and form == "default":
        lists_missing = 2 * mask.sum(axis=1) > mask.shape[1]
    rows, columns = np.nonzero(mask != lists_missing[:, None])
    indptr = np.searchsorted(rows, np.arange(len(array) + 1))
    matrix = None if isinstance(form, str) and form == "only observed stored" else filled
    squares = (filled**2).sum(axis=1)
    return View(matrix, indptr, columns.astype(np.uint32), filled[rows, columns], lists_missing, squares)


def problem(
    rows: int = 40, columns: int = 17, K: int = 4, observed: float = 0.6, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return data, the mask of observed entries, and both factors, (rows, K) and (columns, K)."""
    rng = np.random.default_rng(seed)
    W, Z = rng.exponential(size=(rows, K)), rng.exponential(size=(columns, K))
    A = W @ Z.T + rng.normal(size=(rows, columns))
    mask = rng.uniform(size=A.shape) < observed
    mask[0], mask[1] = True, False
    return A, mask, rng.exponential(size=(rows, K)), Z


def problem_with_patterns(
    rows: int = 60, columns: int = 40, K: int = 11
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return a problem in which batches of columns are missing in batches of rows, and a few entries individually."""
    A, _, W, Z = problem(rows, columns, K)
    rng = np.random.default_rng(1)
    batches = rng.uniform(size=(4, 5)) < 0.7
    mask = batches[rng.integers(4, size=rows)][:, rng.integers(5, size=columns)]
    mask[:7, :5] = rng.uniform(size=(7, 5)) < 0.5
    mask[7:12] = True
    return A, mask, W, Z


def drawn(
    view: View, W: np.ndarray, Z: np.ndarray, prior: Coefficients, sigma2: float = SIGMA2, **options: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of W after a half-sweep, and their squared errors."""
    W = W.copy()
    errors = half_sweep(ScaledView(view), W, Z, prior, np.array([sigma2]), np.ones(1), KEY, Workers(), **options)
    return W, errors


def direct_draws(
    A: np.ndarray,
    mask: np.ndarray,
    W: np.ndarray,
    Z: np.ndarray,
    prior: Coefficients,
    variance: np.ndarray | None = None,
    n_passes: int = 1,
    rows: Any = None,
) -> np.ndarray:
    """Draw rows from the same streams, each entry from a conditional that is computed from scratch."""
    W = W.copy()
    variance = np.full(A.shape, SIGMA2) if variance is None else variance
    linear, quadratic = (np.broadcast_to(x, W.shape) for x in (prior.linear, prior.quadratic))
    for row in range(len(W)) if rows is None else rows:
        stream = testing.stream_of(*KEY, row)
        z, a, v = Z[mask[row]], A[row, mask[row]], variance[row, mask[row]]
        for k in [*range(W.shape[1])] * n_passes:
            others = W[row].copy()
            old, others[k] = others[k], 0.0
            p = (z[:, k] / v) @ z[:, k] + quadratic[row, k]
            b = (z[:, k] / v) @ (a - z @ others) - linear[row, k] - prior.pairwise * others.sum()
            kink = others.max(initial=0.0)
            if prior.absolute is not None:
                rate = np.broadcast_to(prior.absolute, W.shape)[row, k]
                W[row, k], stream = testing.draw_real(b, p, rate, stream)
            elif prior.max_rate and not prior.paper_rule:
                W[row, k], stream = testing.draw_two_piece(b, p, kink, prior.max_rate, stream)
            else:
                b -= prior.max_rate if prior.paper_rule and old >= kink else 0.0
                W[row, k], stream = testing.draw_positive(b, p, stream)
    return W


def squared_errors(A: np.ndarray, mask: np.ndarray, W: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Return Σ (a - w z)² over the observed entries of each row."""
    return (np.where(mask, A - W @ Z.T, 0.0) ** 2).sum(axis=1)
