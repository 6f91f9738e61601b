"""The posterior of some of the rows and columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bnmf.utils.typing import Array, Indices

if TYPE_CHECKING:
    from bnmf.posterior.posterior import Posterior


def subset(posterior: Posterior, rows: Indices, columns: Indices) -> Posterior:
    """Return the posterior of the entries in some rows and columns, for their predictions."""
    return replace(
        posterior,
        W=posterior.W[:, :, rows],
        Z=posterior.Z[..., columns],
        noise_variance=_of(posterior.noise_variance, columns, by_column=posterior.noise_variance.ndim == 3),
        row_noise=None if posterior.row_noise is None else posterior.row_noise[:, :, rows],
        noise_factor=_of_both(posterior.noise_factor, rows, columns),
        offset=None if posterior.offset is None else posterior.offset[columns],
        scale=None if posterior.scale is None else _of(posterior.scale, columns, by_column=len(posterior.scale) > 1),
        row_names=None if posterior.row_names is None else posterior.row_names[rows],
        column_names=None if posterior.column_names is None else posterior.column_names[columns],
        prior_W=None,
        row_ids=None,
        log_density=None,
    )


def _of_both(factor: Array | None, rows: Indices, columns: Indices) -> Array | None:
    if factor is None:
        return None
    return (factor if len(factor) == 1 else factor[rows])[:, columns]


def _of(numbers: Array, columns: Indices, *, by_column: bool) -> Array:
    return np.asarray(numbers)[..., columns] if by_column else numbers
