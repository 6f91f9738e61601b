"""The posterior: draws of the factors, and everything that is computed from them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from bnmf.data.identity import row_ids
from bnmf.data.observed import ObservedMatrix
from bnmf.posterior import archive, components, inference_data, new_rows, predictions
from bnmf.posterior.alignment import Alignment, align
from bnmf.posterior.base import TRACES, BasePosterior
from bnmf.posterior.predictions import Flat, NoisyFlat
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

# Number of rows and columns of the aligned factors that are checked for convergence.
N_MONITORED_ROWS = 10


@dataclass(eq=False, repr=False)
class Posterior(BasePosterior):
    """Draws from the posterior of a factorisation.

    Created by :class:`bnmf.BayesianNMF` (its attribute ``posterior_``) or by :meth:`load`. A prediction is always the
    mean of the products W Z over the draws, never the product of the means.

    Parameters
    ----------
    W : ndarray of shape (chain, draw, rows, K)
        Draws of the left factor.
    Z : ndarray of shape (chain, draw, K, columns)
        Draws of the right factor.
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
    def flat(self) -> NoisyFlat:
        """W, Z and the noise with the draws of all chains along the first axis."""
        return self.W.reshape(-1, *self.W.shape[2:]), self.Z.reshape(-1, *self.Z.shape[2:]), self.noise

    def subset(self, rows: Indices, columns: Indices) -> Self:
        """Return the posterior of the entries in some rows and columns, for their predictions."""

        def of(numbers: Any, chosen: Indices) -> Any:
            return None if numbers is None else numbers[..., chosen]

        factor, scale, variance = self.noise_factor, self.scale, self.noise_variance
        return replace(
            self,
            W=self.W[:, :, rows],
            Z=of(self.Z, columns),
            noise_variance=of(variance, columns) if variance.ndim == 3 else variance,
            row_noise=of(self.row_noise, rows),
            noise_factor=of(factor if factor is None or len(factor) == 1 else factor[rows], columns),
            outlier_share=of(self.outlier_share, columns),
            offset=of(self.offset, columns),
            scale=scale if scale is None or len(scale) == 1 else scale[columns],
            row_names=None if self.row_names is None else self.row_names[rows],
            column_names=None if self.column_names is None else self.column_names[columns],
            prior_W=None,
            row_ids=None,
            log_density=None,
        )

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
            Draws up to this sweep, counted from the start of the chains with their burn-in, are left out.

        Returns
        -------
        Posterior
            The later draws; `train_mse` still begins with the first sweep.
        """
        n_sweeps = self.train_mse.shape[1]
        if not arguments.whole_number(sweep, "sweep", 0) < n_sweeps:
            raise ValueError(f"sweep must be at least 0 and less than the number of sweeps, {n_sweeps}, got {sweep}")
        first = self.n_draws - min((n_sweeps - int(sweep) - 1) // self.thinning + 1, self.n_draws)
        drawn = {name: getattr(self, name) for name in ("W", "Z", *TRACES)}
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

        Returns
        -------
        Posterior
            With the same Z, and W of these rows.
        """
        data = self._as_data(X, observed, lower, upper, unstored, empty=True)
        return new_rows.posterior_of(self, data, as_seed(random_state))

    def _as_data(
        self, X: Any, observed: Any, lower: Any, upper: Any, unstored: str, empty: bool = False
    ) -> ObservedMatrix:
        """Return data with the columns of the fit; rows may be empty if `empty`."""
        negative = self.lower_bound < 0 or self.offset is not None
        limits = {"lower": lower, "upper": upper, "names": self.column_names}
        return ObservedMatrix.from_data(X, observed, **limits, unstored=unstored, negative=negative, empty=empty)

    # --- predictions

    def mean(self, rows: Any = None, columns: Any = None) -> Floats:
        """Return the posterior mean of W Z, or 0 where it is negative and the data are not.

        Parameters
        ----------
        rows, columns : array-like of int, optional
            Paired positions of the requested entries; all entries by default.

        Returns
        -------
        ndarray of shape (rows, columns) or (n,)
            The means.
        """
        if rows is None and columns is None:
            self._require_room(1)
            return self.mean_of_rows(slice(None))
        W, Z, _ = self.flat
        rows, columns = self._positions(rows, columns)
        return predictions.cut(predictions.entry_mean(W, Z, rows, columns) + self._offset(columns), self.lower_bound)

    def mean_of_rows(self, rows: slice) -> Floats:
        """Return the posterior mean of W Z for a range of rows.

        Parameters
        ----------
        rows : slice
            The rows.

        Returns
        -------
        ndarray of shape (number of rows, columns)
            The means.
        """
        if not isinstance(rows, slice):
            raise TypeError(f"rows must be a slice, got {rows!r:.80}")
        W, Z, _ = self.flat
        return predictions.cut(predictions.mean(W[:, rows], Z) + self._offset(), self.lower_bound)

    def std(self, rows: Any = None, columns: Any = None, *, noise: bool = True) -> Floats:
        """Return the standard deviation of new data at each entry, or of W Z without `noise`.

        Parameters
        ----------
        rows, columns : array-like of int, optional
            Paired positions of the requested entries; all entries by default.
        noise : bool, default=True
            Include the variance of the noise (before the cut at the lower bound of the data).

        Returns
        -------
        ndarray of shape (rows, columns) or (n,)
            The standard deviations.
        """
        draws = self._flat(noise)
        if rows is None and columns is None:
            self._require_room(2)
            return predictions.std(draws)
        return predictions.entry_std(draws, *self._positions(rows, columns))

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
            Paired positions of the requested entries; all entries by default.
        noise : bool, default=True
            Include the noise.
        random_state : int, RandomState, Generator or None, default=0
            Source of the noise. Repeated calls agree by default; None takes other numbers each time.

        Returns
        -------
        ndarray of shape (len(q), rows, columns) or (len(q), n)
            The quantiles; without the leading axis if q is a number.
        """
        probabilities = arguments.probabilities(q, "q")
        draws, rng = self._flat(noise), as_generator(random_state)
        if rows is None and columns is None:
            self._require_room(len(probabilities))
            out = predictions.quantiles(draws, probabilities, self._offset(), self.lower_bound, rng)
        else:
            rows, columns = self._positions(rows, columns)
            out = np.empty((len(probabilities), len(rows)))
            for part in predictions.tiles(len(rows), 16 * self.n_chains * self.n_draws):
                drawn = self.draws_of(rows[part], columns[part], noise=noise, random_state=rng)
                out[:, part] = predictions.quantiles_of(drawn.reshape(-1, drawn.shape[2]), probabilities)
        return out[0] if np.ndim(q) == 0 else out

    def interval(
        self, prob: float = 0.9, rows: Any = None, columns: Any = None, *, noise: bool = True, random_state: Any = 0
    ) -> tuple[Floats, Floats]:
        """Return the central interval of new data at each entry, or of W Z without `noise`.

        Parameters
        ----------
        prob : float, default=0.9
            Probability of the interval.
        rows, columns, noise, random_state : optional
            As in :meth:`quantile`.

        Returns
        -------
        tuple of ndarray
            Lower and upper ends.
        """
        tail = 0.5 * (1.0 - arguments.probability(prob, "prob"))
        low, high = self.quantile([tail, 1.0 - tail], rows, columns, noise=noise, random_state=random_state)
        return low, high

    def draws_of(self, rows: Any, columns: Any, *, noise: bool = True, random_state: Any = 0) -> Floats:
        """Return draws of new data at some entries (posterior predictive draws), or of W Z without `noise`.

        Parameters
        ----------
        rows, columns : array-like of int
            Paired positions.
        noise, random_state : optional
            As in :meth:`quantile`.

        Returns
        -------
        ndarray of shape (chain, draw, n)
            The draws.
        """
        W, Z, law = self._flat(noise)
        rows, columns = self._positions(rows, columns)
        draws = predictions.entries(W, Z, rows, columns) + self._offset(columns)
        if law is not None:
            draws = predictions.add_noise(draws, law, rows, columns, self.lower_bound, as_generator(random_state))
        return draws.reshape(*self.W.shape[:2], -1)

    def log_likelihood(self, rows: Any, columns: Any, values: Any, *, lower: Any = None, upper: Any = None) -> Floats:
        """Return the log likelihood of each entry under each draw, as LOO and WAIC need it.

        Parameters
        ----------
        rows, columns : array-like of int
            Paired positions.
        values : array-like
            The data there.
        lower, upper : array-like, optional
            Limits of entries that are only known to lie between them, whose value does not count; NaN for others.

        Returns
        -------
        ndarray of shape (chain, draw, n)
            Log densities, and log probabilities of intervals.
        """
        given = self._given(rows, columns, values=values, lower=lower, upper=upper)
        return predictions.log_likelihood(self.flat, *given).reshape(*self.W.shape[:2], -1)

    def log_predictive_density(
        self, rows: Any, columns: Any, values: Any, *, lower: Any = None, upper: Any = None
    ) -> Floats:
        """Return the log posterior predictive density of each entry.

        Parameters
        ----------
        rows, columns, values, lower, upper : array-like
            As in :meth:`log_likelihood`.

        Returns
        -------
        ndarray of shape (n,)
            Log densities, and log probabilities of intervals.
        """
        given = self._given(rows, columns, values=values, lower=lower, upper=upper)
        return predictions.log_predictive_density(self.flat, *given)

    # --- fitted entries that are only known to lie between limits

    def mean_between(self, rows: Any, columns: Any, lower: Any, upper: Any) -> Floats:
        """Return the means (n,) of fitted entries that lie between limits, one of which may be infinite."""
        rows, columns, low, high = self._given(rows, columns, lower=lower, upper=upper)
        offset = self._offset(columns)
        lowest = np.broadcast_to(self.lower_bound - offset, low.shape)  # the data may not be negative
        return predictions.mean_between(self.flat, rows, columns, low, high, lowest) + offset

    def interval_between(self, prob: float, rows: Any, columns: Any, lower: Any, upper: Any) -> tuple[Floats, Floats]:
        """Return the central intervals of fitted entries that lie between limits, one of which may be infinite."""
        tail = 0.5 * (1.0 - arguments.probability(prob, "prob"))
        rows, columns, lower, upper = self._given(rows, columns, lower=lower, upper=upper)
        rng, probabilities = np.random.default_rng(0), np.array([tail, 1.0 - tail])
        low, high = predictions.quantiles_between(self.flat, rows, columns, probabilities, lower, upper, rng)
        offset = self._offset(columns)
        lowest = np.clip(self.lower_bound, lower + offset, upper + offset)  # the data may not be negative
        return np.maximum(low + offset, lowest), np.maximum(high + offset, lowest)

    # --- components

    @cached_property
    def alignment(self) -> Alignment:
        """Order and scale of the components of each draw: matched with the chain that fits best, the largest first."""
        if self.fitted is not None:
            return self.fitted.alignment
        fit = [mse[np.isfinite(mse)][-self.n_draws :].mean() for mse in self.train_mse]
        # Components are compared in the units of the fit, so that no column dominates by its unit.
        free = slice(self.n_fixed[0], self.n_components - self.n_fixed[1])
        scale = 1.0 if self.scale is None else self.scale
        W, Z = self.W[..., free], self.Z[:, :, free]
        found = align(W, Z, int(np.argmin(fit)), scale, self.signed)
        found = found.reordered(np.argsort(-components.sizes(*found.means(W, Z), scale), kind="stable"))
        return found.among(self.n_components, free) if any(self.n_fixed) else found

    def factor_means(self) -> tuple[Floats, Floats]:
        """Return the posterior means of the aligned factors.

        Returns
        -------
        tuple of ndarray of shape (rows, K) and (K, columns)
            Means over the chains that agree on a component, scaled so that columns of the fitted W have mean 1, or a
            mean square of 1 if they may be negative. Components are numbered by size, the largest first; fixed ones
            keep their places.
        """
        return self.alignment.means(self.W, self.Z)

    def n_active_components(self) -> int:
        """Return how many components stand out from the noise: a guess at the rank of the data.

        With ``prior="ard"`` superfluous components shrink, and what is left of them fits noise. The others are counted:
        those that are at least twice as strong as the strongest one that pure noise is expected to have, in most draws
        of the chain that fits best.

        Returns
        -------
        int
            The number of :attr:`active_components`.

        Examples
        --------
        >>> import numpy as np
        >>> from bnmf import BayesianNMF
        >>> rng = np.random.default_rng(0)
        >>> X = rng.exponential(size=(60, 3)) @ rng.exponential(size=(3, 20)) + 0.5 * rng.standard_normal((60, 20))
        >>> model = BayesianNMF(10, n_chains=2, random_state=0).fit(np.maximum(X, 0.0))
        >>> model.posterior_.n_active_components()
        3
        """
        return int(self.active_components.sum())

    @cached_property
    def active_components(self) -> Bools:
        """Whether each component, in the order of the aligned posterior, stands out from the noise."""
        chain = self.alignment.reference
        active = components.active(*self.flat).reshape(*self.W.shape[:2], -1)[chain]
        return np.take_along_axis(active, self.alignment.order[chain], axis=1).mean(axis=0) > 0.5

    def component_matches(self) -> tuple[Bools, Bools]:
        """Return which components are active, and on which all chains agree."""
        return self.active_components, np.asarray(self.alignment.agrees.all(axis=0))

    def align(self) -> Posterior:
        """Return this posterior with the components of all draws in one order and scale.

        Returns
        -------
        Posterior
            The same predictions, with factors whose means and intervals are meaningful.
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
        W, Z, _ = self.flat
        spread = predictions.entry_std((W, Z, self.noise_of_finite_variance), *self.monitored)
        return np.asarray(self.draws_of(*self.monitored, noise=False) / spread)

    def prediction_error(self) -> float:
        """Return the Monte Carlo error of a prediction, in units of its predictive standard deviation.

        It is the spread of the chains' means over the root of the number of chains (of the two halves of one chain),
        root mean square over some entries: the cost of chains that do not agree. The verdict
        judges it.

        Returns
        -------
        float
            NaN if there are fewer than four draws.
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
        """Read a posterior that :meth:`save` wrote. Nothing in the file is executed.

        Parameters
        ----------
        path : path-like
            File name.

        Returns
        -------
        Posterior
            The posterior.
        """
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
            data = self._as_data(X, observed, lower, upper, unstored)
            if data.shape != self.shape:
                raise ValueError(f"X must have the shape of the fitted data, {self.shape}, got {data.shape}")
            if self.row_ids is not None and (n := np.count_nonzero(row_ids(data, self.scale) != self.row_ids)):
                raise ValueError(
                    "X, observed, lower, upper and unstored must be those of the fit, and "
                    f"{n} of {self.shape[0]} rows differ"
                )
        memory.warn_if_large(self.W.nbytes + self.Z.nbytes, "a copy of the draws", "take fewer of them with `after`")
        return inference_data.convert(self, data, max_entries)

    # --- arguments

    def _flat(self, noise: Any) -> Flat:
        """Return the draws, those of the noise only if it is asked for."""
        W, Z, law = self.flat
        return (W, Z, law) if arguments.flag(noise, "noise") else (W, Z, None)

    def _positions(self, rows: Any, columns: Any) -> tuple[Indices, Indices]:
        return arguments.positions(rows, columns, self.shape)

    def _given(self, rows: Any, columns: Any, **numbers: Any) -> tuple[Any, ...]:
        """Return positions, and values and limits there without the offsets of their columns."""
        if (numbers["lower"] is None) != (numbers["upper"] is None):
            raise ValueError("lower and upper must be given together")
        rows, columns = self._positions(rows, columns)
        found = {
            name: None if given is None and name != "values" else arguments.floats(given, name)
            for name, given in numbers.items()
        }
        for name, given in found.items():
            if given is not None and given.shape != columns.shape:
                raise ValueError(f"{name} must be as many as rows and columns, {columns.size}, got shape {given.shape}")
        return rows, columns, *(None if given is None else given - self._offset(columns) for given in found.values())

    def _require_room(self, n_matrices: int) -> None:
        """Raise an error if so many matrices of the shape of the data do not fit into memory."""
        memory.require(
            8 * n_matrices * self.shape[0] * self.shape[1],
            f"a result for all {self.shape[0]:,} x {self.shape[1]:,} entries",
            "ask for the entries that you need with rows and columns, or for blocks of rows with mean_of_rows; "
            "BayesianNMF.impute(out=...) fills a memory map",
        )
