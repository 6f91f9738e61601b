"""Simple methods to predict missing entries, as baselines for the models.

Every baseline is a function ``predict(X, **settings)`` of a matrix with NaN for missing entries. It returns the matrix
with the missing entries filled in and the observed entries unchanged. `BASELINES` maps names to functions.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from bnmf.utils.typing import Bools, Floats

Loss = Literal["squared", "kullback-leibler"]

# Lower bound of denominators, as in scikit-learn.
_SMALLEST_DENOMINATOR = float(np.finfo(np.float32).eps)


def column_mean(X: npt.ArrayLike) -> Floats:
    """Predict each missing entry by the mean of its column, or by the mean of all entries if the column is empty.

    Parameters
    ----------
    X : array-like of shape (M, N)
        The matrix, NaN where missing.

    Returns
    -------
    ndarray of shape (M, N)
        The completed matrix.

    Examples
    --------
    >>> column_mean([[1.0, np.nan], [3.0, 8.0], [np.nan, 4.0]])
    array([[1., 6.],
           [3., 8.],
           [2., 4.]])
    """
    A, observed = _with_mask(X)
    counts = observed.sum(axis=0)
    sums = np.where(observed, A, 0.0).sum(axis=0)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), sums.sum() / observed.sum())
    return np.where(observed, A, means)


def row_column_mean(X: npt.ArrayLike, *, max_iter: int = 1000, tol: float = 1e-9) -> Floats:
    """Predict each missing entry by the sum of a row and a column effect, fitted by least squares.

    Parameters
    ----------
    X : array-like of shape (M, N)
        The matrix, NaN where missing.
    max_iter : int, default=1000
        Maximum number of iterations, each of which updates the row effects and then the column effects.
    tol : float, default=1e-9
        Stop when no row effect changes by more than this multiple of the largest deviation from the mean.

    Returns
    -------
    ndarray of shape (M, N)
        The completed matrix. A row or column without observed entries has the effect 0.

    Examples
    --------
    >>> row_column_mean([[1.0, 2.0], [3.0, np.nan]]).round(6)
    array([[1., 2.],
           [3., 4.]])
    """
    A, observed = _with_mask(X)
    mean = A[observed].mean()
    centred = np.where(observed, A - mean, 0.0)
    n_in_row, n_in_column = observed.sum(axis=1), observed.sum(axis=0)
    row, column = np.zeros(A.shape[0]), np.zeros(A.shape[1])
    smallest_change = tol * np.abs(centred).max()
    for _ in range(max_iter):
        before = row
        row = (centred.sum(axis=1) - observed @ column) / np.maximum(n_in_row, 1)
        column = (centred.sum(axis=0) - row @ observed) / np.maximum(n_in_column, 1)
        if np.abs(row - before).max() <= smallest_change:
            break
    return np.where(observed, A, mean + row[:, None] + column)


def nearest_neighbours(X: npt.ArrayLike, *, n_neighbors: int = 10, weights: str = "distance") -> Floats:
    """Predict each missing entry by the mean of its column over the most similar rows (scikit-learn's KNNImputer).

    Parameters
    ----------
    X : array-like of shape (M, N)
        The matrix, NaN where missing.
    n_neighbors : int, default=10
        Number of rows to average.
    weights : {"distance", "uniform"}, default="distance"
        Weights of the rows.

    Returns
    -------
    ndarray of shape (M, N)
        The completed matrix. A column without observed entries is predicted by `row_column_mean`.

    Examples
    --------
    >>> nearest_neighbours([[1.0, 2.0], [1.0, np.nan], [9.0, 8.0]], n_neighbors=1)
    array([[1., 2.],
           [1., 2.],
           [9., 8.]])
    """
    from sklearn.impute import KNNImputer

    A, observed = _with_mask(X)
    known = observed.any(axis=0)
    filled = row_column_mean(A)
    filled[:, known] = KNNImputer(n_neighbors=n_neighbors, weights=weights).fit_transform(A[:, known])
    return filled


def nmf_squared(X: npt.ArrayLike, **settings: Any) -> Floats:
    """Predict missing entries by a nonnegative factorisation, fitted by least squares.

    Parameters
    ----------
    X : array-like of shape (M, N)
        The matrix, NaN where missing, nonnegative elsewhere.
    **settings
        Passed on to `masked_nmf`.

    Returns
    -------
    ndarray of shape (M, N)
        The completed matrix. A row or column without observed entries is predicted by
        `row_column_mean`.

    Examples
    --------
    >>> X = np.outer([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    >>> X[2, 2] = np.nan
    >>> nmf_squared(X, n_components=1, tol=0, random_state=0)[2].round(3)
    array([ 6., 12., 18.])
    """
    return _complete_by_nmf(X, "squared", settings)


def nmf_kullback_leibler(X: npt.ArrayLike, **settings: Any) -> Floats:
    """Predict missing entries by a nonnegative factorisation, fitted by Kullback-Leibler divergence.

    Parameters
    ----------
    X : array-like of shape (M, N)
        The matrix, NaN where missing, nonnegative elsewhere.
    **settings
        Passed on to `masked_nmf`.

    Returns
    -------
    ndarray of shape (M, N)
        The completed matrix. A row or column without observed entries is predicted by
        `row_column_mean`.

    Examples
    --------
    >>> X = np.outer([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    >>> X[2, 2] = np.nan
    >>> nmf_kullback_leibler(X, n_components=1, tol=0, random_state=0)[2].round(3)
    array([ 6., 12., 18.])
    """
    return _complete_by_nmf(X, "kullback-leibler", settings)


BASELINES: dict[str, Callable[..., Floats]] = {
    "column_mean": column_mean,
    "row_column_mean": row_column_mean,
    "knn": nearest_neighbours,
    "nmf": nmf_squared,
    "nmf_kl": nmf_kullback_leibler,
}
"""All baselines by name."""


class MaskedNMF(NamedTuple):
    """A nonnegative factorisation W Z of the observed entries, and the objective at the start and after each update."""

    W: Floats
    Z: Floats
    objective: Floats


def masked_nmf(
    X: npt.ArrayLike,
    n_components: int = 10,
    *,
    loss: Loss = "squared",
    max_iter: int = 300,
    tol: float = 1e-5,
    init: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    random_state: Any = None,
) -> MaskedNMF:
    """Factorise the observed entries by the multiplicative updates of Lee and Seung.

    Parameters
    ----------
    X : array-like of shape (M, N)
        The matrix, NaN where missing, nonnegative elsewhere.
    n_components : int, default=10
        Rank of the factorisation.
    loss : {"squared", "kullback-leibler"}, default="squared"
        Half the squared error, or the generalised Kullback-Leibler divergence, summed over the observed
        entries.
    max_iter : int, default=300
        Maximum number of iterations, each of which updates W and then Z.
    tol : float, default=1e-5
        Stop when an iteration lowers the objective by less than this fraction of its initial value.
    init : pair of array-like, optional
        Initial W of shape (M, K) and Z of shape (K, N); drawn at random by default.
    random_state : int, numpy.random.Generator or None
        Seed or generator, as in `numpy.random.default_rng`.

    Returns
    -------
    MaskedNMF
        `W`, `Z` and `objective` (initially and after each iteration; it never increases).

    Examples
    --------
    >>> X = np.outer([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    >>> fit = masked_nmf(X, 1, random_state=0)
    >>> np.allclose(fit.W @ fit.Z, X)
    True
    """
    A, observed = _with_mask(X)
    if loss not in _UPDATES:
        raise ValueError(f"loss must be one of {sorted(_UPDATES)}, got {loss!r}")
    if (A[observed] < 0).any():
        raise ValueError(f"X must be nonnegative for NMF, but its smallest entry is {A[observed].min()}")
    update, objective = _UPDATES[loss], _OBJECTIVES[loss]
    W, Z = _start(A, observed, n_components, init, random_state)
    A, mask = np.where(observed, A, 0.0), observed.astype(float)
    path = [objective(A, mask, W @ Z)]
    for _ in range(max_iter):
        W = update(A, mask, W, Z)
        Z = update(A.T, mask.T, Z.T, W.T).T
        path.append(objective(A, mask, W @ Z))
        if path[-2] - path[-1] < tol * path[0]:
            break
    return MaskedNMF(W, Z, np.array(path))


def _update_squared(A: Floats, mask: Floats, W: Floats, Z: Floats) -> Floats:
    return W * (A @ Z.T) / np.maximum((mask * (W @ Z)) @ Z.T, _SMALLEST_DENOMINATOR)


def _update_kullback_leibler(A: Floats, mask: Floats, W: Floats, Z: Floats) -> Floats:
    return W * ((A / np.maximum(W @ Z, _SMALLEST_DENOMINATOR)) @ Z.T) / np.maximum(mask @ Z.T, _SMALLEST_DENOMINATOR)


def _half_squared_error(A: Floats, mask: Floats, fitted: Floats) -> float:
    return 0.5 * float(np.sum((A - mask * fitted) ** 2))


def _kullback_leibler(A: Floats, mask: Floats, fitted: Floats) -> float:
    positive = A > 0  # a zero entry contributes only its prediction
    ratio = A[positive] / np.maximum(fitted[positive], _SMALLEST_DENOMINATOR)
    return float(np.sum(A[positive] * np.log(ratio)) - A.sum() + np.sum(mask * fitted))


_UPDATES = {"squared": _update_squared, "kullback-leibler": _update_kullback_leibler}
_OBJECTIVES = {"squared": _half_squared_error, "kullback-leibler": _kullback_leibler}


def _start(
    A: Floats,
    observed: Bools,
    n_components: int,
    init: tuple[npt.ArrayLike, npt.ArrayLike] | None,
    random_state: Any,
) -> tuple[Floats, Floats]:
    """Return the given W and Z, or draw them such that the mean of W Z is about that of the data."""
    (M, N), K = A.shape, n_components
    if init is not None:
        W, Z = (np.asarray(factor, dtype=float) for factor in init)
        if W.shape != (M, K) or Z.shape != (K, N):
            raise ValueError(f"init must have shapes {(M, K)} and {(K, N)}, got {W.shape} and {Z.shape}")
        return W, Z
    rng = np.random.default_rng(random_state)
    scale = np.sqrt(A[observed].mean() / K)
    return scale * rng.uniform(0.5, 1.5, size=(M, K)), scale * rng.uniform(0.5, 1.5, size=(K, N))


def _complete_by_nmf(X: npt.ArrayLike, loss: Loss, settings: dict[str, Any]) -> Floats:
    """Predict by W Z, and by `row_column_mean` in rows and columns without observed entries."""
    A, observed = _with_mask(X)
    fit = masked_nmf(A, loss=loss, **settings)
    learnt = observed.any(axis=1, keepdims=True) & observed.any(axis=0)
    return np.where(observed, A, np.where(learnt, fit.W @ fit.Z, row_column_mean(A)))


def _with_mask(X: npt.ArrayLike) -> tuple[Floats, Bools]:
    """Return the matrix and the mask of its observed entries."""
    A = np.asarray(X, dtype=float)
    if A.ndim != 2:
        raise ValueError(f"X must be a matrix (2 dimensions), got {A.ndim} dimensions")
    if np.isinf(A).any():
        raise ValueError("X must be finite or NaN, but has an infinite entry")
    observed = ~np.isnan(A)
    if not observed.any():
        raise ValueError(f"X must have at least one observed entry, but all {A.shape[0]} x {A.shape[1]} are NaN")
    return A, observed
