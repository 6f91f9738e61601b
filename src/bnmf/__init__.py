"""Bayesian nonnegative matrix factorisation of matrices with holes, with the uncertainty of everything.

>>> from bnmf import BayesianNMF
>>> BayesianNMF(n_components=5, prior="gee")
BayesianNMF(n_components=5, prior='gee')
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bnmf.estimator import BayesianNMF
    from bnmf.imputer import NMFImputer
    from bnmf.posterior import Posterior
    from bnmf.selection import select_rank

__version__ = "0.1.0"
__all__ = ["BayesianNMF", "NMFImputer", "Posterior", "__version__", "select_rank"]

# Loaded when first asked for, so that `import bnmf` and the command line start at once.
_HOMES = {
    "BayesianNMF": "bnmf.estimator",
    "NMFImputer": "bnmf.imputer",
    "Posterior": "bnmf.posterior",
    "select_rank": "bnmf.selection",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bnmf' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
