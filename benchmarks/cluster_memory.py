"""A fit of a matrix that is larger than the memory limit of a worker, and what becomes of the workers.

Dask pauses a worker at 80% of its limit and restarts it at 95%. It looks every 100 ms, so that blocks which are read
back from disk one after the other may fill its memory meanwhile; a low target, which it compares with the blocks alone
at every step, prevents that.
"""

from __future__ import annotations

import argparse
import math
import os
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import dask
import psutil
from dask.utils import parse_bytes
from distributed import Client, LocalCluster
from sklearn.exceptions import ConvergenceWarning

from benchmarks.cluster import low_rank, without_xarray
from bnmf import BayesianNMF

# Part of the limit of a worker that blocks may take in memory; the others are on its disk.
TARGET = 0.1
SECONDS_BETWEEN_LOOKS = 0.02


def measure(options: argparse.Namespace) -> None:
    """Fit a square matrix, whose blocks of rows and of columns have the same size, and print what was seen."""
    limit = parse_bytes(options.limit)
    side = math.ceil(math.sqrt(options.times * limit / 8))
    X = low_rank(side, side, options.missing)
    model = BayesianNMF(options.components, n_chains=1, burn_in=2, n_draws=3, random_state=0)
    warnings.simplefilter("ignore", ConvergenceWarning)
    with (
        dask.config.set({"distributed.worker.memory.target": TARGET}),
        LocalCluster(
            n_workers=options.workers, threads_per_worker=1, dashboard_address=":0", memory_limit=limit
        ) as cluster,
        Client(cluster) as client,
    ):
        client.run(without_xarray)
        with watched(client) as seen:
            began = time.perf_counter()
            model.fit(X)
            seconds = time.perf_counter() - began
    print(f"{side:,} x {side:,} = {X.nbytes / 1e6:,.0f} MB, {options.missing:.0%} missing, K = {options.components}")
    print(f"{options.workers} workers of {limit / 1e6:,.0f} MB each; 5 sweeps and all before them: {seconds:.0f} s")
    print(f"largest memory of a worker: {seen.largest / 1e6:,.0f} MB, {seen.largest / limit:.0%} of its limit")
    print(f"workers were paused {seen.n_pauses} times, and {seen.n_lost} of them were restarted")


class Seen:
    """What became of the workers."""

    largest: int = 0
    n_pauses: int = 0
    n_lost: int = 0


@contextmanager
def watched(client: Client) -> Iterator[Seen]:
    """Record the largest memory of the workers; at the end, count how often they were paused and restarted."""
    seen, over = Seen(), threading.Event()
    processes = {address: psutil.Process(pid) for address, pid in client.run(os.getpid).items()}

    def look() -> None:
        while not over.wait(SECONDS_BETWEEN_LOOKS):
            for process in processes.values():
                with suppress(psutil.NoSuchProcess):
                    seen.largest = max(seen.largest, process.memory_info().rss)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join()
    seen.n_lost = sum(not process.is_running() for process in processes.values())
    for address in processes:
        events = [event for _, event in client.get_events(address)]
        seen.n_pauses += sum(event.get("status") == "paused" for event in events)
