"""Draw the example figures in docs/figures, on the wine data of scikit-learn.

Run from the root of the repository: python -m docs.make_figures
"""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import load_wine

from bnmf import BayesianNMF, plots, select_rank

DIRECTORY = Path(__file__).with_name("figures")
# Fraction of the entries that is hidden and predicted.
HIDDEN_FRACTION = 0.2


def main() -> None:
    wine = load_wine(as_frame=True).data
    wine.index = [f"wine {i}" for i in range(len(wine))]
    hidden = np.random.default_rng(0).random(wine.shape) < HIDDEN_FRACTION
    table = wine.mask(hidden)
    posterior = BayesianNMF(5, random_state=0).fit(table).posterior_
    common = BayesianNMF(5, noise="common", random_state=0).fit(table).posterior_
    held_out = (*np.nonzero(hidden), wine.to_numpy()[hidden] / wine.std().to_numpy()[np.nonzero(hidden)[1]])
    in_units = BayesianNMF(5, random_state=0).fit(table / wine.std()).posterior_
    choice = select_rank(table, ks=[1, 2, 3, 4, 6, 8], n_folds=3, random_state=0)

    def one(name, draw, *arguments, width=5.2, height=3.8):
        figure, ax = pyplot.subplots(figsize=(width, height), layout="constrained")
        draw(*arguments, ax=ax)
        save(figure, name)

    one("convergence", plots.plot_convergence, posterior)
    one("factor_W", plots.plot_factor, posterior, "W", height=5.0)
    one("factor_Z", plots.plot_factor, posterior, "Z")
    one("predictions", plots.plot_predictions, in_units, *held_out, width=4.4)
    one("calibration", plots.plot_calibration, in_units, *held_out, width=4.4)
    one("noise", plots.plot_noise, posterior)
    one("noise_common", plots.plot_noise, common)
    one("weights", plots.plot_weights, posterior)
    one("rank", plots.plot_rank, choice)
    save(plots.plot_component(posterior, 0)[0].figure, "component")
    save(plots.plot_completed(posterior, table)[0].figure, "completed")


def save(figure, name: str) -> None:
    figure.savefig(DIRECTORY / f"{name}.png", dpi=110)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
