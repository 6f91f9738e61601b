"""The numbers printed in Lu and Chai (2022), as tidy tables.

They are copied from the paper, not computed by this library. The models are "gee" (L1), "gl12" (squared L1), "gl22"
(squared L2) and "gl22inf" (squared L2 plus L∞), the data sets "gdsc" and "methylation".
"""

from collections.abc import Sequence

import pandas as pd

from bnmf.paper.methods import PAPER_MODELS

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


DESCRIPTIONS = {"gdsc": (707, 139, 0.806, 139), "methylation": (160, 254, 1.0, 160)}
"""Printed numbers of rows and columns, observed fraction and rank of each data set."""


def factors() -> pd.DataFrame:
    """Return mean and sparsity (percentage below 0.1) of W in the last 20 sweeps, by data set, K and model."""
    rows = [
        (dataset, k, model, mean, sparsity)
        for (dataset, k), cells in _FACTORS.items()
        for model, (mean, sparsity) in zip(PAPER_MODELS, cells, strict=True)
    ]
    return pd.DataFrame(rows, columns=["dataset", "k", "model", "mean", "sparsity"])


def prediction() -> pd.DataFrame:
    """Return the error on held-out entries of GDSC by fraction of *all* entries unobserved, K and model."""
    rows = [
        ("gdsc", unobserved, k, model, mse)
        for (unobserved, k), cells in _PREDICTION.items()
        for model, mse in zip(PAPER_MODELS, cells, strict=True)
    ]
    return pd.DataFrame(rows, columns=["dataset", "unobserved", "k", "model", "mse"])
