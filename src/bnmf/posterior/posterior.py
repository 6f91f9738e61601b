"""The posterior: draws of the factors, and everything that can be read off them."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bnmf import new_rows, posterior_file, predictions
from bnmf.alignment import Alignment, align
from bnmf.diagnostics import Quantity
from bnmf.observed import ObservedMatrix
from bnmf.priors import Coefficients
from bnmf.summary import Diagnosed

Array = NDArray[Any]
Floats = NDArray[np.float64]

# So many predictions, and entries of each aligned factor, are looked at for convergence.
N_LOOKED_AT = 100


class Posterior(Diagnosed):
    """Draws from the posterior of a factorisation.

    Made by :class:`bnmf.BayesianNMF` (its attribute ``posterior_``) or by :meth:`load`. A prediction is always the
    mean of the products W Z over the draws, never the product of the means.

    Parameters
    ----------
    W : ndarray of shape (chain, draw, rows, K)
        Draws of the left factor.
    Z : ndarray of shape (chain, draw, K, columns)
        Draws of the right factor.
    noise_variance : ndarray of shape (chain, draw)
        Draws of σ².
    train_mse : ndarray of shape (chain, sweep)
        Mean squared error on the observed entries after each sweep, burn-in included.
    n_observed : int
        Number of observed entries.
    row_names, column_names : pandas.Index, optional
        Names of the data's rows and columns.
    prior_W : Coefficients, optional
        Prior of a row of W, for rows that come later.
    row_ids : ndarray of uint64 of shape (rows,), optional
        Hashes of the fitted rows, by which :meth:`for_rows` knows them again.
    """

    def __init__(
        self,
        W: Array,
        Z: Array,
        noise_variance: Floats,
        train_mse: Floats,
        *,
        n_observed: int,
        row_names: pd.Index | None = None,
        column_names: pd.Index | None = None,
        prior_W: Coefficients | None = None,
        row_ids: NDArray[np.uint64] | None = None,
    ) -> None:
        self.W = W
        self.Z = Z
        self.noise_variance = noise_variance
        self.train_mse = train_mse
        self.n_observed = n_observed
        self.row_names = row_names
        self.column_names = column_names
        self.prior_W = prior_W
        self.row_ids = row_ids

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the data."""
        return self.W.shape[2], self.Z.shape[3]

    @property
    def n_components(self) -> int:
        """K."""
        return self.W.shape[3]

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return self.W.shape[0]

    @property
    def n_draws(self) -> int:
        """Number of draws of each chain."""
        return self.W.shape[1]

    def __repr__(self) -> str:
        return (
            f"<Posterior of a {self.shape[0]} x {self.shape[1]} matrix, K = {self.n_components}: "
            f"{self.n_chains} chains of {self.n_draws} draws>"
        )

    @property
    def _flat(self) -> tuple[Array, Array]:
        return predictions.flat(self.W), predictions.flat(self.Z)

    # --- predictions

    def mean(self, rows: Any = None, columns: Any = None) -> Floats:
        """Return the posterior mean of W Z.

        Parameters
        ----------
        rows, columns : array-like of int, optional
            Paired positions of the entries that are wanted; all entries by default.

        Returns
        -------
        ndarray of shape (rows, columns) or (n,)
            The means.
        """
        if rows is None and columns is None:
            return predictions.mean(*self._flat)
        return self.draws_of(rows, columns).mean(axis=(0, 1))

    def std(self, rows: Any = None, columns: Any = None, *, noise: bool = False) -> Floats:
        """Return the posterior standard deviation of W Z.

        Parameters
        ----------
        rows, columns : array-like of int, optional
            Paired positions of the entries that are wanted; all entries by default.
        noise : bool, default=False
            Of new data at the entry, noise included.

        Returns
        -------
        ndarray of shape (rows, columns) or (n,)
            The standard deviations.
        """
        variance = self.noise_variance.ravel() if noise else None
        if rows is None and columns is None:
            return predictions.std(*self._flat, variance)
        added = 0.0 if variance is None else variance.mean()
        return np.sqrt(self.draws_of(rows, columns).var(axis=(0, 1)) + added)

    def quantile(self, q: Any, rows: Any = None, columns: Any = None, *, noise: bool = False, seed: int = 0) -> Floats:
        """Return quantiles of W Z, or with noise those of new data at the entry.

        Parameters
        ----------
        q : float or array-like
            Probabilities.
        rows, columns : array-like of int, optional
            Paired positions of the entries that are wanted; all entries by default.
        noise : bool, default=False
            Include the noise, drawn with `seed`.
        seed : int, default=0
            Seed of the noise.

        Returns
        -------
        ndarray of shape (len(q), rows, columns) or (len(q), n)
            The quantiles; without the leading axis if q is a number.
        """
        probabilities = np.atleast_1d(np.asarray(q, dtype=np.float64))
        if np.any((probabilities < 0) | (probabilities > 1)):
            raise ValueError(f"q must be between 0 and 1, got {q!r}")
        variance = self.noise_variance.ravel() if noise else None
        rng = np.random.default_rng(seed)
        if rows is None and columns is None:
            out = predictions.quantiles(*self._flat, probabilities, variance, rng)
        else:
            draws = predictions.flat(self.draws_of(rows, columns))
            out = predictions.entry_quantiles(draws, probabilities, variance, rng)
        return out[0] if np.ndim(q) == 0 else out

    def interval(
        self, prob: float = 0.9, rows: Any = None, columns: Any = None, *, noise: bool = True, seed: int = 0
    ) -> tuple[Floats, Floats]:
        """Return the central interval of each entry: with noise, of new data there; without, of W Z.

        Parameters
        ----------
        prob : float, default=0.9
            Probability that the interval holds.
        rows, columns : array-like of int, optional
            Paired positions of the entries that are wanted; all entries by default.
        noise : bool, default=True
            Include the noise.
        seed : int, default=0
            Seed of the noise.

        Returns
        -------
        tuple of ndarray
            Lower and upper ends.
        """
        if not 0 < prob < 1:
            raise ValueError(f"prob must be between 0 and 1, got {prob!r}")
        tail = 0.5 * (1.0 - prob)
        low, high = self.quantile([tail, 1.0 - tail], rows, columns, noise=noise, seed=seed)
        return low, high

    def draws_of(self, rows: Any, columns: Any, *, noise: bool = False, seed: int = 0) -> Floats:
        """Return draws of some entries of W Z, or with noise of new data there (posterior predictive draws).

        Parameters
        ----------
        rows, columns : array-like of int
            Paired positions.
        noise : bool, default=False
            Add noise.
        seed : int, default=0
            Seed of the noise.

        Returns
        -------
        ndarray of shape (chain, draw, n)
            The draws.
        """
        rows, columns = self._positions(rows, columns)
        draws = predictions.entries(*self._flat, rows, columns).reshape(self.n_chains, self.n_draws, -1)
        if noise:
            rng = np.random.default_rng(seed)
            draws += np.sqrt(self.noise_variance)[:, :, None] * rng.standard_normal(draws.shape)
        return draws

    def _positions(self, rows: Any, columns: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        if rows is None or columns is None:
            raise ValueError("rows and columns go together: give both or neither")
        rows, columns = (np.atleast_1d(np.asarray(x)) for x in (rows, columns))
        if rows.shape != columns.shape or rows.ndim != 1:
            raise ValueError(f"rows and columns must be paired lists, got shapes {rows.shape} and {columns.shape}")
        for name, positions, size in (("rows", rows, self.shape[0]), ("columns", columns, self.shape[1])):
            if positions.dtype.kind not in "iu" or np.any((positions < -size) | (positions >= size)):
                raise IndexError(f"{name} must be whole numbers below {size}")
        return rows.astype(np.intp), columns.astype(np.intp)

    def log_likelihood(self, rows: Any, columns: Any, values: Any) -> Floats:
        """Return the log likelihood of data entry by entry and draw by draw, as LOO and WAIC take it.

        Parameters
        ----------
        rows, columns : array-like of int
            Paired positions.
        values : array-like
            The data there.

        Returns
        -------
        ndarray of shape (chain, draw, n)
            Log densities.
        """
        rows, columns, values = self._data(rows, columns, values)
        terms = predictions.log_likelihood(*self._flat, self.noise_variance.ravel(), rows, columns, values)
        return terms.reshape(self.n_chains, self.n_draws, -1)

    def log_predictive_density(self, rows: Any, columns: Any, values: Any) -> Floats:
        """Return the log of the posterior mean likelihood of data, entry by entry.

        Parameters
        ----------
        rows, columns : array-like of int
            Paired positions.
        values : array-like
            The data there.

        Returns
        -------
        ndarray of shape (n,)
            Log densities.
        """
        rows, columns, values = self._data(rows, columns, values)
        return predictions.log_predictive_density(*self._flat, self.noise_variance.ravel(), rows, columns, values)

    def _data(self, rows: Any, columns: Any, values: Any) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
        rows, columns = self._positions(rows, columns)
        values = np.asarray(values, dtype=np.float64)
        if values.shape != rows.shape:
            raise ValueError(f"values must be as many as rows and columns, {rows.size}, got shape {values.shape}")
        return rows, columns, values

    # --- new rows

    def for_rows(self, data: ObservedMatrix, *, seed: int = 0) -> Posterior:
        """Return the posterior of other rows of the same columns, given the draws of Z.

        A row that was fitted keeps its draws: they are draws given Z and what it holds. Any other row is drawn given
        each Z and what was observed of it, in a stream keyed by what it holds, so it does not matter which rows come
        together. A row with nothing observed gets the answer of the prior.

        Parameters
        ----------
        data : ObservedMatrix
            Rows with as many columns as the fitted data.
        seed : int, default=0
            Seed of the draws.

        Returns
        -------
        Posterior
            With the same Z, and W of these rows.
        """
        if data.shape[1] != self.shape[1]:
            raise ValueError(f"X has {data.shape[1]} columns, the posterior {self.shape[1]}")
        W = new_rows.draw(self, data, seed)
        return Posterior(
            W,
            self.Z,
            self.noise_variance,
            self.train_mse,
            n_observed=data.n_observed,
            row_names=data.row_names,
            column_names=self.column_names,
        )

    # --- components

    @cached_property
    def alignment(self) -> Alignment:
        """Order and scale of the components of each draw, matched with those of the chain that fits best."""
        fit = [mse[np.isfinite(mse)][-self.n_draws :].mean() for mse in self.train_mse]
        return align(self.W, self.Z, reference=int(np.argmin(fit)))

    def align(self) -> Posterior:
        """Return this posterior with the components of all draws in one order and scale.

        Returns
        -------
        Posterior
            The same predictions, with factors whose means and intervals mean something.
        """
        W, Z = self.alignment.apply_W(self.W), self.alignment.apply_Z(self.Z)
        # The prior does not come along: it is one of the factors as they were drawn, not as they are scaled now.
        return Posterior(
            W,
            Z,
            self.noise_variance,
            self.train_mse,
            n_observed=self.n_observed,
            row_names=self.row_names,
            column_names=self.column_names,
        )

    # --- convergence

    def _quantities(self) -> list[Quantity]:
        rng = np.random.default_rng(0)
        size = min(N_LOOKED_AT, self.shape[0] * self.shape[1])
        entries = np.sort(rng.choice(self.shape[0] * self.shape[1], size, replace=False))
        found = [*super()._quantities(), Quantity("predictions", self.draws_of(*np.divmod(entries, self.shape[1])))]
        for name, draws, apply in (("W", self.W, self.alignment.apply_W), ("Z", self.Z, self.alignment.apply_Z)):
            axis = 2 if name == "W" else 3
            kept = np.sort(rng.choice(draws.shape[axis], min(10, draws.shape[axis]), replace=False))
            found.append(Quantity(f"aligned {name}", apply(np.take(draws, kept, axis=axis)), identified=False))
        return found

    def _remark(self) -> str:
        sentence = self.alignment.disagreement()
        return "" if sentence is None else f"As to the factors, {sentence}."

    # --- files and other libraries

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file of arrays and JSON.

        Parameters
        ----------
        path : path-like
            File name, by custom ending in ``.npz``. An existing file is replaced once the new one is whole.
        """
        posterior_file.save(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Posterior:
        """Read a posterior that :meth:`save` wrote. Nothing in the file is run.

        Parameters
        ----------
        path : path-like
            File name.

        Returns
        -------
        Posterior
            The posterior.
        """
        return cls(**posterior_file.load(path))

    def to_inference_data(self, data: ObservedMatrix | None = None, *, aligned: bool = True) -> Any:
        """Return ArviZ InferenceData.

        Parameters
        ----------
        data : ObservedMatrix, optional
            The data, for the groups ``observed_data`` and ``log_likelihood`` (as LOO and WAIC take it), with a
            dimension ``entry``. The latter has as many numbers as observed entries times draws.
        aligned : bool, default=True
            Bring the components into one order and scale first.

        Returns
        -------
        arviz.InferenceData
            Groups ``posterior`` and ``sample_stats``, with dims chain, draw, row, component and column, and the
            names of rows and columns as coordinates.
        """
        try:
            import arviz
        except ImportError as error:
            raise ImportError("to_inference_data needs ArviZ: pip install 'bnmf[arviz]'") from error
        source = self.align() if aligned else self
        coords: dict[str, Any] = {
            "row": np.arange(self.shape[0]) if self.row_names is None else np.asarray(self.row_names),
            "column": np.arange(self.shape[1]) if self.column_names is None else np.asarray(self.column_names),
            "component": np.arange(self.n_components),
        }
        groups: dict[str, Any] = {"posterior": {"W": source.W, "Z": source.Z, "noise_variance": source.noise_variance}}
        dims = {"W": ["row", "component"], "Z": ["component", "column"]}
        if self.train_mse.shape[1] >= self.n_draws:
            groups["sample_stats"] = {"train_mse": self.train_mse[:, -self.n_draws :]}
        if data is not None:
            rows, columns, values = data.observed_entries()
            groups["observed_data"] = {"X": values}
            groups["log_likelihood"] = {"X": self.log_likelihood(rows, columns, values)}
            dims["X"] = ["entry"]
            coords["entry"] = np.arange(len(values))
        return arviz.from_dict(**groups, dims=dims, coords=coords)
