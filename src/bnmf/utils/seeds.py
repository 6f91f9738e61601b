"""What `random_state` may be, everywhere in the package: None, a whole number, a RandomState or a Generator."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

_LIMIT = 2**31 - 1


def as_seed(random_state: Any) -> int:
    """Return a seed: a whole number unchanged, and otherwise one drawn from the given source.

    Examples
    --------
    >>> as_seed(7), as_seed(np.random.RandomState(7)) == as_seed(np.random.RandomState(7))
    (7, True)
    """
    if random_state is None:
        return int(np.random.randint(_LIMIT))  # noqa: NPY002 (the global generator is what None means)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(_LIMIT))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(_LIMIT))
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
