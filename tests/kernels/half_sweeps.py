"""Half-sweeps to test: problems, every form of their data, and draws whose conditionals are computed from scratch."""

from typing import Any

import numpy as np

from bnmf.data.views import Stored
from bnmf.priors.base import Coefficients
from bnmf.sampler.threads import Workers
from tests.kernels.draws import scalar_draws, spoiled, streams_of

KEY = np.uint64(21), np.uint64(4)
SIGMA2 = 0.7
FORMS = ["default", "missing listed", "observed listed", "only observed stored"]


def view_of(array: np.ndarray, mask: np.ndarray, form: str | np.ndarray) -> Stored:
    """Return the rows of the data in one of the forms that the kernels accept, or with rows that list as given."""
    filled = np.where(mask, array, 0.0)
    lists_missing = np.full(len(array), form == "missing listed") if isinstance(form, str) else form
    if isinstance(form, str) and form == "default":
        lists_missing = 2 * mask.sum(axis=1) > mask.shape[1]
    rows, columns = np.nonzero(mask != lists_missing[:, None])
    indptr = np.searchsorted(rows, np.arange(len(array) + 1))
    lists = indptr, columns.astype(np.uint32), filled[rows, columns], lists_missing
    if isinstance(form, str) and form == "only observed stored":
        return Stored(filled.shape[1], *lists)
    return Stored(filled.shape[1], *lists, filled)


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


def used_workers() -> Workers:
    """Return one thread with memory that was used before."""
    workers = Workers()
    spoiled(workers.memory)
    return workers


def drawn(
    view: Stored, W: np.ndarray, Z: np.ndarray, prior: Coefficients, sigma2: float = SIGMA2, **options: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of W after a half-sweep in memory that was used before, and their squared errors."""
    W = W.copy()
    errors = view.scaled().half_sweep(W, Z, prior, np.array([sigma2]), np.ones(1), KEY, used_workers(), **options)
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
    W, variance = W.copy(), np.full(A.shape, SIGMA2) if variance is None else variance
    rows = np.arange(len(W)) if rows is None else np.array(rows)
    linear, quadratic, absolute = (
        np.broadcast_to(0.0 if x is None else x, W.shape)[rows] for x in (prior.linear, prior.quadratic, prior.absolute)
    )
    a, precision, w = np.where(mask, A, 0.0)[rows], np.where(mask, 1.0 / variance, 0.0)[rows], W[rows]
    kind = (
        "real" if prior.absolute is not None else "two_piece" if prior.max_rate and not prior.paper_rule else "positive"
    )
    streams = streams_of(KEY, len(W))[rows]
    for k in [*range(W.shape[1])] * n_passes:
        others = w.copy()
        others[:, k] = 0.0
        p = precision @ Z[:, k] ** 2 + quadratic[:, k]
        residuals = np.where(mask[rows], a - others @ Z.T, 0.0)
        b = (precision * residuals) @ Z[:, k] - linear[:, k] - prior.pairwise * others.sum(axis=1)
        kink = others.max(axis=1, initial=0.0)
        if prior.paper_rule:
            b -= np.where(w[:, k] >= kink, prior.max_rate, 0.0)
        rate = absolute[:, k] if kind == "real" else prior.max_rate
        w[:, k] = scalar_draws(kind, streams, b, p, kink, rate)
    W[rows] = w
    return W


def squared_errors(A: np.ndarray, mask: np.ndarray, W: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Return Σ (a - w z)² over the observed entries of each row."""
    return (np.where(mask, A - W @ Z.T, 0.0) ** 2).sum(axis=1)


def assert_from_scratch(
    view: Stored, A: Any, mask: Any, W: Any, Z: Any, prior: Coefficients, n_passes: int = 1, rtol: float = 1e-8
) -> None:
    """Assert that the draws and squared errors of a half-sweep are those of conditionals from scratch."""
    expected = direct_draws(A, mask, W, Z, prior, n_passes=n_passes)
    got, errors = drawn(view, W, Z, prior, n_passes=n_passes)
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=1e-3 * rtol)
    np.testing.assert_allclose(errors, squared_errors(A, mask, expected, Z), rtol=rtol, atol=rtol)
