"""Time of importing bnmf and of a first fit, in a new process: ``python -m benchmarks.startup``."""

import json
import time


def measure() -> dict[str, float]:
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


if __name__ == "__main__":
    print(json.dumps(measure()))
