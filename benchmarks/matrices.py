"""The matrices: made once in a run, kept as plain arrays in its directory, loaded by every contestant from there."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

# Users and items of 20 million ratings; fewer ratings have fewer users, at the same density.
N_USERS, N_ITEMS, N_RATINGS = 138_000, 27_000, 20_000_000


def load(name: str, directory: Path) -> Any:
    """Return a matrix by its name: an array with NaN for holes, or a CSR array whose unstored entries are holes."""
    folder = directory / name
    if not folder.exists():
        _save(make(name), folder)
    if (folder / "dense.npy").exists():
        return np.load(folder / "dense.npy")
    data, indices, indptr, shape = (np.load(folder / f"{part}.npy") for part in ("data", "indices", "indptr", "shape"))
    return sp.csr_array((data, indices, indptr), shape=tuple(shape))


def make(name: str) -> Any:
    """Make a matrix by its name: "gdsc", "full-ROWSxCOLUMNS", "holes-ROWSxCOLUMNS" or "ratings-NUMBER"."""
    from bnmf.datasets import make_low_rank, make_ratings

    kind, _, size = name.partition("-")
    if kind == "gdsc":
        return _gdsc()
    if kind == "ratings":
        n_users = max(1, round(N_USERS * int(size) / N_RATINGS))
        return make_ratings(n_users, N_ITEMS, int(size), random_state=0).data
    rows, columns = map(int, size.split("x"))
    if kind == "holes":
        return make_low_rank(rows, columns, 5, negative=True, random_state=0).data
    # Some peers take neither holes nor negative entries.
    return make_low_rank(rows, columns, 20, missing=0.0, random_state=0).data


def entries(X: Any) -> sp.csr_matrix:
    """Return the observed entries as CSR, an observed zero stored as such."""
    if sp.issparse(X):
        return sp.csr_matrix(X)
    rows, columns = np.nonzero(~np.isnan(X))
    return sp.csr_matrix((X[rows, columns], (rows, columns)), shape=X.shape)


def full_entries(name: str) -> int:
    """Return the number of entries of a full matrix by its name, and 0 for another."""
    kind, _, size = name.partition("-")
    return math.prod(map(int, size.split("x"))) if kind == "full" else 0


def is_full(X: Any) -> bool:
    """Tell whether a matrix has no holes."""
    return not sp.issparse(X) and not np.isnan(X).any()


def _gdsc() -> np.ndarray:
    """Return the real matrix from the data directory, or one like it."""
    from bnmf.datasets import DatasetError, fetch_gdsc_ic50, make_drug_response

    try:
        return fetch_gdsc_ic50(download_if_missing=False).data.to_numpy()
    except DatasetError:
        return make_drug_response(random_state=0).data


def describe(name: str) -> str:
    """Return the name of a matrix for people."""
    kind, _, size = name.partition("-")
    if kind == "gdsc":
        return "GDSC"
    if kind == "ratings":
        return f"{int(size) / 1e6:g} million ratings"
    rows, columns = (f"{int(side):,}" for side in size.split("x"))
    return f"full {rows} x {columns}" if kind == "full" else f"{rows} x {columns} with holes"


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
