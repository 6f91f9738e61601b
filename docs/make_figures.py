"""Draw the example figures in docs/figures, on the wine data of scikit-learn.

Run from the root of the repository: python docs/make_figures.py
"""

import argparse
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import load_wine

from bnmf import BayesianNMF, plots, select_rank

# Fraction of the entries that is hidden and predicted.
HIDDEN_FRACTION = 0.2
# The files of each function.
FIGURES = {
    "plot_convergence": ["convergence"],
    "plot_factor": ["factor_W", "factor_Z"],
    "plot_component": ["component"],
    "plot_predictions": ["predictions"],
    "plot_calibration": ["calibration"],
    "plot_noise": ["noise", "noise_common"],
    "plot_weights": ["weights"],
    "plot_completed": ["completed"],
    "plot_rank": ["rank"],
}

INTRODUCTION = """# Figures of a fit

Functions of `bnmf.plots` take a fitted model (or its posterior) and the axes to draw on, and return the axes:

```python
from matplotlib import pyplot
from sklearn.datasets import load_wine
from bnmf import BayesianNMF, plots

model = BayesianNMF(3, n_chains=2, burn_in=50, n_draws=50, random_state=0).fit(load_wine(as_frame=True).data)
figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
plots.plot_convergence(model, left)
plots.plot_factor(model, "Z", right)
plots.plot_component(model, 0)  # several axes: by default those of a new figure
```

The figures below were drawn by `python docs/make_figures.py` on the wine data of scikit-learn.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).with_name("figures"), help="directory of the figures"
    )
    directory = parser.parse_args().out
    directory.mkdir(parents=True, exist_ok=True)
    wine = load_wine(as_frame=True).data
    wine.index = [f"wine {i}" for i in range(len(wine))]
    hidden = np.random.default_rng(0).random(wine.shape) < HIDDEN_FRACTION
    table = wine.mask(hidden)
    posterior = BayesianNMF(5, random_state=0).fit(table).posterior_
    common = BayesianNMF(5, noise="common", random_state=0).fit(table).posterior_
    held_out = (*np.nonzero(hidden), wine.to_numpy()[hidden] / wine.std().to_numpy()[np.nonzero(hidden)[1]])
    in_units = BayesianNMF(5, random_state=0).fit(table / wine.std()).posterior_
    choice = select_rank(table, ks=[1, 2, 3, 4, 6, 8], n_folds=3, random_state=0)

    def one(name, draw, width=5.2, height=3.8):
        figure, ax = pyplot.subplots(figsize=(width, height), layout="constrained")
        draw(ax)
        save(figure, directory / f"{name}.png")

    one("convergence", lambda ax: plots.plot_convergence(posterior, ax))
    one("factor_W", lambda ax: plots.plot_factor(posterior, "W", ax), height=5.0)
    one("factor_Z", lambda ax: plots.plot_factor(posterior, "Z", ax))
    one("predictions", lambda ax: plots.plot_predictions(in_units, *held_out, ax), width=4.4)
    one("calibration", lambda ax: plots.plot_calibration(in_units, *held_out, ax), width=4.4)
    one("noise", lambda ax: plots.plot_noise(posterior, ax))
    one("noise_common", lambda ax: plots.plot_noise(common, ax))
    one("weights", lambda ax: plots.plot_weights(posterior, ax))
    one("rank", lambda ax: plots.plot_rank(choice, ax))
    write_index(directory)
    save(plots.plot_component(posterior, 0)[0].figure, directory / "component.png")
    save(plots.plot_completed(posterior, table)[0].figure, directory / "completed.png")


def write_index(directory: Path) -> None:
    lines = [INTRODUCTION]
    for title, names in FIGURES.items():
        lines += [f"## `{title}`", "", *(f"![{title}]({name}.png)" for name in names), ""]
    (directory / "README.md").write_text("\n".join(lines), encoding="utf-8")


def save(figure, path: Path) -> None:
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
