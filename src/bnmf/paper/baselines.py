"""Simple methods to predict missing entries, as baselines for the models.

Each takes a matrix with NaN for missing entries, and returns it with these filled in and the others unchanged.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from bnmf.utils.typing import Bools, Floats

Loss = Literal["squared", "kullback-leibler"]

# Lower bound of denominators, as in scikit-learn.
_SMALLEST_DENOMINATOR = float(np.finfo(np.float32).eps)


def column_mean(X: npt.ArrayLike) -> Floats:
    """Predict each missing entry by the mean of its column, or by the mean of all entries if the column is empty."""
    A, observed = _with_mask(X)
    counts = observed.sum(axis=0)
    sums = np.where(observed, A, 0.0).sum(axis=0)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), sums.sum() / observed.sum())
    return np.where(observed, A, means)


def row_column_mean(X: npt.ArrayLike) -> Floats:
    """Predict each missing entry by row and column effects (0 if empty), fitted by alternating least squares."""
    A, observed = _with_mask(X)
    mean = A[observed].mean()
    centred = np.where(observed, A - mean, 0.0)
    n_in_row, n_in_column = (np.maximum(observed.sum(axis=axis), 1) for axis in (1, 0))
    row, column = np.zeros(A.shape[0]), np.zeros(A.shape[1])
    smallest_change = 1e-9 * np.abs(centred).max()
    for _ in range(1000):
        before = row
        row = (centred.sum(axis=1) - observed @ column) / n_in_row
        column = (centred.sum(axis=0) - row @ observed) / n_in_column
        if np.abs(row - before).max() <= smallest_change:
            break
    return np.where(observed, A, mean + row[:, None] + column)


def nearest_neighbours(X: npt.ArrayLike, *, n_neighbors: int = 10) -> Floats:
    """Predict by scikit-learn's KNNImputer with weights by distance; empty columns by `row_column_mean`."""
    from sklearn.impute import KNNImputer

    A, observed = _with_mask(X)
    known = observed.any(axis=0)
    filled = row_column_mean(A)
    filled[:, known] = KNNImputer(n_neighbors=n_neighbors, weights="distance").fit_transform(A[:, known])
    return filled


def nmf(X: npt.ArrayLike, loss: Loss, **settings: Any) -> Floats:
    """Predict by `masked_nmf`; rows and columns without observed entries by `row_column_mean`."""
    A, observed = _with_mask(X)
    W, Z = masked_nmf(A, loss=loss, **settings)
    learnt = observed.any(axis=1, keepdims=True) & observed.any(axis=0)
    return np.where(observed, A, np.where(learnt, W @ Z, row_column_mean(A)))


BASELINES: dict[str, Callable[..., Floats]] = {
    "column_mean": column_mean,
    "row_column_mean": row_column_mean,
    "knn": nearest_neighbours,
    "nmf": partial(nmf, loss="squared"),
    "nmf_kl": partial(nmf, loss="kullback-leibler"),
}
"""All baselines by name."""


def masked_nmf(
    X: npt.ArrayLike,
    n_components: int = 10,
    *,
    loss: Loss = "squared",
    max_iter: int = 300,
    tol: float = 1e-5,
    random_state: Any = None,
) -> tuple[Floats, Floats]:
    """Return W and Z of nonnegative observed entries, by the multiplicative updates of Lee and Seung."""
    A, observed = _with_mask(X)
    if (A[observed] < 0).any():
        raise ValueError(f"X must be nonnegative for NMF, but its smallest entry is {A[observed].min()}")
    # The mean of W Z is about that of the data.
    rng, size = np.random.default_rng(random_state), np.sqrt(A[observed].mean() / n_components)
    W, Z = (size * rng.uniform(0.5, 1.5, n) for n in ((len(A), n_components), (n_components, A.shape[1])))
    A, mask = np.where(observed, A, 0.0), observed.astype(float)
    first = last = _objective(loss, A, mask, W @ Z)
    for _ in range(max_iter):
        W = _update(loss, A, mask, W, Z)
        Z = _update(loss, A.T, mask.T, Z.T, W.T).T
        previous, last = last, _objective(loss, A, mask, W @ Z)
        if previous - last < tol * first:
            break
    return W, Z


def _update(loss: Loss, A: Floats, mask: Floats, W: Floats, Z: Floats) -> Floats:
    """Return W after a multiplicative update."""
    fitted = W @ Z
    if loss == "squared":
        up, down = A @ Z.T, (mask * fitted) @ Z.T
    else:
        up, down = (A / np.maximum(fitted, _SMALLEST_DENOMINATOR)) @ Z.T, mask @ Z.T
    return W * up / np.maximum(down, _SMALLEST_DENOMINATOR)


def _objective(loss: Loss, A: Floats, mask: Floats, fitted: Floats) -> float:
    """Return half the squared error, or the Kullback-Leibler divergence, of the observed entries."""
    if loss == "squared":
        return 0.5 * float(np.sum((A - mask * fitted) ** 2))
    positive = A > 0  # a zero entry contributes only its prediction
    ratio = A[positive] / np.maximum(fitted[positive], _SMALLEST_DENOMINATOR)
    return float(np.sum(A[positive] * np.log(ratio)) - A.sum() + np.sum(mask * fitted))


def _with_mask(X: npt.ArrayLike) -> tuple[Floats, Bools]:
    """Return the matrix and the mask of its observed entries."""
    A = np.asarray(X, dtype=float)
    return A, ~np.isnan(A)
