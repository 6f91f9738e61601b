"""Peak memory of sampling, in a process that does nothing else: ``python -m benchmarks.memory DIRECTORY DATA RANK``."""

import json
import resource
import sys
from pathlib import Path

import numpy as np

from benchmarks.data import load
from benchmarks.peers.ours import Chain, model_of


def peak_bytes() -> int:
    """Return the most memory that this process ever had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def measure(directory: Path, data: str, rank: int) -> dict[str, float]:
    """Load a sparse matrix, sweep a few times, and return the peak above what was there before the data."""
    Chain(model_of(np.ones((4, 3)), 2), 0, 1).sweep(2)  # the code and what compiling takes belong to the baseline
    before = peak_bytes()
    X = load(data, directory)
    Chain(model_of(X, rank), 0, 1).sweep(3)
    own = sum(part.nbytes for part in (X.data, X.indices, X.indptr))
    return {"peak": peak_bytes() - before, "before": before, "input": own}


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))))
