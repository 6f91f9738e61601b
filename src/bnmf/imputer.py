"""NMFImputer: missing entries filled by their posterior mean, or by several draws, and Rubin's rules for these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.impute import MissingIndicator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from bnmf.data.containers import as_floats
from bnmf.data.limits import by_column, is_named
from bnmf.distributed import refuse_cluster
from bnmf.estimator import BayesianNMF
from bnmf.inputs import all_or_nothing, checked
from bnmf.mixed import MixedTable, is_mixed
from bnmf.posterior import predictions
from bnmf.utils.arguments import as_generator, probability, whole_number
from bnmf.utils.typing import Array, Bools, Floats

ANY_TABLE: dict[str, Any] = {"prior": ("ard", "normal"), "offset": "mean", "noise": "auto"}
"""Settings for tables of unlike columns, by ``python -m benchmarks.defaults`` and, for the noise, ``noise_floor``."""


class NMFImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fill missing entries of a table by Bayesian nonnegative matrix factorisation.

    By default the mean of each column is subtracted first, weights of rows are nonnegative and profiles of columns have
    both signs, each column has its own unit and noise, and superfluous components vanish. So any table of numbers can
    be filled, negative ones included. Nonnegative factors alone, ``BayesianNMF(offset="min")``, have parts that can
    be named, and larger errors on most tables.

    A DataFrame may also have columns of whole numbers, yes or no, categories and text. Their kinds come from the dtypes
    or from `kinds`, predictions are valid values of them, and the result has the same dtypes.

    Parameters
    ----------
    estimator : BayesianNMF, optional
        The model; by default ``BayesianNMF(prior=("ard", "normal"), offset="mean", noise="auto")``.
    n_components : int or "auto", optional
        Number of components. None leaves what the estimator has, "auto" by default.
    kinds : mapping of str to str, pair or list, optional
        Kinds of columns of a DataFrame by name; others have the kind that their dtype says. "number"; "nonnegative", or
        a pair of bounds such as (0, 100), where predictions end and what is observed there may be more than that;
        "whole"; "ordered" categories, or a list of all of them in their order; "binary"; or "categorical".
    ignore : list of str, optional
        Columns of a DataFrame that are no part of the model and are returned as they are: dates, names, identifiers.
    missing_values : float or None, default=nan
        Number that stands for a missing entry. NaN, None, NA and NaT are always missing.
    add_indicator : bool, default=False
        Append columns that tell which entries were missing, as scikit-learn's imputers do.
    keep_empty_features : bool, default=False
        Columns without an observed entry in :meth:`fit` are dropped, as by scikit-learn's imputers. With True they are
        kept, filled with 0 if they are of numbers.
    n_jobs : int, optional
        Number of threads; -1 for all cores. None leaves what the estimator has.
    random_state : int, RandomState, Generator or None, default=None
        An integer makes the draws reproducible. None leaves what the estimator has.

    Attributes
    ----------
    estimator_ : BayesianNMF
        The model, fitted to the columns that have an observed entry.
    indicator_ : MissingIndicator or None
        The transformer that makes the indicator columns.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.outer([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, 4.0])
    >>> X[2, 3] = np.nan
    >>> imputer = NMFImputer(BayesianNMF(1, random_state=0)).fit(X)
    >>> bool(abs(imputer.transform(X)[2, 3] - 12.0) < 1.0)
    True
    >>> low, high = imputer.interval(X)
    >>> bool(low[2, 3] < 12.0 < high[2, 3])
    True
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": pd.array([31, 60, None, 62] * 9), "retired": ["no", "yes", "no", None] * 9})
    >>> NMFImputer(n_components=1, random_state=0).fit_transform(frame).dtypes.equals(frame.dtypes)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [BayesianNMF, None],
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
        "kinds": [Mapping, None],
        "ignore": ["array-like", None],
        "missing_values": [Real, None],
        "add_indicator": ["boolean"],
        "keep_empty_features": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": "no_validation",
    }

    def __init__(
        self,
        estimator: BayesianNMF | None = None,
        *,
        n_components: int | str | None = None,
        kinds: Mapping[Any, Any] | None = None,
        ignore: Sequence[Any] | None = None,
        missing_values: float | None = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_components = n_components
        self.kinds = kinds
        self.ignore = ignore
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, lower: Any = None, upper: Any = None) -> NMFImputer:
        """Fit the model.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            The data; NaN is missing.
        y : None
            Ignored.
        lower, upper : array-like, DataFrame, mapping or float, optional
            Limits of entries, as in :meth:`BayesianNMF.fit`.

        Returns
        -------
        NMFImputer
            This imputer, fitted.
        """
        self._validate_params()
        with all_or_nothing(self):
            self._table: MixedTable | None = None
            if is_mixed(X, self.kinds, self.ignore):
                return self._fit_mixed(X, lower, upper)
            array = self._array(X, reset=True)
            limits = self._limits(lower, upper)
            known = ~np.isnan(array).all(axis=0)
            for limit in limits.values():
                if limit is not None:
                    known = known | np.isfinite(np.broadcast_to(np.asarray(limit, float), array.shape)).any(axis=0)
            self._known: Bools = np.atleast_1d(known)
            if not self._known.any():
                raise ValueError("X has no observed entry at all: there is nothing to learn from")
            self.estimator_ = self._model().fit(array[:, self._known], **self._of_known(limits))
            self.indicator_ = MissingIndicator(features="missing-only").fit(array) if self.add_indicator else None
        return self

    def _fit_mixed(self, X: pd.DataFrame, lower: Any, upper: Any) -> NMFImputer:
        """Fit the model to the latent columns of a table of unlike columns."""
        model = self._model()
        if not model.takes_negative:
            raise ValueError(
                "estimator must take negative numbers, as with offset='mean', if X has other columns than numbers: "
                "categories are intervals of latent numbers of both signs"
            )
        validate_data(self, X, reset=True, skip_check_array=True)
        self._table = MixedTable(X, self.kinds, self.ignore, self.missing_values)
        values, low, high = self._table.encode(X, self._limits_of(X, lower, upper))
        self.estimator_ = model.fit(values, lower=low, upper=high)
        where_missing = np.where(self._table.missing(X), np.nan, 0.0)
        self.indicator_ = MissingIndicator(features="missing-only").fit(where_missing) if self.add_indicator else None
        return self

    def _limits_of(self, X: pd.DataFrame, lower: Any, upper: Any) -> tuple[Floats, Floats] | None:
        """Return limits of every entry of a table of unlike columns, NaN where there is none."""
        if lower is None and upper is None:
            return None
        assert self._table is not None
        missing, found = self._table.missing(X), []
        for given, name in ((lower, "lower"), (upper, "upper")):
            of_entries = np.ndim(given) == 2 and np.shape(given) == X.shape
            array = np.asarray(given, float) if of_entries else by_column(given, name, X.shape[1], X.columns)
            self._table.check_limits(np.isnan(array if of_entries else array[None]).all(axis=0))
            found.append(array if of_entries else np.where(missing, array, np.nan))
        return found[0], found[1]

    def _posterior_of(self, X: Any, lower: Any = None, upper: Any = None) -> tuple[MixedTable, Any, Any]:
        """Return the columns of a table of unlike ones, the posterior of its rows, and limits that it was given."""
        assert self._table is not None
        if not isinstance(X, pd.DataFrame):
            raise TypeError(f"X must be a DataFrame, as it was in fit, got {type(X).__name__}")
        validate_data(self, X, reset=False, skip_check_array=True)
        limits = self._limits_of(X, lower, upper)
        values, low, high = self._table.encode(X, limits)
        return self._table, self.estimator_.posterior_of(values, lower=low, upper=high), limits

    def transform(self, X: Any, *, lower: Any = None, upper: Any = None) -> Any:
        """Return X with its missing entries filled by their posterior mean.

        Entries that are only known to lie between limits are filled by the mean of their value, which is between them.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows of the fitted data, or others.
        lower, upper : array-like, DataFrame, mapping or float, optional
            Limits of entries, as in :meth:`BayesianNMF.fit`.

        Returns
        -------
        ndarray or DataFrame of shape (n_samples, n_features [+ indicator columns])
            The completed rows; observed entries are returned bit for bit. A DataFrame is returned for a DataFrame,
            unless ``set_output`` asks for another container.
        """
        check_is_fitted(self)
        if self._table is not None:
            table, posterior, limits = self._posterior_of(X, lower, upper)
            frame = table.predict(X, posterior, self.keep_empty_features, limits)
            if self.indicator_ is None:
                return frame
            shown = self.indicator_.transform(np.where(table.missing(X), np.nan, 0.0))
            names = self.get_feature_names_out()[frame.shape[1] :]
            return pd.concat([frame, pd.DataFrame(shown, index=X.index, columns=names)], axis=1)
        array, known, missing = self._parts(X)
        filled = known.copy()
        if lower is not None or upper is not None:
            limits = self._of_known(self._limits(lower, upper))
            filled = self.estimator_.impute(known, **limits).astype(known.dtype)
        elif missing.any():
            filled[missing] = self.estimator_.posterior_of(known).mean(*np.nonzero(missing))
        filled = self._with_empty(filled)
        if self.indicator_ is not None:
            filled = np.hstack([filled, self.indicator_.transform(array).astype(filled.dtype)])
        return self._like(X, filled, self.get_feature_names_out())

    def interval(self, X: Any, prob: float = 0.9) -> tuple[Any, Any]:
        """Return the ends of the central intervals of the missing entries.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows of the fitted data, or others.
        prob : float, default=0.9
            Probability that an entry is inside.

        Returns
        -------
        tuple of ndarray or DataFrame of shape (n_samples, n_features)
            Lower and upper ends; both are the entry itself where it was observed. Categories without an order have no
            interval, so their ends are missing: see :meth:`probabilities`.
        """
        check_is_fitted(self)
        if self._table is not None:
            table, posterior, _ = self._posterior_of(X)
            low, high = table.ends(X, posterior, self.keep_empty_features, probability(prob, "prob"))
            return low, high
        _, known, missing = self._parts(X)
        ends = [known.copy(), known.copy()]
        if missing.any():
            at = np.nonzero(missing)
            for end, values in zip(ends, self.estimator_.posterior_of(known).interval(prob, *at), strict=True):
                end[missing] = values
        low, high = (self._like(X, self._with_empty(end), self._names()) for end in ends)
        return low, high

    def probabilities(self, X: Any) -> dict[Any, pd.DataFrame]:
        """Return the probabilities of the categories of each column of categories.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, n_features)
            Rows of the fitted data, or others.

        Returns
        -------
        dict of DataFrame
            For each column of categories, ordered, binary or not: a row for each row of X, a column for each category.
            Where X was observed they are 0 and 1, or NaN for a category that was not there in :meth:`fit`.
        """
        check_is_fitted(self)
        if self._table is None:
            return {}
        table, posterior, _ = self._posterior_of(X)
        return table.probabilities(X, posterior)

    def multiple_imputations(self, X: Any, n_imputations: int = 5, *, random_state: Any = 0) -> Any:
        """Return several completed copies of X, each with its own draw of the missing entries.

        Each copy uses one draw of the factors and of the noise, so the differences between copies show the whole
        uncertainty, as Rubin's rules require (:func:`bnmf.pool_estimates`). The draws follow the predictive law of
        :meth:`Posterior.quantile` with noise: they are cut at zero.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows of the fitted data, or others.
        n_imputations : int, default=5
            Number of copies.
        random_state : int, RandomState, Generator or None, default=0
            Source of the choice of draws and of the noise.

        Returns
        -------
        ndarray of shape (n_imputations, n_samples, n_features) or list of DataFrame
            The copies, DataFrames if X is one.
        """
        check_is_fitted(self)
        if self._table is not None:
            table, posterior, _ = self._posterior_of(X)
        else:
            _, known, missing = self._parts(X)
            posterior = self.estimator_.posterior_of(known)
        W, _, noise = posterior.flat
        if whole_number(n_imputations, "n_imputations", 1) > len(W):
            raise ValueError(f"n_imputations must be at most the {len(W)} draws, got {n_imputations}")
        rng = as_generator(random_state)
        chosen = rng.permutation(len(W))[:n_imputations]
        if self._table is not None:
            return table.copies(X, posterior, self.keep_empty_features, chosen, rng)
        rows, columns = np.nonzero(missing)
        means = posterior.draws_of(rows, columns, noise=False).reshape(len(W), -1)[chosen]
        copies = np.repeat(known[None], n_imputations, axis=0)
        noise = noise.choose(chosen)
        copies[:, rows, columns] = predictions.add_noise(means, noise, rows, columns, posterior.lower_bound, rng)
        if isinstance(X, pd.DataFrame):
            return [self._like(X, self._with_empty(copy), self._names()) for copy in copies]
        return np.stack([self._with_empty(copy) for copy in copies])

    def fit_transform(self, X: Any, y: Any = None, *, lower: Any = None, upper: Any = None) -> Any:
        """Fit the model, and return X with its missing and limited entries filled.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            The data; NaN is missing.
        y : None
            Ignored.
        lower, upper : array-like, DataFrame, mapping or float, optional
            Limits of entries, as in :meth:`BayesianNMF.fit`.

        Returns
        -------
        ndarray or DataFrame
            As from :meth:`transform`.
        """
        return self.fit(X, lower=lower, upper=upper).transform(X, lower=lower, upper=upper)

    def _limits(self, lower: Any, upper: Any) -> dict[str, Any]:
        """Return limits in a form that does not need the names of the columns, which the estimator does not see."""
        names = getattr(self, "feature_names_in_", None)
        given = {"lower": lower, "upper": upper}
        return {
            name: by_column(limit, name, self.n_features_in_, names) if is_named(limit) else limit
            for name, limit in given.items()
        }

    def _of_known(self, limits: dict[str, Any]) -> dict[str, Any]:
        """Return the limits of the columns that the model has."""
        if self._known.all():
            return limits
        arrays = {name: None if limit is None else np.asarray(limit, float) for name, limit in limits.items()}
        return {
            name: limit[..., self._known] if limit is not None and limit.shape[-1:] == self._known.shape else limit
            for name, limit in arrays.items()
        }

    def _model(self) -> BayesianNMF:
        """Return an unfitted model."""
        model = BayesianNMF(**ANY_TABLE) if self.estimator is None else clone(self.estimator)
        names = ("n_components", "n_jobs", "random_state")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return model.set_params(**given)

    def _array(self, X: Any, *, reset: bool) -> Array:
        """Return X as an array with NaN for missing entries."""
        refuse_cluster(X)
        if isinstance(X, np.ma.MaskedArray):  # scikit-learn drops the mask
            X = as_floats(X)
        array = checked(self, X, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")
        if self.missing_values is not None and not np.isnan(self.missing_values):
            array = np.where(array == self.missing_values, np.array(np.nan, array.dtype), array)
        if np.any(array < 0) and not self._model().takes_negative:
            raise ValueError(
                f"Negative values in data passed to {type(self).__name__}: X must be nonnegative unless the estimator "
                "has offset='min' or a prior that allows it, such as 'normal'"
            )
        return array

    def _parts(self, X: Any) -> tuple[Array, Array, Bools]:
        """Return X as an array, its columns with an observed entry in the fit, and where these are missing."""
        array = self._array(X, reset=False)
        known = array[:, self._known]
        return array, known, np.isnan(known)

    def _with_empty(self, filled: Array) -> Array:
        """Return filled columns with those that had no observed entry in the fit, as zeros, if they are kept."""
        if not self.keep_empty_features or self._known.all():
            return filled
        out = np.zeros((len(filled), len(self._known)), filled.dtype)
        out[:, self._known] = filled
        return out

    def _like(self, X: Any, filled: Array, names: Array) -> Any:
        """Return a DataFrame if X is one."""
        return pd.DataFrame(filled, index=X.index, columns=names) if isinstance(X, pd.DataFrame) else filled

    def _names(self, input_features: Any = None) -> Array:
        """Return the names of the columns that are filled."""
        names = super().get_feature_names_out(input_features)
        if self._table is not None:
            return names[self._table.kept(self.keep_empty_features)]
        return names if self.keep_empty_features else names[self._known]

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the columns that :meth:`transform` gives.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns of X; those seen in fit by default.

        Returns
        -------
        ndarray of str
            Those that are filled, and those of the indicator columns.
        """
        names = self._names(input_features)
        if self.indicator_ is None:
            return names
        of_all = super().get_feature_names_out(input_features)
        return np.concatenate([names, self.indicator_.get_feature_names_out(of_all)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = not self._model().takes_negative
        tags.input_tags.allow_nan = True
        return tags


class PooledEstimate(NamedTuple):
    """An estimate from several completed tables, by Rubin's rules.

    Attributes
    ----------
    estimate, standard_error : ndarray
        Mean of the estimates, and its standard error: within tables, and between them.
    df : ndarray
        Degrees of freedom of Student's t for intervals; infinite if all tables give the same.
    missing_information : ndarray
        Share of the variance that is due to missing entries.
    """

    estimate: Array
    standard_error: Array
    df: Array
    missing_information: Array

    def interval(self, prob: float = 0.95) -> tuple[Array, Array]:
        """Return the ends of the confidence interval of this probability."""
        width = stats.t.ppf(0.5 + 0.5 * probability(prob, "prob"), self.df) * self.standard_error
        return self.estimate - width, self.estimate + width


def pool_estimates(estimates: Any, variances: Any) -> PooledEstimate:
    """Combine estimates from several completed tables by Rubin's rules.

    Parameters
    ----------
    estimates : array-like of shape (n_imputations, ...)
        An estimate from each completed table of :meth:`NMFImputer.multiple_imputations`: a mean, or coefficients of a
        regression.
    variances : array-like of the same shape
        Squared standard errors of the estimates.

    Returns
    -------
    PooledEstimate
        Estimate, standard error and degrees of freedom.

    Examples
    --------
    >>> pooled = pool_estimates([1.0, 1.2, 1.1], [0.04, 0.05, 0.045])
    >>> round(float(pooled.estimate), 2), round(float(pooled.standard_error), 3)
    (1.1, 0.242)
    """
    found, within = np.asarray(estimates, float), np.asarray(variances, float)
    if found.ndim == 0 or len(found) < 2:
        raise ValueError("estimates must hold at least two, one of each completed table")
    if within.shape != found.shape or not np.all(within >= 0):
        raise ValueError(
            f"variances must be nonnegative numbers of the shape of estimates, {found.shape}, got {within.shape}"
        )
    m = len(found)
    inside, between = within.mean(axis=0), (1.0 + 1.0 / m) * found.var(axis=0, ddof=1)
    total = inside + between
    with np.errstate(divide="ignore", invalid="ignore"):
        df = np.where(between > 0.0, (m - 1) * (total / between) ** 2, np.inf)
        share = np.where(total > 0.0, between / total, 0.0)
    return PooledEstimate(found.mean(axis=0), np.sqrt(total), df, share)
