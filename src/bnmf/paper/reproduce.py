"""Reproduce the paper: run the fits that are not finished, and write the page of results."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from bnmf.paper import experiments, figures, tables
from bnmf.paper.experiments import GDSC, METHYLATION, Results, Settings
from bnmf.paper.fits import RATE, FinishedFits, data_fingerprint, run_fits, sampler_fingerprint
from bnmf.paper.methods import METHODS, in_order
from bnmf.paper.page import Part, Picture, Sections, Table, to_html, to_markdown
from bnmf.utils.files import write_bytes
from bnmf.utils.text import duration

FITS_DIRECTORY = "fits"
"""Directory of the finished fits, relative to the directory of the page."""
TITLES = {GDSC: "GDSC IC50", METHYLATION: "gene body methylation"}
"""Names of the data sets in tables and figures."""
PAGE_TITLE = "Bayesian NMF with norm penalties: the experiments of the paper, reproduced"
PAGE_LEAD = (
    "Every table and figure of Lu and Chai (2022), computed by bnmf and compared with the printed numbers, which are "
    "means of ten repeats. The deviation is in percent of the printed number. "
    f"✓: close, that is, the deviation is at most {tables.CLOSE_PERCENT:g}%, or at most "
    f"{tables.TELLING_PERCENT:g}% and within the Monte Carlo error. "
    "?: the deviation is larger, but within the Monte Carlo error, so that the comparison says little. "
    "✗: neither. "
    "The Monte Carlo error is two standard errors of the difference of the two means, 2 s √(1/n + 1/10), where s is "
    "the standard deviation of our n repeats, plus half a unit of the last printed digit. "
    f"Numbers from fewer than {tables.GRADED_REPEATS} repeats have no sign."
)
PACKAGES = ("bnmf", "numpy", "scipy", "scikit-learn", "pandas", "joblib", "matplotlib")


@dataclass(frozen=True)
class Dataset:
    """A matrix (NaN where missing), its name on the page, and the address that it comes from."""

    data: Any
    title: str
    source: str = ""


def load_datasets(names: Iterable[str], data_dir: str | os.PathLike[str] | None = None) -> dict[str, Dataset]:
    """Load data as the paper prepares them, from a directory or else by download into the user's cache directory."""
    from bnmf.datasets import fetch_gdsc_ic50, fetch_gene_body_methylation

    fetch = {GDSC: fetch_gdsc_ic50, METHYLATION: fetch_gene_body_methylation}
    found = {name: fetch[name](data_home=data_dir, download_if_missing=data_dir is None) for name in names}
    return {name: Dataset(bunch.data, TITLES[name], bunch.source) for name, bunch in found.items()}


def reproduce(
    chosen: Sequence[str],
    datasets: Mapping[str, Dataset],
    settings: Settings,
    out: Path,
    *,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Path:
    """Run the chosen experiments, write the page of results to `out` beside the finished fits, and return its path."""
    began = time.monotonic()
    matrices = {name: dataset.data for name, dataset in datasets.items()}
    finished = FinishedFits(out / FITS_DIRECTORY, {name: data_fingerprint(X) for name, X in matrices.items()})
    observed = float(np.mean(~np.isnan(np.asarray(matrices[GDSC], dtype=float))))
    fits = experiments.plan(chosen, settings, observed)
    found = sum(finished.path(fit).exists() for fit in fits)
    results = run_fits(fits, matrices, finished=finished, n_jobs=n_jobs, progress=progress)
    seconds = sum(float(result["seconds"]) for result in results.values())
    about = {
        "fits": f"{len(fits)}, {len(fits) - found} of them in this run, the others finished before",
        "duration": f"{duration(time.monotonic() - began)}; all fits together took {duration(seconds)} of one core",
    }
    return WriteUp(out, datasets, settings, results).write(chosen, about)


class WriteUp:
    """Writes the tables, figures and page of a run."""

    def __init__(self, out: Path, datasets: Mapping[str, Dataset], settings: Settings, results: Results) -> None:
        self.out, self.datasets, self.settings, self.results = out, datasets, settings, results
        self.names = {name: dataset.title for name, dataset in datasets.items()}

    def write(self, chosen: Sequence[str], about: Mapping[str, str]) -> Path:
        """Write tables, figures and page, with additional facts about the run; return the path of the page."""
        for directory in ("figures", "tables"):
            (self.out / directory).mkdir(parents=True, exist_ok=True)
        sections: Sections = {}
        agreement = tables.agreement(
            experiments.factors(self.results) if "factors" in chosen else None,
            experiments.prediction(self.results) if "prediction" in chosen else None,
            self.names,
        )
        if agreement:
            sections["Agreement"] = [agreement]
        caption = f"Distribution of the observed entries: {', '.join(self.names.values())}."
        picture = self._picture(figures.data(self.datasets), "data", caption)
        sections["Data"] = [tables.data(self.datasets), picture]
        for name in chosen:
            sections |= getattr(self, name)()
        sections["Settings"] = [self.about(about)]
        write_bytes(self.out / "README.md", to_markdown(PAGE_TITLE, PAGE_LEAD, sections).encode())
        write_bytes(self.out / "index.html", to_html(PAGE_TITLE, PAGE_LEAD, sections).encode())
        return self.out / "index.html"

    def convergence(self) -> Sections:
        """Return the section on convergence."""
        measured = experiments.convergence(self.results)
        curves = experiments.curves(measured)
        self._csv(curves[(curves["sweep"] <= 20) | (curves["sweep"] % 10 == 0)], "convergence")  # keeps the file small
        parts: list[Part] = [
            "Training error (mean squared error over the observed entries) after each sweep: mean over the repeats, "
            "with their range as a band. The paper shows this as a figure, without numbers. GL∞ and the two printed "
            "rules are not in that figure. With the printed rule of GL∞, W grows without bound while Z shrinks; the "
            "chain ends when the values overflow."
        ]
        for name, title, rows in self._by_dataset(measured):
            drawn = figures.convergence(rows, f"Convergence: {title}")
            parts.append(self._picture(drawn, f"convergence-{name}", f"Training error by sweep, {title}."))
            parts.append(tables.convergence(rows, title, self.settings.burn_in))
        return {"Convergence": parts}

    def factors(self) -> Sections:
        """Return the sections on the factors, and on their dependence on the starting point."""
        measured, density = experiments.factors(self.results), experiments.histogram(self.results)
        self._csv(measured, "factors")
        parts: list[Part] = [
            "The entries of W in the last 20 sweeps. The rule that the paper prints for GL₂²,∞ is not the conditional "
            "of its density. The printed numbers presumably come from that rule, so they are compared with both."
        ]
        starts: list[Part] = [
            "The likelihood depends on W and Z only through their product: if a column of W is multiplied by a number "
            "and the row of Z divided by it, only the priors tell the difference, and Gibbs sweeps without a rescaling "
            "move hardly change this scale. Where the data say more than the priors, the mean of W after 500 sweeps is "
            "decided by the starting point and by the order of the updates. It is not a property of the model."
        ]
        for name, title, rows in self._by_dataset(measured):
            drawn = figures.factors(density[density["dataset"] == name], f"Entries of W: {title}")
            caption = f"Distribution of the entries of W in the last 20 sweeps, {title}; dotted: 0.1."
            parts += [*tables.factors(rows, title), self._picture(drawn, f"factors-{name}", caption)]
            if name == experiments.FACTOR_STARTS:
                starts += tables.factors_by_start(rows, title)
        return {"Factors": parts, "Scale of W": starts}

    def prediction(self) -> Sections:
        """Return the sections on prediction and on the starting points of GL1²."""
        measured, by_start = experiments.prediction(self.results), experiments.starts(self.results, self.settings)
        self._csv(measured, "prediction")
        self._csv(by_start, "starts")
        parts: list[Part] = [
            "A given fraction of all entries of the matrix, including those that were never observed, is not in the "
            "training set; the error is measured on those of them that were observed. The prediction is the posterior "
            "mean of W Z over the sweeps after the burn-in. All methods use the same splits. The figures are cut "
            "where plain NMF and GL₁² exceed the range of the others; the tables contain all numbers. Brouwer et al. "
            "published errors on methylation in 5 folds, that is with 20% hidden: 1.512 for GEE, 1.467 for their best."
        ]
        for name, title, rows in self._by_dataset(measured):
            drawn = figures.prediction(rows, f"Prediction: {title}")
            caption = f"Error on held-out entries by fraction unobserved, {title}."
            parts += [self._picture(drawn, f"prediction-{name}", caption), *tables.prediction(rows, title)]
        return {"Prediction": parts, "Starting points of GL₁²": [*tables.starts(by_start, self.names[GDSC])]}

    def noise(self) -> Sections:
        """Return the section on noise."""
        measured, title = experiments.noise(self.results), self.names[GDSC]
        self._csv(measured, "noise")
        text = (
            "Gaussian noise is added to every observed entry. Its variance is the given percentage of the variance of "
            f"the observed entries, and negative values are kept. Then {experiments.NOISE_HELD_OUT:.0%} of the "
            "observed entries are held out and predicted from the others. The paper plots the ratio of the variance "
            "of the data to the MSE of the predictions, without numbers, and does not say which values the predictions "
            "are compared with. Both are shown: the noisy held-out entries (with the variance of the noisy data), and "
            "the held-out entries before noise (with the variance of the data before noise)."
        )
        drawn = figures.noise(measured, f"Noise: {title}, K = {self.settings.noise_k}")
        caption = f"Ratio of variance to error by noise, {title}; bands: range of the repeats."
        return {"Noise": [text, self._picture(drawn, "noise", caption), *tables.noise(measured, title)]}

    def about(self, about: Mapping[str, str]) -> Table:
        """Return the table of settings, versions and time."""
        s = self.settings
        models = in_order({fit.model for fit in self.results if not fit.is_baseline})
        fingerprints = ", ".join(f"{METHODS[model].label} {sampler_fingerprint(model)}" for model in models)
        facts = {
            "chains": f"{s.n_sweeps} sweeps, {s.burn_in} of them burn-in; no rescaling move",
            "priors": f"λ = {RATE:g} for every model; noise variance inverse-gamma with shape 1 and scale 1",
            "start": "a draw from the prior of the model. All models of a scenario (data, K, fraction, repeat) share "
            "random numbers, split and noise",
            "repeats": f"{s.repeats} ({min(s.repeats, experiments.DIVERGENT_REPEATS)} for the printed rule of GL∞)",
            "seed": str(s.seed),
            **about,
            "sampler": f"fingerprints of its draws: {fingerprints}",
            "versions": ", ".join([f"Python {platform.python_version()}", *(f"{p} {version(p)}" for p in PACKAGES)]),
            "machine": f"{platform.system()} {platform.machine()}",
            **{f"data: {d.title}": d.source for d in self.datasets.values() if d.source},
        }
        return Table(["setting", "value"], [[name, text] for name, text in facts.items()], n_labels=2)

    def _by_dataset(self, measured: pd.DataFrame) -> Iterable[tuple[str, str, pd.DataFrame]]:
        """Yield each data set of a table: its name, its name on the page, and its rows."""
        for name, title in self.names.items():
            yield name, title, measured[measured["dataset"] == name]

    def _csv(self, table: pd.DataFrame, name: str) -> None:
        """Write a table with the names of the data sets as on the page."""
        content = table.replace({"dataset": self.names}).to_csv(index=False, float_format="%.6g", lineterminator="\n")
        write_bytes(self.out / "tables" / f"{name}.csv", content.encode())

    def _picture(self, drawn: Figure, name: str, caption: str) -> Picture:
        figures.save(drawn, self.out / "figures" / name)
        return Picture(f"figures/{name}", caption, self.out)
