"""The demonstration: handwritten digits with hidden pixels, restored with uncertainty."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

from bnmf.estimator import BayesianNMF
from bnmf.tables.binary import NumpyArray
from bnmf.tables.table import Table
from bnmf.utils.atomic import replacing
from bnmf.utils.typing import Bools, Floats

SIDE = 8
"""Pixels of each side of a digit."""
MAX_VALUE = 16.0
HIDDEN_FRACTION = 0.5
N_SHOWN = 8
"""Digits in the picture."""


class HiddenDigits(NamedTuple):
    """Digits of which some pixels are hidden.

    Attributes
    ----------
    pixels : ndarray of shape (digits, 64)
        All pixels.
    hidden : ndarray of bool of shape (digits, 64)
        Those that the model does not see.
    """

    pixels: Floats
    hidden: Bools

    @property
    def seen(self) -> Floats:
        """The pixels with NaN where they are hidden."""
        return np.where(self.hidden, np.nan, self.pixels)

    def table(self) -> Table:
        """Return what the model sees, with names."""
        rows = [f"digit {number}" for number in range(1, len(self.pixels) + 1)]
        columns = [f"pixel {row},{column}" for row in range(1, SIDE + 1) for column in range(1, SIDE + 1)]
        return Table(self.seen, NumpyArray(self.seen), rows, columns)


class Score(NamedTuple):
    """How well hidden pixels were predicted.

    Attributes
    ----------
    mean_error, error : float
        Root mean squared errors of the mean of each pixel over all digits, and of the model.
    coverage : float
        Fraction of the hidden pixels that lie in their 90% intervals.
    """

    mean_error: float
    error: float
    coverage: float


def hidden_digits(n_digits: int | None = None) -> HiddenDigits:
    """Return scikit-learn's digits with half of the pixels hidden at random."""
    pixels: Any = load_digits().data[:n_digits]
    return HiddenDigits(pixels, np.random.default_rng(0).random(pixels.shape) < HIDDEN_FRACTION)


def score(digits: HiddenDigits, model: BayesianNMF) -> Score:
    """Compare predictions of the hidden pixels with the truth."""
    hidden, truth = digits.hidden, digits.pixels[digits.hidden]
    guess = np.broadcast_to(np.nanmean(digits.seen, axis=0), hidden.shape)[hidden]
    low, high = (end[hidden] for end in model.interval(0.9))
    mean_error, error = (float(np.sqrt(np.mean((truth - x) ** 2))) for x in (guess, model.reconstruct()[hidden]))
    return Score(mean_error, error, float(np.mean((low <= truth) & (truth <= high))))


def draw_digits(digits: HiddenDigits, model: BayesianNMF, path: Path) -> None:
    """Draw some digits: original, observed, restored, and the uncertainty."""
    from matplotlib import colormaps
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    mean, sd = model.reconstruct(return_std=True)
    chosen = np.random.default_rng(1).choice(len(mean), N_SHOWN, replace=False)
    grey = colormaps["gray_r"].with_extremes(bad="#f2b8a2")
    rows = [
        ("original", digits.pixels, grey, MAX_VALUE),
        ("observed", digits.seen, grey, MAX_VALUE),
        ("restored", mean, grey, MAX_VALUE),
        ("uncertainty (sd)", sd, colormaps["viridis"], float(np.quantile(sd[chosen], 0.99))),
    ]
    figure = Figure(figsize=(1.15 * N_SHOWN + 1.6, 1.15 * len(rows) + 0.5))
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(rows), N_SHOWN)
    for (label, images, colours, highest), line in zip(rows, axes, strict=True):
        for number, axis in zip(chosen, line, strict=True):
            image = axis.imshow(images[number].reshape(SIDE, SIDE), cmap=colours, vmin=0, vmax=highest)
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set_visible(False)
        line[0].set_ylabel(label, rotation=0, ha="right", va="center", labelpad=8)
        bar = figure.colorbar(image, ax=list(line), fraction=0.012, pad=0.01)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=7, length=2)
    figure.suptitle("Digits with half of the pixels hidden (shown in pink)", fontsize=11)
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=130, bbox_inches="tight", format="png")
