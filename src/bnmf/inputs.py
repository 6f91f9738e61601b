"""What a fit accepts: X and all that goes with it, after scikit-learn's checks, in the form of the sampler."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from bnmf.data.containers import as_floats, check_positions, refuse_dates, refuse_padding
from bnmf.data.observed import ObservedMatrix
from bnmf.distributed import is_on_cluster, load, refuse_cluster

if TYPE_CHECKING:
    from bnmf.estimator import BayesianNMF


@dataclass(frozen=True)
class Named:
    """A matrix with names, which a sparse one cannot have otherwise."""

    matrix: Any
    row_names: pd.Index | None
    column_names: pd.Index | None


@contextmanager
def all_or_nothing(estimator: BaseEstimator) -> Iterator[None]:
    """Leave an estimator as it was before if a block ends with an error or with Ctrl-C."""
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def checked(estimator: BaseEstimator, X: Any, **options: Any) -> Any:
    """Return X after scikit-learn's checks, whose errors do not always say that they are about X."""
    refuse_cluster(X)
    if not sp.issparse(X):
        refuse_dates(X)
    if isinstance(X, pd.DataFrame):
        refuse_repeated(X)
    if isinstance(X, np.ma.MaskedArray):  # scikit-learn drops the mask
        X = as_floats(X)
    try:
        return validate_data(estimator, X, **options)
    except (TypeError, ValueError) as error:
        if re.search(r"\bX\b", str(error)):
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"X must be a matrix of numbers: {error}") from error


def refuse_repeated(X: pd.DataFrame) -> None:
    """Raise an error if a name of a column occurs twice."""
    twice = X.columns[X.columns.duplicated()]
    if len(twice):
        raise ValueError(f"X must have a different name for each column, got {twice[0]!r} more than once")


def refuse_other_columns(X: pd.DataFrame, fitted: pd.Index | None) -> None:
    """Raise an error if columns are not those of the fit, in their order; columns 0, 1, ... stand for any names."""
    own, numbered = X.columns, pd.RangeIndex(X.shape[1])
    fitted = numbered if fitted is None else fitted
    is_named = not own.equals(numbered) and not fitted.equals(numbered)
    if not own.equals(fitted) and (is_named or set(own) == set(fitted)):
        raise ValueError("X must have the columns of the fit, in their order")


def refuse_other_labels(X: pd.DataFrame, **given: Any) -> None:
    """Raise an error if a DataFrame of X's shape has other labels than X: entries are matched by position."""
    for name, frame in given.items():
        if isinstance(frame, pd.DataFrame) and frame.shape == X.shape:
            for axis, labels, own in (("rows", frame.index, X.index), ("columns", frame.columns, X.columns)):
                if not labels.equals(own):
                    raise ValueError(f"{name} must have the {axis} of X, in their order")


def in_memory(
    model: BayesianNMF, X: Any, observed: Any = None, lower: Any = None, upper: Any = None, *, reset: bool = False
) -> ObservedMatrix:
    """Return data in memory: those of a fit if `reset`, which sets the number and names of columns, else other rows."""
    if type(X).__name__ == "AnnData":  # which need not be installed
        X = Named(X.X, X.obs_names, X.var_names) if sp.issparse(X.X) else X.to_df()
    given = X if isinstance(X, Named) else None
    X = X if given is None else given.matrix
    names = X.index if isinstance(X, pd.DataFrame) else None
    if sp.issparse(X):
        check_positions(X)
        if model.unstored == "missing":  # other formats tell what was observed, and scikit-learn makes them
            refuse_padding(X)
    # Entries that were not observed may be anything, infinities included, so only the others are checked.
    finite: Any = "allow-nan" if observed is None else False
    array: Any = checked(
        model, X, reset=reset, accept_sparse=["csr", "csc", "coo"], dtype=np.float64, ensure_all_finite=finite
    )
    columns: Any = pd.Index(model.feature_names_in_) if hasattr(model, "feature_names_in_") else None
    if isinstance(X, pd.DataFrame):
        refuse_other_labels(X, observed=observed, lower=lower, upper=upper)
        if not X.columns.equals(pd.RangeIndex(X.shape[1])):  # scikit-learn keeps names that are strings only
            columns = X.columns
        if not reset:
            refuse_other_columns(X, getattr(getattr(model, "data_", None), "column_names", None))
    if given is not None:
        names, columns = given.row_names, given.column_names
    limits: dict[str, Any] = {"lower": lower, "upper": upper, "names": columns}
    options: dict[str, Any] = {"unstored": model.unstored, "negative": model.takes_negative, "empty": not reset}
    data = ObservedMatrix.from_data(array, observed, **limits, **options)
    return replace(data, row_names=names, column_names=columns)


def of_fit(model: BayesianNMF, X: Any, observed: Any, lower: Any, upper: Any) -> ObservedMatrix:
    """Return the data of a fit, in memory or on a cluster."""
    if not is_on_cluster(X):
        return in_memory(model, X, observed, lower, upper, reset=True)
    if observed is not None:
        raise ValueError("observed is for data in memory: data on a cluster have NaN where an entry is missing")
    data = load(X, lower=lower, upper=upper, unstored=model.unstored, negative=model.takes_negative)
    model.n_features_in_ = data.shape[1]
    if hasattr(model, "feature_names_in_"):
        del model.feature_names_in_
    return data
