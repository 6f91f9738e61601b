"""Matrices of the benchmarks: created once per run, saved, and loaded by every worker.

``python -m benchmarks.matrices DIRECTORY NAME`` creates one, which takes more memory than loading it.
"""

import sys
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

# Size of the ratings data. With fewer ratings the number of users is reduced, so that the density stays the same.
N_USERS, N_ITEMS, N_RATINGS = 138_000, 27_000, 20_000_000


def load(name: str, directory: Path) -> Any:
    """Return a matrix by name: an array with NaN as missing, or a CSR array whose unstored entries are missing."""
    path = directory / f"{name}.joblib"
    if not path.exists():
        partial = path.with_suffix(".partial")
        joblib.dump(make(name), partial)
        partial.rename(path)
    return joblib.load(path)


def make(name: str) -> Any:
    """Create a matrix by name.

    "gdsc", "complete-MxN", "incomplete-MxN", "scattered-MxN-PERCENT" (that part missing at random), "ratings-NUMBER" or
    "ratings-NUMBER-MxN".
    """
    from bnmf.datasets import make_low_rank, make_ratings

    kind, _, size = name.partition("-")
    if kind == "gdsc":
        return _gdsc()
    if kind == "ratings":
        number, _, shape = size.partition("-")
        users, items = _sides(shape) if shape else (max(1, round(N_USERS * int(number) / N_RATINGS)), N_ITEMS)
        return make_ratings(users, items, int(number), random_state=0).data
    shape, _, percent = size.partition("-")
    rows, columns = _sides(shape)
    if kind == "scattered":
        return make_low_rank(rows, columns, 10, missing=int(percent) / 100, random_state=0).data
    if kind == "incomplete":
        return make_low_rank(rows, columns, 5, negative=True, random_state=0).data
    # Some peers accept neither missing nor negative entries.
    return make_low_rank(rows, columns, 20, missing=0.0, random_state=0).data


def entries(X: Any) -> sp.csr_matrix:
    """Return the observed entries as CSR; observed zeros are stored."""
    if sp.issparse(X):
        return sp.csr_matrix(X)
    rows, columns = np.nonzero(~np.isnan(X))
    return sp.csr_matrix((X[rows, columns], (rows, columns)), shape=X.shape)


def is_complete(X: Any) -> bool:
    """Return whether a matrix has no missing entries."""
    return not sp.issparse(X) and not np.isnan(X).any()


def _gdsc() -> npt.NDArray[np.float64]:
    """Return the GDSC matrix from the data directory, or a synthetic one of the same shape if it is not there."""
    from bnmf.datasets import DatasetError, fetch_gdsc_ic50, make_drug_response

    try:
        return fetch_gdsc_ic50(download_if_missing=False).data.to_numpy()
    except DatasetError:
        return make_drug_response(random_state=0).data


def describe(name: str) -> str:
    """Return the name of a matrix in the tables."""
    kind, _, size = name.partition("-")
    if kind == "gdsc":
        return "GDSC"
    if kind == "ratings":
        number, _, shape = size.partition("-")
        return f"{int(number) / 1e6:g} million ratings" + (f", {_shape(shape)}" if shape else "")
    shape, _, percent = size.partition("-")
    return f"{_shape(shape)}, {percent}% missing at random" if percent else f"{kind} {_shape(shape)}"


def _sides(shape: str) -> tuple[int, int]:
    rows, columns = map(int, shape.split("x"))
    return rows, columns


def _shape(shape: str) -> str:
    rows, columns = _sides(shape)
    return f"{rows:,} x {columns:,}"


if __name__ == "__main__":
    load(sys.argv[2], Path(sys.argv[1]))
