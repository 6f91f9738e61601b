"""Peak memory of sampling, in its own process: ``python -m benchmarks.peak_memory DIRECTORY DATA RANK``."""

import json
import resource
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks.matrices import load
from benchmarks.peers.ours import Chain, model_of
from bnmf.sampler.moves import MIXING


def peak_bytes() -> int:
    """Return the peak resident memory of this process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def measure(directory: Path, data: str, rank: int) -> dict[str, float]:
    """Load a sparse matrix, run a few sweeps, and return the peak memory above the baseline, in bytes."""
    # Code is part of the baseline: a small matrix that is drawn by the same kernels.
    Chain(model_of(sp.csr_array(np.eye(40)), 2), 0, 1, MIXING).sweep(2)
    before = peak_bytes()
    X = load(data, directory)
    Chain(model_of(X, rank), 0, 1, MIXING).sweep(3)
    input_bytes = sum(part.nbytes for part in (X.data, X.indices, X.indptr))
    return {"peak": peak_bytes() - before, "before": before, "input": input_bytes}


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))))
