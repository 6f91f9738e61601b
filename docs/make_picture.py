"""Draw docs/digits.png, the picture of the README: digits with half of their pixels hidden, and restored.

Run from the root of the repository: python docs/make_picture.py
"""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
from matplotlib import colormaps, pyplot

from bnmf import BayesianNMF
from bnmf.digits import MAX_VALUE, SIDE, hidden_digits

# The digits that are shown follow each other in the data, from this one on.
FIRST = 100
N_SHOWN = 10


def main() -> None:
    digits = hidden_digits()
    model = BayesianNMF(random_state=0, n_chains=8, n_jobs=-1).fit(digits.seen)
    low, high = model.interval(0.9)
    width = np.where(digits.hidden, high - low, np.nan)
    grey = colormaps["gray_r"].with_extremes(bad="#f2b8a2")
    sure = colormaps["Blues"].with_extremes(bad="#eeeeee")
    rows = [
        ("half of the pixels\nare hidden", digits.seen, grey, MAX_VALUE),
        ("restored", model.impute(), grey, MAX_VALUE),
        ("the truth", digits.pixels, grey, MAX_VALUE),
        ("width of the\n90% intervals", width, sure, MAX_VALUE),
    ]
    figure, axes = pyplot.subplots(len(rows), N_SHOWN, figsize=(8.4, 3.2), layout="constrained")
    for (label, images, colours, largest), line in zip(rows, axes, strict=True):
        for number, ax in enumerate(line):
            ax.imshow(images[FIRST + number].reshape(SIDE, SIDE), cmap=colours, vmin=0, vmax=largest)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
        line[0].set_ylabel(label, rotation=0, ha="right", va="center", labelpad=8, fontsize=9)
    figure.savefig(Path(__file__).with_name("digits.png"), dpi=110)


if __name__ == "__main__":
    main()
