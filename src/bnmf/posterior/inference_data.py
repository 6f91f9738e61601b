"""Draws for ArviZ: as InferenceData, or as the DataTree that ArviZ has in its place from version 1 on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bnmf.data.observed import ObservedMatrix
from bnmf.posterior.base import AXES
from bnmf.posterior.predictions import tiles
from bnmf.utils import memory

if TYPE_CHECKING:
    from bnmf.posterior.posterior import Posterior


def convert(posterior: Posterior, data: ObservedMatrix | None = None, max_entries: int | None = None) -> Any:
    """Return a posterior as what ArviZ works with, with groups on observed entries if data are given."""
    try:
        import arviz
    except ImportError as error:
        raise ImportError("to_inference_data needs ArviZ: pip install 'bnmf[arviz]'") from error
    names = {
        axis: np.arange(n) if names is None else np.asarray(names)
        for axis, n, names in zip(
            ("row", "column"), posterior.shape, (posterior.row_names, posterior.column_names), strict=True
        )
    }
    draws = posterior.align()
    drawn = (name for name, axes in AXES.items() if "draw" in axes and name != "log_density")
    variables = {name: getattr(draws, name) for name in drawn if getattr(draws, name) is not None}
    for name in ("rate_W", "rate_Z"):
        if name in variables and variables[name].shape[2] == 1:
            variables[name] = variables[name][:, :, 0]
    dims = {name: list(AXES[name][2 : found.ndim]) for name, found in variables.items()}
    groups: dict[str, Any] = {"posterior": variables}
    if posterior.log_density is not None:
        groups["sample_stats"] = {"log_density": posterior.log_density}
    coords = names | {"component": np.arange(posterior.n_components)}
    of_entries: dict[str, Any] = {}
    if data is not None:
        rows, columns, of_entries = _on_entries(posterior, data, max_entries)
        groups |= of_entries
        dims |= {name: ["entry"] for name in ("X", "lower", "upper")}
        coords["entry"] = np.arange(len(rows))
    if arviz.__version__.startswith("0."):
        found = arviz.from_dict(**groups, dims=dims, coords=coords)
    else:
        found = arviz.from_dict(groups, dims=dims, coords=coords)
    for group in of_entries:
        found[group].coords["row"] = ("entry", names["row"][rows])
        found[group].coords["column"] = ("entry", names["column"][columns])
    return found


def _on_entries(posterior: Posterior, data: ObservedMatrix, max_entries: int | None) -> tuple[Any, Any, dict[str, Any]]:
    """Return rows and columns of observed entries, or of a sample of them, and the groups of ArviZ about them."""
    rows, columns, values = data.observed_entries()
    if max_entries is not None and max_entries < len(rows):
        chosen = np.sort(np.random.default_rng(0).choice(len(rows), max_entries, replace=False))
        rows, columns, values = rows[chosen], columns[chosen], values[chosen]
    shape = (posterior.n_chains, posterior.n_draws, len(rows))
    memory.require(
        16 * shape[0] * shape[1] * shape[2],
        f"log likelihoods and predictive draws of {len(rows):,} observed entries",
        "pass max_entries= to take a sample of the entries",
    )
    lower, upper = data.limits_at(rows, columns)
    log_likelihood, predictive, rng = np.empty(shape), np.empty(shape), np.random.default_rng(0)
    for part in tiles(len(rows), 64 * shape[0] * shape[1]):
        at = rows[part], columns[part]
        sides = {} if lower is None or upper is None else {"lower": lower[part], "upper": upper[part]}
        log_likelihood[:, :, part] = posterior.log_likelihood(*at, values[part], **sides)
        predictive[:, :, part] = posterior.draws_of(*at, random_state=rng)
    groups: dict[str, Any] = {
        "posterior_predictive": {"X": predictive},
        "log_likelihood": {"X": log_likelihood},
        "observed_data": {"X": values},
    }
    if lower is not None:
        groups["constant_data"] = {"lower": lower, "upper": upper}
    return rows, columns, groups
