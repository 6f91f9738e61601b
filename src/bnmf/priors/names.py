"""Priors by name: the default, the models of the paper, and what statisticians call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bnmf.priors.base import Prior
from bnmf.priors.normals import Laplace, Normal
from bnmf.priors.norms import L1, L1Squared, L2Squared, LInf

# λ of the paper's experiments.
PAPER_RATE = 0.1

MODELS: dict[str, Callable[[float], Prior]] = {
    "gee": L1,
    "gl12": L1Squared,
    "gl22": L2Squared,
    "glinf": LInf,
    "gl22inf": lambda rate: L2Squared(rate) + LInf(rate),
}
"""The models of the paper: from λ to the prior of both factors."""

ALIASES = {"exponential": "gee", "half-normal": "gl22"}
LEARNED: dict[str, Prior] = {
    "ard": L1(by="component"),
    "normal": Normal(by="component"),
    "laplace": Laplace(by="component"),
}
"""Priors whose rates are learned."""


def as_prior(prior: Any) -> Prior:
    """Return a prior, given one or its name.

    Examples
    --------
    >>> print(as_prior("gl22inf"))
    L2Squared(rate=0.1) + LInf(rate=0.1)
    >>> print(as_prior("exponential"))
    L1(rate=0.1)
    """
    if isinstance(prior, Prior):
        return prior
    if isinstance(prior, str):
        name = ALIASES.get(prior, prior)
        if name in MODELS:
            return MODELS[name](PAPER_RATE)
        if name in LEARNED:
            return LEARNED[name]
    names = ", ".join(map(repr, [*LEARNED, *MODELS, *ALIASES]))
    raise ValueError(f"prior must be a Prior or one of {names}, got {prior!r}")


def allows_negative(prior: Any) -> bool:
    """Return whether W Z can be negative under a prior.

    Examples
    --------
    >>> allows_negative(("ard", "normal")), allows_negative("ard")
    (True, False)
    """
    return any(of_factor.is_real for of_factor in as_pair(prior))


def as_pair(prior: Any) -> tuple[Prior, Prior]:
    """Return the priors of W and Z, given one for both or a pair."""
    if isinstance(prior, (tuple, list)):
        if len(prior) != 2:
            raise ValueError(f"prior must be one prior or a pair (for W, for Z), got {len(prior)} of them")
        return as_prior(prior[0]), as_prior(prior[1])
    return as_prior(prior), as_prior(prior)
