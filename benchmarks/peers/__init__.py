"""Implementations: classes created with a matrix, a rank and a number of threads; `measure(n)` times n iterations.

Libraries are imported only by the worker that runs them, so a peer that is not installed does not affect the others.
"""

from importlib import import_module
from typing import Any

# Module and class, and the package on PyPI that is required in addition to the dependencies of bnmf.
PEERS = {
    "bnmf": ("ours:Sweeps", None),
    "bnmf-fastest": ("ours:FastestSweep", None),
    "bnmf-chains": ("ours:Chains", None),
    "bnmf-ess": ("ours:Effective", None),
    "reference": ("others:Reference", None),
    "sklearn": ("others:ScikitLearn", None),
    "smurff": ("others:Smurff", "smurff"),
    "numpyro": ("others:Nuts", "numpyro"),
}


def find(name: str) -> Any:
    """Return the class of an implementation."""
    module, attribute = PEERS[name][0].split(":")
    return getattr(import_module(f"benchmarks.peers.{module}"), attribute)
