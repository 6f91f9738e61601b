"""Choosing the number of components K by how well hidden entries are predicted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from scipy.special import logsumexp
from sklearn.base import clone

from bnmf.data.folds import Fold, entries_to_score, folds
from bnmf.data.identity import fingerprint
from bnmf.data.observed import ObservedMatrix
from bnmf.estimator import BayesianNMF
from bnmf.inputs import in_memory
from bnmf.posterior.posterior import Posterior
from bnmf.posterior.predictions import tiles
from bnmf.posterior.summary import table_html
from bnmf.sampler.run import Ending
from bnmf.utils import arguments
from bnmf.utils.arguments import as_seed
from bnmf.utils.files import write_bytes
from bnmf.utils.progress import counted
from bnmf.utils.typing import Bools, Floats, Indices

# Observed entries at most whose leave-one-out densities are computed.
MAX_LOO_ENTRIES = 10_000
# Shape of the Pareto distribution of importance weights above which they are not reliable.
MAX_SHAPE = 0.7
# Log probability of an interval above which it counts as certain.
MIN_DOUBT = 1e-12
# Draws that the fit of a tail needs.
MIN_DRAWS = 50


@dataclass(frozen=True)
class RankChoice:
    """The K that predicts hidden entries best, with what it is based on.

    Attributes
    ----------
    best_k : int
        The smallest K whose log predictive density is within one standard error of the best.
    table : DataFrame
        For each K: the mean log predictive density of hidden entries (`log_density`), how far it lies below that of
        the best K (`below_best`), and the root mean squared error (`rmse`), each with its standard error over the
        folds (`..._se`). With ``loo=True`` also the mean leave-one-out density of observed entries by importance
        sampling (`loo`), by WAIC (`waic`), and the share of entries for which importance sampling is not reliable
        (`loo_unreliable`).
    """

    best_k: int
    table: pd.DataFrame

    @property
    def sentence(self) -> str:
        """Why this K was chosen, in words."""
        density, ks = self.table["log_density"].to_numpy(), list(self.table.index)
        top, best = ks[int(np.argmax(density))], float(density.max())
        if len(ks) == 1:
            return f"K = {top} is the only number of components that was tried."
        edge = " It is the largest that was tried: try larger ones too." if self.best_k == ks[-1] else ""
        if self.best_k == top:
            return f"K = {top} predicts hidden entries best (log density {best:.4g}).{edge}"
        gap, error = self.table.loc[self.best_k, ["below_best", "below_best_se"]].to_numpy(float)
        return (
            f"K = {self.best_k} is the smallest number of components within one standard error of the best: its log "
            f"density of hidden entries is {gap:.2g} below that of K = {top}, with a standard error of {error:.2g}."
        )

    def _repr_html_(self) -> str:
        return table_html(self.table, self.sentence)

    def __repr__(self) -> str:
        return f"{self.table.to_string(float_format='{:.4g}'.format)}\nbest_k = {self.best_k}. {self.sentence}"


def select_rank(
    X: Any,
    ks: Sequence[int],
    *,
    estimator: BayesianNMF | None = None,
    observed: Any = None,
    lower: Any = None,
    upper: Any = None,
    n_folds: int = 5,
    n_repeats: int = 1,
    loo: bool = False,
    checkpoint: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    progress: bool = False,
) -> RankChoice:
    """Choose the number of components by cross-validation over entries.

    The observed entries are divided into folds. Each fold is hidden in turn, the rest is fitted, and the hidden
    entries are scored by their log predictive density. All K see the same folds, and no fold hides all entries of a
    row or column. Of sparse data with implicit zeros, each fold holds a sample of the zeros, weighted to stand for all
    of them.

    Parameters
    ----------
    X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
        Nonnegative data; NaN is missing.
    ks : sequence of int
        Numbers of components to try.
    estimator : BayesianNMF, optional
        The model, whose `n_components` is replaced by each K; by default a BayesianNMF with 2 chains of 200 sweeps of
        burn-in and 100 draws.
    observed, lower, upper : array-like, optional
        As for :meth:`BayesianNMF.fit`. A hidden entry that is only known to lie between limits is scored by the
        probability of its interval.
    n_folds : int, default=5
        Number of folds.
    n_repeats : int, default=1
        How often to divide the entries into folds.
    loo : bool, default=False
        Fit all data with each K too, and add leave-one-out densities to the table. The choice is not based on them.
    checkpoint : path-like, optional
        A directory that keeps the results of finished fits, and the seed if none is given: the same call continues
        after an interruption.
    n_jobs : int, optional
        Number of fits that run side by side, by joblib.
    random_state : int, RandomState, Generator or None, default=None
        An integer makes folds and fits reproducible. None takes that of the estimator.
    progress : bool, default=False
        Show how many fits are done on standard error.

    Returns
    -------
    RankChoice
        The choice, and the table it is based on.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.exponential(size=(40, 2)) @ rng.exponential(size=(2, 15)) + 0.1 * rng.standard_normal((40, 15))
    >>> select_rank(np.maximum(X, 0.0), ks=[1, 2], n_folds=2, random_state=0).best_k
    2
    """
    ks = _numbers_of_components(ks)
    arguments.whole_number(n_folds, "n_folds", 2)
    arguments.whole_number(n_repeats, "n_repeats", 1)
    n_held_out = len(ks) * n_folds * n_repeats
    n_fits = n_held_out + len(ks) * arguments.flag(loo, "loo")
    arguments.flag(progress, "progress")
    directory = None if checkpoint is None else arguments.checkpoint_directory(checkpoint)
    estimator = BayesianNMF(n_chains=2, burn_in=200, n_draws=100) if estimator is None else estimator
    model = model_of_many_fits(estimator, random_state)
    if loo and isinstance(model.n_draws, int) and model.n_chains * model.n_draws < MIN_DRAWS:
        raise ValueError(
            f"loo=True needs at least {MIN_DRAWS} draws in all, got {model.n_chains} chains of {model.n_draws}"
        )
    data = in_memory(clone(model), X, observed, lower, upper, reset=True)
    if data.n_observed < n_folds:
        raise ValueError(f"n_folds={n_folds} needs as many observed entries, got {data.n_observed}")
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
        if random_state is None and estimator.random_state is None:
            model.set_params(random_state=_stored_seed(directory / "seed.json", model.random_state))
    if n_jobs not in (None, 1):
        model.set_params(n_jobs=1)
    seed, models = model.random_state, [clone(model).set_params(n_components=k) for k in ks]
    digest = fingerprint(data)

    def parts() -> Iterator[tuple[tuple[Any, ...], ObservedMatrix | Fold]]:
        """Yield a name and the data of each fold, and all data for leave-one-out densities."""
        for repeat in range(n_repeats):
            rng = np.random.default_rng([seed, repeat] if repeat else seed)
            for number, fold in enumerate(folds(data, n_folds, rng, balanced=True)):
                yield (repeat, number), fold
        if loo:
            yield ("loo",), data

    def fits() -> Iterator[Any]:
        """Yield what fits each model to each part, or reads its result from a file."""
        for where, part in parts():
            for model in models:
                name = f"{joblib.hash([digest, n_folds, model.get_params(), where])}.json"
                yield joblib.delayed(_result)(model, part, directory and directory / name)

    results: list[list[float]] = []
    with counted(n_fits, "fits", progress) as show:
        for result in joblib.Parallel(n_jobs=n_jobs, return_as="generator")(fits()):
            results.append(result)
            show(len(results))
    densities, squares = np.array(results[:n_held_out]).reshape(-1, len(ks), 2).transpose(2, 1, 0)
    choice = _choose(ks, densities, squares)
    if loo:
        choice.table[["loo", "loo_se", "waic", "waic_se", "loo_unreliable"]] = np.array(results[n_held_out:])
    return choice


def model_of_many_fits(estimator: BayesianNMF, random_state: Any) -> BayesianNMF:
    """Return a checked copy of an estimator with a seed, and without what cannot work for many fits."""
    if not isinstance(estimator, BayesianNMF):
        raise TypeError(f"estimator must be a BayesianNMF, got {estimator!r}")
    estimator.check_parameters()
    seed = as_seed(estimator.random_state if random_state is None else random_state)
    return clone(estimator).set_params(
        random_state=seed, keep_draws=True, checkpoint=None, calibrate=False, progress=False
    )


def complete_fit(model: BayesianNMF, data: ObservedMatrix) -> Posterior:
    """Return the posterior of a fit; one that Ctrl-C cut off ends the whole comparison."""
    fitted = clone(model).fit_observed(data, model.random_state)
    if fitted.ending_ == Ending.INTERRUPTED:
        raise KeyboardInterrupt
    return fitted.posterior_


def _numbers_of_components(ks: Any) -> list[int]:
    if isinstance(ks, (str, bytes)) or not isinstance(ks, (Sequence, np.ndarray, set)):
        raise TypeError(f"ks must be a sequence of numbers of components, got {ks!r}")
    found = sorted({arguments.whole_number(k, "every number in ks", 1) for k in ks})
    if not found:
        raise ValueError("ks must name at least one number of components")
    return found


def _stored_seed(path: Path, seed: int) -> int:
    """Return the seed in a file, which is written if it does not exist."""
    if not path.exists():
        write_bytes(path, json.dumps(seed).encode())
    return int(json.loads(path.read_bytes()))


def _result(model: BayesianNMF, part: ObservedMatrix | Fold, path: Path | None) -> list[float]:
    """Return the scores of a fit, from its file if it was finished before."""
    if path is not None and path.exists():
        try:
            return [float(number) for number in json.loads(path.read_bytes())]
        except (ValueError, TypeError):
            pass  # damaged: fit again
    if isinstance(part, Fold):
        result = _score(complete_fit(model, part.rest), part)
    else:
        result = _leave_one_out(complete_fit(model, part), part, model.random_state)
    if path is not None:
        write_bytes(path, json.dumps(result).encode())
    return result


def _score(posterior: Posterior, fold: Fold) -> list[float]:
    """Return mean log predictive density and mean squared error of the hidden entries."""
    limits = {"lower": fold.lower, "upper": fold.upper}
    density = posterior.log_predictive_density(fold.rows, fold.columns, fold.values, **limits)
    mean = posterior.mean(fold.rows, fold.columns)
    squares = (fold.nearest(mean) - mean) ** 2
    return [float(np.average(x, weights=fold.weights)) for x in (density, squares)]


def _leave_one_out(posterior: Posterior, data: ObservedMatrix, seed: int) -> list[float]:
    """Return leave-one-out densities and WAIC of observed entries, with standard errors."""
    rng = np.random.default_rng(seed)
    entries: tuple[Any, ...] = entries_to_score(data, rng)
    chosen = rng.permutation(len(entries[0]))[:MAX_LOO_ENTRIES]
    rows, columns, values, weights = (part[chosen] for part in entries)
    loo, waic, is_unreliable = leave_one_out(posterior, rows, columns, values, *data.limits_at(rows, columns))
    out = []
    for densities in (loo, waic):
        mean = np.average(densities, weights=weights)
        error = np.sqrt(np.average((densities - mean) ** 2, weights=weights) / len(densities))
        out += [float(mean), float(error)]
    return [*out, float(np.average(is_unreliable, weights=weights))]


def leave_one_out(
    posterior: Posterior,
    rows: Indices,
    columns: Indices,
    values: Floats,
    lower: Floats | None = None,
    upper: Floats | None = None,
) -> tuple[Floats, Floats, Bools]:
    """Return log densities of observed entries given all others, by importance sampling and by WAIC, and doubts."""
    # Limits are NaN where an entry is exact. The first are not reliable where the importance weights have a heavy tail.
    # WAIC is the log predictive density less the variance of the log likelihood over the draws.
    from arviz_stats.base import array_stats

    n_draws = posterior.n_chains * posterior.n_draws
    if n_draws < MIN_DRAWS:
        raise ValueError(f"leave-one-out densities need at least {MIN_DRAWS} draws in all, got {n_draws}")
    loo, waic, shape = (np.empty(len(rows)) for _ in range(3))
    for part in tiles(len(rows), 64 * n_draws):
        sides = {name: None if x is None else x[part] for name, x in (("lower", lower), ("upper", upper))}
        terms = posterior.log_likelihood(rows[part], columns[part], values[part], **sides).reshape(n_draws, -1).T
        loo[part], shape[part] = terms.mean(axis=1), -np.inf
        # Most draws may agree that an interval is certain: there is no tail to fit then.
        varies = np.ptp(terms, axis=1) > 0.0
        if lower is not None:
            varies &= np.isnan(lower[part]) | (np.median(terms, axis=1) < -MIN_DOUBT)
        if varies.any():
            weights, shapes = array_stats.psislw(terms[varies], axis=-1)
            loo[part][varies], shape[part][varies] = logsumexp(weights + terms[varies], axis=1), shapes
        waic[part] = logsumexp(terms, axis=1) - np.log(n_draws) - terms.var(axis=1, ddof=1)
    return loo, waic, shape > MAX_SHAPE


def _choose(ks: list[int], densities: Floats, squares: Floats) -> RankChoice:
    """Take the smallest K within one standard error of the best, comparing the same folds."""
    below = densities[np.argmax(densities.mean(axis=1))] - densities
    table = pd.DataFrame(index=pd.Index(ks, name="k"))
    for name, of_folds in (("log_density", densities), ("below_best", below), ("rmse", squares)):
        table[name] = of_folds.mean(axis=1)
        table[f"{name}_se"] = of_folds.std(axis=1, ddof=1) / np.sqrt(of_folds.shape[1])
    table["rmse"] = np.sqrt(table["rmse"])
    table["rmse_se"] /= 2.0 * table["rmse"].where(table["rmse"] > 0.0, 1.0)
    good = table.index[table["below_best"] <= table["below_best_se"]]
    return RankChoice(int(good[0]), table)
