"""Data and their posterior means: missing and limited entries filled with them, and their squared error."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from bnmf.data.limits import nearest
from bnmf.data.observed import ObservedMatrix
from bnmf.utils import memory


def completed(data: ObservedMatrix, posterior: Any, out: Any = None) -> Any:
    """Return the completed matrix: `out` if it is given, else a DataFrame if the rows have names, else an array."""
    if out is None and not data.in_memory:
        raise ValueError(
            "impute() of data on a cluster would bring them all to this machine: pass out= a memory map, or ask "
            "posterior_.mean(rows, columns) for the entries that you need"
        )
    if out is None:
        memory.require(
            8 * data.shape[0] * data.shape[1],
            f"the completed matrix of {data.shape[0]:,} x {data.shape[1]:,} entries",
            "pass out= a memory map, or ask posterior_.mean(rows, columns) for the entries that you need",
        )
    elif not isinstance(out, np.ndarray) or out.shape != data.shape or out.dtype.kind != "f":
        raise ValueError(f"out must be an array of floats of shape {data.shape}, got {type(out).__name__}")
    elif not out.flags.writeable:
        raise ValueError("out must be an array that can be written to")
    filled = np.empty(data.shape) if out is None else out
    for rows, block in data.blocks():
        filled[rows] = np.where(np.isnan(block), posterior.mean_of_rows(rows), block)
        if (limits := data.limits_of(rows)) is not None:
            at = rows.start + limits.rows, limits.columns
            filled[at] = posterior.mean_between(*at, limits.lower, limits.upper)
    if data.row_names is None or out is not None:
        return filled
    return pd.DataFrame(filled, index=data.row_names, columns=data.column_names)


def completed_sparse(data: ObservedMatrix, posterior: Any) -> sp.csr_array:
    """Return sparse data with their stored missing and limited entries filled."""
    missing = data.missing_entries()
    if data.has_implicit_zeros:
        rows, columns, values = data.stored_entries()
        values[np.isnan(values)] = posterior.mean(*missing)
    else:
        rows, columns, values = data.observed_entries()
        rows, columns = (np.concatenate(pair) for pair in zip((rows, columns), missing, strict=True))
        values = np.concatenate([values, posterior.mean(*missing)])
    if (limits := data.limits) is not None:
        order = np.argsort(flat := data.flat(rows, columns))
        means = posterior.mean_between(limits.rows, limits.columns, limits.lower, limits.upper)
        values[order[np.searchsorted(flat[order], limits.flat)]] = means
    return sp.coo_array((values, (rows, columns)), shape=data.shape).tocsr()


def root_squared_error(data: ObservedMatrix, posterior: Any) -> float:
    """Return the root of the squared error of the observed entries; of a limited one the distance to its interval."""
    if data.in_memory and not data.has_implicit_zeros:
        rows, columns, values = data.observed_entries()
        mean = posterior.mean(rows, columns)
        return float(np.linalg.norm(nearest(values, *data.limits_at(rows, columns), mean) - mean))
    total = 0.0
    for some, block in data.blocks():
        mean = posterior.mean_of_rows(some)
        if (limits := data.limits_of(some)) is not None:
            at = limits.rows, limits.columns
            block[at] = np.clip(mean[at], limits.lower, limits.upper)
        total += np.nansum((block - mean) ** 2)
    return math.sqrt(total)
