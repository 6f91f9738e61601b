"""Implementations: classes created with a matrix, a rank and a number of threads; `measure(n)` times n iterations.

A module is imported only by the worker that runs it, so a peer that is not installed does not affect the others.
"""

from importlib import import_module
from typing import Any

# Module and class, and the package on PyPI that is required in addition to the dependencies of bnmf.
PEERS = {
    "bnmf": ("ours:Sweeps", None),
    "bnmf-fastest": ("fastest:FastestSweep", None),
    "bnmf-chains": ("ours:Chains", None),
    "bnmf-ess": ("ours:Effective", None),
    "reference": ("algorithm1:Reference", None),
    "sklearn": ("sklearn_nmf:ScikitLearn", None),
    "smurff": ("smurff_bpmf:Smurff", "smurff"),
    "numpyro": ("numpyro_nuts:Nuts", "numpyro"),
}


def find(name: str) -> Any:
    """Return the class of an implementation."""
    module, attribute = PEERS[name][0].split(":")
    return getattr(import_module(f"benchmarks.peers.{module}"), attribute)
