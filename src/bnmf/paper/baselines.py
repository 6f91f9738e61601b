"""Simple ways to fill the holes of a matrix: the bars that a model has to clear.

Every baseline is a function ``predict(X, **settings)`` of a matrix with NaN for what is missing. It returns
the matrix with every hole filled and the observed entries as they were. `BASELINES` lists them by name.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

Float = npt.NDArray[np.float64]
Loss = Literal["squared", "kullback-leibler"]

# Keeps quotients finite where a factor has died out; as in scikit-learn, so that the two can be compared.
_TINY = float(np.finfo(np.float32).eps)


def column_mean(X: npt.ArrayLike) -> Float:
    """Fill each hole with the mean of its column (of all entries, if the column is empty).

    Parameters
    ----------
    X : array-like of shape (M, N)
        The matrix, NaN where missing.

    Returns
    -------
    ndarray of shape (M, N)
        The matrix without holes.

    Examples
    --------
    >>> column_mean([[1.0, np.nan], [3.0, 8.0], [np.nan, 4.0]])
    array([[1., 6.],
           [3., 8.],
           [2., 4.]])
    """
    A, observed = _holes(X)
    counts = observed.sum(axis=0)
    sums = np.where(observed, A, 0.0).sum(axis=0)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), sums.sum() / observed.sum())
    return np.where(observed, A, means)


def row_column_mean(X: npt.ArrayLike, *, max_iter: int = 1000, tol: float = 1e-9) -> Float:
    """Fill each hole with a row effect plus a column effect, fitted by least squares to the observed entries.

    Parameters
    ----------
    X : array-like of shape (M, N)
        The matrix, NaN where missing.
    max_iter : int, default=1000
        Most rounds of fitting the rows given the columns and the columns given the rows.
    tol : float, default=1e-9
        It ends when no effect moves by more than this times the spread of the data.

    Returns
    -------
    ndarray of shape (M, N)
        The matrix without holes. A row or column with nothing observed has the effect 0.

    Examples
    --------
    >>> row_column_mean([[1.0, 2.0], [3.0, np.nan]]).round(6)
    array([[1., 2.],
           [3., 4.]])
    """
    A, observed = _holes(X)
    mean = A[observed].mean()
    rest = np.where(observed, A - mean, 0.0)
    n_in_row, n_in_column = observed.sum(axis=1), observed.sum(axis=0)
    row, column = np.zeros(A.shape[0]), np.zeros(A.shape[1])
    smallest_move = tol * np.abs(rest).max()
    for _ in range(max_iter):
        before = row
        row = (rest.sum(axis=1) - observed @ column) / np.maximum(n_in_row, 1)
        column = (rest.sum(axis=0) - row @ observed) / np.maximum(n_in_column, 1)
        if np.abs(row - before).max() <= smallest_move:
            break
    return np.where(observed, A, mean + row[:, None] + column)


def nearest_neighbours(X: npt.ArrayLike, *, n_neighbors: int = 10, weights: str = "distance") -> Float:
    """Fill each hole with the mean of that column over the most similar rows (scikit-learn's KNNImputer).

    Parameters
    ----------
    X : array-like of shape (M, N)
        The matrix, NaN where missing.
    n_neighbors : int, default=10
        How many rows to average.
    weights : {"distance", "uniform"}, default="distance"
        How to weigh them.

    Returns
    -------
    ndarray of shape (M, N)
        The matrix without holes. A column with nothing observed gets the additive prediction.

    Examples
    --------
    >>> nearest_neighbours([[1.0, 2.0], [1.0, np.nan], [9.0, 8.0]], n_neighbors=1)
    array([[1., 2.],
           [1., 2.],
           [9., 8.]])
    """
    from sklearn.impute import KNNImputer

    A, observed = _holes(X)
    known = observed.any(axis=0)
    filled = row_column_mean(A)
    filled[:, known] = KNNImputer(n_neighbors=n_neighbors, weights=weights).fit_transform(A[:, known])
    return filled


def nmf_squared(X: npt.ArrayLike, **settings: Any) -> Float:
    """Fill each hole from a nonnegative factorisation fitted by least squares; settings as `masked_nmf`.

    Parameters
    ----------
    X : array-like of shape (M, N)
        The matrix, NaN where missing, not negative elsewhere.
    **settings
        Passed on to `masked_nmf`.

    Returns
    -------
    ndarray of shape (M, N)
        The matrix without holes. A row or column with nothing observed gets the additive prediction.

    Examples
    --------
    >>> X = np.outer([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    >>> X[2, 2] = np.nan
    >>> nmf_squared(X, n_components=1, tol=0, random_state=0)[2].round(3)
    array([ 6., 12., 18.])
    """
    return _complete_by_nmf(X, "squared", settings)


def nmf_kullback_leibler(X: npt.ArrayLike, **settings: Any) -> Float:
    """Fill each hole from a nonnegative factorisation fitted by Kullback-Leibler; settings as `masked_nmf`.

    Parameters
    ----------
    X : array-like of shape (M, N)
        The matrix, NaN where missing, not negative elsewhere.
    **settings
        Passed on to `masked_nmf`.

    Returns
    -------
    ndarray of shape (M, N)
        The matrix without holes. A row or column with nothing observed gets the additive prediction.

    Examples
    --------
    >>> X = np.outer([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    >>> X[2, 2] = np.nan
    >>> nmf_kullback_leibler(X, n_components=1, tol=0, random_state=0)[2].round(3)
    array([ 6., 12., 18.])
    """
    return _complete_by_nmf(X, "kullback-leibler", settings)


BASELINES: dict[str, Callable[..., Float]] = {
    "column_mean": column_mean,
    "row_column_mean": row_column_mean,
    "knn": nearest_neighbours,
    "nmf": nmf_squared,
    "nmf_kl": nmf_kullback_leibler,
}
"""All baselines by name."""


class MaskedNMF(NamedTuple):
    """A nonnegative factorisation W Z of the observed entries, and the objective from the start on."""

    W: Float
    Z: Float
    objective: Float


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
    """Factorise the observed entries by the multiplicative updates of Lee and Seung, ignoring the holes.

    Parameters
    ----------
    X : array-like of shape (M, N)
        The matrix, NaN where missing, not negative elsewhere.
    n_components : int, default=10
        Rank of the factorisation.
    loss : {"squared", "kullback-leibler"}, default="squared"
        Half the squared error, or the generalised Kullback-Leibler divergence, summed over the observed
        entries.
    max_iter : int, default=300
        Most rounds of W and then Z.
    tol : float, default=1e-5
        It ends when a round lowers the objective by less than this fraction of the first objective.
    init : pair of array-like, optional
        W of shape (M, K) and Z of shape (K, N) to start from; without it they are drawn.
    random_state : int, numpy.random.Generator or None
        Whatever `numpy.random.default_rng` takes.

    Returns
    -------
    MaskedNMF
        `W`, `Z` and `objective` (at the start and after each round; it never rises).

    Examples
    --------
    >>> X = np.outer([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    >>> fit = masked_nmf(X, 1, random_state=0)
    >>> np.allclose(fit.W @ fit.Z, X)
    True
    """
    A, observed = _holes(X)
    if loss not in _UPDATES:
        raise ValueError(f"loss must be one of {sorted(_UPDATES)}, got {loss!r}")
    if (A[observed] < 0).any():
        raise ValueError(f"X must not be negative for NMF, got the smallest entry {A[observed].min()}")
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


def _update_squared(A: Float, mask: Float, W: Float, Z: Float) -> Float:
    return W * (A @ Z.T) / np.maximum((mask * (W @ Z)) @ Z.T, _TINY)


def _update_kullback_leibler(A: Float, mask: Float, W: Float, Z: Float) -> Float:
    return W * ((A / np.maximum(W @ Z, _TINY)) @ Z.T) / np.maximum(mask @ Z.T, _TINY)


def _half_squared_error(A: Float, mask: Float, fitted: Float) -> float:
    return 0.5 * float(np.sum((A - mask * fitted) ** 2))


def _kullback_leibler(A: Float, mask: Float, fitted: Float) -> float:
    positive = A > 0  # an entry of 0 counts with its prediction alone
    ratio = A[positive] / np.maximum(fitted[positive], _TINY)
    return float(np.sum(A[positive] * np.log(ratio)) - A.sum() + np.sum(mask * fitted))


_UPDATES = {"squared": _update_squared, "kullback-leibler": _update_kullback_leibler}
_OBJECTIVES = {"squared": _half_squared_error, "kullback-leibler": _kullback_leibler}


def _start(
    A: Float,
    observed: npt.NDArray[np.bool_],
    n_components: int,
    init: tuple[npt.ArrayLike, npt.ArrayLike] | None,
    random_state: Any,
) -> tuple[Float, Float]:
    """Draw W and Z whose product has about the mean of the data, or take those given."""
    (M, N), K = A.shape, n_components
    if init is not None:
        W, Z = (np.asarray(factor, dtype=float) for factor in init)
        if W.shape != (M, K) or Z.shape != (K, N):
            raise ValueError(f"init must have shapes {(M, K)} and {(K, N)}, got {W.shape} and {Z.shape}")
        return W, Z
    rng = np.random.default_rng(random_state)
    scale = np.sqrt(A[observed].mean() / K)
    return scale * rng.uniform(0.5, 1.5, size=(M, K)), scale * rng.uniform(0.5, 1.5, size=(K, N))


def _complete_by_nmf(X: npt.ArrayLike, loss: Loss, settings: dict[str, Any]) -> Float:
    """Fill the holes by W Z, and where a row or column has no data for it by the additive model."""
    A, observed = _holes(X)
    fit = masked_nmf(A, loss=loss, **settings)
    learnt = observed.any(axis=1, keepdims=True) & observed.any(axis=0)
    return np.where(observed, A, np.where(learnt, fit.W @ fit.Z, row_column_mean(A)))


def _holes(X: npt.ArrayLike) -> tuple[Float, npt.NDArray[np.bool_]]:
    """Return the matrix and where it is observed."""
    A = np.asarray(X, dtype=float)
    if A.ndim != 2:
        raise ValueError(f"X must be a matrix (2 dimensions), got {A.ndim} dimensions")
    if np.isinf(A).any():
        raise ValueError("X must be finite or NaN, got an infinite entry")
    observed = ~np.isnan(A)
    if not observed.any():
        raise ValueError(f"X must have an observed entry, got {A.shape[0]} x {A.shape[1]} entries of NaN")
    return A, observed
