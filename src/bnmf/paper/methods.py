"""The models and baselines that the experiments compare: their priors, labels, plot styles and printed numbers.

The printed numbers are copied from Lu and Chai (2022), not computed by this library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bnmf.priors import L2Squared, LInf, Prior
from bnmf.priors.names import MODELS


class Method(NamedTuple):
    """Label and plot style (as in matplotlib)."""

    label: str
    colour: str
    line: Any
    marker: str


PRIORS: dict[str, Callable[[float], Prior]] = {
    **MODELS,
    "gl22inf-published": lambda rate: L2Squared(rate) + LInf(rate, rule="paper"),
    "glinf-published": lambda rate: LInf(rate, rule="paper"),
}
"""The prior of both factors, by model, as a function of λ. The last two use the printed rule of the paper."""

PAPER_MODELS = ("gee", "gl12", "gl22", "gl22inf")
"""The models of the paper's tables."""

EXACT_MODELS = (*PAPER_MODELS, "glinf")
"""The models with exact conditionals."""

METHODS: dict[str, Method] = {
    "gee": Method("GEE", "#0072B2", "-", "o"),
    "gl12": Method("GL₁²", "#D55E00", "-", "s"),
    "gl22": Method("GL₂²", "#009E73", "-", "^"),
    "gl22inf": Method("GL₂²,∞", "#CC79A7", (0, (5, 1.5)), "v"),
    "glinf": Method("GL∞", "#E69F00", "-", "D"),
    "gl22inf-published": Method("GL₂²,∞ (printed rule)", "#882255", (0, (1, 1.2)), "x"),
    "glinf-published": Method("GL∞ (printed rule)", "#7A5195", (0, (1, 1.2)), "+"),
    "column_mean": Method("column mean", "#111111", (0, (1, 2)), ""),
    "row_column_mean": Method("row + column mean", "#555555", (0, (5, 2)), ""),
    "knn": Method("nearest neighbours", "#888888", (0, (3, 1, 1, 1)), ""),
    "nmf": Method("NMF, least squares", "#4C4C9D", (0, (4, 1, 1, 1, 1, 1)), ""),
    "nmf_kl": Method("NMF, Kullback–Leibler", "#9D4C4C", (0, (2, 1)), ""),
}
"""All models and baselines, in the order of tables and figures."""


def in_order(names: Iterable[str]) -> list[str]:
    """Return distinct models and baselines in the order of `METHODS`."""
    return sorted(set(names), key=list(METHODS).index)


def labels(methods: Iterable[str]) -> list[str]:
    """Return the labels of models and baselines."""
    return [METHODS[method].label for method in methods]


# (data set, K): (mean of W, percentage of W below 0.1) for each of PAPER_MODELS.
_FACTORS: dict[tuple[str, int], Sequence[tuple[float, float]]] = {
    ("gdsc", 10): ((8.1, 1.9), (1.3, 10.3), (2.4, 3.8), (2.4, 4.5)),
    ("gdsc", 20): ((8.6, 1.5), (0.8, 14.7), (2.3, 4.1), (2.2, 4.4)),
    ("gdsc", 30): ((8.7, 1.4), (0.7, 17.3), (2.2, 4.3), (2.2, 4.4)),
    ("gdsc", 40): ((8.3, 1.5), (0.6, 19.4), (2.2, 4.4), (2.2, 4.4)),
    ("gdsc", 50): ((8.0, 1.6), (0.5, 21.2), (2.2, 4.1), (2.2, 4.2)),
    ("methylation", 10): ((0.1, 80.4), (0.7, 11.4), (0.7, 11.5), (0.7, 12.7)),
    ("methylation", 20): ((0.1, 87.8), (0.6, 16.2), (0.5, 21.3), (0.5, 21.0)),
    ("methylation", 30): ((0.0, 90.2), (0.6, 18.2), (0.3, 37.1), (0.3, 36.4)),
    ("methylation", 40): ((0.0, 92.2), (0.6, 20.8), (0.3, 48.9), (0.3, 49.1)),
    ("methylation", 50): ((0.0, 93.0), (0.5, 22.8), (0.2, 58.4), (0.2, 58.4)),
}

# (fraction unobserved, K): mean squared error of each of PAPER_MODELS on the held-out entries of GDSC.
_PREDICTION: dict[tuple[float, int], Sequence[float]] = {
    (0.6, 20): (787.60, 880.36, 769.24, 768.27),
    (0.6, 30): (810.39, 888.47, 774.53, 773.27),
    (0.6, 40): (802.39, 892.01, 783.26, 784.30),
    (0.6, 50): (795.72, 895.05, 806.14, 807.44),
    (0.7, 20): (841.74, 895.77, 798.44, 796.15),
    (0.7, 30): (830.45, 902.48, 807.37, 806.61),
    (0.7, 40): (842.70, 907.65, 832.67, 835.89),
    (0.7, 50): (846.83, 1018.97, 864.58, 869.15),
    (0.8, 20): (904.39, 926.72, 842.24, 841.84),
    (0.8, 30): (887.63, 938.92, 879.30, 883.57),
    (0.8, 40): (942.44, 2634.69, 935.09, 939.77),
    (0.8, 50): (952.45, 2730.30, 974.01, 973.75),
}


PRINTED_DESCRIPTIONS = {"gdsc": (707, 139, 0.806, 139), "methylation": (160, 254, 1.0, 160)}
"""Printed numbers of rows and columns, observed fraction and rank of each data set."""


def printed_factors() -> pd.DataFrame:
    """Return the printed mean and sparsity (percentage below 0.1) of W, by data set, K and model."""
    return _by_model(_FACTORS, ["dataset", "k"], ["mean", "sparsity"])


def printed_prediction() -> pd.DataFrame:
    """Return the printed error on held-out entries of GDSC by fraction of *all* entries unobserved, K and model."""
    return _by_model(_PREDICTION, ["unobserved", "k"], ["mse"]).assign(dataset="gdsc")


def _by_model(printed: Mapping[Any, Sequence[Any]], keys: list[str], numbers: list[str]) -> pd.DataFrame:
    """Return a table with a row for each key and each of PAPER_MODELS."""
    rows = [
        (*key, model, *np.ravel(cell))
        for key, cells in printed.items()
        for model, cell in zip(PAPER_MODELS, cells, strict=True)
    ]
    return pd.DataFrame(rows, columns=[*keys, "model", *numbers])
