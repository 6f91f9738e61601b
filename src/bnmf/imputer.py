"""NMFImputer: missing entries filled by their posterior mean, or by several draws."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.impute import MissingIndicator
from sklearn.utils.validation import check_is_fitted

from bnmf.data.containers import as_floats, refuse_sharded
from bnmf.data.limits import by_column, is_named
from bnmf.estimator import BayesianNMF, all_or_nothing, checked
from bnmf.posterior import predictions
from bnmf.utils.arguments import whole_number
from bnmf.utils.seeds import as_generator
from bnmf.utils.typing import Array

ANY_TABLE: dict[str, Any] = {"prior": ("ard", "normal"), "offset": "mean"}
"""Settings that fill tables of unlike columns best, chosen by ``python -m benchmarks.defaults``."""


class NMFImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fill missing entries of a table by Bayesian nonnegative matrix factorisation.

    By default the mean of each column is subtracted first, weights of rows are nonnegative and profiles of columns have
    both signs, each column has its own unit and noise, and superfluous components vanish. So any table of numbers can
    be filled, negative ones included. Nonnegative factors alone, ``BayesianNMF(offset="column")``, have parts that can
    be named, and larger errors on most tables.

    Parameters
    ----------
    estimator : BayesianNMF, optional
        The model; by default ``BayesianNMF(prior=("ard", "normal"), offset="mean")``.
    add_indicator : bool, default=False
        Append columns that tell which entries were missing, as scikit-learn's imputers do.
    random_state : int, RandomState, Generator or None, default=None
        An integer makes the draws reproducible. None leaves what the estimator has.

    Attributes
    ----------
    estimator_ : BayesianNMF
        The fitted model.
    indicator_ : MissingIndicator or None
        The transformer that makes the indicator columns.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.outer([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, 4.0])
    >>> X[2, 3] = np.nan
    >>> imputer = NMFImputer(BayesianNMF(1, random_state=0))
    >>> filled = imputer.fit_transform(X)
    >>> bool(abs(filled[2, 3] - 12.0) < 1.0)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [BayesianNMF, None],
        "add_indicator": ["boolean"],
        "random_state": "no_validation",
    }

    def __init__(
        self, estimator: BayesianNMF | None = None, *, add_indicator: bool = False, random_state: Any = None
    ) -> None:
        self.estimator = estimator
        self.add_indicator = add_indicator
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
            array = self._array(X, reset=True)
            model = self._model()
            if np.isnan(array).all():
                raise ValueError("X has no observed entry at all: there is nothing to learn from")
            self.estimator_ = model.fit(array, **self._limits(lower, upper))
            self.indicator_ = MissingIndicator(features="missing-only").fit(array) if self.add_indicator else None
        return self

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
        array = self._array(X, reset=False)
        filled, missing = array.copy(), np.isnan(array)
        if lower is not None or upper is not None:
            filled = self.estimator_.impute(array, **self._limits(lower, upper)).astype(array.dtype)
        elif missing.any():
            filled[missing] = self.estimator_.posterior_of(array).mean(*np.nonzero(missing))
        if self.indicator_ is not None:
            filled = np.hstack([filled, self.indicator_.transform(array).astype(filled.dtype)])
        if isinstance(X, pd.DataFrame):
            return pd.DataFrame(filled, index=X.index, columns=self.get_feature_names_out())
        return filled

    def multiple_imputations(self, X: Any, n_imputations: int = 5, *, random_state: Any = 0) -> Array:
        """Return several completed copies of X, each with its own draw of the missing entries.

        Each copy uses one draw of the factors and of the noise, so the differences between copies show the whole
        uncertainty, as Rubin's rules require. The draws follow the predictive law of :meth:`Posterior.quantile`
        with noise: they are cut at zero.

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
        ndarray of shape (n_imputations, n_samples, n_features)
            The copies.
        """
        check_is_fitted(self)
        array = self._array(X, reset=False)
        posterior = self.estimator_.posterior_of(array)
        W, _, noise = posterior.flat
        if whole_number(n_imputations, "n_imputations", 1) > len(W):
            raise ValueError(f"n_imputations must be at most the {len(W)} draws, got {n_imputations}")
        rng = as_generator(random_state)
        chosen = rng.permutation(len(W))[:n_imputations]
        rows, columns = np.nonzero(np.isnan(array))
        means = posterior.draws_of(rows, columns).reshape(len(W), -1)[chosen]
        out = np.repeat(array[None], n_imputations, axis=0)
        noise = noise.choose(chosen)
        out[:, rows, columns] = predictions.add_noise(means, noise, rows, columns, posterior.lower_bound, rng)
        return out

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

    def _model(self) -> BayesianNMF:
        """Return an unfitted model."""
        model = BayesianNMF(**ANY_TABLE) if self.estimator is None else clone(self.estimator)
        return model if self.random_state is None else model.set_params(random_state=self.random_state)

    def _array(self, X: Any, *, reset: bool) -> Array:
        refuse_sharded(X)
        if isinstance(X, np.ma.MaskedArray):  # scikit-learn drops the mask
            X = as_floats(X)
        array = checked(self, X, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")
        if np.any(array < 0) and not self._model().takes_negative:
            raise ValueError(
                f"Negative values in data passed to {type(self).__name__}: X must be nonnegative unless the estimator "
                "has offset='column' or a prior that allows it, such as 'normal'"
            )
        return array

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the columns that :meth:`transform` gives.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns of X; those seen in fit by default.

        Returns
        -------
        ndarray of str
            The same names, and those of the indicator columns.
        """
        names = super().get_feature_names_out(input_features)
        if self.indicator_ is None:
            return names
        return np.concatenate([names, self.indicator_.get_feature_names_out(names)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = not self._model().takes_negative
        tags.input_tags.allow_nan = True
        return tags
