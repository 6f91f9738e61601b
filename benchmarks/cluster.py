"""What a cluster costs and gives: ``python -m benchmarks.cluster [--part speed|memory] [--rows 20000 ...]``.

`speed` compares sweeps of a local cluster of two single-threaded processes with those of one thread in this process, in
turn, so that other load on the machine meets both, and counts what goes over the loopback interface in a sweep.
`memory` fits a matrix that is larger than the memory limit of a worker, and watches the workers.
"""

from __future__ import annotations

import argparse
import os
import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import dask.array as da
import numpy as np
import psutil
from dask.utils import parse_bytes
from distributed import Client, LocalCluster

from bnmf import BayesianNMF
from bnmf.data.observed import ObservedMatrix
from bnmf.distributed import ShardedMatrix
from bnmf.model.model import Model
from bnmf.model.units import units_of
from bnmf.sampler import gibbs
from bnmf.sampler.state import State
from bnmf.sampler.streams import Stream
from bnmf.sampler.threads import single_threaded_blas

RANK = 5
# Seconds between looks at the state of the workers.
SECONDS_BETWEEN_LOOKS = 0.2
N_WARM_UP = 2


def low_rank(n_rows: int, n_columns: int, missing: float) -> da.Array:
    """Return a matrix of low rank with noise and missing entries, which workers make chunk by chunk."""
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


@dataclass
class Chain:
    """A chain of the default model that is moved on sweep by sweep."""

    model: Model
    state: State
    seconds: list[float]

    @classmethod
    def of(cls, data: ObservedMatrix, n_components: int) -> Chain:
        units, shifted = units_of(data, "column", None)
        model = Model(shifted, n_components, "ard", "column", units)
        return cls(model, gibbs.start(model, Stream(0)), [])

    def sweep(self) -> None:
        began = time.perf_counter()
        self.state = gibbs.step(self.model, self.state, Stream(0))
        self.seconds.append(time.perf_counter() - began)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds[N_WARM_UP:])


def sent() -> int:
    """Return the bytes that processes of this machine have sent to each other over the network so far."""
    return psutil.net_io_counters(pernic=True)["lo"].bytes_sent


def speed(options: argparse.Namespace) -> None:
    """Compare sweeps, and count what is sent."""
    X = low_rank(options.rows, options.columns, options.missing)
    n_workers, k = options.workers, options.components
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", memory_limit="8GB") as cluster,
        Client(cluster),
        single_threaded_blas(),
    ):
        sharded = Chain.of(ShardedMatrix.from_dask(X), k)
        local = Chain.of(ObservedMatrix.from_data(X.compute()), k)
        pair = [Chain(sharded.model, sharded.state, []) for _ in range(2)]
        traffic, of_two = [], []
        for _ in range(options.sweeps + N_WARM_UP):
            local.sweep()
            before = sent()
            sharded.sweep()
            traffic.append(sent() - before)
            began = time.perf_counter()
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(Chain.sweep, pair))
            of_two.append((time.perf_counter() - began) / 2)
        before, began = sent(), time.perf_counter()
        time.sleep(2.0)
        idle = (sent() - before) / (time.perf_counter() - began)
        assert np.array_equal(local.state.W, sharded.state.W)
        blocks = [len(view.bounds) - 1 for view in sharded.model.data.shards]
    print(f"{options.rows:,} x {options.columns:,}, {options.missing:.0%} missing, K = {k}, {blocks} blocks")
    print(f"sweep of one thread in process: {local.median:.3f} s (fastest {min(local.seconds):.3f})")
    print(f"sweep of {n_workers} workers of one thread: {sharded.median:.3f} s (fastest {min(sharded.seconds):.3f})")
    print(f"the same with two chains side by side, per chain: {statistics.median(of_two[N_WARM_UP:]):.3f} s")
    for name, seconds in (("one chain", sharded.seconds), ("two chains", of_two)):
        ratios = [a / b for a, b in zip(local.seconds, seconds, strict=True)][N_WARM_UP:]
        fastest = min(local.seconds) / min(seconds)
        median = statistics.median(ratios)
        print(f"times as fast as one thread, {name}: {fastest:.2f} (fastest sweeps), {median:.2f} (median of pairs)")
    least = (n_workers + 1) * (options.rows + options.columns) * k * 8
    measured = statistics.median(traffic[N_WARM_UP:]) - idle * sharded.median
    print(f"sent in a sweep: {measured / 1e6:.1f} MB, {measured / least:.2f} times the least, {least / 1e6:.1f} MB")


@contextmanager
def watched(client: Client) -> Iterator[dict[str, set]]:
    """Record every state and process that workers are in, and their largest memory."""
    seen: dict[str, set] = {"states": set(), "processes": set(), "memory": {0}}
    over = threading.Event()

    def states(dask_scheduler) -> list:
        return [(worker.status.name, worker.memory.process) for worker in dask_scheduler.workers.values()]

    def look() -> None:
        while not over.wait(SECONDS_BETWEEN_LOOKS):
            for state, memory in client.run_on_scheduler(states):
                seen["states"].add(state)
                seen["memory"].add(memory)

    seen["processes"] |= set(client.run(os.getpid).values())
    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join()
    seen["processes"] |= set(client.run(os.getpid).values())


def memory(options: argparse.Namespace) -> None:
    """Fit a matrix that is larger than the memory of a worker."""
    limit = parse_bytes(options.limit)
    columns = options.columns
    rows = int(options.times * limit / 8 / columns)
    X = low_rank(rows, columns, options.missing)
    with (
        LocalCluster(
            n_workers=options.workers, threads_per_worker=1, dashboard_address=":0", memory_limit=limit
        ) as cluster,
        Client(cluster) as client,
        watched(client) as seen,
    ):
        began = time.perf_counter()
        model = BayesianNMF(options.components, n_chains=1, burn_in=2, n_draws=3, random_state=0)
        model.fit(X)
        seconds = time.perf_counter() - began
    print(
        f"{rows:,} x {columns:,} = {X.nbytes / 1e6:,.0f} MB on {options.workers} workers of {limit / 1e6:,.0f} MB each"
    )
    print(f"5 sweeps and everything before them: {seconds:.0f} s")
    print(f"states of workers: {sorted(seen['states'])}, restarts: {len(seen['processes']) - options.workers}")
    print(f"largest memory of a worker: {max(seen['memory']) / 1e6:,.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("speed", "memory"), default="speed")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=5_000)
    parser.add_argument("--components", type=int, default=20)
    parser.add_argument("--missing", type=float, default=0.2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--sweeps", type=int, default=10)
    parser.add_argument("--limit", default="1GB", help="memory of a worker, for `memory`")
    parser.add_argument("--times", type=float, default=1.2, help="size of the matrix in limits, for `memory`")
    options = parser.parse_args()
    {"speed": speed, "memory": memory}[options.part](options)


if __name__ == "__main__":
    main()
