"""The posterior: draws of the factors, and everything that is computed from them."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from bnmf.data.containers import LARGEST_SQUARE
from bnmf.data.identity import row_ids
from bnmf.data.observed import ObservedMatrix
from bnmf.posterior import archive, components, inference_data, new_rows, predictions, summary
from bnmf.posterior.alignment import Alignment, align
from bnmf.posterior.diagnostics import MIN_DRAWS, Quantity
from bnmf.posterior.draws import Draws
from bnmf.posterior.interface import BasePosterior
from bnmf.posterior.verdict import Verdict, of_posterior, on_use
from bnmf.sampler.until_converged import monte_carlo_error
from bnmf.utils import arguments, memory
from bnmf.utils.arguments import as_generator, as_seed
from bnmf.utils.typing import Bools, Floats, Indices

# Number of predictions, and of rows and columns of the aligned factors, that are checked for convergence.
N_MONITORED_PREDICTIONS = 100
N_MONITORED_ROWS = 10


def _of_rows(factor: Floats | None, rows: Indices) -> Floats | None:
    """Return known factors of the noise of some rows."""
    return factor if factor is None or len(factor) == 1 else factor[rows]


class Posterior(Draws, BasePosterior):
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
        Hashes of the fitted rows, by which :meth:`for_rows` recognises them.
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
    notes : tuple of str, default=()
        What is wrong with the fit as such, however well it has converged.
    df : ndarray of shape (chain, draw), optional
        Draws of the degrees of freedom of Student's t, whose squared scales are then the variances above.
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

    # Posteriors of new rows use the alignment of the fitted ones.
    _fitted: Posterior | None = None

    def __repr__(self) -> str:
        return (
            f"<Posterior of a {self.shape[0]} x {self.shape[1]} matrix, K = {self.n_components}: "
            f"{self.n_chains} chains of {self.n_draws} draws>"
        )

    def _repr_html_(self) -> str:
        return summary.posterior_html(self)

    def after(self, sweep: int) -> Posterior:
        """Return this posterior without the draws of the first sweeps: a longer burn-in, chosen afterwards.

        Fit with ``burn_in=0`` to choose all of it afterwards, by the training error for example. Only a burn-in that
        the fit has begins with nearly equal variances of columns and rows, by which chains find a good mode more often.

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
        traces = ("noise_variance", "log_density", "row_noise", "row_strength", "rate_W", "rate_Z", "df")
        later = {
            name: getattr(self, name)[:, first:] for name in ("W", "Z", *traces) if getattr(self, name) is not None
        }
        result = replace(self, **later)
        result._fitted = None if self._fitted is None else self._fitted.after(sweep)
        return result

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
        W, Z, _ = self.flat
        if rows is None and columns is None:
            self._require_room(1)
            return predictions.cut(predictions.mean(W, Z) + self._offset(), self.lower_bound)
        rows, columns = self._positions(rows, columns)
        return predictions.cut(predictions.entry_mean(W, Z, rows, columns) + self._offset(columns), self.lower_bound)

    def _require_room(self, n_matrices: int) -> None:
        """Raise an error if so many matrices of the shape of the data do not fit into memory."""
        memory.require(
            8 * n_matrices * self.shape[0] * self.shape[1],
            f"a result for all {self.shape[0]:,} x {self.shape[1]:,} entries",
            "ask for the entries that you need with rows and columns, or for blocks of rows with mean_of_rows; "
            "BayesianNMF.impute(out=...) fills a memory map",
        )

    def _offset(self, columns: Indices | None = None) -> Any:
        """Return what is added to W Z, in all columns or at some positions."""
        if self.offset is None:
            return 0.0
        return self.offset if columns is None else self.offset[columns]

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

    def std(self, rows: Any = None, columns: Any = None, *, noise: bool = False) -> Floats:
        """Return the posterior standard deviation of W Z.

        Parameters
        ----------
        rows, columns : array-like of int, optional
            Paired positions of the requested entries; all entries by default.
        noise : bool, default=False
            Include the variance of the noise (before the cut at the lower bound of the data).

        Returns
        -------
        ndarray of shape (rows, columns) or (n,)
            The standard deviations.
        """
        W, Z, variance = self.flat
        law = variance if arguments.flag(noise, "noise") else None
        if rows is None and columns is None:
            self._require_room(2)
            return predictions.std(W, Z, law)
        return predictions.entry_std(W, Z, *self._positions(rows, columns), law)

    def quantile(
        self, q: Any, rows: Any = None, columns: Any = None, *, noise: bool = False, random_state: Any = 0
    ) -> Floats:
        """Return quantiles of W Z, or of new data with `noise`.

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
        noise : bool, default=False
            Include the noise.
        random_state : int, RandomState, Generator or None, default=0
            Source of the noise.

        Returns
        -------
        ndarray of shape (len(q), rows, columns) or (len(q), n)
            The quantiles; without the leading axis if q is a number.
        """
        probabilities = arguments.probabilities(q, "q")
        W, Z, variance = self.flat
        law = variance if arguments.flag(noise, "noise") else None
        rng = as_generator(random_state)
        if rows is None and columns is None:
            self._require_room(len(probabilities))
            out = predictions.quantiles(W, Z, probabilities, law, self._offset(), self.lower_bound, rng)
        else:
            rows, columns = self._positions(rows, columns)
            out = predictions.entry_quantiles(
                W, Z, rows, columns, probabilities, law, self._offset(columns), self.lower_bound, rng
            )
        return out[0] if np.ndim(q) == 0 else out

    def interval(
        self, prob: float = 0.9, rows: Any = None, columns: Any = None, *, noise: bool = True, random_state: Any = 0
    ) -> tuple[Floats, Floats]:
        """Return the central interval of each entry: of new data with `noise`, else of W Z.

        Parameters
        ----------
        prob : float, default=0.9
            Probability of the interval.
        rows, columns : array-like of int, optional
            Paired positions of the requested entries; all entries by default.
        noise : bool, default=True
            Include the noise, as in :meth:`quantile`.
        random_state : int, RandomState, Generator or None, default=0
            Source of the noise.

        Returns
        -------
        tuple of ndarray
            Lower and upper ends.
        """
        tail = 0.5 * (1.0 - arguments.probability(prob, "prob"))
        low, high = self.quantile([tail, 1.0 - tail], rows, columns, noise=noise, random_state=random_state)
        return low, high

    def draws_of(self, rows: Any, columns: Any, *, noise: bool = False, random_state: Any = 0) -> Floats:
        """Return draws of some entries of W Z, or with `noise` of new data there (posterior predictive draws).

        Parameters
        ----------
        rows, columns : array-like of int
            Paired positions.
        noise : bool, default=False
            Include the noise, as in :meth:`quantile`.
        random_state : int, RandomState, Generator or None, default=0
            Source of the noise.

        Returns
        -------
        ndarray of shape (chain, draw, n)
            The draws.
        """
        W, Z, variance = self.flat
        rows, columns = self._positions(rows, columns)
        draws = predictions.entries(W, Z, rows, columns) + self._offset(columns)
        if arguments.flag(noise, "noise"):
            rng = as_generator(random_state)
            draws = predictions.add_noise(draws, variance, rows, columns, self.lower_bound, rng)
        return draws.reshape(self.n_chains, self.n_draws, -1)

    def _positions(self, rows: Any, columns: Any) -> tuple[Indices, Indices]:
        return arguments.positions(rows, columns, self.shape)

    def mean_between(self, rows: Any, columns: Any, lower: Any, upper: Any) -> Floats:
        """Return the mean of the values of some fitted entries that are known to lie between limits.

        Parameters
        ----------
        rows, columns : array-like of int
            Paired positions.
        lower, upper : array-like
            Limits of each, one of which may be infinite.

        Returns
        -------
        ndarray of shape (n,)
            The means, which lie between the limits.
        """
        rows, columns = self._positions(rows, columns)
        low, high = self._at(lower, "lower", columns), self._at(upper, "upper", columns)
        means = predictions.mean_between(*self.flat, rows, columns, low, high)
        lowest = np.clip(self.lower_bound - self._offset(columns), low, high)  # the data may not be negative
        return np.clip(means, lowest, high) + self._offset(columns)

    def interval_between(
        self, prob: float, rows: Any, columns: Any, lower: Any, upper: Any, *, random_state: Any = 0
    ) -> tuple[Floats, Floats]:
        """Return the central interval of the values of some fitted entries that are known to lie between limits.

        Parameters
        ----------
        prob : float
            Probability of the interval.
        rows, columns : array-like of int
            Paired positions.
        lower, upper : array-like
            Limits of each, one of which may be infinite.
        random_state : int, RandomState, Generator or None, default=0
            Source of the values.

        Returns
        -------
        tuple of ndarray
            Lower and upper ends, which lie between the limits.
        """
        tail = 0.5 * (1.0 - arguments.probability(prob, "prob"))
        rows, columns = self._positions(rows, columns)
        limits = self._at(lower, "lower", columns), self._at(upper, "upper", columns)
        rng, probabilities = as_generator(random_state), np.array([tail, 1.0 - tail])
        low, high = predictions.quantiles_between(*self.flat, rows, columns, probabilities, *limits, rng)
        offset = self._offset(columns)
        lowest = np.clip(self.lower_bound, limits[0] + offset, limits[1] + offset)  # the data may not be negative
        return np.maximum(low + offset, lowest), np.maximum(high + offset, lowest)

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
        rows, columns = self._positions(rows, columns)
        terms = predictions.log_likelihood(*self.flat, rows, columns, *self._data(columns, values, lower, upper))
        return terms.reshape(self.n_chains, self.n_draws, -1)

    def log_predictive_density(
        self, rows: Any, columns: Any, values: Any, *, lower: Any = None, upper: Any = None
    ) -> Floats:
        """Return the log posterior predictive density of each entry.

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
        ndarray of shape (n,)
            Log densities, and log probabilities of intervals.
        """
        rows, columns = self._positions(rows, columns)
        return predictions.log_predictive_density(*self.flat, rows, columns, *self._data(columns, values, lower, upper))

    def _at(self, values: Any, name: str, columns: Indices) -> Floats:
        """Return numbers at some positions without the offsets of their columns."""
        values = arguments.floats(values, name)
        if values.shape != columns.shape:
            raise ValueError(f"{name} must be as many as rows and columns, {columns.size}, got shape {values.shape}")
        return values - self._offset(columns)

    def _data(self, columns: Indices, values: Any, lower: Any, upper: Any) -> tuple[Any, ...]:
        """Return values and limits at some positions without the offsets of their columns."""
        if (lower is None) != (upper is None):
            raise ValueError("lower and upper must be given together")
        given = {"values": values, "lower": lower, "upper": upper}
        return tuple(None if x is None else self._at(x, name, columns) for name, x in given.items())

    # --- new rows

    def for_rows(
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
        observed : array-like of bool, optional
            True where X was observed.
        lower, upper : array-like, DataFrame, sparse matrix, mapping or float, optional
            Limits of entries, as in :meth:`bnmf.BayesianNMF.fit`.
        unstored : {"zero", "missing"}, default="zero"
            Meaning of the entries that a sparse X does not store.
        random_state : int, RandomState, Generator or None, default=0
            Seed of the draws.

        Returns
        -------
        Posterior
            With the same Z, and W of these rows.
        """
        negative = self.lower_bound < 0 or self.offset is not None
        limits: dict[str, Any] = {"lower": lower, "upper": upper, "names": self.column_names}
        options: dict[str, Any] = {"unstored": unstored, "negative": negative, "empty": True}
        data = ObservedMatrix.from_data(X, observed, **limits, **options)
        return self.for_data(data, as_seed(random_state))

    def for_data(self, data: ObservedMatrix, seed: int) -> Posterior:
        """Return the posterior of other rows, as :meth:`for_rows` does, for data in the form of the sampler.

        Parameters
        ----------
        data : ObservedMatrix
            The rows.
        seed : int
            Seed of the draws.

        Returns
        -------
        Posterior
            With the same Z, and W of these rows.
        """
        if data.shape[1] != self.shape[1]:
            raise ValueError(f"X has {data.shape[1]} columns, the posterior {self.shape[1]}")
        ids = row_ids(data, self.scale)
        if self.offset is not None:
            data = data.shifted(self.offset)
        memory.warn_if_large(
            8 * self.n_chains * self.n_draws * data.shape[0] * self.n_components,
            f"the draws of W for {data.shape[0]:,} rows",
            "pass fewer rows at a time",
        )
        W = np.empty((self.n_chains, self.n_draws, data.shape[0], self.n_components))
        is_fitted, where = new_rows.find_fitted(ids, self.row_ids)
        W[:, :, is_fitted] = self.W[:, :, where]
        row_noise = None if self.row_noise is None else np.empty(W.shape[:3])
        if row_noise is not None and self.row_noise is not None:
            row_noise[:, :, is_fitted] = self.row_noise[:, :, where]
        known = factor = self.noise_factor
        if known is not None and len(known) > 1:  # that of a new row is not known
            factor = np.repeat(np.median(known, axis=0, keepdims=True), len(ids), axis=0)
            factor[is_fitted] = known[where]
        new = np.flatnonzero(~is_fitted)
        if len(new):
            if self.prior_W is None:
                raise ValueError("this posterior does not hold the prior of W, which new rows need")
            if self.prior_W.is_by_entry:
                raise ValueError("the prior of W has a rate for each fitted entry, and none for new rows")
            if self.n_fixed[1] and np.ptp(self.W[0, 0, :, -self.n_fixed[1] :], axis=0).any():
                raise ValueError("fixed_weights differ between rows, and those of new rows are not known")
            weighted = self.law.has_entries or factor is not None
            rows = (data.listed() if weighted else data).rows.select(new)
            limits = None if data.limits is None else data.limits.of_rows(new)
            drawn = new_rows.draw(rows, ids[new], replace(self, noise_factor=_of_rows(factor, new)), seed, limits)
            spread = 1.0 if drawn.row_noise is None else float(drawn.row_noise.max())
            # Numbers of Python: their product is infinite without a warning.
            is_finite = float(np.max(self.noise_variance)) * spread < LARGEST_SQUARE
            if not (is_finite and np.isfinite(drawn.W).all()):
                raise FloatingPointError(
                    "X has rows so much larger than the fitted ones that their weights or noise leave the range of "
                    "floating-point numbers: see whether they are in the same unit"
                )
            W[:, :, new] = drawn.W
            if row_noise is not None:
                row_noise[:, :, new] = drawn.row_noise
        result = replace(
            self,
            W=W,
            row_noise=row_noise,
            noise_factor=factor,
            n_observed=data.n_observed,
            row_names=data.row_names,
            prior_W=None,
            row_ids=None,
            log_density=None,
        )
        result._fitted = self
        return result

    # --- components

    @cached_property
    def alignment(self) -> Alignment:
        """Order and scale of the components of each draw, matched with those of the chain that fits best."""
        if self._fitted is not None:
            return self._fitted.alignment
        fit = [mse[np.isfinite(mse)][-self.n_draws :].mean() for mse in self.train_mse]
        # Components are compared in the units of the fit, so that no column dominates by its unit.
        free = slice(self.n_fixed[0], self.n_components - self.n_fixed[1])
        scale = 1.0 if self.scale is None else self.scale
        found = align(self.W[..., free], self.Z[:, :, free], int(np.argmin(fit)), scale, self.signed)
        return found.among(self.n_components, free) if any(self.n_fixed) else found

    def factor_means(self) -> tuple[Floats, Floats]:
        """Return the posterior means of the aligned factors.

        Returns
        -------
        tuple of ndarray of shape (rows, K) and (K, columns)
            Means over the chains that agree on a component, scaled so that columns of the fitted W have mean 1, or a
            mean square of 1 if they may be negative.
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

    @cached_property
    def monitored(self) -> tuple[Indices, Indices]:
        """Positions of some entries, chosen at random, whose predictions are checked for convergence."""
        size = min(N_MONITORED_PREDICTIONS, self.shape[0] * self.shape[1])
        entries = np.random.default_rng(0).choice(self.shape[0] * self.shape[1], size, replace=False)
        rows, columns = np.divmod(np.sort(entries), self.shape[1])
        return rows, columns

    def _quantities(self) -> list[Quantity]:
        rng = np.random.default_rng(1)
        found = [*super()._quantities(), Quantity("predictions", self.draws_of(*self.monitored))]
        for name, draws, apply in (("W", self.W, self.alignment.apply_W), ("Z", self.Z, self.alignment.apply_Z)):
            axis = 2 if name == "W" else 3
            kept = np.sort(rng.choice(draws.shape[axis], min(N_MONITORED_ROWS, draws.shape[axis]), replace=False))
            found.append(Quantity(f"aligned {name}", apply(np.take(draws, kept, axis=axis))))
        return found

    def prediction_error(self) -> float:
        """Return the Monte Carlo error of a prediction, in units of its predictive standard deviation.

        It is the spread of the chains' means over the root of the number of chains (of the two halves of one chain),
        root mean square over some entries: what it costs that the chains have not converged. Below 0.1 more draws
        would not change a prediction noticeably; above 0.25 they would.

        Returns
        -------
        float
            NaN if there are fewer than four draws.
        """
        if self.n_draws < MIN_DRAWS:
            return float("nan")
        return monte_carlo_error(self.monitored_predictions())

    def monitored_predictions(self) -> Floats:
        """Return draws (chain, draw, n) of the monitored entries in units of their predictive standard deviations."""
        # Student's t with few degrees of freedom has no variance, by which any error would look small: take its scale.
        is_finite = self.df is None or bool((self.df > 2.0).all())
        spread = (self if is_finite else replace(self, df=None)).std(*self.monitored, noise=True)
        return np.asarray(self.draws_of(*self.monitored) / spread)

    @property
    def verdict(self) -> Verdict:
        """What the fit can be used for, and what to do otherwise: a finding for each purpose."""
        return of_posterior(self, self._diagnosis)

    def problems(self) -> list[str]:
        """Return a sentence, with what to do, for each finding of the verdict that is worth a warning.

        Returns
        -------
        list of str
            Empty if there is no sign of a problem.
        """
        return Verdict(tuple(on_use(self))).problems()

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
        draws = archive.load(arguments.path(path, "path"))
        return cls(**{item.name: getattr(draws, item.name) for item in fields(draws)})

    def to_inference_data(
        self, X: Any = None, *, observed: Any = None, unstored: str = "zero", aligned: bool = True
    ) -> Any:
        """Return ArviZ InferenceData.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix, optional
            The fitted data, for the groups ``observed_data`` and ``log_likelihood`` (which LOO and WAIC need), with a
            dimension ``entry``. The latter group holds one number for each observed entry and draw.
        observed : array-like of bool, optional
            True where X was observed.
        unstored : {"zero", "missing"}, default="zero"
            Meaning of the entries that a sparse X does not store.
        aligned : bool, default=True
            Bring the components into one order and scale first.

        Returns
        -------
        arviz.InferenceData
            Groups ``posterior`` and ``sample_stats``, with dims chain, draw, row, component and column, and the
            names of rows and columns as coordinates.
        """
        data = None
        if X is not None:
            data = ObservedMatrix.from_data(
                X, observed, unstored=unstored, negative=self.lower_bound < 0 or self.offset is not None
            )
            if self.offset is not None:
                data = data.shifted(self.offset)
            if data.shape != self.shape:
                raise ValueError(f"X must have the shape of the fitted data, {self.shape}, got {data.shape}")
        if aligned:
            memory.warn_if_large(self.W.nbytes + self.Z.nbytes, "a copy of the draws", "use aligned=False")
        return inference_data.convert(self.align() if aligned else self, data)
