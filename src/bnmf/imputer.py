"""NMFImputer: missing entries filled by their posterior mean, or by several draws, and Rubin's rules for these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.impute import MissingIndicator
from sklearn.utils.validation import check_is_fitted, validate_data

from bnmf.columns import check_kind
from bnmf.estimator import BayesianNMF
from bnmf.inputs import all_or_nothing, checked, refuse_other_columns, refuse_other_labels, refuse_repeated
from bnmf.mixed import GivenTable, LearnedTable
from bnmf.utils.arguments import as_generator, numbers, probability, whole_number
from bnmf.utils.typing import Array

ANY_TABLE: dict[str, Any] = {"prior": ("ard", "normal"), "offset": "mean"}
"""Settings for tables of unlike columns, by ``python -m benchmarks.defaults``."""


class NMFImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fill missing entries of a table by Bayesian nonnegative matrix factorisation.

    By default the mean of each column is subtracted first, weights of rows are nonnegative and profiles of columns have
    both signs, each column has its own unit and noise, and superfluous components vanish. So any table of numbers can
    be filled, negative ones included. Nonnegative factors alone, ``BayesianNMF(offset="min")``, have parts that can
    be named, and larger errors on most tables.

    A DataFrame may also have columns of whole numbers, yes or no, categories and text. Their kinds come from the dtypes
    or from `kinds`, predictions are valid values of them, and the result has the same dtypes.

    Methods take the fitted rows or others, and limits of their entries as :meth:`fit` does. They return DataFrames for
    a DataFrame and arrays otherwise.

    Parameters
    ----------
    estimator : BayesianNMF, optional
        The model; by default ``BayesianNMF(prior=("ard", "normal"), offset="mean")``.
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
        "kinds": [Mapping, None],
        "ignore": ["array-like", None],
        "missing_values": [Real, None],
        "add_indicator": ["boolean"],
        "keep_empty_features": ["boolean"],
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
        model, kinds = self._model(), dict(self.kinds or {})
        model.check_parameters()
        if not model.keep_draws:
            raise ValueError("keep_draws of the estimator must be True: filling a table needs the draws")
        for name, kind in kinds.items():
            check_kind(name, kind)
        ignored = [] if self.ignore is None else list(self.ignore)
        if (kinds or ignored) and not isinstance(X, pd.DataFrame):
            name = "kinds" if kinds else "ignore"
            raise TypeError(f"{name} needs a DataFrame, whose columns have names, got {type(X).__name__}")
        with all_or_nothing(self):
            frame = self._frame(X, reset=True)
            if isinstance(X, pd.DataFrame):
                refuse_other_labels(X, lower=lower, upper=upper)
            given = GivenTable.of(frame, self.missing_values, lower, upper)
            self._table = LearnedTable(given, kinds, ignored, self.keep_empty_features)
            if not self._table.is_of_numbers and not model.takes_negative:
                raise ValueError(
                    "estimator must take negative numbers, as with offset='mean', if X has other columns than numbers: "
                    "categories are intervals of latent numbers of both signs"
                )
            values, low, high = self._table.encode(given)
            self.estimator_ = model.fit(
                values if isinstance(X, pd.DataFrame) else values.to_numpy(), lower=low, upper=high
            )
            self.indicator_ = None
            if self.add_indicator:
                self.indicator_ = MissingIndicator(features="missing-only").fit(given.gaps)
        return self

    def _frame(self, X: Any, *, reset: bool = False) -> pd.DataFrame:
        """Return X as a DataFrame, after scikit-learn's checks."""
        if isinstance(X, pd.DataFrame):
            refuse_repeated(X)
            validate_data(self, X, reset=reset, skip_check_array=True)
            if not X.shape[1]:
                raise ValueError(f"X must have at least one column, got shape {X.shape}")
            if not reset:
                refuse_other_columns(X, self._table.column_names)
            return X
        if not reset and not self.is_of_numbers:
            raise TypeError(f"X must be a DataFrame, as it was in fit, got {type(X).__name__}")
        return pd.DataFrame(
            checked(self, X, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")
        )

    def _read(self, X: Any, lower: Any = None, upper: Any = None) -> tuple[GivenTable, Any]:
        """Return a table with what is known of its entries, and the posterior of its rows."""
        check_is_fitted(self)
        if isinstance(X, pd.DataFrame):
            refuse_other_labels(X, lower=lower, upper=upper)
        given = GivenTable.of(self._frame(X), self.missing_values, lower, upper)
        values, low, high = self._table.encode(given)
        if not given.to_fill.any():
            return given, self.estimator_.posterior_
        names = hasattr(self.estimator_, "feature_names_in_")
        return given, self.estimator_.posterior_of(values if names else values.to_numpy(), lower=low, upper=high)

    def transform(self, X: Any, *, lower: Any = None, upper: Any = None) -> Any:
        """Return X with its missing entries filled by their posterior mean, and indicator columns if asked for.

        Entries that are only known to lie between limits are filled by the mean of their value, which is between them.
        Observed entries are returned bit for bit.
        """
        given, posterior = self._read(X, lower, upper)
        (filled,) = self._table.filled(given, posterior, lambda column, draws: column.predict(draws))
        if self.indicator_ is not None:
            shown = self.indicator_.transform(given.gaps)
            names = self.get_feature_names_out()[filled.shape[1] :]
            filled = pd.concat([filled, pd.DataFrame(shown, index=filled.index, columns=names)], axis=1)
        return _like(X, filled)

    def interval(self, X: Any, prob: float = 0.9, *, lower: Any = None, upper: Any = None) -> tuple[Any, Any]:
        """Return the lower and upper ends of central intervals of probability `prob`.

        They are those of missing entries and of those between limits; both are the entry itself where it was observed.
        Categories without an order have no interval, so their ends are missing: see :meth:`probabilities`.
        """
        probability(prob, "prob")
        given, posterior = self._read(X, lower, upper)
        low, high = self._table.filled(given, posterior, lambda column, draws: column.ends(draws, prob), 2)
        return _like(X, low), _like(X, high)

    def probabilities(self, X: Any) -> dict[Any, pd.DataFrame]:
        """Return the probabilities of the categories of each column of categories, ordered, binary or not, by its name.

        A table has a row for each row of X, and a column for each category. Where X was observed there are 0 and 1, or
        NaN for a category that was not there in :meth:`fit`.
        """
        return self._table.probabilities(*self._read(X))

    def multiple_imputations(
        self, X: Any, n_imputations: int = 5, *, lower: Any = None, upper: Any = None, random_state: Any = None
    ) -> Any:
        """Return a list of DataFrames, or an array of completed copies of X, each with other draws of missing entries.

        Each copy uses one draw of the factors and of the noise, so the differences between copies show the whole
        uncertainty, as Rubin's rules require (:func:`bnmf.pool_estimates`). The draws follow the predictive law of
        :meth:`Posterior.quantile` with noise: they are cut at zero. An integer `random_state` makes them reproducible.
        """
        check_is_fitted(self)
        n_draws = self.estimator_.posterior_.n_chains * self.estimator_.posterior_.n_draws
        if whole_number(n_imputations, "n_imputations", 1) > n_draws:
            raise ValueError(f"n_imputations must be at most the {n_draws} draws, got {n_imputations}")
        rng = as_generator(random_state)
        given, posterior = self._read(X, lower, upper)
        chosen = rng.permutation(n_draws)[:n_imputations]
        copies = self._table.filled(
            given, posterior, lambda column, draws: column.draw(draws, rng), n_imputations, chosen
        )
        found = [_like(X, copy) for copy in copies]
        return found if isinstance(X, pd.DataFrame) else np.stack(found)

    def fit_transform(self, X: Any, y: Any = None, **limits: Any) -> Any:
        """Fit the model, and return X with its missing and limited entries filled as :meth:`transform` does."""
        return self.fit(X, **limits).transform(X, **limits)

    @property
    def is_of_numbers(self) -> bool:
        """Whether all columns that were learned are numbers to the model, and none are intervals of latent numbers."""
        check_is_fitted(self)
        return self._table.is_of_numbers

    def _model(self) -> BayesianNMF:
        """Return an unfitted model."""
        model = BayesianNMF(**ANY_TABLE) if self.estimator is None else clone(self.estimator)
        names = ("n_components", "n_jobs", "random_state")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return model.set_params(**given)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the columns that :meth:`transform` gives: those filled, and those of the indicator."""
        names = super().get_feature_names_out(input_features)
        of_indicator = [] if self.indicator_ is None else self.indicator_.get_feature_names_out(names)
        return np.concatenate([names[self._table.is_kept], of_indicator])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = not self._model().takes_negative
        tags.input_tags.allow_nan = True
        return tags


def _like(X: Any, filled: pd.DataFrame) -> Any:
    """Return a completed table as a DataFrame if X is one, and as an array otherwise."""
    return filled if isinstance(X, pd.DataFrame) else filled.to_numpy(filled.dtypes.iloc[0])


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
        """Return the lower and upper ends of the confidence interval of probability `prob`."""
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
    found, within = numbers(estimates, "estimates"), numbers(variances, "variances")
    if found.ndim == 0 or len(found) < 2:
        raise ValueError("estimates must hold at least two, one of each completed table")
    if within.shape != found.shape:
        raise ValueError(f"variances must have the shape of estimates, {found.shape}, got {within.shape}")
    for given, name, lowest in ((found, "estimates", -np.inf), (within, "variances", 0.0)):
        wrong = given[~np.isfinite(given) | (given < lowest)]
        if wrong.size:
            raise ValueError(f"{name} must be {'nonnegative and ' * (lowest == 0.0)}finite, got {wrong[0]:g}")
    m = len(found)
    inside, between = within.mean(axis=0), (1.0 + 1.0 / m) * found.var(axis=0, ddof=1)
    total = inside + between
    with np.errstate(divide="ignore", invalid="ignore"):
        df = np.where(between > 0.0, (m - 1) * (total / between) ** 2, np.inf)
        share = np.where(total > 0.0, between / total, 0.0)
    return PooledEstimate(found.mean(axis=0), np.sqrt(total), df, share)
