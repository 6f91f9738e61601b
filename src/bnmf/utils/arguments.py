"""Checks of arguments: an error names the argument, what it takes and what it got."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from bnmf.utils.typing import Floats, Indices


def whole_number(value: Any, name: str, lowest: int) -> int:
    """Return a whole number that is at least `lowest`.

    Examples
    --------
    >>> whole_number(0, "n_draws", 1)
    Traceback (most recent call last):
    ValueError: n_draws must be at least 1, got 0
    """
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if value < lowest:
        raise ValueError(f"{name} must be at least {lowest}, got {value}")
    return int(value)


def probability(value: Any, name: str) -> float:
    """Return a number between 0 and 1, both excluded."""
    is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not (is_number and 0 < value < 1):
        raise ValueError(f"{name} must be a number between 0 and 1, got {value!r}")
    return float(value)


def probabilities(value: Any, name: str) -> Floats:
    """Return a number or a list of numbers between 0 and 1 as a list.

    Examples
    --------
    >>> probabilities(0.5, "q")
    array([0.5])
    """
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


def path(value: Any, name: str) -> Path:
    """Return the name of a file or directory as a path."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name} must be the name of a file, got {value!r:.80}")
    found = os.fspath(value)
    if not isinstance(found, str) or not found or "\0" in found:
        raise ValueError(f"{name} must be the name of a file, got {value!r:.80}")
    return Path(found)


def checkpoint_directory(value: Any) -> Path:
    """Return the argument `checkpoint` as an absolute path: a relative one changes with the working directory."""
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value) or "\0" in str(value):
        raise ValueError(f"checkpoint must be the name of a directory, got {value!r}")
    return Path(value).absolute()


def positions(rows: Any, columns: Any, shape: tuple[int, int]) -> tuple[Indices, Indices]:
    """Return paired positions in a matrix.

    Examples
    --------
    >>> positions([0, 1], [2, -1], (2, 3))
    (array([0, 1]), array([ 2, -1]))
    """
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
        found = np.empty(0)
    if found.dtype.kind not in "iu" or np.any((found < -size) | (found >= size)):
        raise IndexError(f"{name} must be whole numbers below {size}")
    return found.astype(np.intp)
