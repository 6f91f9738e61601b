"""The experiments of the paper: their settings, the fits that they need, and tidy tables of the results.

1. Convergence: the training error after each sweep.
2. Factors: the entries of W in the last 20 sweeps. In addition, the same from other starting points on methylation,
   because the scale between W and Z is free.
3. Prediction: the error on held-out entries, for increasing fractions of unobserved entries. In addition, GL1² from
   other starting points, to explain its errors: its components compete, so one that explains nothing yet is kept small
   by the others, and the error of a chain depends on how many became active.
4. Noise: the error on held-out entries when noise is added to the data. The paper does not say which values the
   predictions are compared with, so there are two errors: against the noisy entries, and before noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from bnmf.paper.baselines import BASELINES
from bnmf.paper.fits import BIN_EDGES, N_FACTOR_SWEEPS, STARTS, Fit, Result
from bnmf.paper.methods import EXACT_MODELS, PAPER_MODELS

Results = Mapping[Fit, Result]

EXPERIMENTS = ("convergence", "factors", "prediction", "noise")
"""The experiments, in the order of the page."""
GDSC, METHYLATION = DATASETS = "gdsc", "methylation"
FULL_MODELS = (*EXACT_MODELS, "gl22inf-published", "glinf-published")
"""Models of convergence and factors."""
BASELINES_WITHOUT_K = ("column_mean", "row_column_mean", "knn")
"""Baselines without components; their fits have k = 0."""
NOISE_HELD_OUT = 0.1
"""Fraction of the observed entries that is held out in the noise experiment."""
FRACTIONS = {GDSC: (0.3, 0.4, 0.5, 0.6, 0.7, 0.8), METHYLATION: (0.1, 0.3, 0.5, 0.6, 0.7, 0.8)}
"""Unobserved fractions in the prediction experiment."""
DIVERGENT_REPEATS = 3
"""Repeats of the printed rule of GL∞."""
FACTOR_STARTS = METHYLATION
"""Data set on which factors are run from other starting points."""
PRINTED_RULE_FROM = 0.6
"""Smallest fraction at which the printed rule of GL2²,∞ is run, on GDSC."""
ACTIVE_RATIO = 3.0
"""A component is active if ‖w_:k‖ ‖z_k:‖ is more than this multiple of the median over the components."""


@dataclass(frozen=True)
class Settings:
    """Settings of a run: those of the paper, or our choice where the paper does not specify them."""

    repeats: int = 10
    seed: int = 0
    n_sweeps: int = 500
    burn_in: int = 300
    full_k: tuple[int, ...] = (10, 20, 30, 40, 50)  # in convergence and factors
    prediction_k: tuple[int, ...] = (20, 30, 40, 50)
    fractions: Mapping[str, tuple[float, ...]] = field(default_factory=FRACTIONS.copy)
    start_scenarios: tuple[tuple[float, int], ...] = ((0.6, 20), (0.8, 50))  # fractions and K of the starts of GL1²
    noise_k: int = 10
    noise_levels: tuple[float, ...] = (0.0, 0.1, 0.2, 0.5, 1.0)


def quick(settings: Settings) -> Settings:
    """Return the settings of a run of a few minutes with the same chains, too small for a comparison with the paper."""
    return replace(
        settings,
        repeats=min(settings.repeats, 2),
        full_k=(10, 20),
        prediction_k=(20, 50),
        fractions={GDSC: (0.6, 0.8), METHYLATION: (0.6, 0.8)},
        start_scenarios=((0.8, 50),),
        noise_levels=(0.0, 0.1, 1.0),
    )


# ---------------------------------------------------------------- the fits


def needed_datasets(experiments: Sequence[str]) -> list[str]:
    """Return the names of the data sets that experiments need."""
    return [GDSC] if set(experiments) == {"noise"} else list(DATASETS)


def plan(experiments: Sequence[str], settings: Settings, observed: float) -> list[Fit]:
    """Return every fit of some experiments once; `observed` is the observed fraction of GDSC."""
    fits: list[Fit] = []
    if {"convergence", "factors"} & set(experiments):
        fits += plan_chains(settings)
    if "factors" in experiments:
        fits += plan_factor_starts(settings)
    if "prediction" in experiments:
        fits += plan_prediction(settings) + plan_starts(settings)
    if "noise" in experiments:
        fits += plan_noise(settings, observed)
    return list(dict.fromkeys(fits))


def _fits(settings: Settings, **values: Any) -> list[Fit]:
    """Return a fit for every combination of some values, in the order of loops nested like the arguments."""
    values |= {name: [getattr(settings, name)] for name in ("n_sweeps", "burn_in", "seed")}
    return [Fit(**dict(zip(values, combination, strict=True))) for combination in product(*values.values())]


def plan_chains(settings: Settings) -> list[Fit]:
    """Return the fits of convergence and factors: every model and K, trained on all observed entries."""
    repeats = range(settings.repeats)
    fits = _fits(settings, dataset=DATASETS, k=settings.full_k, model=FULL_MODELS, repeat=repeats)
    return [fit for fit in fits if fit.model != "glinf-published" or fit.repeat < DIVERGENT_REPEATS]


def plan_factor_starts(settings: Settings) -> list[Fit]:
    """Return the fits of the factors from other starting points than the prior."""
    starts = [start for start in STARTS if start != "prior"]
    which = {"dataset": [FACTOR_STARTS], "k": settings.full_k, "model": PAPER_MODELS, "start": starts}
    return _fits(settings, **which, repeat=range(settings.repeats))


def plan_prediction(settings: Settings) -> list[Fit]:
    """Return the fits of prediction: every fraction, K, model and baseline, on the same splits."""
    fits = []
    for dataset in DATASETS:
        for unobserved, repeat in product(settings.fractions[dataset], range(settings.repeats)):
            has_printed_rule = dataset == GDSC and unobserved >= PRINTED_RULE_FROM
            models = (*EXACT_MODELS, "gl22inf-published") if has_printed_rule else EXACT_MODELS
            split = {"dataset": [dataset], "unobserved": [unobserved], "repeat": [repeat]}
            for model in (*models, *BASELINES):
                ks = (0,) if model in BASELINES_WITHOUT_K else settings.prediction_k
                fits += _fits(settings, **split, model=[model], k=ks)
    return fits


def plan_starts(settings: Settings) -> list[Fit]:
    """Return the fits of GL1² from all starting points; those from the prior are also fits of prediction."""
    starts = [start for start in STARTS if start != "columns"]
    fits = []
    for unobserved, k in settings.start_scenarios:
        scenario = {"dataset": [GDSC], "model": ["gl12"], "unobserved": [unobserved], "k": [k]}
        fits += _fits(settings, **scenario, start=starts, repeat=range(settings.repeats))
    return fits


def plan_noise(settings: Settings, observed: float) -> list[Fit]:
    """Return the fits of noise; `observed` is the observed fraction of GDSC."""
    unobserved = round(1.0 - (1.0 - NOISE_HELD_OUT) * observed, 6)
    where = {"dataset": [GDSC], "k": [settings.noise_k], "unobserved": [unobserved]}
    return _fits(settings, **where, noise=settings.noise_levels, model=EXACT_MODELS, repeat=range(settings.repeats))


# ---------------------------------------------------------------- tables


def convergence(results: Results) -> pd.DataFrame:
    """Return the training error of each sweep of each fit; NaN after a chain has diverged."""
    rows = [
        (fit.dataset, fit.k, fit.model, fit.repeat, sweep, mse)
        for fit, result in results.items()
        if fit.unobserved is None and fit.start == "prior"
        for sweep, mse in enumerate(result["train_mse"], start=1)
    ]
    return pd.DataFrame(rows, columns=["dataset", "k", "model", "repeat", "sweep", "train_mse"])


def curves(measured: pd.DataFrame) -> pd.DataFrame:
    """Return the mean, lowest and highest training error over the repeats, at each sweep."""
    groups = measured.groupby(["dataset", "k", "model", "sweep"], sort=False)["train_mse"]
    return groups.agg(["mean", "min", "max"]).reset_index()


def convergence_summary(measured: pd.DataFrame, burn_in: int) -> pd.DataFrame:
    """Return `final_mse`, the mean after the burn-in, and `sweeps`, the first one within 10% of it."""
    rows = []
    for key, group in measured.groupby(["dataset", "k", "model"], sort=False):
        final = group[group["sweep"] > burn_in].groupby("repeat")["train_mse"].mean().mean()
        curve = group.groupby("sweep")["train_mse"].mean()
        near = curve.index[curve <= 1.1 * final]
        rows.append((*key, final, near[0] if len(near) else np.nan))
    return pd.DataFrame(rows, columns=["dataset", "k", "model", "final_mse", "sweeps"])


def _by_fit(results: Results) -> pd.DataFrame:
    """Return a row for each fit: its settings and the numbers of its result."""
    rows = [
        asdict(fit) | {name: float(value) for name, value in result.items() if value.ndim == 0}
        for fit, result in results.items()
    ]
    return pd.DataFrame(rows)


def factors(results: Results) -> pd.DataFrame:
    """Return `mean` and `sparsity` (percentage below 0.1) of W, and `train_mse`, in the last 20 sweeps."""
    chosen = {fit: result for fit, result in results.items() if fit.unobserved is None}
    errors = [result["train_mse"][-N_FACTOR_SWEEPS:].mean() for result in chosen.values()]
    found = _by_fit(chosen).rename(columns={"w_mean": "mean", "w_sparsity": "sparsity"}).assign(train_mse=errors)
    return found[["dataset", "k", "model", "start", "repeat", "mean", "sparsity", "train_mse"]]


def histogram(results: Results) -> pd.DataFrame:
    """Return the distribution of the entries of W over all repeats: the `density` of `log10_w`, bin by bin."""
    counts: dict[tuple[str, int, str], Any] = {}
    for fit, result in results.items():
        if fit.unobserved is None and fit.start == "prior":
            key = (fit.dataset, fit.k, fit.model)
            counts[key] = counts.get(key, 0) + result["w_counts"]
    centres, width = 0.5 * (BIN_EDGES[:-1] + BIN_EDGES[1:]), BIN_EDGES[1] - BIN_EDGES[0]
    rows = [
        (*key, centre, density)
        for key, found in counts.items()
        for centre, density in zip(centres, found / max(found.sum(), 1) / width, strict=True)
    ]
    return pd.DataFrame(rows, columns=["dataset", "k", "model", "log10_w", "density"])


def _predicting(results: Results) -> pd.DataFrame:
    """Return a row for each fit with a prediction."""
    found = _by_fit({fit: result for fit, result in results.items() if "test_mse" in result})
    return found.rename(columns={"test_mse": "mse", "test_mse_clean": "mse_clean", "train_mse_mean": "train_mse"})


def prediction(results: Results) -> pd.DataFrame:
    """Return the error of the prediction on the held-out entries, `mse`, and on the training entries."""
    found = _predicting({fit: result for fit, result in results.items() if fit.noise is None and fit.start == "prior"})
    return found[["dataset", "unobserved", "k", "model", "repeat", "mse", "train_mse"]]


def with_every_k(measured: pd.DataFrame) -> pd.DataFrame:
    """Return the table of prediction with the baselines without components repeated for every K."""
    ks = sorted(set(measured["k"]) - {0})
    without_k = measured["k"] == 0
    return pd.concat([measured[~without_k], *(measured[without_k].assign(k=k) for k in ks)], ignore_index=True)


def starts(results: Results, settings: Settings) -> pd.DataFrame:
    """Return errors, mean of W, number of `active` components and `log_joint` of GL1² by starting point."""
    chosen = {fit: results[fit] for fit in plan_starts(settings)}
    sizes = [result["contributions"] for result in chosen.values()]
    active = [int((each > ACTIVE_RATIO * np.median(each)).sum()) for each in sizes]
    columns = ["unobserved", "k", "start", "repeat", "mse", "train_mse", "w_mean", "active", "log_joint"]
    return _predicting(chosen).assign(active=active)[columns]


def noise(results: Results) -> pd.DataFrame:
    """Return errors on the held-out entries with and before (`clean`) noise, and variances of the data over them."""
    found = _predicting({fit: result for fit, result in results.items() if fit.noise is not None})
    found["ratio"] = found["variance"] / found["mse"]
    found["ratio_clean"] = found["variance_clean"] / found["mse_clean"]
    return found[["dataset", "noise", "k", "model", "repeat", "mse", "mse_clean", "ratio", "ratio_clean"]]
