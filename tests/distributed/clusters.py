"""What the tests of the cluster share: clusters on this machine, and data with a low-rank structure."""

import numpy as np
from distributed import LocalCluster


def start_cluster(n_workers, *, processes):
    """Return workers that are processes, or threads of this one that send each other the same messages."""
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=processes,
        protocol="tcp",
        dashboard_address=":0",
        memory_limit="1GB",
    )


def low_rank(shape=(700, 600), missing=0.0, seed=0):
    """Return a matrix of rank 3 with noise, of which a part is missing at random."""
    rng = np.random.default_rng(seed)
    X = rng.exponential(size=(shape[0], 3)) @ rng.exponential(size=(3, shape[1])) + 0.1 * rng.random(shape)
    X[rng.random(shape) < missing] = np.nan
    return X
