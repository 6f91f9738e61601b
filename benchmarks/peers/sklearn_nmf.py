"""scikit-learn's NMF. It does not support missing entries, which are replaced by zeros."""

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from benchmarks.peers.measures import by_difference


class ScikitLearn:
    """Time per iteration of coordinate descent."""

    def __init__(self, X: Any, rank: int, n_threads: int) -> None:
        self.X = sp.csr_matrix(X) if sp.issparse(X) else np.nan_to_num(X)
        self.rank = rank

    def _fit(self, n: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            NMF(self.rank, solver="cd", init="random", tol=0, max_iter=n, random_state=0).fit(self.X)

    def measure(self, n: int) -> dict[str, float]:
        return {"seconds": by_difference(self._fit, n)}
