"""Where finished fits are kept: one small file each, written at once and whole."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bnmf.experiments.fits import Fit, Result, as_matrix, sampler_fingerprint


def data_fingerprint(X: Any) -> str:
    """Return a short text that tells one matrix from another.

    Parameters
    ----------
    X : DataFrame or array-like
        The data, NaN where missing.

    Returns
    -------
    str
        Sixteen hexadecimal digits.

    Examples
    --------
    >>> data_fingerprint([[1.0, 2.0]]) == data_fingerprint([[1, 2]]) != data_fingerprint([[1.0], [2.0]])
    True
    """
    matrix: npt.NDArray[np.float64] = np.ascontiguousarray(as_matrix(X))
    matrix = np.where(np.isnan(matrix), np.nan, matrix + 0.0)  # one bit pattern for NaN, and one for zero
    return hashlib.sha256(str(matrix.shape).encode() + matrix.tobytes()).hexdigest()[:16]


class Store:
    """Finished fits in a directory.

    A fit is found again by its settings, its data and what the sampler draws. A file that was cut short or is no
    result counts as not there.

    Parameters
    ----------
    directory : path-like
        Where the files are; made when the first is written.
    fingerprints : dict of str to str
        Fingerprint of the data, by name of the data set.
    """

    def __init__(self, directory: str | os.PathLike[str], fingerprints: dict[str, str]) -> None:
        self.directory = Path(directory)
        self.fingerprints = fingerprints

    def key(self, fit: Fit) -> str:
        """Return the name under which a fit is kept."""
        identity = {"fit": fit.settings(), "data": self.fingerprints[fit.dataset]}
        if not fit.is_baseline:
            identity["sampler"] = sampler_fingerprint(fit.model)
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:32]

    def path(self, fit: Fit) -> Path:
        """Return the file of a fit."""
        return self.directory / f"{self.key(fit)}.npz"

    def load(self, fit: Fit) -> Result | None:
        """Return the result of a fit, or None if it is not there.

        Parameters
        ----------
        fit : Fit
            Which one.

        Returns
        -------
        dict of str to ndarray, or None
            What `save` was given.
        """
        try:
            # NumPy leaves a file that it cannot read open, and bytes need no closing.
            content = io.BytesIO(self.path(fit).read_bytes())
            with np.load(content, allow_pickle=False) as file:
                return {name: file[name] for name in file.files if name != "fit"}
        except (FileNotFoundError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
            return None

    def save(self, fit: Fit, result: Result) -> None:
        """Write a result: nobody ever sees half of it.

        Parameters
        ----------
        fit : Fit
            What was run.
        result : dict of str to ndarray
            What came out.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self.directory, prefix=".writing-", suffix=".npz")
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez_compressed(file, fit=np.array(json.dumps(fit.settings())), **result)  # type: ignore[arg-type]
            os.replace(name, self.path(fit))
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
