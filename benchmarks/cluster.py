"""What a cluster costs and gives: ``python -m benchmarks.cluster [--part speed|memory] [--workers 2 ...]``.

Workers of a local cluster load this module again. It imports little, so that they have no more in memory than those of
a real one.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import dask.array as da

RANK = 5


def low_rank(n_rows: int, n_columns: int, missing: float) -> da.Array:
    """Return a matrix of low rank with noise and missing entries, which workers make chunk by chunk."""
    import dask.array as da

    Z = np.random.default_rng(1).exponential(size=(RANK, n_columns))
    rows_per_chunk = max(1, 2**20 // n_columns)

    def make(block_info: dict) -> np.ndarray:
        (start, stop), _ = block_info[None]["array-location"]
        rng = np.random.default_rng([2, start])
        X = rng.exponential(size=(stop - start, RANK)) @ Z + 0.1 * rng.random((stop - start, n_columns))
        X[rng.random(X.shape) < missing] = np.nan
        return X

    chunks = da.core.normalize_chunks((rows_per_chunk, n_columns), shape=(n_rows, n_columns))
    return da.map_blocks(make, chunks=chunks, dtype=np.float64, meta=np.empty((0, 0)))


def without_xarray() -> None:
    """Let a worker find no xarray, which is no requirement of bnmf: dask.array would load it, and pandas with it."""
    sys.modules.setdefault("xarray", None)  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("speed", "memory"), default="speed")
    parser.add_argument("--rows", type=int, default=20_000, help="for `speed`")
    parser.add_argument("--columns", type=int, default=5_000, help="for `speed`")
    parser.add_argument("--components", type=int, default=20)
    parser.add_argument("--missing", type=float, default=0.2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--sweeps", type=int, default=10, help="for `speed`")
    parser.add_argument("--limit", default="400MB", help="memory of a worker, for `memory`")
    parser.add_argument("--times", type=float, default=1.2, help="size of the matrix in limits, for `memory`")
    options = parser.parse_args()
    import_module(f"benchmarks.cluster_{options.part}").measure(options)


if __name__ == "__main__":
    main()
