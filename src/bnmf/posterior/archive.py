"""Posteriors on disk: one .npz file with arrays and a JSON header, and nothing that could run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bnmf.priors import Coefficients
from bnmf.store import npz_bytes, write_atomically

KIND = "bnmf posterior"
FORMAT = 1
ARRAYS = {"W": 4, "Z": 4, "noise_variance": 2, "train_mse": 2}


class PosteriorFileError(ValueError):
    """A file that is no posterior, or a damaged one."""


def save(path: str | os.PathLike[str], posterior: Any) -> None:
    """Write a posterior, replacing what was there only when the new file is whole."""
    prior = posterior.prior_W
    header = {
        "kind": KIND,
        "format": FORMAT,
        "n_observed": posterior.n_observed,
        "row_names": _names(posterior.row_names),
        "column_names": _names(posterior.column_names),
        "prior_W": None if prior is None else [prior.coupling, prior.slope, prior.published],
    }
    arrays = {name: np.asarray(getattr(posterior, name)) for name in ARRAYS}
    if prior is not None:
        arrays |= {"linear_W": prior.linear, "quadratic_W": prior.quadratic}
    if posterior.row_ids is not None:
        arrays["row_ids"] = posterior.row_ids
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    write_atomically(Path(path), npz_bytes(header=text, **arrays))


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the constructor arguments of a posterior, or say what is wrong with the file."""
    if not Path(path).exists():
        raise FileNotFoundError(f"no such file: {os.fspath(path)!r}")
    try:
        with open(path, "rb") as content, np.load(content, allow_pickle=False) as file:
            header = json.loads(bytes(file["header"]))
            if header.get("kind") != KIND:
                raise PosteriorFileError(f"{os.fspath(path)!r} is no posterior of bnmf")
            if header["format"] > FORMAT:
                raise PosteriorFileError(
                    f"{os.fspath(path)!r} has format {header['format']}, and this version of bnmf reads up to {FORMAT}"
                )
            arrays = {name: file[name] for name in file.files if name != "header"}
        return _checked(header, arrays)
    except PosteriorFileError:
        raise
    except Exception as error:  # whatever a damaged archive makes its readers raise
        raise PosteriorFileError(
            f"{os.fspath(path)!r} is no posterior of bnmf, or it is damaged ({type(error).__name__}: {error})"
        ) from error


def _checked(header: dict[str, Any], arrays: dict[str, Any]) -> dict[str, Any]:
    for name, n_dimensions in ARRAYS.items():
        array = arrays[name]
        if array.ndim != n_dimensions or array.dtype.kind != "f":
            raise ValueError(f"{name} has dtype {array.dtype} and {array.ndim} dimensions")
    n_chains, n_draws, n_rows, k = arrays["W"].shape
    fits = arrays["Z"].shape[:3] == (n_chains, n_draws, k) and arrays["noise_variance"].shape == (n_chains, n_draws)
    names = [_index(header[key], size) for key, size in (("row_names", n_rows), ("column_names", arrays["Z"].shape[3]))]
    ids = arrays.get("row_ids", np.zeros(n_rows, np.uint64))
    if not fits or arrays["train_mse"].shape[0] != n_chains or ids.shape != (n_rows,) or ids.dtype != np.uint64:
        raise ValueError("the shapes of its arrays do not belong together")
    prior = None
    if header["prior_W"] is not None:
        coupling, slope, published = header["prior_W"]
        prior = Coefficients(arrays["linear_W"], arrays["quadratic_W"], float(coupling), float(slope), bool(published))
    return {
        **{name: arrays[name] for name in ARRAYS},
        "n_observed": int(header["n_observed"]),
        "row_names": names[0],
        "column_names": names[1],
        "prior_W": prior,
        "row_ids": arrays.get("row_ids"),
    }


def _names(names: pd.Index | None) -> list[Any] | None:
    if names is None:
        return None
    return [name if isinstance(name, (str, int, float)) else str(name) for name in names.tolist()]


def _index(names: list[Any] | None, size: int) -> pd.Index | None:
    if names is None:
        return None
    if len(names) != size:
        raise ValueError(f"{len(names)} names for {size} rows or columns")
    return pd.Index(names)
