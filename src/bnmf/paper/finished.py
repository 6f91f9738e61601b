"""Finished fits on disk: one small file for each fit."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from bnmf.paper.fits import Fit, Result, as_matrix, sampler_fingerprint
from bnmf.utils import atomic, digests


def data_fingerprint(X: Any) -> str:
    """Return a fingerprint of a matrix.

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
    matrix = as_matrix(X)
    # NaN and zero have several bit patterns: use one of each.
    return digests.of_arrays(np.where(np.isnan(matrix), np.nan, matrix + 0.0))[:16]


class FinishedFits:
    """The results of finished fits in a directory.

    A fit is identified by its settings, by its data and by the fingerprint of the sampler. A truncated or unreadable
    file counts as missing.

    Parameters
    ----------
    directory : path-like
        Directory of the files; created when the first one is written.
    fingerprints : dict of str to str
        Fingerprint of the data, by name of the data set.
    """

    def __init__(self, directory: str | os.PathLike[str], fingerprints: dict[str, str]) -> None:
        self.directory = Path(directory)
        self.fingerprints = fingerprints

    def key(self, fit: Fit) -> str:
        """Return the identifier of a fit."""
        identity = {"fit": fit.settings(), "data": self.fingerprints[fit.dataset]}
        if not fit.is_baseline:
            identity["sampler"] = sampler_fingerprint(fit.model)
        return digests.of_json(identity)[:32]

    def path(self, fit: Fit) -> Path:
        """Return the file of a fit."""
        return self.directory / f"{self.key(fit)}.npz"

    def load(self, fit: Fit) -> Result | None:
        """Return the result of a fit, or None if it has not been saved.

        Parameters
        ----------
        fit : Fit
            The fit.

        Returns
        -------
        dict of str to ndarray, or None
            The result as passed to `save`.
        """
        try:
            # np.load leaves a file that it cannot read open. Bytes need no closing.
            content = io.BytesIO(self.path(fit).read_bytes())
            with np.load(content, allow_pickle=False) as file:
                return {name: file[name] for name in file.files if name != "fit"}
        except (FileNotFoundError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
            return None

    def save(self, fit: Fit, result: Result) -> None:
        """Write a result in one step.

        Parameters
        ----------
        fit : Fit
            The fit.
        result : dict of str to ndarray
            Its result.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        settings = np.array(json.dumps(fit.settings()))
        atomic.write_bytes(self.path(fit), atomic.npz_bytes({"fit": settings, **result}, compressed=True))
