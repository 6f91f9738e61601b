"""From results to the page: which table, figure and sentence goes where."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from bnmf.experiments import convergence, data, factors, noise, prediction, published, starts, style
from bnmf.experiments.compare import CLOSE, compare_tables
from bnmf.experiments.data import Dataset
from bnmf.experiments.fits import Fit, Result, sampler_fingerprint
from bnmf.experiments.grid import Cell, Grid
from bnmf.experiments.models import PAPER, in_order, label_of
from bnmf.experiments.page import Picture, Section, to_html, to_markdown
from bnmf.experiments.settings import Settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Bayesian NMF with norm penalties: the paper's experiments, run again"
LEAD = (
    "Every table and figure of Lu and Chai (2022), computed by bnmf and set beside the numbers that the paper prints. "
    "✓ (green): the printed number lies within the spread of our repeats, that is, at most two standard errors of the "
    "difference of two means away (two times s √(1/n + 1/10), s being the standard deviation of our n repeats), plus "
    "half of the last printed digit. ≈ (yellow): further off than that, but by no more than 3%. ✗ (red): neither."
)
PACKAGES = ("bnmf", "numpy", "scipy", "numba", "scikit-learn", "pandas", "joblib", "matplotlib")
FIGURES, TABLES = "figures", "tables"


class Report:
    """Writes tables, figures and the page of one run into a directory.

    Parameters
    ----------
    out : pathlib.Path
        The directory.
    datasets : mapping of str to Dataset
        The data by name.
    settings : Settings
        Settings of the run.
    results : mapping of Fit to dict
        All its fits.
    """

    def __init__(
        self, out: Path, datasets: Mapping[str, Dataset], settings: Settings, results: Mapping[Fit, Result]
    ) -> None:
        self.out = out
        self.datasets = datasets
        self.settings = settings
        self.results = results
        self.names = {name: dataset.name for name, dataset in datasets.items()}

    def write(self, experiments: Sequence[str], about: Mapping[str, str]) -> None:
        """Write everything.

        Parameters
        ----------
        experiments : sequence of str
            Which experiments the run had.
        about : mapping of str to str
            What else is to be said of the run, such as its duration.
        """
        (self.out / FIGURES).mkdir(parents=True, exist_ok=True)
        (self.out / TABLES).mkdir(parents=True, exist_ok=True)
        makers = {
            "convergence": self.convergence,
            "factors": self.factors,
            "prediction": self.prediction,
            "noise": self.noise,
        }
        made = [section for name in experiments for section in makers[name]()]
        sections = [*self.agreement(experiments), self.data(), *made, self.about(about)]
        (self.out / "index.html").write_text(to_html(TITLE, LEAD, sections), encoding="utf-8")
        (self.out / "README.md").write_text(to_markdown(TITLE, LEAD, sections), encoding="utf-8")

    def agreement(self, experiments: Sequence[str]) -> list[Section]:
        """Return how many printed numbers are met, by model."""
        kinds = []
        if "factors" in experiments:
            measured = factors.table(self.results)
            kinds += [
                ("mean of W", compare_tables(measured, published.factors(), "mean", 0.1)),
                ("sparsity of W", compare_tables(measured, published.factors(), "sparsity", 0.1)),
            ]
        if "prediction" in experiments:
            errors = prediction.table(self.results)
            kinds.append(("held-out MSE", compare_tables(errors, published.prediction(), "mse", 0.01)))
        compared_models = (*PAPER, "gl22inf-published")
        rows: list[list[str | Cell]] = []
        for kind, compared in kinds:
            for dataset, group in compared.groupby("dataset", sort=False):
                models = [_tally(group[group["model"] == model]) for model in compared_models]
                rows.append([self.names[str(dataset)], kind, *models])
        if not rows:
            return []
        header = ["data", "number", *map(label_of, compared_models)]
        grid = Grid(header, rows, "Printed numbers that are met, of all that are printed and were run", n_labels=2)
        text = (
            "“Met” counts the cells in which the printed number is within the spread of the repeats or within "
            f"{CLOSE:g}% (✓ and ≈ below). A stand-in has other numbers than the data it stands in for, so "
            "its rows say how like the original it is and not how well the paper is met."
        )
        return [Section("Agreement", [text, grid])]

    def data(self) -> Section:
        """Return the section on the data."""
        used = dict(self.datasets)
        shown = ", ".join(dataset.name for dataset in used.values())
        picture = self._picture(data.figure(used), "data", f"Distribution of the observed entries: {shown}.")
        remarks = [
            f"{dataset.name}: the original matrix could not be had. The stand-in has the correlations of the original, "
            "but means and scales of the rows that were drawn to agree with published variances."
            for dataset in used.values()
            if dataset.stand_in
        ]
        return Section("Data", [*remarks, data.grid(used), picture])

    def convergence(self) -> list[Section]:
        """Return the section on convergence."""
        measured = convergence.table(self.results)
        curves = convergence.curves(measured)
        few = (curves["sweep"] <= 20) | (curves["sweep"] % 10 == 0)
        self._csv(curves[few], "convergence")
        parts: list[str | Grid | Picture] = [
            "Training error (mean squared error over the observed entries) after each sweep: mean of the repeats, and "
            "their range as a band. The paper shows this as a figure and prints no numbers. GL∞ and the two printed "
            "rules are not in its figure. The printed rule of GL∞ makes W grow without end while Z shrinks; where "
            "the numbers leave the range of floating point, the chain ends."
        ]
        for name in self._in(measured):
            drawn = convergence.figure(measured[measured["dataset"] == name], f"Convergence: {self.names[name]}")
            parts.append(self._picture(drawn, f"convergence-{name}", f"Training error by sweep, {self.names[name]}."))
        return [Section("Convergence", [*parts, *convergence.grids(measured, self.names, self.settings.burn_in)])]

    def factors(self) -> list[Section]:
        """Return the section on the factors."""
        measured, density = factors.table(self.results), factors.histogram(self.results)
        self._csv(measured, "factors")
        parts: list[str | Grid | Picture] = [
            "The entries of W in the last 20 sweeps. The rule that the paper prints for GL₂²,∞ is not the conditional "
            "of its density; its numbers presumably come from that rule, so they stand beside both.",
            *factors.grids(measured, self.names),
        ]
        for name in self._in(measured):
            drawn = factors.figure(density[density["dataset"] == name], f"Entries of W: {self.names[name]}")
            text = f"Distribution of the entries of W in the last 20 sweeps, {self.names[name]}; dotted: 0.1."
            parts.append(self._picture(drawn, f"factors-{name}", text))
        return [Section("Factors", parts)]

    def prediction(self) -> list[Section]:
        """Return the sections on prediction, and on the starts of GL1²."""
        measured = prediction.table(self.results)
        self._csv(measured, "prediction")
        parts: list[str | Grid | Picture] = [
            "A given fraction of all entries of the matrix (those that were never observed included) is kept from the "
            "training set; the error is measured on those of them that were observed. The prediction is the posterior "
            "mean of W Z over the sweeps after the burn-in. Every method has the same splits. The figures are cut "
            "where plain NMF and GL₁² leave the range of the others; the tables have all numbers."
        ]
        for name in self._in(measured):
            drawn = prediction.figure(measured[measured["dataset"] == name], f"Prediction: {self.names[name]}")
            text = f"Error on held-out entries by fraction unobserved, {self.names[name]}."
            parts.append(self._picture(drawn, f"prediction-{name}", text))
        sections = [Section("Prediction", [*parts, *prediction.grids(measured, self.names)])]
        begun = starts.table(self.results, self.settings)
        if not begun.empty:
            self._csv(begun, "starts")
            tables = [*starts.grids(begun, self.names), starts.by_awake(begun)]
            sections.append(Section("Where GL₁² starts", [*starts.explanation(begun), *tables]))
        return sections

    def noise(self) -> list[Section]:
        """Return the section on noise."""
        measured = noise.table(self.results)
        self._csv(measured, "noise")
        name = self.settings.noise_dataset
        drawn = noise.figure(measured, f"Noise: {self.names[name]}, K = {self.settings.noise_k}")
        text = (
            "Gaussian noise is added to every observed entry; its variance is the given percentage of the variance of "
            f"the observed entries, and what becomes negative stays so. Then {100 * self.settings.noise_held_out:g}% "
            "of the observed entries are held out and predicted from the others. The paper plots the ratio of the "
            "variance of the data to the MSE of the predictions and does not say against which values the MSE is "
            "taken, so both are here: against the noisy held-out entries (over the variance of the noisy data), and "
            "against the held-out entries before noise (over the variance of the data before noise). It prints no "
            "numbers."
        )
        caption = f"Ratio of variance to error by noise, {self.names[name]}; bands: range of the repeats."
        return [Section("Noise", [text, self._picture(drawn, "noise", caption), *noise.grids(measured, self.names)])]

    def about(self, about: Mapping[str, str]) -> Section:
        """Return the section on settings, versions and time."""
        s = self.settings
        rows: list[list[str | Cell]] = [
            ["chains", f"{s.n_sweeps} sweeps, {s.burn_in} of them burn-in; no rescaling move"],
            ["priors", f"λ = {s.rate:g} for every model; noise variance inverse-gamma with shape 1 and scale 1"],
            [
                "start",
                "a draw from the model's own prior. In one scenario (data, K, fraction, repeat) all models have the "
                "same random numbers, split and noise",
            ],
            ["repeats", f"{s.repeats} ({min(s.repeats, s.runaway_repeats)} of the printed rule of GL∞)"],
            ["seed", str(s.seed)],
            *_pairs(about),
            ["sampler", "fingerprints of its draws: " + ", ".join(_fingerprints(self.results))],
            ["versions", f"Python {platform.python_version()}, " + ", ".join(map(_version, PACKAGES))],
            ["machine", f"{platform.system()} {platform.machine()}"],
        ]
        rows += _pairs({f"data: {d.name}": d.source for d in self.datasets.values() if d.source})
        return Section("Settings", [Grid(["setting", "value"], rows)])

    def _in(self, measured: pd.DataFrame) -> list[str]:
        return [name for name in self.names if name in set(measured["dataset"])]

    def _csv(self, table: pd.DataFrame, name: str) -> None:
        """Write a table; a stand-in is called one here too."""
        named = table.assign(dataset=table["dataset"].map(self.names)) if "dataset" in table else table
        named.to_csv(self.out / TABLES / f"{name}.csv", index=False, float_format="%.6g")

    def _picture(self, drawn: Figure, name: str, caption: str) -> Picture:
        style.save(drawn, self.out / FIGURES / name)
        return Picture(f"{FIGURES}/{name}", caption)


def _pairs(texts: Mapping[str, str]) -> list[list[str | Cell]]:
    return [[name, text] for name, text in texts.items()]


def _tally(compared: pd.DataFrame) -> Cell:
    """Count the cells of a printed table that are met."""
    met = int(compared["verdict"].isin(["within", "close"]).sum())
    percents = compared["percent"].dropna()
    note = ""
    if len(percents):
        largest = max(percents, key=abs)
        note = f"largest {largest:+.1f}%"
    if compared.empty:
        return Cell("–")
    share = met / len(compared)
    return Cell(f"{met} of {len(compared)}", note, "within" if share == 1 else "close" if share >= 0.5 else "off")


def _fingerprints(results: Mapping[Fit, Result]) -> list[str]:
    models = in_order({fit.model for fit in results if not fit.is_baseline})
    return [f"{label_of(model)} {sampler_fingerprint(model)}" for model in models]


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} (not installed)"
