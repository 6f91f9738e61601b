"""Hide half of the pixels of scikit-learn's handwritten digits, and restore them with uncertainty."""

import time
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from bnmf import BayesianNMF
from bnmf.utils.text import duration

OUTPUT_DIRECTORY = Path("demo")
console = Console()


def main() -> None:
    rng = np.random.default_rng(0)
    pixels = load_digits().data
    hidden = rng.random(pixels.shape) < 0.5
    X = np.where(hidden, np.nan, pixels)
    console.print(
        f"[bold]{len(X):,} handwritten digits of 8 x 8 pixels with values 0 to 16; {hidden.mean():.0%} are hidden."
    )
    begin = time.monotonic()
    model = BayesianNMF(burn_in=150, n_draws="auto", max_time=40, n_jobs=2, random_state=0, progress=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the summary below reports convergence
        model.fit(X)
    mean, sd = model.reconstruct(return_std=True)
    low, high = model.interval(0.9)
    console.print(f"Sampled in {duration(time.monotonic() - begin)}: {model.message_}.\n")

    show_errors(pixels, X, hidden, mean, low, high)
    console.print(model.posterior_.summary(), "\n")
    console.print(meaning(model.posterior_), "\n")
    OUTPUT_DIRECTORY.mkdir(exist_ok=True)
    picture = OUTPUT_DIRECTORY / "digits.png"
    draw(pixels, X, mean, sd, rng.choice(len(X), 8, replace=False), picture)
    console.print(f"[bold]Figure: {picture}")


def meaning(posterior) -> str:
    """Return what the verdict of the summary means for these digits."""
    error, agrees = posterior.prediction_error(), posterior.alignment.agrees.all(axis=0)
    if error > 0.25:
        first = (
            f"Wait with conclusions: more draws would still change a restored pixel by {error:.2f} of its uncertainty."
        )
    else:
        first = (
            "The restored pixels and their intervals can be used: with endless sampling a pixel would change by about "
            f"{error:.2f} of its uncertainty."
        )
    return (
        f"[bold]In words.[/bold] {first} The {len(agrees)} components are not unique: {agrees.sum()} are found by all "
        "chains, and the others are different ways to write the same digits as sums of parts."
    )


def show_errors(pixels, X, hidden, mean, low, high) -> None:
    truth = pixels[hidden]
    column_mean = np.broadcast_to(np.nanmean(X, axis=0), X.shape)[hidden]
    table = Table(title="Hidden pixels", title_justify="left")
    for heading, justify in (("prediction", "left"), ("root mean squared error", "right")):
        table.add_column(heading, justify=justify)
    table.add_row("mean of each pixel over all digits", f"{rmse(truth, column_mean):.2f}")
    table.add_row("BayesianNMF", f"[bold]{rmse(truth, mean[hidden]):.2f}")
    console.print(table)
    covered = np.mean((low[hidden] <= truth) & (truth <= high[hidden]))
    console.print(f"90% predictive intervals contain {covered:.1%} of the hidden pixels.\n")


def rmse(truth, prediction) -> float:
    return float(np.sqrt(np.mean((truth - prediction) ** 2)))


def draw(pixels, X, mean, sd, chosen, path) -> None:
    grey = plt.get_cmap("gray_r").copy()
    grey.set_bad("#f2b8a2")
    heat = plt.get_cmap("viridis")
    rows = [
        ("original", pixels, grey, 16.0),
        ("observed", X, grey, 16.0),
        ("restored", mean, grey, 16.0),
        ("uncertainty (sd)", sd, heat, float(np.quantile(sd[chosen], 0.99))),
    ]
    figure, axes = plt.subplots(len(rows), len(chosen), figsize=(1.15 * len(chosen) + 1.6, 1.15 * len(rows) + 0.5))
    for (label, images, colours, highest), line in zip(rows, axes, strict=True):
        for number, axis in zip(chosen, line, strict=True):
            image = axis.imshow(images[number].reshape(8, 8), cmap=colours, vmin=0, vmax=highest)
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set_visible(False)
        line[0].set_ylabel(label, rotation=0, ha="right", va="center", labelpad=8)
        bar = figure.colorbar(image, ax=list(line), fraction=0.012, pad=0.01)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=7, length=2)
    figure.suptitle("Digits with half of the pixels hidden (shown in pink)", fontsize=11)
    figure.savefig(path, dpi=130, bbox_inches="tight")


if __name__ == "__main__":
    main()
