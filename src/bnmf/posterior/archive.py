"""Posteriors on disk: one .npz file with arrays and a JSON header, and nothing that could be executed."""

from __future__ import annotations

import json
import math
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bnmf.data.containers import LARGEST, LARGEST_SQUARE, SMALLEST
from bnmf.posterior.calibration import Calibration
from bnmf.posterior.draws import Draws
from bnmf.priors.names import from_record, to_record
from bnmf.utils import digests
from bnmf.utils.files import npz_bytes, write_bytes

KIND = "bnmf posterior"
FORMAT = 7
ARRAYS = {"W": (4,), "Z": (4,), "noise_variance": (2, 3), "train_mse": (2,)}
"""Arrays of every file with their possible numbers of dimensions."""
OPTIONAL = {
    "log_density": ("chain", "draw"),
    "row_noise": ("chain", "draw", "row"),
    "row_strength": ("chain", "draw"),
    "df": ("chain", "draw"),
    "noise_factor": ("row", "column"),
    "rate_W": ("chain", "draw", "component"),
    "rate_Z": ("chain", "draw", "component"),
    "offset": ("column",),
    "scale": ("column",),
}
"""Arrays that a file may hold, with their axes. The last axis of rates and scales may have length 1."""


SIGNED = ("log_density", "offset", "calibration")
"""Arrays whose numbers may be negative, apart from factors of which the header says so."""
POSITIVE = ("df", "noise_factor", "noise_variance", "row_noise", "row_strength", "rate_W", "rate_Z", "scale")
"""Arrays whose numbers are above zero."""


class PosteriorFileError(ValueError):
    """A file does not hold a posterior, or is damaged."""


def save(path: str | os.PathLike[str], draws: Draws) -> None:
    """Write draws to a file, replacing an existing one only when the new one is complete."""
    arrays = {name: np.asarray(getattr(draws, name)) for name in ARRAYS}
    for name in (*OPTIONAL, "row_ids"):
        if getattr(draws, name) is not None:
            arrays[name] = np.asarray(getattr(draws, name))
    if draws.calibration is not None:
        arrays["calibration"] = draws.calibration.to_array()
    header = {
        "kind": KIND,
        "format": FORMAT,
        "n_observed": draws.n_observed,
        "row_names": _names(draws.row_names),
        "column_names": _names(draws.column_names),
        "prior_W": None if draws.prior_W is None else to_record(draws.prior_W),
        "nonnegative": draws.lower_bound == 0.0,
        "thinning": draws.thinning,
        "notes": list(draws.notes),
        "n_fixed": list(draws.n_fixed),
        "signed": list(draws.signed),
        "digests": {name: digests.of_arrays(array) for name, array in arrays.items()},
    }
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    write_bytes(path, npz_bytes({"header": text, **arrays}))


def load(path: str | os.PathLike[str]) -> Draws:
    """Read draws that :func:`save` wrote."""
    if not Path(path).exists():
        raise FileNotFoundError(f"no such file: {os.fspath(path)!r}")
    try:
        with open(path, "rb") as content, np.load(content, allow_pickle=False) as file:
            _refuse_compressed(file)
            header = json.loads(bytes(file["header"]))
            if header.get("kind") != KIND:
                raise PosteriorFileError(f"{os.fspath(path)!r} is not a posterior of bnmf")
            if header["format"] != FORMAT:
                raise PosteriorFileError(
                    f"{os.fspath(path)!r} has format {header['format']}, and this version of bnmf reads {FORMAT}"
                )
            names = [
                name for name in (*ARRAYS, *OPTIONAL, "row_ids", "calibration") if name in ARRAYS or name in file.files
            ]
            arrays = {name: file[name] for name in names}
        return _validated(header, arrays)
    except PosteriorFileError:
        raise
    except Exception as error:  # a damaged archive can raise almost anything
        raise PosteriorFileError(
            f"{os.fspath(path)!r} is not a posterior of bnmf, or it is damaged ({type(error).__name__}: {error})"
        ) from error


def _refuse_compressed(file: Any) -> None:
    """Raise an error if a member is larger than what it takes in the file: a small file could fill the memory."""
    for member in file.zip.infolist():
        if member.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"{member.filename} is compressed")


def _validated(header: dict[str, Any], arrays: dict[str, Any]) -> Draws:
    for name, n_dimensions in ARRAYS.items():
        array = arrays[name]
        if array.ndim not in n_dimensions or array.dtype not in (np.float32, np.float64):
            raise ValueError(f"{name} has dtype {array.dtype} and {array.ndim} dimensions")
    n_chains, n_draws, n_rows, k = arrays["W"].shape
    n_columns = arrays["Z"].shape[3]
    variance = arrays["noise_variance"].shape
    fits = arrays["Z"].shape[:3] == (n_chains, n_draws, k) and variance[:2] == (n_chains, n_draws)
    fits = fits and variance[2:] in ((), (n_columns,))
    sizes = {"chain": n_chains, "draw": n_draws, "row": n_rows, "column": n_columns, "component": k}
    for name in OPTIONAL.keys() & arrays.keys():
        expected = tuple(sizes[axis] for axis in OPTIONAL[name])
        shape, may_be_one = arrays[name].shape, name in ("rate_W", "rate_Z", "scale")
        if name == "noise_factor" and shape[:1] == (1,):  # the same for all rows
            expected = (1, *expected[1:])
        if arrays[name].dtype != np.float64 or not (shape == expected or (may_be_one and shape == (*expected[:-1], 1))):
            raise ValueError(f"{name} has dtype {arrays[name].dtype} and shape {shape}")
    signed = header["signed"]
    if not isinstance(signed, list) or [type(x) for x in signed] != [bool, bool]:
        raise ValueError(f"signed is {signed!r}")
    may_be_negative = {*SIGNED, *(name for name, is_signed in zip("WZ", signed, strict=True) if is_signed)}
    _check_numbers({name: array for name, array in arrays.items() if name != "row_ids"}, may_be_negative)
    ids = arrays.get("row_ids")
    if ids is not None and (ids.shape != (n_rows,) or ids.dtype != np.uint64):
        raise ValueError(f"row_ids has dtype {ids.dtype} and shape {ids.shape}")
    hidden = arrays.get("calibration")
    if hidden is not None and (hidden.dtype != np.float64 or hidden.ndim != 2 or hidden.shape[0] != 4):
        raise ValueError(f"calibration has dtype {hidden.dtype} and shape {hidden.shape}")
    if hidden is not None and not np.isin(hidden[0], np.arange(n_columns)).all():
        raise ValueError("calibration names columns that do not exist")
    thinning, n_observed = (_count(header, name) for name in ("thinning", "n_observed"))
    if thinning < 1 or n_observed > n_rows * n_columns:
        raise ValueError(f"thinning is {thinning} and n_observed {n_observed}")
    if not isinstance(header["nonnegative"], bool):
        raise ValueError(f"nonnegative is {header['nonnegative']!r}")
    notes = header["notes"]
    if not isinstance(notes, list) or not all(isinstance(note, str) and note for note in notes):
        raise ValueError("its notes are not sentences")
    fixed = header["n_fixed"]
    if not isinstance(fixed, list) or [type(n) for n in fixed] != [int, int] or min(fixed) < 0 or sum(fixed) > k:
        raise ValueError(f"n_fixed is {fixed!r}")
    n_sweeps = arrays["train_mse"].shape[1]
    if not fits or arrays["train_mse"].shape[0] != n_chains or n_sweeps < n_draws * thinning:
        raise ValueError("the shapes of its arrays do not match")
    _check_predictions(arrays)
    prior = None if header["prior_W"] is None else from_record(header["prior_W"])
    if prior is not None:
        learned = prior.learned
        if learned is not None and "rate_W" not in arrays:
            raise ValueError("the rate of its prior is learned, and there are no draws of it")
        # Raises an error if the rates have another shape.
        (prior if learned is None else learned.with_rate(1.0)).coefficients((n_rows, k))
    # Last, because the errors above say more. Without it, a missing array of offsets would be taken for none.
    if header["digests"] != {name: digests.of_arrays(array) for name, array in arrays.items()}:
        raise ValueError("its arrays are not those that were saved together")
    optional: dict[str, Any] = {name: arrays.get(name) for name in OPTIONAL}
    return Draws(
        **{name: arrays[name] for name in ARRAYS},
        n_observed=n_observed,
        row_names=_index(header["row_names"], n_rows),
        column_names=_index(header["column_names"], n_columns),
        prior_W=prior,
        row_ids=ids,
        **optional,
        lower_bound=0.0 if header["nonnegative"] else -math.inf,
        thinning=thinning,
        notes=tuple(notes),
        n_fixed=(fixed[0], fixed[1]),
        signed=(signed[0], signed[1]),
        calibration=None if hidden is None else Calibration.from_array(hidden),
    )


def _check_numbers(arrays: dict[str, Any], may_be_negative: set[str]) -> None:
    """Raise an error if an array holds numbers that no fit gives."""
    for name, array in arrays.items():
        if 0 in array.shape:
            raise ValueError(f"{name} is empty")
        lowest = float(np.min(array))  # NaN if there is one
        if not (math.isfinite(lowest) and math.isfinite(float(np.max(array)))):
            raise ValueError(f"{name} holds numbers that are not finite")
        if (lowest < 0.0 and name not in may_be_negative) or (lowest == 0.0 and name in POSITIVE):
            raise ValueError(f"{name} holds numbers that are not {'positive' if name in POSITIVE else 'nonnegative'}")
        if max(-lowest, float(np.max(array))) > (LARGEST if name in ("offset", "scale") else LARGEST_SQUARE):
            raise ValueError(f"{name} holds numbers that are too large")
        if name == "scale" and lowest < SMALLEST:
            raise ValueError(f"{name} holds numbers that are too small")


def _check_predictions(arrays: dict[str, Any]) -> None:
    """Raise an error if predictions from numbers that are finite would not be."""
    with np.errstate(over="ignore"):
        largest_W, largest_Z = (
            np.maximum(arrays[name].max(axis=axis), -arrays[name].min(axis=axis)) for name, axis in (("W", 2), ("Z", 3))
        )
        products = (largest_W.astype(np.float64) * largest_Z).sum(axis=2)
        variance = arrays["noise_variance"].max() * (arrays["row_noise"].max() if "row_noise" in arrays else 1.0)
    if not (products.max() < math.sqrt(LARGEST_SQUARE) and variance < LARGEST_SQUARE):
        raise ValueError("its predictions leave the range of floating-point numbers")


def _count(header: dict[str, Any], name: str) -> int:
    """Return a number of the header that counts something."""
    value = header[name]
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{name} is {value!r}")
    return value


def _names(names: pd.Index | None) -> list[Any] | None:
    if names is None:
        return None
    return [name if isinstance(name, (str, int, float)) else str(name) for name in names.tolist()]


def _index(names: list[Any] | None, size: int) -> pd.Index | None:
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, (str, int, float)) for name in names):
        raise ValueError("its names of rows or columns are not a list of words and numbers")
    if len(names) != size:
        raise ValueError(f"{len(names)} names for {size} rows or columns")
    return pd.Index(names)
