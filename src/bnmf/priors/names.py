"""Priors by name, and as JSON for files and checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

from bnmf.priors.base import Gamma, Prior, Sum, Term
from bnmf.priors.terms import L1, L1Squared, L2Squared, Laplace, LInf, Normal

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

LEARNED: dict[str, Prior] = {
    "ard": L1(by="component"),
    "exponential": L1(by="component"),
    "half-normal": L2Squared(by="component"),
    "normal": Normal(by="component"),
    "laplace": Laplace(by="component"),
}
"""Priors with a learned rate for each component."""


def as_prior(prior: Any) -> Prior:
    """Return a prior, given one or its name."""
    if isinstance(prior, Prior):
        return prior
    if isinstance(prior, str):
        if prior in MODELS:
            return MODELS[prior](PAPER_RATE)
        if prior in LEARNED:
            return LEARNED[prior]
    names = ", ".join(map(repr, [*LEARNED, *MODELS]))
    raise ValueError(f"prior must be a Prior or one of {names}, got {prior!r}")


def allows_negative(prior: Any) -> bool:
    """Return whether W Z can be negative under a prior."""
    return any(of_factor.is_real for of_factor in as_pair(prior))


def as_pair(prior: Any) -> tuple[Prior, Prior]:
    """Return the priors of W and Z, given one for both or a pair."""
    if isinstance(prior, (tuple, list)):
        if len(prior) != 2:
            raise ValueError(f"prior must be one prior or a pair (for W, for Z), got {len(prior)} of them")
        return as_prior(prior[0]), as_prior(prior[1])
    return as_prior(prior), as_prior(prior)


def to_record(prior: Prior) -> list[dict[str, Any]]:
    """Return a prior in a form that JSON can hold."""
    return [
        {"prior": type(term).__name__, **{item.name: _plain(getattr(term, item.name)) for item in fields(term)}}
        for term in prior.terms
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, Gamma):
        return {"shape": value.shape, "rate": value.rate}
    return value.tolist() if isinstance(value, np.ndarray) else value


def from_record(record: list[dict[str, Any]]) -> Prior:
    """Return the prior that :func:`to_record` was given."""
    terms = []
    for parameters in record:
        values = {name: Gamma(**value) if isinstance(value, dict) else value for name, value in parameters.items()}
        kind = values.pop("prior")
        if kind not in Term.by_name:
            raise ValueError(f"unknown prior {kind!r}; known are {', '.join(Term.by_name)}")
        terms.append(Term.by_name[kind](**values))
    return terms[0] if len(terms) == 1 else Sum(tuple(terms))
