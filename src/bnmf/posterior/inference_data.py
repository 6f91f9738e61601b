"""Draws for ArviZ: as InferenceData, or as the DataTree that ArviZ has in its place from version 1 on."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnmf.data.observed import ObservedMatrix
from bnmf.posterior import predictions
from bnmf.posterior.draws import Draws


def convert(draws: Draws, data: ObservedMatrix | None = None) -> Any:
    """Return draws as what ArviZ works with."""
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
    variables: dict[str, Any] = {"W": draws.W, "Z": draws.Z, "noise_variance": draws.noise_variance}
    dims = {"W": ["row", "component"], "Z": ["component", "column"]}
    if draws.noise_variance.ndim == 3:
        dims["noise_variance"] = ["column"]
    if draws.row_noise is not None:
        variables["row_noise"], dims["row_noise"] = draws.row_noise, ["row"]
    if draws.df is not None:
        variables["df"] = draws.df
    if draws.outlier_share is not None:
        variables["outlier_share"], dims["outlier_share"] = draws.outlier_share, ["column"]
    for name, rate in (("rate_W", draws.rate_W), ("rate_Z", draws.rate_Z)):
        if rate is not None and rate.shape[2] > 1:
            variables[name], dims[name] = rate, ["component"]
        elif rate is not None:
            variables[name] = rate[:, :, 0]
    groups: dict[str, Any] = {"posterior": variables}
    if draws.log_density is not None:
        groups["sample_stats"] = {"log_density": draws.log_density}
    if data is not None:
        rows, columns, values = data.observed_entries()
        terms = predictions.log_likelihood(draws.flat, rows, columns, values, *data.limits_at(rows, columns))
        groups["observed_data"] = {"X": values if draws.offset is None else values + draws.offset[columns]}
        groups["log_likelihood"] = {"X": terms.reshape(*draws.W.shape[:2], -1)}
        dims["X"] = ["entry"]
        coords["entry"] = np.arange(len(values))
    if arviz.__version__.startswith("0."):
        return arviz.from_dict(**groups, dims=dims, coords=coords)
    return arviz.from_dict(groups, dims=dims, coords=coords)
