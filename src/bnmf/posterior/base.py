"""The base of all posteriors, and the posterior of a fit that keeps means and standard deviations only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.stats import norm

from bnmf.data.limits import nearest
from bnmf.data.observed import ObservedMatrix
from bnmf.data.views import places_in
from bnmf.model.noise import Law
from bnmf.posterior import verdict
from bnmf.posterior.components import column_sizes, sizes
from bnmf.posterior.predictions import NoiseDraws
from bnmf.posterior.summary import MIN_DRAWS, SummaryTable, diagnostics
from bnmf.sampler.stores import RunningMoments
from bnmf.sampler.until_converged import standard_error
from bnmf.utils import arguments, memory
from bnmf.utils.typing import Array, Bools, Floats, Indices

if TYPE_CHECKING:
    from bnmf.posterior.calibration import Calibration
    from bnmf.posterior.verdict import Finding, Verdict

# Number of predictions, and of columns with their noise variance, that are checked for convergence.
N_MONITORED_PREDICTIONS = 100
N_MONITORED_COLUMNS = 100

AXES = {
    "W": ("chain", "draw", "row", "component"),
    "Z": ("chain", "draw", "component", "column"),
    "noise_variance": ("chain", "draw", "column"),
    "row_noise": ("chain", "draw", "row"),
    "row_strength": ("chain", "draw"),
    "df": ("chain", "draw"),
    "outlier_share": ("chain", "draw", "column"),
    "rate_W": ("chain", "draw", "component"),
    "rate_Z": ("chain", "draw", "component"),
    "log_density": ("chain", "draw"),
    "train_mse": ("chain", "sweep"),
    "noise_factor": ("row", "column"),
    "offset": ("column",),
    "scale": ("column",),
    "row_ids": ("row",),
}
"""Axes of the fields that are arrays or None. The last one may be absent, and have length 1 for what all share."""


def taken(posterior: Any, rows: Indices, columns: Indices | None = None) -> dict[str, Any]:
    """Return the arrays of a posterior for some rows and columns, without those that belong to all rows."""
    chosen, found = {"row": (rows, posterior.shape[0]), "column": (columns, posterior.shape[1])}, {}
    for name, axes in AXES.items():
        found[name] = getattr(posterior, name)
        for axis, kind in enumerate(axes[: np.ndim(found[name])]):
            indices, size = chosen.get(kind, (None, 0))
            if indices is not None and found[name].shape[axis] == size:
                found[name] = np.take(found[name], indices, axis)
    return found | {"row_ids": None, "log_density": None}


class BasePosterior:
    """What posteriors with draws and without have in common; :class:`bnmf.Posterior` describes the fields."""

    noise_variance: Floats
    log_density: Floats | None
    train_mse: Floats
    column_names: pd.Index | None
    offset: Floats | None
    lower_bound: float
    n_fixed: tuple[int, int]
    notes: tuple[Finding, ...] = ()
    thinning: int
    calibration: Calibration | None
    row_noise: Floats | None = None
    noise_factor: Floats | None = None
    # Methods of both:
    mean: Callable[..., Floats]
    mean_of_rows: Callable[[slice], Floats]
    mean_between: Callable[..., Floats]
    prediction_error: Callable[[], float]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the data."""
        raise NotImplementedError

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return self.noise_variance.shape[0]

    @property
    def n_draws(self) -> int:
        """Number of draws of each chain."""
        return self.noise_variance.shape[1]

    @property
    def burn_in(self) -> int:
        """Number of sweeps before those of the draws."""
        return max(self.train_mse.shape[1] - self.n_draws * self.thinning, 0)

    @property
    def law(self) -> Law:
        """Law of the noise, in units of the root of its variance, with the draws of all chains along the first axis."""
        return Law.of(vars(self))

    @property
    def noise(self) -> NoiseDraws:
        """The noise, with the draws of all chains along the first axis."""
        n = self.n_chains * self.n_draws
        row = np.ones((1, 1)) if self.row_noise is None else self.row_noise.reshape(n, -1)
        return NoiseDraws(np.asarray(self.noise_variance).reshape(n, -1), row, self.law, self.noise_factor)

    @property
    def noise_of_finite_variance(self) -> NoiseDraws:
        """The noise, or that of its scale where the variance is infinite, so that errors in its unit are not zero."""
        noise = self.noise
        return noise if np.isfinite(noise.law.variance).all() else replace(noise, law=Law())

    def _noise_if(self, wanted: Any) -> NoiseDraws | None:
        """Return the noise if it is wanted."""
        return self.noise if arguments.flag(wanted, "noise") else None

    @property
    def _offset(self) -> Floats | float:
        """What is added to W Z in each column."""
        return 0.0 if self.offset is None else self.offset

    @cached_property
    def monitored(self) -> tuple[Indices, Indices]:
        """Positions of some entries, chosen at random, whose predictions are checked for convergence."""
        size = min(N_MONITORED_PREDICTIONS, self.shape[0] * self.shape[1])
        entries = np.random.default_rng(0).choice(self.shape[0] * self.shape[1], size, replace=False)
        rows, columns = np.divmod(np.sort(entries), self.shape[1])
        return rows, columns

    def component_matches(self) -> tuple[Bools, Bools] | None:
        """Return which components are active, and on which all chains agree; None without draws."""
        return None

    def _quantities(self) -> dict[str, Array]:
        """Return draws (chain, draw, ...) of what is checked for convergence, by name."""
        every = -(-self.noise_variance[0, 0].size // N_MONITORED_COLUMNS)
        found = {"noise variance": self.noise_variance[..., ::every] if every > 1 else self.noise_variance}
        return found if self.log_density is None else found | {"log likelihood": self.log_density}

    @cached_property
    def diagnostics(self) -> pd.DataFrame:
        """Mean, spread, R-hat and effective sample size of what is checked for convergence."""
        return diagnostics(self._quantities())

    @property
    def verdict(self) -> Verdict:
        """Verdict on the fit: a finding for each purpose, with advice."""
        return verdict.of_posterior(self)

    def problems(self) -> list[str]:
        """Return a sentence, with what to do, for each finding of the verdict that is worth a warning."""
        return verdict.on_use(self).problems()

    def summary(self) -> SummaryTable:
        """Return a table of noise, fit, predictions and factors with R-hat and effective sample sizes, a DataFrame.

        For predictions and for entries of the aligned factors, the worst R-hat and the smallest effective sample size
        are shown. The table ends with the verdict on the fit, which is also its attribute `verdict`.
        """
        table = SummaryTable(self.diagnostics)
        table.verdict = str(self.verdict)
        return table

    # --- the data with missing entries, and entries between limits, replaced by their means

    def completed(self, data: ObservedMatrix, out: Any = None) -> Any:
        """Return the completed matrix: `out` if it is given, else a DataFrame if the rows have names, else an array."""
        if out is None and not data.in_memory:
            raise ValueError(
                "impute() of data on a cluster would bring them all to this machine: pass out= a memory map, or ask "
                "posterior_.mean(rows, columns) for the entries that you need"
            )
        if out is None:
            memory.require(
                8 * data.shape[0] * data.shape[1],
                f"the completed matrix of {data.shape[0]:,} x {data.shape[1]:,} entries",
                "pass out= a memory map, or ask posterior_.mean(rows, columns) for the entries that you need",
            )
        elif not isinstance(out, np.ndarray) or out.shape != data.shape or out.dtype.kind != "f":
            raise ValueError(f"out must be an array of floats of shape {data.shape}, got {type(out).__name__}")
        elif not out.flags.writeable:
            raise ValueError("out must be an array that can be written to")
        filled = np.empty(data.shape) if out is None else out
        for rows, block in data.blocks():
            filled[rows] = np.where(np.isnan(block), self.mean_of_rows(rows), block)
            if (limits := data.limits_of(rows)) is not None:
                at = rows.start + limits.rows, limits.columns
                filled[at] = self.mean_between(*at, limits.lower, limits.upper)
        if data.row_names is None or out is not None:
            return filled
        return pd.DataFrame(filled, index=data.row_names, columns=data.column_names)

    def root_squared_error(self, data: ObservedMatrix) -> float:
        """Return the root of the summed squared errors of the data; the error of an interval is the distance to it."""
        if data.in_memory and not data.has_implicit_zeros:
            rows, columns, values = data.observed_entries()
            mean = self.mean(rows, columns)
            return float(np.linalg.norm(nearest(values, *data.limits_at(rows, columns), mean) - mean))
        total = 0.0
        for some, block in data.blocks():
            mean = self.mean_of_rows(some)
            if (limits := data.limits_of(some)) is not None:
                at = limits.rows, limits.columns
                block[at] = np.clip(mean[at], limits.lower, limits.upper)
            total += np.nansum((block - mean) ** 2)
        return float(np.sqrt(total))

    def completed_sparse(self, data: ObservedMatrix) -> sp.csr_array:
        """Return sparse data with their stored missing and limited entries filled."""
        if not data.has_implicit_zeros:
            return sp.csr_array(self.completed(data))
        rows, columns, values = data.stored_entries()
        missing = np.isnan(values)
        values[missing] = self.mean(rows[missing], columns[missing])
        if (limits := data.limits) is not None:
            means = self.mean_between(limits.rows, limits.columns, limits.lower, limits.upper)
            values[places_in(data.flat(rows, columns), limits.flat)] = means
        return sp.coo_array((values, (rows, columns)), shape=data.shape).tocsr()


class Moments(BasePosterior):
    """Posterior of a fit with ``keep_draws=False``: running moments of the factors and of W Z, draws of the noise."""

    log_density: Floats
    scale: Floats
    signed: tuple[bool, bool]

    def __init__(self, W: Floats, Z: Floats, prediction: RunningMoments, **fields: Any) -> None:
        vars(self).update(fields)
        self._prediction = prediction
        # Components are not matched between chains, so the factors are those of the chain that fits best.
        best = int(np.argmax(self.log_density.mean(axis=1)))
        mean_W, mean_Z = W[best], Z[best]
        free = slice(self.n_fixed[0], len(mean_Z) - self.n_fixed[1])
        order, unit = np.arange(len(mean_Z)), np.ones(len(mean_Z))
        order[free] = free.start + np.argsort(-sizes(mean_W[:, free], mean_Z[free], self.scale), kind="stable")
        unit[free] = column_sizes(mean_W[:, order[free]], self.signed[0])
        self._factors = mean_W[:, order] / unit, mean_Z[order] * unit[:, None]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            f"a fit with keep_draws=False has no posterior_.{name}: it keeps only means and standard deviations. Fit "
            "with keep_draws=True, or with checkpoint=DIRECTORY to keep the draws on disk"
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the data."""
        _, n_rows, n_columns = self._prediction.mean.shape
        return n_rows, n_columns

    def factor_means(self) -> tuple[Floats, Floats]:
        """Return the means of W (rows, K) and Z (K, columns) in the chain that fits best, in order and scale."""
        return self._factors

    def mean(self, rows: Any = None, columns: Any = None) -> Floats:
        """Return the posterior mean of W Z, or 0 where it is negative and the data are not."""
        return self._at(self.mean_of_rows(slice(None)), rows, columns)

    def mean_of_rows(self, rows: slice) -> Floats:
        """Return the posterior mean of W Z for a range of rows."""
        return np.maximum(self._prediction.mean[:, rows].mean(axis=0) + self._offset, self.lower_bound)

    def mean_between(self, rows: Any, columns: Any, lower: Any, upper: Any) -> Floats:
        """Return the posterior mean of W Z, cut at the limits: the mean of a value between them needs the draws."""
        return np.clip(self.mean(rows, columns), lower, upper)

    def std(self, rows: Any = None, columns: Any = None, *, noise: bool = True) -> Floats:
        """Return the standard deviation of new data at each entry, or of W Z without `noise`."""
        return self._at(self._std(self._noise_if(noise)), rows, columns)

    def _at(self, numbers: Floats, rows: Any, columns: Any) -> Floats:
        """Return the numbers at paired positions, all by default."""
        return numbers if rows is None and columns is None else numbers[arguments.positions(rows, columns, self.shape)]

    def _std(self, noise: NoiseDraws | None) -> Floats:
        # Each chain by its own count: after Ctrl-C some have more draws than the others.
        moments = self._prediction
        within = np.mean([s / count for s, count in zip(moments.squares, moments.counts, strict=True)], axis=0)
        return np.sqrt(within + moments.mean.var(axis=0) + (0.0 if noise is None else noise.mean_variance()))

    def interval(
        self, prob: float = 0.9, rows: Any = None, columns: Any = None, *, noise: bool = True
    ) -> tuple[Floats, Floats]:
        """Return the central interval of each entry in the normal approximation: only two moments are known."""
        half = norm.ppf(0.5 * (1.0 + arguments.probability(prob, "prob"))) * self.std(rows, columns, noise=noise)
        mean = self._at(self._prediction.mean.mean(axis=0) + self._offset, rows, columns)
        return np.maximum(mean - half, self.lower_bound), np.maximum(mean + half, self.lower_bound)

    def prediction_error(self) -> float:
        """Return the Monte Carlo error of predictions, as that of :class:`bnmf.Posterior`; NaN for one chain."""
        if self.n_chains == 1 or self.n_draws < MIN_DRAWS:
            return float("nan")
        rows, columns = self.monitored
        return standard_error((self._prediction.mean / self._std(self.noise_of_finite_variance))[:, rows, columns])
