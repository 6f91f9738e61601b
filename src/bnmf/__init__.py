"""Bayesian nonnegative matrix factorisation of matrices with missing entries, with uncertainty for everything.

>>> from bnmf import BayesianNMF
>>> BayesianNMF(n_components=5, prior="gee")
BayesianNMF(n_components=5, prior='gee')
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bnmf.annotated import fit_anndata
    from bnmf.checking import check_table
    from bnmf.data.limits import limits
    from bnmf.estimator import BayesianNMF
    from bnmf.imputer import NMFImputer, pool_estimates
    from bnmf.posterior import Posterior
    from bnmf.selection import select_rank

__version__ = "0.1.0"
__all__ = [
    "BayesianNMF",
    "NMFImputer",
    "Posterior",
    "__version__",
    "check_table",
    "fit_anndata",
    "limits",
    "pool_estimates",
    "select_rank",
]

# Loaded on first use, so that `import bnmf` and the command line start quickly.
_MODULES = {
    "BayesianNMF": "bnmf.estimator",
    "NMFImputer": "bnmf.imputer",
    "Posterior": "bnmf.posterior",
    "check_table": "bnmf.checking",
    "fit_anndata": "bnmf.annotated",
    "limits": "bnmf.data.limits",
    "pool_estimates": "bnmf.imputer",
    "select_rank": "bnmf.selection",
}
_SUBMODULES = ("datasets", "distributed", "noise", "plots", "priors", "report", "tables")


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"bnmf.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module 'bnmf' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES])
