"""Data in every storage that a matrix may have."""

import numpy as np
import scipy.sparse as sp

from bnmf.data import ObservedMatrix

NAN = np.nan
ROWS = 23


def storages():
    """Return the same kind of matrix in every storage: name, data, an array with NaN, and which entries are stored."""
    rng = np.random.default_rng(0)
    X = rng.uniform(1.0, 2.0, size=(ROWS, 8))
    X[rng.uniform(size=X.shape) < 0.2] = 0.0
    X[5, :6] = X[11, 1:] = NAN  # rows that list their observed entries
    X[:17, 3] = NAN  # and a column
    X[rng.uniform(size=X.shape) < 0.1] = NAN
    X[9], X[10] = 1.5, NAN  # a row without missing entries, and one without observed ones
    few = np.where(rng.uniform(size=X.shape) < 0.4, X, NAN)
    zeros = np.where(np.isnan(X) | (rng.uniform(size=X.shape) < 0.25), X, 0.0)
    zeros[:, :3][~np.isnan(zeros[:, :3])] = 0.0
    zeros[np.isnan(zeros) & (rng.uniform(size=X.shape) < 0.4)] = 0.0
    zeros[11, 1:] = NAN
    zeros[2, 0] = 0.0
    stored = zeros != 0.0
    stored[2, 0] = True  # a zero
    sparse = sp.coo_array((zeros[stored], np.nonzero(stored)), shape=X.shape)
    return {
        "dense": (ObservedMatrix.from_data(X), X, ~np.isnan(X)),
        "listed": (ObservedMatrix.from_data(few), few, ~np.isnan(few)),
        "sparse": (ObservedMatrix.from_data(sparse), zeros, stored),
    }
