"""Seconds of importing bnmf and of a first fit, in a fresh process: ``python -m benchmarks.startup``."""

import json
import time


def measure() -> dict[str, float]:
    """Import, fit four rows, and tell how long each took."""
    began = time.perf_counter()
    import bnmf

    imported = time.perf_counter()
    import numpy as np

    X = np.arange(12.0).reshape(4, 3)
    X[0, 0] = np.nan
    bnmf.BayesianNMF(2, n_chains=1, burn_in=2, n_draws=8, random_state=0).fit(X)
    return {"import": imported - began, "first fit": time.perf_counter() - imported}


if __name__ == "__main__":
    print(json.dumps(measure()))
