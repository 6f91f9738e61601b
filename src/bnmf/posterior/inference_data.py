"""Draws as ArviZ InferenceData."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnmf.data.observed import ObservedMatrix
from bnmf.posterior import predictions
from bnmf.posterior.draws import Draws


def convert(draws: Draws, data: ObservedMatrix | None = None) -> Any:
    """Return draws as ArviZ InferenceData.

    Parameters
    ----------
    draws : Draws
        The draws.
    data : ObservedMatrix, optional
        The fitted data, for the groups ``observed_data`` and ``log_likelihood``.

    Returns
    -------
    arviz.InferenceData
        The same draws with named dimensions.
    """
    try:
        import arviz
    except ImportError as error:
        raise ImportError("to_inference_data needs ArviZ: pip install 'bnmf[arviz]'") from error
    n_rows, n_columns = draws.shape
    coords: dict[str, Any] = {
        "row": np.arange(n_rows) if draws.row_names is None else np.asarray(draws.row_names),
        "column": np.arange(n_columns) if draws.column_names is None else np.asarray(draws.column_names),
        "component": np.arange(draws.n_components),
    }
    groups: dict[str, Any] = {"posterior": {"W": draws.W, "Z": draws.Z, "noise_variance": draws.noise_variance}}
    dims = {"W": ["row", "component"], "Z": ["component", "column"]}
    if draws.train_mse.shape[1] >= draws.n_draws:
        groups["sample_stats"] = {"train_mse": draws.train_mse[:, -draws.n_draws :]}
    if data is not None:
        rows, columns, values = data.observed_entries()
        terms = predictions.log_likelihood(*draws.flat, rows, columns, values)
        groups["observed_data"] = {"X": values}
        groups["log_likelihood"] = {"X": terms.reshape(draws.n_chains, draws.n_draws, -1)}
        dims["X"] = ["entry"]
        coords["entry"] = np.arange(len(values))
    return arviz.from_dict(**groups, dims=dims, coords=coords)
