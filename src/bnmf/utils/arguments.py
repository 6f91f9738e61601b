"""Checks of arguments: an error names the argument, what it takes and what it got."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnmf.utils.typing import Floats


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
        found = np.atleast_1d(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.ndim != 1 or found.size == 0 or not np.all((found >= 0) & (found <= 1)):
        raise ValueError(f"{name} must be a number between 0 and 1, or a list of them, got {value!r}")
    return found


def flag(value: Any, name: str) -> bool:
    """Return True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)
