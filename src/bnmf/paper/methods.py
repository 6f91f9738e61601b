"""The models and baselines that the experiments compare: their priors, labels and plot styles."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from bnmf.priors import L1, L1Squared, L2Squared, LInf
from bnmf.priors.base import Prior


class Method(NamedTuple):
    """Label, plot style (as in matplotlib), and running time relative to GL2², to estimate the time left."""

    label: str
    colour: str
    line: Any
    marker: str
    cost: float


PRIORS: dict[str, Callable[[float], Prior]] = {
    "gee": L1,
    "gl12": L1Squared,
    "gl22": L2Squared,
    "gl22inf": lambda rate: L2Squared(rate) + LInf(rate),
    "glinf": LInf,
    "gl22inf-published": lambda rate: L2Squared(rate) + LInf(rate, rule="paper"),
    "glinf-published": lambda rate: LInf(rate, rule="paper"),
}
"""The prior of both factors, by model, as a function of λ. The last two use the printed rule of the paper."""

PAPER_MODELS = ("gee", "gl12", "gl22", "gl22inf")
"""The models of the paper's tables."""

EXACT_MODELS = (*PAPER_MODELS, "glinf")
"""The models with exact conditionals."""

METHODS: dict[str, Method] = {
    "gee": Method("GEE", "#0072B2", "-", "o", 1.0),
    "gl12": Method("GL₁²", "#D55E00", "-", "s", 1.0),
    "gl22": Method("GL₂²", "#009E73", "-", "^", 1.0),
    "gl22inf": Method("GL₂²,∞", "#CC79A7", (0, (5, 1.5)), "v", 2.2),
    "glinf": Method("GL∞", "#E69F00", "-", "D", 2.2),
    "gl22inf-published": Method("GL₂²,∞ (printed rule)", "#882255", (0, (1, 1.2)), "x", 1.35),
    "glinf-published": Method("GL∞ (printed rule)", "#7A5195", (0, (1, 1.2)), "+", 1.35),
    "column_mean": Method("column mean", "#111111", (0, (1, 2)), "", 0.01),
    "row_column_mean": Method("row + column mean", "#555555", (0, (5, 2)), "", 0.02),
    "knn": Method("nearest neighbours", "#888888", (0, (3, 1, 1, 1)), "", 0.6),
    "nmf": Method("NMF, least squares", "#4C4C9D", (0, (4, 1, 1, 1, 1, 1)), "", 0.45),
    "nmf_kl": Method("NMF, Kullback–Leibler", "#9D4C4C", (0, (2, 1)), "", 0.6),
}
"""All models and baselines, in the order of tables and figures."""


def in_order(names: Iterable[str]) -> list[str]:
    """Return distinct models and baselines in the order of `METHODS`."""
    return sorted(set(names), key=list(METHODS).index)


def labels(methods: Iterable[str]) -> list[str]:
    """Return the labels of models and baselines."""
    return [METHODS[method].label for method in methods]
