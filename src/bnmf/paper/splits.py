"""Splits of the observed entries into a training and a test set."""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import maximum_bipartite_matching

from bnmf.utils.typing import Bools, Indices


def training_mask(observed: Bools, unobserved: float, rng: np.random.Generator) -> Bools:
    """Return the mask of a training set that leaves a given fraction of *all* entries out.

    The training set is a random choice of int(M N (1 - unobserved)) observed entries, with at least one entry in every
    row and every column that has any. The other observed entries are the test set. This is the protocol of Brouwer et
    al., and the meaning of "60% unobserved" in the tables of the paper.
    """
    if not 0 < unobserved < 1:
        raise ValueError(f"unobserved must be a fraction between 0 and 1, got {unobserved!r}")
    # The small constant compensates for rounding of 1 - unobserved: 100 (1 - 0.9) is 10, not 9.
    n_keep = int(observed.size * (1 - unobserved) + 1e-9)
    if n_keep >= observed.sum():
        raise ValueError(
            f"unobserved={unobserved} leaves nothing to test: {1 - observed.mean():.4g} of X is missing already; take "
            "a larger fraction"
        )
    rows, columns = np.nonzero(observed)
    order = rng.permutation(len(rows))
    rows, columns = rows[order], columns[order]
    needed = np.union1d(_first_of_each(rows), _first_of_each(columns))
    if len(needed) > n_keep:
        needed = _smallest_cover(rows, columns)
    if len(needed) > n_keep:
        raise ValueError(
            f"unobserved={unobserved} leaves {n_keep} entries for training, but {len(needed)} are needed to "
            "keep one in every row and column; take a smaller fraction"
        )
    # The needed entries come first, and the others keep their random order. If the first n_keep entries of that order
    # already cover all rows and columns, they are the training set, as with rejection sampling.
    kept = np.concatenate((needed, np.delete(np.arange(len(rows)), needed)))[:n_keep]
    train = np.zeros_like(observed)
    train[rows[kept], columns[kept]] = True
    return train


def _first_of_each(labels: Indices) -> Indices:
    """Return the position of the first occurrence of each label."""
    return np.unique(labels, return_index=True)[1]


def _smallest_cover(rows: Indices, columns: Indices) -> Indices:
    """Return the positions of a smallest set of entries that covers every row and column.

    This is a minimum edge cover of a bipartite graph: a maximum matching, plus one entry for each row or column that
    the matching does not cover.
    """
    graph = sparse.csr_matrix((np.ones(len(rows), dtype=np.int8), (rows, columns)))
    partner = maximum_bipartite_matching(graph, perm_type="column")  # the column of each row, or -1
    matched = np.flatnonzero(partner[rows] == columns)
    uncovered = [np.flatnonzero(~np.isin(labels, labels[matched])) for labels in (rows, columns)]
    extra = [at[_first_of_each(labels[at])] for labels, at in zip((rows, columns), uncovered, strict=True)]
    return np.concatenate((matched, *extra))
