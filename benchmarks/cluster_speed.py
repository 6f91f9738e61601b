"""How fast a local cluster of single-threaded processes is, and what goes over the network in a sweep.

Sweeps of the cluster, of one thread in this process and of as many threads as there are workers are taken in turn, so
that other load on the machine meets all of them. What goes over the loopback interface is counted.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from dataclasses import dataclass, field

import numpy as np
import psutil
from distributed import Client, LocalCluster

from benchmarks.cluster import low_rank
from bnmf.data.observed import ObservedMatrix
from bnmf.distributed.sharded import ShardedMatrix
from bnmf.model.model import Model
from bnmf.model.units import units_of
from bnmf.sampler import gibbs
from bnmf.sampler.gibbs import State
from bnmf.sampler.streams import Stream
from bnmf.sampler.threads import Workers, single_threaded_blas

N_WARM_UP = 2


@dataclass
class Chain:
    """A chain of the default model that is moved on sweep by sweep."""

    model: Model
    state: State
    processes: list[psutil.Process]
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, data: ObservedMatrix, n_components: int, processes: list[psutil.Process]) -> Chain:
        units, shifted = units_of(data, "column", None)
        model = Model(shifted, n_components, "ard", "column", units)
        return cls(model, gibbs.start(model, Stream(0)), processes)

    def sweep(self, workers: Workers | None = None) -> None:
        began, used = time.perf_counter(), cpu_seconds(self.processes)
        self.state = gibbs.step(self.model, self.state, Stream(0), workers)
        self.seconds.append(time.perf_counter() - began)
        self.cpu_seconds.append(cpu_seconds(self.processes) - used)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds[N_WARM_UP:])

    @property
    def fastest(self) -> float:
        return min(self.seconds[N_WARM_UP:])

    def times_as_fast_as(self, other: Chain) -> str:
        ratios = [a / b for a, b in zip(other.seconds, self.seconds, strict=True)][N_WARM_UP:]
        fastest, median = other.fastest / self.fastest, statistics.median(ratios)
        return f"{fastest:.2f} (fastest sweeps), {median:.2f} (median of pairs)"


def cpu_seconds(processes: list[psutil.Process]) -> float:
    """Return the processor time that some processes have used so far."""
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def sent() -> int:
    """Return the bytes that processes of this machine have sent to each other over the network so far."""
    return psutil.net_io_counters(pernic=True)["lo"].bytes_sent


def measure(options: argparse.Namespace) -> None:
    """Compare sweeps, and count what is sent."""
    X = low_rank(options.rows, options.columns, options.missing)
    n_workers, k = options.workers, options.components
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", memory_limit="8GB") as cluster,
        Client(cluster) as client,
        single_threaded_blas(),
        Workers(n_workers) as threads,
    ):
        here = [psutil.Process()]
        sharded = Chain.of(
            ShardedMatrix.from_dask(X), k, here + [psutil.Process(pid) for pid in client.run(os.getpid).values()]
        )
        local = Chain.of(ObservedMatrix.from_data(X.compute()), k, here)
        threaded = Chain(local.model, local.state, here)
        traffic = []
        for _ in range(options.sweeps + N_WARM_UP):
            local.sweep()
            before = sent()
            sharded.sweep()
            traffic.append(sent() - before)
            threaded.sweep(threads)
        before, began = sent(), time.perf_counter()
        time.sleep(2.0)
        idle = (sent() - before) / (time.perf_counter() - began)
        assert np.array_equal(local.state.W, sharded.state.W)
        blocks = [len(view.bounds) - 1 for view in (sharded.model.data.rows, sharded.model.data.columns)]
    print(f"{options.rows:,} x {options.columns:,}, {options.missing:.0%} missing, K = {k}, {blocks} blocks")
    chains = {f"{n_workers} workers of one thread": sharded, f"{n_workers} threads in process": threaded}
    for name, chain in {"one thread in process": local, **chains}.items():
        print(f"sweep of {name}: {chain.median:.3f} s (fastest {chain.fastest:.3f})")
    for name, chain in chains.items():
        used = min(chain.cpu_seconds[N_WARM_UP:]) / min(local.cpu_seconds[N_WARM_UP:])
        print(f"{name}, times as fast as one thread: {chain.times_as_fast_as(local)}; {used:.2f} times its CPU time")
    print(f"workers, times as fast as threads: {sharded.times_as_fast_as(threaded)}")
    least = (n_workers + 1) * (options.rows + options.columns) * k * 8
    measured = statistics.median(traffic[N_WARM_UP:]) - idle * sharded.median
    print(f"sent in a sweep: {measured / 1e6:.1f} MB, {measured / least:.2f} times the least, {least / 1e6:.1f} MB")
