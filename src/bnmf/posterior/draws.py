"""The draws of a fit, and the predictions that are made of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from bnmf.posterior import predictions
from bnmf.posterior.base import BasePosterior
from bnmf.posterior.predictions import Flat, NoisyFlat
from bnmf.priors.base import Prior
from bnmf.utils import arguments, memory
from bnmf.utils.arguments import as_generator
from bnmf.utils.typing import Array, Floats, Indices, Words

if TYPE_CHECKING:
    from bnmf.posterior.calibration import Calibration
    from bnmf.posterior.verdict import Finding


TRACES = (
    "noise_variance", "log_density", "row_noise", "row_strength", "df", "outlier_share", "rate_W", "rate_Z",
)  # fmt: skip
"""Fields with draws of everything but the factors; those that a model does not have are None."""


@dataclass(eq=False, repr=False)
class Draws(BasePosterior):
    """Draws of the factors and of the noise, whose fields :class:`bnmf.Posterior` describes, and predictions."""

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
            at = self._positions(rows, columns)
            out = predictions.entry_quantiles(draws, *at, probabilities, self._offset(at[1]), self.lower_bound, rng)
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

    # --- arguments

    def _flat(self, noise: Any) -> Flat:
        """Return the draws, those of the noise only if it is asked for."""
        W, Z, law = self.flat
        return (W, Z, law) if arguments.flag(noise, "noise") else (W, Z, None)

    def _positions(self, rows: Any, columns: Any) -> tuple[Indices, Indices]:
        return arguments.positions(rows, columns, self.shape)

    def _offset(self, columns: Indices | None = None) -> Any:
        """Return the offset added to W Z, in all columns or at some positions."""
        if self.offset is None:
            return 0.0
        return self.offset if columns is None else self.offset[columns]

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
