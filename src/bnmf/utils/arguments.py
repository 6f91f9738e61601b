"""Checks of arguments: an error names the argument, what it takes and what it got."""

from __future__ import annotations

import math
import operator
import os
from pathlib import Path
from typing import Any

import numpy as np

from bnmf.utils.typing import Floats, Indices

# One more than the largest seed that is drawn.
SEED_LIMIT = 2**31 - 1


def whole_number(value: Any, name: str, lowest: int) -> int:
    """Return a whole number that is at least `lowest`."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if value < lowest:
        raise ValueError(f"{name} must be at least {lowest}, got {value}")
    return int(value)


def positive(value: Any, name: str) -> float:
    """Return a number that is positive and finite."""
    if not (isinstance(value, (int, float, np.number)) and 0 < value < math.inf):
        raise ValueError(f"{name} must be a positive finite number, got {value!r}")
    return float(value)


def probability(value: Any, name: str) -> float:
    """Return a number between 0 and 1, both excluded."""
    is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not (is_number and 0 < value < 1):
        raise ValueError(f"{name} must be a number between 0 and 1, got {value!r}")
    return float(value)


def probabilities(value: Any, name: str) -> Floats:
    """Return a number or a list of numbers between 0 and 1 as a list."""
    try:
        found = np.atleast_1d(floats(value, name))
    except TypeError:
        found = np.empty(0)
    if found.ndim != 1 or found.size == 0 or not np.all((found >= 0) & (found <= 1)):
        raise ValueError(f"{name} must be a number between 0 and 1, or a list of them, got {value!r}")
    return found


def flag(value: Any, name: str) -> bool:
    """Return True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def floats(value: Any, name: str) -> Floats:
    """Return an array of real numbers."""
    try:
        found = np.asarray(value)
        if found.dtype.kind in "fiub":
            return found.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{name} must hold real numbers, got {value!r:.80}")


def numbers(given: Any, name: str) -> Floats:
    """Return an argument as an array of floats, NaN where it is masked or not available."""
    if is_pandas(given, "DataFrame", "Series"):
        given = given.astype(object).to_numpy(na_value=np.nan)
    if isinstance(given, np.ma.MaskedArray):
        given = np.ma.filled(given.astype(np.float64), np.nan)
    try:
        if np.asarray(given).dtype.kind in "mM":  # of which NumPy makes numbers
            raise TypeError
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be an array of numbers, got {type(given).__name__}") from None


def path(value: Any, name: str, kind: str = "file") -> Path:
    """Return the name of a file or directory as a path."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name} must be the name of a {kind}, got {value!r:.80}")
    found = os.fspath(value)
    if not isinstance(found, str) or not found or "\0" in found:
        raise ValueError(f"{name} must be the name of a {kind}, got {value!r:.80}")
    return Path(found)


def checkpoint_directory(value: Any) -> Path:
    """Return the argument `checkpoint` as an absolute path: a relative one changes with the working directory."""
    found = path(value, "checkpoint", "directory").absolute()
    if os.path.isfile(found):  # `Path.is_file` raises an error if the name is too long
        raise ValueError(f"checkpoint={str(value)!r} is a file: give a directory")
    return found


def positions(rows: Any, columns: Any, shape: tuple[int, int]) -> tuple[Indices, Indices]:
    """Return paired positions in a matrix."""
    if rows is None or columns is None:
        raise ValueError("rows and columns go together: give both or neither")
    found = [_whole_numbers(rows, "rows", shape[0]), _whole_numbers(columns, "columns", shape[1])]
    if found[0].shape != found[1].shape or found[0].ndim != 1:
        raise ValueError(f"rows and columns must be paired lists, got shapes {found[0].shape} and {found[1].shape}")
    return found[0], found[1]


def _whole_numbers(value: Any, name: str, size: int) -> Indices:
    try:
        found = np.atleast_1d(np.asarray(value))
    except ValueError:
        found = np.array([np.nan])
    if (found.size and found.dtype.kind not in "iu") or np.any((found < -size) | (found >= size)):
        raise IndexError(f"{name} must be whole numbers below {size}")
    return found.astype(np.intp)


def as_seed(random_state: Any) -> int:
    """Return a seed: a whole number unchanged, and otherwise one drawn from the given source."""
    if random_state is None:
        return int(np.random.randint(SEED_LIMIT))  # noqa: NPY002 (the global generator is what None means)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(SEED_LIMIT))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(SEED_LIMIT))
    try:
        seed = operator.index(random_state)
    except TypeError:
        seed = None
    if seed is None or isinstance(random_state, (bool, np.bool_)):
        raise ValueError(
            "random_state must be None, a whole number, a numpy.random.RandomState or a numpy.random.Generator, got "
            f"{random_state!r}"
        )
    if seed < 0:
        raise ValueError(f"random_state must not be negative, got {seed}")
    return seed


def as_generator(random_state: Any) -> np.random.Generator:
    """Return a generator, started from `random_state` as :func:`as_seed` takes it."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(as_seed(random_state))


def is_pandas(X: Any, *kinds: str) -> bool:
    """Return whether X is an object of pandas, found without its import, which takes 65 MB in each Dask worker."""
    return any(base.__module__.split(".")[0] == "pandas" and base.__name__ in kinds for base in type(X).__mro__)
