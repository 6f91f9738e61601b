"""Hiding entries that were observed, to see how well they are predicted."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import maximum_bipartite_matching

Index = npt.NDArray[np.intp]


class Split(NamedTuple):
    """Two boolean masks of the shape of the matrix, which together are its observed entries."""

    train: npt.NDArray[np.bool_]
    test: npt.NDArray[np.bool_]


def hold_out(X: npt.ArrayLike, unobserved: float, rng: np.random.Generator) -> Split:
    """Split the observed entries so that a given fraction of *all* entries is not in the training set.

    The training set keeps int(M N (1 - unobserved)) observed entries at random, and every row and every
    column that has an observed entry keeps at least one; the other observed entries are the test set. This is
    how Brouwer and co-workers split, and what "60% unobserved" means in the tables of
    `bnmf.experiments.published`.

    Parameters
    ----------
    X : array-like of shape (M, N)
        The matrix, NaN where missing. Rows and columns may be missing altogether.
    unobserved : float
        Fraction of the M N entries that the training set lacks, those missing from `X` included.
    rng : numpy.random.Generator
        Source of the random order.

    Returns
    -------
    Split
        The masks `train` and `test`.

    Raises
    ------
    ValueError
        If so many entries are missing already that nothing is left to test, or if so few may be kept that
        some row or column would lose all of its entries.

    Examples
    --------
    >>> X = np.arange(20.0).reshape(4, 5)
    >>> X[0, 0] = np.nan
    >>> split = hold_out(X, 0.6, np.random.default_rng(0))
    >>> int(split.train.sum()), int(split.test.sum())
    (8, 11)
    >>> hold_out(X, 0.9, np.random.default_rng(0))
    Traceback (most recent call last):
        ...
    ValueError: unobserved=0.9 leaves 2 entries for training, but 5 are needed ...
    """
    observed = ~np.isnan(_matrix(X))
    n_keep = _n_training(observed, unobserved)
    rows, columns = np.nonzero(observed)
    order = rng.permutation(len(rows))
    rows, columns = rows[order], columns[order]

    needed = _first_of_each(rows, columns)
    if len(needed) > n_keep:
        needed = _smallest_cover(rows, columns)
    if len(needed) > n_keep:
        raise ValueError(
            f"unobserved={unobserved} leaves {n_keep} entries for training, but {len(needed)} are needed to "
            "keep one in every row and column; take a smaller fraction"
        )
    # Needed entries go to the front and the others keep their order: whenever the first n_keep of the random
    # order cover all rows and columns by themselves, these are kept, as if one had drawn until it was so.
    kept = np.concatenate((needed, np.delete(np.arange(len(rows)), needed)))[:n_keep]
    train = np.zeros_like(observed)
    train[rows[kept], columns[kept]] = True
    return Split(train=train, test=observed & ~train)


def _matrix(X: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Take anything that is a matrix of numbers."""
    matrix = np.asarray(X, dtype=float)
    if matrix.ndim != 2:
        raise ValueError(f"X must be a matrix (2 dimensions), got {matrix.ndim} dimensions")
    return matrix


def _n_training(observed: npt.NDArray[np.bool_], unobserved: float) -> int:
    """Count the training entries, or say why there can be no such split."""
    if not 0 < unobserved < 1:
        raise ValueError(f"unobserved must be a fraction between 0 and 1, got {unobserved!r}")
    # The small number undoes the rounding of 1 - unobserved: 100 (1 - 0.9) is 10, not 9.
    n_keep = int(observed.size * (1 - unobserved) + 1e-9)
    if n_keep >= observed.sum():
        missing = 1 - observed.mean()
        raise ValueError(
            f"unobserved={unobserved} leaves nothing to test: {missing:.4g} of X is missing already; take a "
            "larger fraction"
        )
    return n_keep


def _first_of_each(rows: Index, columns: Index) -> Index:
    """Return the positions of the entries that come first in their row or in their column."""
    return np.union1d(np.unique(rows, return_index=True)[1], np.unique(columns, return_index=True)[1])


def _smallest_cover(rows: Index, columns: Index) -> Index:
    """Return the positions of as few entries as can touch every row and column that has any.

    A largest matching touches as many as possible two at a time; one entry is added for each row or column
    that it leaves out.
    """
    graph = sparse.csr_matrix((np.ones(len(rows), dtype=np.int8), (rows, columns)))
    partner = maximum_bipartite_matching(graph, perm_type="column")  # the column of each row, or -1
    matched = np.flatnonzero(partner[rows] == columns)
    free_row = ~np.isin(rows, rows[matched])
    free_column = ~np.isin(columns, columns[matched])
    extra_rows = np.flatnonzero(free_row)[np.unique(rows[free_row], return_index=True)[1]]
    extra_columns = np.flatnonzero(free_column)[np.unique(columns[free_column], return_index=True)[1]]
    return np.concatenate((matched, extra_rows, extra_columns))
