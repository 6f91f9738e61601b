"""Matrices of the benchmarks: created once per run, saved as plain arrays, and loaded by every worker."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from bnmf.utils.typing import Floats

# Size of the ratings data. With fewer ratings the number of users is reduced, so that the density stays the same.
N_USERS, N_ITEMS, N_RATINGS = 138_000, 27_000, 20_000_000


def load(name: str, directory: Path) -> Any:
    """Return a matrix by name: an array with NaN as missing, or a CSR array whose unstored entries are missing."""
    folder = directory / name
    if not folder.exists():
        _save(make(name), folder)
    if (folder / "dense.npy").exists():
        return np.load(folder / "dense.npy")
    data, indices, indptr, shape = (np.load(folder / f"{part}.npy") for part in ("data", "indices", "indptr", "shape"))
    return sp.csr_array((data, indices, indptr), shape=tuple(shape))


def make(name: str) -> Any:
    """Create a matrix by name: "gdsc", "complete-MxN", "incomplete-MxN" or "ratings-NUMBER"."""
    from bnmf.datasets import make_low_rank, make_ratings

    kind, _, size = name.partition("-")
    if kind == "gdsc":
        return _gdsc()
    if kind == "ratings":
        n_users = max(1, round(N_USERS * int(size) / N_RATINGS))
        return make_ratings(n_users, N_ITEMS, int(size), random_state=0).data
    rows, columns = map(int, size.split("x"))
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


def n_complete_entries(name: str) -> int:
    """Return the number of entries of a complete matrix by name, and 0 for other matrices."""
    kind, _, size = name.partition("-")
    return math.prod(map(int, size.split("x"))) if kind == "complete" else 0


def is_complete(X: Any) -> bool:
    """Return whether a matrix has no missing entries."""
    return not sp.issparse(X) and not np.isnan(X).any()


def _gdsc() -> Floats:
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
        return f"{int(size) / 1e6:g} million ratings"
    rows, columns = (f"{int(side):,}" for side in size.split("x"))
    return f"{kind} {rows} x {columns}"


def _save(X: Any, folder: Path) -> None:
    partial = folder.with_name(folder.name + ".partial")
    partial.mkdir(parents=True, exist_ok=True)
    if sp.issparse(X):
        for part in ("data", "indices", "indptr"):
            np.save(partial / f"{part}.npy", getattr(X, part))
        np.save(partial / "shape.npy", np.array(X.shape))
    else:
        np.save(partial / "dense.npy", X)
    partial.rename(folder)
