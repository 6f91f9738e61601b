"""The posterior: draws of the factors, and everything that is computed from them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from bnmf.data.identity import row_ids
from bnmf.data.observed import ObservedMatrix
from bnmf.posterior import archive, components, inference_data, new_rows, predictions
from bnmf.posterior.base import AXES, BasePosterior, taken
from bnmf.posterior.components import Alignment
from bnmf.posterior.predictions import Entries, NoiseDraws, quantiles_of, tiles
from bnmf.posterior.summary import MIN_DRAWS, posterior_html
from bnmf.priors.base import Prior
from bnmf.sampler.until_converged import monte_carlo_error
from bnmf.utils import arguments, memory
from bnmf.utils.arguments import as_generator, as_seed
from bnmf.utils.text import counted
from bnmf.utils.typing import Array, Bools, Floats, Indices, Words

if TYPE_CHECKING:
    from bnmf.posterior.calibration import Calibration
    from bnmf.posterior.verdict import Finding

# What a component is called that is equal in all columns, and one that is equal in all rows.
EFFECT, OFFSET = "effect of the rows", "offset of the columns"
# Number of rows and columns of the aligned factors that are checked for convergence.
N_MONITORED_ROWS = 10


@dataclass(eq=False, repr=False)
class Posterior(BasePosterior):
    """Draws from the posterior of a factorisation.

    Created by :class:`bnmf.BayesianNMF` (its attribute ``posterior_``) or by :meth:`load`. A prediction is always the
    mean of the products W Z over the draws, never the product of the means.

    Parameters
    ----------
    W, Z : ndarray of shape (chain, draw, rows, K) and (chain, draw, K, columns)
        Draws of the factors.
    noise_variance : ndarray of shape (chain, draw) or (chain, draw, columns)
        Draws of the variance of the noise, common or of each column.
    train_mse : ndarray of shape (chain, sweep)
        Mean squared error on the observed entries after each sweep, burn-in included.
    n_observed : int
        Number of observed entries.
    row_names, column_names : pandas.Index, optional
        Names of the rows and columns of the data.
    prior_W : Prior, optional
        Prior of W, needed for new rows.
    row_ids : ndarray of uint64 of shape (rows,), optional
        Hashes of the fitted rows, with which :meth:`posterior_of` recognises them.
    lower_bound : float, default=0.0
        The smallest value that an entry of the data can take: 0, or -inf if negative data were allowed.
    log_density : ndarray of shape (chain, draw), optional
        Log density of the observed entries under each draw.
    row_noise : ndarray of shape (chain, draw, rows), optional
        Draws of the relative variance of each row: entry (i, j) has variance noise_variance_j row_noise_i.
    row_strength : ndarray of shape (chain, draw), optional
        How alike the variances of rows are.
    rate_W, rate_Z : ndarray of shape (chain, draw, 1 or K), optional
        Draws of the learned rates of the priors.
    offset : ndarray of shape (columns,), optional
        What is added to W Z.
    scale : ndarray of shape (1 or columns,), optional
        Scale of each column in the fit. Z and the noise are in the user's units.
    thinning : int, default=1
        Sweeps from one draw to the next. The last draw is that of the last sweep.
    notes : tuple of Finding, default=()
        Findings about the fit as such, whether or not the chains agree.
    df : ndarray of shape (chain, draw), optional
        Draws of the degrees of freedom of Student's t, whose squared scales are then the variances above.
    outlier_share : ndarray of shape (chain, draw, columns), optional
        Draws of the share of gross errors in each column, whose deviation is ten times that of the noise.
    noise_factor : ndarray of shape (1 or rows, columns), optional
        Known relative standard deviation of the noise of each entry.
    n_fixed : tuple of (int, int), default=(0, 0)
        How many of the first components have a fixed row of Z, and how many of the last a fixed column of W. They keep
        their places and scales when components are aligned.
    signed : tuple of (bool, bool), default=(False, False)
        Whether entries of W and of Z may be negative.
    calibration : Calibration, optional
        How well entries that were hidden for this purpose are predicted.
    """

    W: Array
    Z: Array
    noise_variance: Floats
    train_mse: Floats
    n_observed: int
    row_names: pd.Index | None = None
    column_names: pd.Index | None = None
    prior_W: Prior | None = None
    row_ids: Words | None = None
    lower_bound: float = 0.0
    log_density: Floats | None = None
    row_noise: Floats | None = None
    row_strength: Floats | None = None
    rate_W: Floats | None = None
    rate_Z: Floats | None = None
    offset: Floats | None = None
    scale: Floats | None = None
    thinning: int = 1
    notes: tuple[Finding, ...] = ()
    df: Floats | None = None
    outlier_share: Floats | None = None
    noise_factor: Floats | None = None
    n_fixed: tuple[int, int] = (0, 0)
    signed: tuple[bool, bool] = (False, False)
    calibration: Calibration | None = None
    # Posteriors of new rows use the alignment of the fitted ones.
    fitted: Posterior | None = field(default=None, init=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the data."""
        return self.W.shape[2], self.Z.shape[3]

    @property
    def n_components(self) -> int:
        """K."""
        return self.W.shape[3]

    @property
    def flat(self) -> tuple[Array, Array, NoiseDraws]:
        """W, Z and the noise with the draws of all chains along the first axis."""
        return self.W.reshape(-1, *self.W.shape[2:]), self.Z.reshape(-1, *self.Z.shape[2:]), self.noise

    def subset(self, rows: Indices, columns: Indices) -> Self:
        """Return the posterior of the entries in some rows and columns, for their predictions."""
        parts = taken(self, rows, columns) | {"prior_W": None}
        for name, chosen in (("row_names", rows), ("column_names", columns)):
            names = getattr(self, name)
            parts[name] = None if names is None else names[chosen]
        return replace(self, **parts)

    def __repr__(self) -> str:
        return (
            f"<Posterior of a {self.shape[0]} x {self.shape[1]} matrix, K = {self.n_components}: "
            f"{counted(self.n_chains, 'chain')} of {counted(self.n_draws, 'draw')}>"
        )

    def _repr_html_(self) -> str:
        return posterior_html(self)

    def after(self, sweep: int) -> Posterior:
        """Return this posterior without the draws of the first sweeps: a longer burn-in, chosen afterwards.

        Fit with ``burn_in=0`` to choose all of it afterwards, by the training error for example. The warm-up with
        small, nearly equal variances of columns and rows is part of `burn_in`: without it, chains find a good mode less
        often.

        Parameters
        ----------
        sweep : int
            Draws up to this sweep, counted from the start of the chains, are left out; `train_mse` is kept.
        """
        n_sweeps = self.train_mse.shape[1]
        if not arguments.whole_number(sweep, "sweep", 0) < n_sweeps:
            raise ValueError(f"sweep must be at least 0 and less than the number of sweeps, {n_sweeps}, got {sweep}")
        first = self.n_draws - min((n_sweeps - int(sweep) - 1) // self.thinning + 1, self.n_draws)
        drawn = {name: getattr(self, name) for name, axes in AXES.items() if "draw" in axes}
        later = {name: draws[:, first:] for name, draws in drawn.items() if draws is not None}
        result = replace(self, **later)
        result.fitted = None if self.fitted is None else self.fitted.after(sweep)
        return result

    def posterior_of(
        self,
        X: Any,
        *,
        observed: Any = None,
        lower: Any = None,
        upper: Any = None,
        unstored: str = "zero",
        random_state: Any = 0,
    ) -> Posterior:
        """Return the posterior of other rows of the same columns, given the draws of Z.

        A row that was fitted keeps its draws. Any other row is drawn given each Z and its observed entries, from a
        random stream keyed by its content, so the result does not depend on which rows are passed together. A row
        without observed entries is drawn from the prior.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (rows, columns)
            The rows; NaN is missing.
        observed, lower, upper : array-like, optional
            As for :meth:`bnmf.BayesianNMF.fit`.
        unstored : {"zero", "missing"}, default="zero"
            Meaning of the entries that a sparse X does not store.
        random_state : int, RandomState, Generator or None, default=0
            Seed of the draws. Repeated calls agree by default; None takes other numbers each time.
        """
        data = self._as_data(X, observed=observed, lower=lower, upper=upper, unstored=unstored, empty=True)
        return new_rows.posterior_of(self, data, as_seed(random_state))

    def _as_data(self, X: Any, **options: Any) -> ObservedMatrix:
        """Return data with the columns of the fit."""
        negative = self.lower_bound < 0 or self.offset is not None
        return ObservedMatrix.from_data(X, names=self.column_names, negative=negative, **options)

    # --- predictions

    def mean(self, rows: Any = None, columns: Any = None) -> Floats:
        """Return the posterior mean of W Z, or 0 where it is negative and the data are not.

        Parameters
        ----------
        rows, columns : array-like of int, optional
            Paired positions of n entries; by default the result is a matrix of all entries.
        """
        if rows is None and columns is None:
            self._require_room(1)
            return self.mean_of_rows(slice(None))
        return self._of_entries(Entries.mean, rows, columns)

    def mean_of_rows(self, rows: slice) -> Floats:
        """Return the posterior mean of W Z for a range of rows, of shape (number of rows, columns)."""
        if not isinstance(rows, slice):
            raise TypeError(f"rows must be a slice, got {rows!r:.80}")
        W, Z, _ = self.flat
        return np.maximum(predictions.mean(W[:, rows], Z) + self._offset, self.lower_bound)

    def std(self, rows: Any = None, columns: Any = None, *, noise: bool = True) -> Floats:
        """Return the standard deviation of new data at each entry, or of W Z without `noise`.

        Parameters
        ----------
        rows, columns : array-like of int, optional
            As in :meth:`mean`.
        noise : bool, default=True
            Include the variance of the noise (before the cut at the lower bound of the data).
        """
        chosen = self._noise_if(noise)
        if rows is None and columns is None:
            self._require_room(2)
            return predictions.std(*self.flat[:2], chosen)
        return np.sqrt(self._of_entries(Entries.variance, rows, columns, noise=chosen))

    def quantile(
        self, q: Any, rows: Any = None, columns: Any = None, *, noise: bool = True, random_state: Any = 0
    ) -> Floats:
        """Return quantiles of new data at each entry, or of W Z without `noise`.

        New data at an entry are y = max(lower_bound, w z + ε): data that cannot be negative are cut at zero.

        Quantiles of all entries are computed in single precision: their rounding error is at most (K + 2) 2⁻²⁴ times
        the largest w z that the draws of a column allow, far below the Monte Carlo error. Those of chosen `rows` and
        `columns` are computed in double precision.

        Parameters
        ----------
        q : float or array-like
            Probabilities.
        rows, columns : array-like of int, optional
            As in :meth:`mean`.
        noise : bool, default=True
            Include the noise.
        random_state : int, RandomState, Generator or None, default=0
            Source of the noise. Repeated calls agree by default; None takes other numbers each time.

        Returns
        -------
        ndarray of shape (len(q), rows, columns) or (len(q), n)
            The quantiles; without the leading axis if q is a number.
        """
        probabilities, rng = arguments.probabilities(q, "q"), as_generator(random_state)
        chosen = self._noise_if(noise)
        if rows is None and columns is None:
            self._require_room(len(probabilities))
            W, Z, _ = self.flat
            found = predictions.quantiles(W, Z, chosen, probabilities, self._offset, self.lower_bound, rng)
        else:

            def of_part(entries: Entries) -> Floats:
                return quantiles_of(entries.draw(rng), probabilities)

            found = self._of_entries(of_part, rows, columns, noise=chosen)
        return found[0] if np.ndim(q) == 0 else found

    def interval(
        self, prob: float = 0.9, rows: Any = None, columns: Any = None, *, noise: bool = True, random_state: Any = 0
    ) -> tuple[Floats, Floats]:
        """Return lower and upper ends of the central interval of new data at each entry, or of W Z without `noise`.

        Parameters
        ----------
        prob : float, default=0.9
            Probability of the interval.
        rows, columns, noise, random_state : optional
            As in :meth:`quantile`.
        """
        tail = 0.5 * (1.0 - arguments.probability(prob, "prob"))
        low, high = self.quantile([tail, 1.0 - tail], rows, columns, noise=noise, random_state=random_state)
        return low, high

    def draws_of(self, rows: Any, columns: Any, *, noise: bool = True, random_state: Any = 0) -> Floats:
        """Return posterior predictive draws (chain, draw, n) of some entries, or draws of W Z without `noise`.

        Parameters
        ----------
        rows, columns : array-like of int
            Paired positions.
        noise, random_state : optional
            As in :meth:`quantile`.
        """
        rows, columns = arguments.positions(rows, columns, self.shape)
        chosen = self._noise_if(noise)
        draws = self.entries(rows, columns, chosen).draw(as_generator(random_state))
        return draws.reshape(self.n_chains, self.n_draws, -1)

    def log_likelihood(self, rows: Any, columns: Any, values: Any, *, lower: Any = None, upper: Any = None) -> Floats:
        """Return the log likelihood (chain, draw, n) of each entry under each draw, as LOO and WAIC need it.

        It is the log density of a value, and the log probability of the interval of an entry between limits.

        Parameters
        ----------
        rows, columns : array-like of int
            Paired positions.
        values : array-like
            The data there.
        lower, upper : array-like, optional
            Limits of entries that are only known to lie between them, whose value does not count; NaN for others.
        """
        rows, columns = arguments.positions(rows, columns, self.shape)
        given = _given(len(rows), values, lower, upper)
        return self.entries(rows, columns, self.noise).log_density(*given).reshape(self.n_chains, self.n_draws, -1)

    def log_predictive_density(
        self, rows: Any, columns: Any, values: Any, *, lower: Any = None, upper: Any = None
    ) -> Floats:
        """Return the log posterior predictive density (n,) of each entry, or log probability of its interval.

        Parameters
        ----------
        rows, columns, values, lower, upper : array-like
            As in :meth:`log_likelihood`.
        """
        given = _given(np.size(rows), values, lower, upper)
        return self._of_entries(Entries.log_predictive_density, rows, columns, *given, noise=self.noise, n_arrays=8)

    def mean_between(self, rows: Any, columns: Any, lower: Floats, upper: Floats) -> Floats:
        """Return the means (n,) of fitted entries that lie between limits, one of which may be infinite."""
        return self._of_entries(Entries.mean_between, rows, columns, lower, upper, noise=self.noise, n_arrays=8)

    def entries(self, rows: Indices, columns: Indices, noise: NoiseDraws | None, flat: Any = None) -> Entries:
        """Return the draws of the entries at paired positions, with or without the noise around them."""
        W, Z, _ = self.flat if flat is None else flat
        offset = np.broadcast_to(self._offset, self.shape[1])[columns]
        found = Entries(predictions.products(W, Z, rows, columns), offset, self.lower_bound)
        if noise is None:
            return found
        return found._replace(deviations=np.sqrt(noise.at(rows, columns)), law=noise.law.at(columns))

    def _of_entries(
        self,
        function: Callable[..., Floats],
        rows: Any,
        columns: Any,
        *numbers: Floats,
        noise: NoiseDraws | None = None,
        n_arrays: int = 2,
    ) -> Floats:
        """Return what a function gives for entries and their numbers, for so many at a time that their draws fit."""
        rows, columns = arguments.positions(rows, columns, self.shape)
        flat = self.flat  # a copy if draws were cut off
        found = []
        parts = list(tiles(len(rows), 8 * n_arrays * self.n_chains * self.n_draws))
        for part in parts or [slice(0)]:  # an empty part of no entries
            entries = self.entries(rows[part], columns[part], noise, flat)
            found.append(function(entries, *(each[part] for each in numbers)))
        return np.concatenate(found, axis=-1)

    def _require_room(self, n_matrices: int) -> None:
        """Raise an error if so many matrices of the shape of the data do not fit into memory."""
        memory.require(
            8 * n_matrices * self.shape[0] * self.shape[1],
            f"a result for all {self.shape[0]:,} x {self.shape[1]:,} entries",
            "ask for the entries that you need with rows and columns, or for blocks of rows with mean_of_rows; "
            "BayesianNMF.impute(out=...) fills a memory map",
        )

    # --- components

    @cached_property
    def alignment(self) -> Alignment:
        """Order and scale of the components of each draw: matched with the chain that fits best, the largest first."""
        return components.alignment_of(self) if self.fitted is None else self.fitted.alignment

    def factor_means(self) -> tuple[Floats, Floats]:
        """Return the posterior means of the aligned factors, of shape (rows, K) and (K, columns).

        They are means over the chains that agree on a component, scaled so that columns of the fitted W have mean 1, or
        a mean square of 1 if they may be negative. Components are numbered by size, the largest first; fixed ones keep
        their places.
        """
        return self.alignment.means(self.W, self.Z)

    def n_active_components(self) -> int:
        """Return how many components stand out from the noise: a guess at the rank of the data.

        With ``prior="ard"`` superfluous components shrink, and what is left of them fits noise. The others are counted:
        those that are at least twice as strong as the strongest one that pure noise is expected to have, in most draws
        of the chain that fits best. Learned effects of rows and columns are not counted.

        Examples
        --------
        >>> import numpy as np
        >>> from bnmf import BayesianNMF
        >>> rng = np.random.default_rng(0)
        >>> X = rng.exponential(size=(60, 3)) @ rng.exponential(size=(3, 20)) + 0.5 * rng.standard_normal((60, 20))
        >>> model = BayesianNMF(10, n_chains=2, random_state=0).fit(np.maximum(X, 0.0))
        >>> model.posterior_.n_active_components() <= 4  # of 10; the matrix has rank 3, and noise
        True
        """
        return int(self.component_matches()[0].sum())

    @cached_property
    def active_components(self) -> Bools:
        """Whether each component, in the order of the aligned posterior, stands out from the noise."""
        chain = self.alignment.reference
        active = components.active(*self.flat).reshape(*self.W.shape[:2], -1)[chain]
        return np.take_along_axis(active, self.alignment.order[chain], axis=1).mean(axis=0) > 0.5

    @cached_property
    def effects(self) -> dict[int, str]:
        """The components that are equal in all columns or in all rows because they were fixed so, and their names."""
        first, last = self.n_fixed[0], self.n_components - self.n_fixed[1]
        profiles = self.Z[0, 0, :first] / (1.0 if self.scale is None else self.scale)
        of_rows = np.flatnonzero(np.ptp(profiles, axis=1) <= 1e-5 * np.abs(profiles).max(axis=1))  # scaled and back
        of_columns = last + np.flatnonzero(np.ptp(self.W[0, 0, :, last:], axis=0) == 0.0)
        return dict.fromkeys(of_rows.tolist(), EFFECT) | dict.fromkeys(of_columns.tolist(), OFFSET)

    def component_matches(self) -> tuple[Bools, Bools]:
        """Return which components are active, and on which all chains agree, without effects of rows and columns."""
        found = self.active_components, self.alignment.agrees.all(axis=0)
        active, agrees = (np.delete(each, list(self.effects)) for each in found)
        return active, agrees

    def align(self) -> Posterior:
        """Return this posterior with the components of all draws in one order and scale.

        The predictions are the same, and means and intervals of the factors are meaningful.
        """
        W, Z = self.alignment.apply_W(self.W), self.alignment.apply_Z(self.Z)
        rate_W, rate_Z = (
            rate if rate is None or rate.shape[2] == 1 else np.take_along_axis(rate, self.alignment.order, axis=2)
            for rate in (self.rate_W, self.rate_Z)
        )
        # The prior does not apply to factors in their new scale.
        return replace(self, W=W, Z=Z, rate_W=rate_W, rate_Z=rate_Z, prior_W=None, row_ids=None)

    # --- convergence

    def _quantities(self) -> dict[str, Array]:
        rng = np.random.default_rng(1)
        found = super()._quantities() | {"predictions": self.draws_of(*self.monitored, noise=False)}
        for name, draws, apply in (("W", self.W, self.alignment.apply_W), ("Z", self.Z, self.alignment.apply_Z)):
            axis = 2 if name == "W" else 3
            kept = np.sort(rng.choice(draws.shape[axis], min(N_MONITORED_ROWS, draws.shape[axis]), replace=False))
            found[f"aligned {name}"] = apply(np.take(draws, kept, axis=axis))
        return found

    def monitored_predictions(self) -> Floats:
        """Return draws (chain, draw, n) of the monitored entries in units of their predictive standard deviations."""
        entries = self.entries(*self.monitored, self.noise_of_finite_variance)
        return (entries.means / np.sqrt(entries.variance())).reshape(self.n_chains, self.n_draws, -1)

    def prediction_error(self) -> float:
        """Return the Monte Carlo error of a prediction, in units of its predictive standard deviation.

        It is the spread of the chains' means over the root of the number of chains (of the two halves of one chain),
        root mean square over some entries: the cost of chains that do not agree. The verdict judges it. It is NaN if
        there are fewer than four draws.
        """
        return float("nan") if self.n_draws < MIN_DRAWS else monte_carlo_error(self.monitored_predictions())

    # --- files and other libraries

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file of arrays and JSON.

        Parameters
        ----------
        path : path-like
            File name, usually ending in ``.npz``. An existing file is replaced only when the new one is complete.
        """
        archive.save(arguments.path(path, "path"), self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Posterior:
        """Read a posterior from a file that :meth:`save` wrote. Nothing in the file is executed."""
        return cls(**archive.load(arguments.path(path, "path")))

    def to_inference_data(
        self,
        X: Any = None,
        *,
        observed: Any = None,
        lower: Any = None,
        upper: Any = None,
        unstored: str = "zero",
        max_entries: int | None = None,
    ) -> Any:
        """Return ArviZ InferenceData of the aligned draws; ``arviz.loo`` and ``arviz.plot_ppc`` work on it, given X.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix, optional
            The fitted data, for the groups ``observed_data``, ``posterior_predictive`` and ``log_likelihood``.
        observed, lower, upper, unstored : optional
            As in the fit. The log likelihood of an entry between limits is the log probability of its interval;
            ``observed_data`` has the middle of the interval or its finite end, ``constant_data`` the limits.
        max_entries : int, optional
            Take a random sample of so many observed entries. Each entry takes 16 bytes a draw, and an error is raised
            if there is not enough memory.

        Returns
        -------
        arviz.InferenceData
            Groups ``posterior`` and ``sample_stats``, with dims chain, draw, row, component and column, and the
            names of rows and columns as coordinates. Groups of the data have a dim entry, with its row and column as
            coordinates, and a variable ``X``.
        """
        if max_entries is not None:
            arguments.whole_number(max_entries, "max_entries", 1)
        data = None
        if X is not None:
            data = self._as_data(X, observed=observed, lower=lower, upper=upper, unstored=unstored)
            if data.shape != self.shape:
                raise ValueError(f"X must have the shape of the fitted data, {self.shape}, got {data.shape}")
            if self.row_ids is not None and (n := np.count_nonzero(row_ids(data, self.scale) != self.row_ids)):
                raise ValueError(
                    "X, observed, lower, upper and unstored must be those of the fit, and "
                    f"{n} of {self.shape[0]} rows differ"
                )
        memory.warn_if_large(self.W.nbytes + self.Z.nbytes, "a copy of the draws", "take fewer of them with `after`")
        return inference_data.convert(self, data, max_entries)


def _given(n_entries: int, values: Any, lower: Any, upper: Any) -> list[Floats]:
    """Return values and limits of entries, NaN where there are no limits."""
    if (lower is None) != (upper is None):
        raise ValueError("lower and upper must be given together")
    found = {"values": arguments.floats(values, "values")}
    for name, limits in (("lower", lower), ("upper", upper)):
        found[name] = np.full(n_entries, np.nan) if limits is None else arguments.floats(limits, name)
    for name, numbers in found.items():
        if numbers.shape != (n_entries,):
            raise ValueError(f"{name} must be as many as rows and columns, {n_entries}, got shape {numbers.shape}")
    return list(found.values())
