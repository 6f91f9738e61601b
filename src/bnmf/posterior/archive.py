"""Posteriors on disk: one .npz file with arrays and a JSON header, and nothing that could be executed.

Checksums of the archive and digests of the arrays find damage and files that were not saved as a whole.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bnmf.posterior.base import AXES
from bnmf.posterior.calibration import Calibration
from bnmf.posterior.verdict import Finding
from bnmf.priors.names import from_record, to_record
from bnmf.utils import digests
from bnmf.utils.files import npz_bytes, write_bytes

if TYPE_CHECKING:
    from bnmf.posterior.posterior import Posterior

KIND, FORMAT = "bnmf posterior", 8


class PosteriorFileError(ValueError):
    """A file does not hold a posterior, or is damaged."""


def save(path: str | os.PathLike[str], draws: Posterior) -> None:
    """Write draws to a file, replacing an existing one only when the new one is complete."""
    arrays = {name: np.asarray(getattr(draws, name)) for name in AXES if getattr(draws, name) is not None}
    if draws.calibration is not None:
        arrays["calibration"] = draws.calibration.to_array()
    header = {
        "kind": KIND,
        "format": FORMAT,
        "n_observed": draws.n_observed,
        "row_names": _record(draws.row_names),
        "column_names": _record(draws.column_names),
        "prior_W": None if draws.prior_W is None else to_record(draws.prior_W),
        "nonnegative": draws.lower_bound == 0.0,
        "thinning": draws.thinning,
        "notes": [asdict(note) for note in draws.notes],
        "n_fixed": draws.n_fixed,
        "signed": draws.signed,
        "digests": {name: digests.of_arrays(array) for name, array in arrays.items()},
    }
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    write_bytes(path, npz_bytes({"header": text, **arrays}))


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the fields of the draws that :func:`save` wrote."""
    name = repr(os.fspath(path))
    if not Path(path).exists():
        raise FileNotFoundError(f"no such file: {name}")
    try:
        with open(path, "rb") as content, np.load(content, allow_pickle=False) as file:
            header = json.loads(bytes(file["header"]))
            if header.get("kind") != KIND:
                raise PosteriorFileError(f"{name} is not a posterior of bnmf")
            if header["format"] != FORMAT:
                raise PosteriorFileError(
                    f"{name} has format {header['format']}, and this version of bnmf reads {FORMAT}"
                )
            arrays = {member: file[member] for member in file.files if member != "header"}
        if header["digests"] != {member: digests.of_arrays(array) for member, array in arrays.items()}:
            raise ValueError("its arrays are not those that were saved together")
        calibration = arrays.pop("calibration", None)
        return arrays | {
            "n_observed": header["n_observed"],
            "row_names": _index(header["row_names"]),
            "column_names": _index(header["column_names"]),
            "prior_W": None if header["prior_W"] is None else from_record(header["prior_W"]),
            "lower_bound": 0.0 if header["nonnegative"] else -math.inf,
            "thinning": header["thinning"],
            "notes": tuple(Finding(**note) for note in header["notes"]),
            "n_fixed": tuple(header["n_fixed"]),
            "signed": tuple(header["signed"]),
            "calibration": None if calibration is None else Calibration.from_array(calibration),
        }
    except PosteriorFileError:
        raise
    except Exception as error:  # a damaged archive can raise almost anything
        raise PosteriorFileError(
            f"{name} is not a posterior of bnmf, or it is damaged ({type(error).__name__}: {error})"
        ) from error


def _record(names: pd.Index | None) -> Any:
    """Return names in the form of JSON: whole numbers for times, lists for levels, and text for what JSON lacks."""
    if names is None:
        return None
    if isinstance(names, pd.RangeIndex):
        return {"range": [names.start, names.stop, names.step], "name": names.name}
    if isinstance(names, pd.MultiIndex):
        levels = [_record(names.get_level_values(level)) for level in range(names.nlevels)]
        return {"levels": levels, "names": list(names.names)}
    name = names.name if isinstance(names.name, (str, int, float)) else None
    if isinstance(names, pd.DatetimeIndex):
        return {"values": names.astype("int64").tolist(), "dtype": str(names.dtype), "name": name}
    values = [value if isinstance(value, (str, int, float)) else str(value) for value in names.tolist()]
    return {"values": values, "dtype": None, "name": name}


def _index(record: Any) -> Any:
    if record is None:
        return None
    if "range" in record:
        return pd.RangeIndex(range(*record["range"]), name=record["name"])
    if "levels" in record:
        return pd.MultiIndex.from_arrays([_index(level) for level in record["levels"]], names=record["names"])
    names = pd.Index(record["values"], name=record["name"])
    return names if record["dtype"] is None else names.astype(record["dtype"])
