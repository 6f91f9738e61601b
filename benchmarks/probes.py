"""Measurements that need a new process each time: start-up, and peak memory.

``python -m benchmarks.probes first_fit`` and ``python -m benchmarks.probes peak_memory DIRECTORY DATA RANK``
"""

import json
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.client import PeerError
from benchmarks.environment import ROOT, python, variables


def run(*command: str) -> tuple[float, str]:
    """Run the environment's Python with arguments, and return the seconds and the last line it printed."""
    began = time.perf_counter()
    done = subprocess.run([python(), *command], cwd=ROOT, env=variables(), capture_output=True, text=True)
    seconds = time.perf_counter() - began
    if done.returncode:
        raise PeerError((done.stderr.strip().splitlines() or ["failed without a message"])[-1])
    return seconds, (done.stdout.strip().splitlines() or [""])[-1]


def asked(probe: str, *arguments: str) -> dict[str, float]:
    """Return what a function of this module finds in a new process, with the seconds of the `process`."""
    seconds, answer = run("-m", "benchmarks.probes", probe, *arguments)
    return {**json.loads(answer), "process": seconds}


def first_fit() -> dict[str, float]:
    """Import bnmf, fit a 50 x 20 matrix, and return the seconds of each."""
    began = time.perf_counter()
    import bnmf

    imported = time.perf_counter()
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.exponential(size=(50, 20))
    X[rng.random(X.shape) < 0.2] = np.nan
    bnmf.BayesianNMF(2, n_chains=1, burn_in=2, n_draws=8, random_state=0).fit(X)
    return {"import": imported - began, "first fit": time.perf_counter() - imported}


def peak_memory(directory: str, data: str, rank: str) -> dict[str, float]:
    """Load a sparse matrix, run a few sweeps, and return the peak memory above the baseline, in bytes."""
    import numpy as np
    import scipy.sparse as sp

    from benchmarks.matrices import load
    from benchmarks.peers.ours import Chain, model_of
    from bnmf.sampler.moves import MIXING

    # Code is part of the baseline: a small matrix that is drawn by the same kernels.
    Chain(model_of(sp.csr_array(np.eye(40)), 2), moves=MIXING).sweep(2)
    before = _peak_bytes()
    X = load(data, Path(directory))
    Chain(model_of(X, int(rank)), moves=MIXING).sweep(3)
    input_bytes = sum(part.nbytes for part in (X.data, X.indices, X.indptr))
    return {"peak": _peak_bytes() - before, "before": before, "input": input_bytes}


def _peak_bytes() -> int:
    """Return the peak resident memory of this process."""
    import resource  # not on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    print(json.dumps({"first_fit": first_fit, "peak_memory": peak_memory}[sys.argv[1]](*sys.argv[2:])))
