"""Real tables that come with installed packages, and the paper's two data sets where they are found."""

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

# Rows of a longer table that are used, chosen at random once.
MAX_ROWS = 600

SCIKIT_LEARN = ("breast_cancer", "diabetes", "digits", "iris", "wine")
STATSMODELS = (
    "anes96", "ccard", "danish_data", "elnino", "fair", "fertility", "grunfeld", "longley", "macrodata", "modechoice",
    "randhie", "scotland", "star98", "statecrime",
)  # fmt: skip


def load_tables(data_dir: Path | None = None) -> dict[str, np.ndarray]:
    """Return all tables by name, with NaN for missing entries.

    Columns that are constant, or observed fewer than five times, are dropped.
    """
    tables = {name: _scikit_learn(name) for name in SCIKIT_LEARN} | {name: _statsmodels(name) for name in STATSMODELS}
    if data_dir is not None:
        tables |= {"GDSC": _gdsc(data_dir), "methylation": _methylation(data_dir)}
    return {name: _prepared(X) for name, X in tables.items()}


def _scikit_learn(name: str) -> np.ndarray:
    from sklearn import datasets

    load: Callable = getattr(datasets, f"load_{name}")
    return load().data


def _statsmodels(name: str) -> np.ndarray:
    from importlib import import_module

    with warnings.catch_warnings(action="ignore"):
        frame = import_module(f"statsmodels.datasets.{name}").load_pandas().data
    return frame.select_dtypes("number").to_numpy(float)


def _gdsc(data_dir: Path) -> np.ndarray:
    from bnmf.datasets import fetch_gdsc_ic50

    return fetch_gdsc_ic50(data_home=data_dir, download_if_missing=False).data.to_numpy(float)


def _methylation(data_dir: Path) -> np.ndarray:
    from bnmf.datasets import fetch_gene_body_methylation

    return fetch_gene_body_methylation(data_home=data_dir, download_if_missing=False).data.to_numpy(float)


def _prepared(X: np.ndarray) -> np.ndarray:
    if len(X) > 2 * MAX_ROWS:
        X = X[np.sort(np.random.default_rng(0).choice(len(X), MAX_ROWS, replace=False))]
    X = X[:, (~np.isnan(X)).sum(axis=0) >= 5]
    return X[:, np.nanmax(X, axis=0) > np.nanmin(X, axis=0)]
