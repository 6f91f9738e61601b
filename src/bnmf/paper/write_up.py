"""The page of results: its tables, figures and text."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from bnmf.paper import added_noise, convergence, factors, figures, inputs, prediction, printed, starts
from bnmf.paper.experiments import Settings
from bnmf.paper.fits import Fit, Result, sampler_fingerprint
from bnmf.paper.grid import Cell, Grid
from bnmf.paper.inputs import Dataset
from bnmf.paper.methods import PAPER_MODELS, in_order, label_of
from bnmf.paper.page import Picture, Section, to_html, to_markdown
from bnmf.paper.tables import CLOSE_PERCENT, compare_tables
from bnmf.utils.atomic import write_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE_TITLE = "Bayesian NMF with norm penalties: the experiments of the paper, reproduced"
PAGE_LEAD = (
    "Every table and figure of Lu and Chai (2022), computed by bnmf and compared with the printed numbers. "
    "✓ (green): the printed number is within the spread of our repeats, that is, the two means differ by at most two "
    "standard errors of their difference (s √(1/n + 1/10), where s is the standard deviation of our n repeats) plus "
    "half a unit of the last printed digit. ≈ (yellow): they differ by more than that, but by at most 3%. "
    "✗ (red): neither."
)
REPORTED_PACKAGES = ("bnmf", "numpy", "scipy", "numba", "scikit-learn", "pandas", "joblib", "matplotlib")
FIGURES_DIRECTORY = "figures"
TABLES_DIRECTORY = "tables"


class WriteUp:
    """Writes the tables, figures and page of a run.

    Parameters
    ----------
    out : pathlib.Path
        The directory of the page.
    datasets : mapping of str to Dataset
        The data by name.
    settings : Settings
        Settings of the run.
    results : mapping of Fit to dict
        The results of all fits of the run.
    """

    def __init__(
        self, out: Path, datasets: Mapping[str, Dataset], settings: Settings, results: Mapping[Fit, Result]
    ) -> None:
        self.out = out
        self.datasets = datasets
        self.settings = settings
        self.results = results
        self.names = {name: dataset.title for name, dataset in datasets.items()}

    def write(self, experiments: Sequence[str], about: Mapping[str, str]) -> None:
        """Write tables, figures and page.

        Parameters
        ----------
        experiments : sequence of str
            The experiments of the run.
        about : mapping of str to str
            Additional facts about the run, such as its duration.
        """
        (self.out / FIGURES_DIRECTORY).mkdir(parents=True, exist_ok=True)
        (self.out / TABLES_DIRECTORY).mkdir(parents=True, exist_ok=True)
        makers = {
            "convergence": self.convergence,
            "factors": self.factors,
            "prediction": self.prediction,
            "noise": self.noise,
        }
        made = [section for name in experiments for section in makers[name]()]
        sections = [*self.agreement(experiments), self.data(), *made, self.about(about)]
        write_bytes(self.out / "index.html", to_html(PAGE_TITLE, PAGE_LEAD, sections).encode())
        write_bytes(self.out / "README.md", to_markdown(PAGE_TITLE, PAGE_LEAD, sections).encode())

    def agreement(self, experiments: Sequence[str]) -> list[Section]:
        """Return the section that counts by model how many printed numbers agree; none if nothing was compared."""
        kinds = []
        if "factors" in experiments:
            measured = factors.table(self.results)
            kinds += [
                ("mean of W", compare_tables(measured, printed.factors(), "mean", 0.1)),
                ("sparsity of W", compare_tables(measured, printed.factors(), "sparsity", 0.1)),
            ]
        if "prediction" in experiments:
            errors = prediction.table(self.results)
            kinds.append(("held-out MSE", compare_tables(errors, printed.prediction(), "mse", 0.01)))
        compared_models = (*PAPER_MODELS, "gl22inf-published")
        rows: list[list[str | Cell]] = []
        for kind, compared in kinds:
            for dataset, group in compared.groupby("dataset", sort=False):
                models = [_tally(group[group["model"] == model]) for model in compared_models]
                rows.append([self.names[str(dataset)], kind, *models])
        if not rows:
            return []
        header = ["data", "number", *map(label_of, compared_models)]
        grid = Grid(header, rows, "Printed numbers that agree, out of those that were run", n_labels=2)
        text = (
            "A printed number agrees if it is within the spread of the repeats or within "
            f"{CLOSE_PERCENT:g}% (✓ and ≈ below)."
        )
        return [Section("Agreement", [text, grid])]

    def data(self) -> Section:
        """Return the section on the data."""
        used = dict(self.datasets)
        shown = ", ".join(dataset.title for dataset in used.values())
        picture = self._picture(inputs.figure(used), "data", f"Distribution of the observed entries: {shown}.")
        return Section("Data", [inputs.grid(used), picture])

    def convergence(self) -> list[Section]:
        """Return the section on convergence."""
        measured = convergence.table(self.results)
        curves = convergence.curves(measured)
        selected = (curves["sweep"] <= 20) | (curves["sweep"] % 10 == 0)  # keeps the file small
        self._csv(curves[selected], "convergence")
        parts: list[str | Grid | Picture] = [
            "Training error (mean squared error over the observed entries) after each sweep: mean over the repeats, "
            "with their range as a band. The paper shows this as a figure, without numbers. GL∞ and the two printed "
            "rules are not in that figure. With the printed rule of GL∞, W grows without bound while Z shrinks; the "
            "chain ends when the values overflow."
        ]
        for name in self._datasets_of(measured):
            drawn = convergence.figure(measured[measured["dataset"] == name], f"Convergence: {self.names[name]}")
            parts.append(self._picture(drawn, f"convergence-{name}", f"Training error by sweep, {self.names[name]}."))
        return [Section("Convergence", [*parts, *convergence.grids(measured, self.names, self.settings.burn_in)])]

    def factors(self) -> list[Section]:
        """Return the section on the factors."""
        measured, density = factors.table(self.results), factors.histogram(self.results)
        self._csv(measured, "factors")
        parts: list[str | Grid | Picture] = [
            "The entries of W in the last 20 sweeps. The rule that the paper prints for GL₂²,∞ is not the conditional "
            "of its density. The printed numbers presumably come from that rule, so they are compared with both.",
            *factors.grids(measured, self.names),
        ]
        for name in self._datasets_of(measured):
            drawn = factors.figure(density[density["dataset"] == name], f"Entries of W: {self.names[name]}")
            text = f"Distribution of the entries of W in the last 20 sweeps, {self.names[name]}; dotted: 0.1."
            parts.append(self._picture(drawn, f"factors-{name}", text))
        return [Section("Factors", parts)]

    def prediction(self) -> list[Section]:
        """Return the sections on prediction and on the starting points of GL1²."""
        measured = prediction.table(self.results)
        self._csv(measured, "prediction")
        parts: list[str | Grid | Picture] = [
            "A given fraction of all entries of the matrix, including those that were never observed, is not in the "
            "training set; the error is measured on those of them that were observed. The prediction is the posterior "
            "mean of W Z over the sweeps after the burn-in. All methods use the same splits. The figures are cut "
            "where plain NMF and GL₁² exceed the range of the others; the tables contain all numbers."
        ]
        for name in self._datasets_of(measured):
            drawn = prediction.figure(measured[measured["dataset"] == name], f"Prediction: {self.names[name]}")
            text = f"Error on held-out entries by fraction unobserved, {self.names[name]}."
            parts.append(self._picture(drawn, f"prediction-{name}", text))
        sections = [Section("Prediction", [*parts, *prediction.grids(measured, self.names)])]
        by_start = starts.table(self.results, self.settings)
        if not by_start.empty:
            self._csv(by_start, "starts")
            tables = [*starts.grids(by_start, self.names), starts.by_active(by_start)]
            sections.append(Section("Starting points of GL₁²", [*starts.explanation(by_start), *tables]))
        return sections

    def noise(self) -> list[Section]:
        """Return the section on noise."""
        measured = added_noise.table(self.results)
        self._csv(measured, "noise")
        name = self.settings.noise_dataset
        drawn = added_noise.figure(measured, f"Noise: {self.names[name]}, K = {self.settings.noise_k}")
        text = (
            "Gaussian noise is added to every observed entry. Its variance is the given percentage of the variance of "
            f"the observed entries, and negative values are kept. Then {100 * self.settings.noise_held_out:g}% of the "
            "observed entries are held out and predicted from the others. The paper plots the ratio of the variance "
            "of the data to the MSE of the predictions, without numbers, and does not say which values the predictions "
            "are compared with. Both are shown: the noisy held-out entries (with the variance of the noisy data), and "
            "the held-out entries before noise (with the variance of the data before noise)."
        )
        caption = f"Ratio of variance to error by noise, {self.names[name]}; bands: range of the repeats."
        picture = self._picture(drawn, "noise", caption)
        return [Section("Noise", [text, picture, *added_noise.grids(measured, self.names)])]

    def about(self, about: Mapping[str, str]) -> Section:
        """Return the section on settings, versions and time."""
        s = self.settings
        rows: list[list[str | Cell]] = [
            ["chains", f"{s.n_sweeps} sweeps, {s.burn_in} of them burn-in; no rescaling move"],
            ["priors", f"λ = {s.rate:g} for every model; noise variance inverse-gamma with shape 1 and scale 1"],
            [
                "start",
                "a draw from the prior of the model. All models of a scenario (data, K, fraction, repeat) share random "
                "numbers, split and noise",
            ],
            ["repeats", f"{s.repeats} ({min(s.repeats, s.divergent_repeats)} for the printed rule of GL∞)"],
            ["seed", str(s.seed)],
            *_pairs(about),
            ["sampler", "fingerprints of its draws: " + ", ".join(_fingerprints(self.results))],
            ["versions", f"Python {platform.python_version()}, " + ", ".join(map(_version, REPORTED_PACKAGES))],
            ["machine", f"{platform.system()} {platform.machine()}"],
        ]
        rows += _pairs({f"data: {d.title}": d.source for d in self.datasets.values() if d.source})
        return Section("Settings", [Grid(["setting", "value"], rows)])

    def _datasets_of(self, measured: pd.DataFrame) -> list[str]:
        return [name for name in self.names if name in set(measured["dataset"])]

    def _csv(self, table: pd.DataFrame, name: str) -> None:
        """Write a table with the shown names of the data sets."""
        named = table.assign(dataset=table["dataset"].map(self.names)) if "dataset" in table else table
        content = named.to_csv(index=False, float_format="%.6g", lineterminator="\n")
        write_bytes(self.out / TABLES_DIRECTORY / f"{name}.csv", content.encode())

    def _picture(self, drawn: Figure, name: str, caption: str) -> Picture:
        figures.save(drawn, self.out / FIGURES_DIRECTORY / name)
        return Picture(f"{FIGURES_DIRECTORY}/{name}", caption)


def _pairs(texts: Mapping[str, str]) -> list[list[str | Cell]]:
    return [[name, text] for name, text in texts.items()]


def _tally(compared: pd.DataFrame) -> Cell:
    """Return how many of the compared numbers agree, with the largest difference."""
    n_agreeing = int(compared["verdict"].isin(["within", "close"]).sum())
    percents = compared["percent"].dropna()
    note = ""
    if len(percents):
        largest = max(percents, key=abs)
        note = f"largest {largest:+.1f}%"
    if compared.empty:
        return Cell("–")
    share = n_agreeing / len(compared)
    return Cell(
        f"{n_agreeing} of {len(compared)}", note, "within" if share == 1 else "close" if share >= 0.5 else "off"
    )


def _fingerprints(results: Mapping[Fit, Result]) -> list[str]:
    models = in_order({fit.model for fit in results if not fit.is_baseline})
    return [f"{label_of(model)} {sampler_fingerprint(model)}" for model in models]


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} (not installed)"
