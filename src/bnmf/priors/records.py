"""Priors as JSON, for files and checkpoints."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from bnmf.priors.base import Prior, Sum, Term
from bnmf.priors.hyperpriors import Gamma
from bnmf.priors.normals import Laplace, Normal, TruncatedNormal
from bnmf.priors.norms import L1, L1Squared, L2Squared, LInf

KINDS: dict[str, type[Term]] = {
    kind.__name__: kind for kind in (L1, L1Squared, L2Squared, LInf, TruncatedNormal, Normal, Laplace)
}
"""Every prior that a file can hold, by name."""


def to_record(prior: Prior) -> list[dict[str, Any]]:
    """Return a prior in a form that JSON can hold.

    Examples
    --------
    >>> to_record(L2Squared(0.1) + L1([1, 2]))
    [{'prior': 'L2Squared', 'rate': 0.1, 'by': 'factor'}, {'prior': 'L1', 'rate': [1.0, 2.0], 'by': 'factor'}]
    """
    return [
        {"prior": type(term).__name__, **{item.name: _plain(getattr(term, item.name)) for item in fields(term)}}
        for term in prior.terms
    ]


def from_record(record: Any) -> Prior:
    """Return the prior that :func:`to_record` was given."""
    if not isinstance(record, list) or not record:
        raise ValueError(f"a prior is recorded as a list of terms, got {record!r}")
    terms = []
    for parameters in record:
        if not isinstance(parameters, dict) or parameters.get("prior") not in KINDS:
            raise ValueError(f"unknown prior {parameters!r}; known are {', '.join(KINDS)}")
        values = {
            name: Gamma(**value) if isinstance(value, dict) else value
            for name, value in parameters.items()
            if name != "prior"
        }
        terms.append(KINDS[parameters["prior"]](**values))
    return terms[0] if len(terms) == 1 else Sum(tuple(terms))


def _plain(value: Any) -> Any:
    if isinstance(value, Gamma):
        return {"shape": value.shape, "rate": value.rate}
    return value.tolist() if isinstance(value, np.ndarray) else value
