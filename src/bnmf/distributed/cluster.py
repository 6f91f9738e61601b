"""Work on blocks that are kept on the workers of a cluster, and its recovery from what happens to clusters.

The state of every chain is with the client and a half-sweep is a pure function of it, so whatever was lost is simply
run again. Blocks are made again from their source.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import math
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from dask.delayed import Delayed
from distributed import Client, Future, KilledWorker, wait
from distributed.client import ClosedClientError
from distributed.comm import connect
from distributed.scheduler import NoValidWorkerError, NoWorkerError

T = TypeVar("T")
Placed = list[tuple[Future, str]]
"""Blocks or what is made of them, and the worker of each."""

# Seconds without any worker, or without a connection, after which a run stops.
MAX_SECONDS_WITHOUT_WORKERS = 60.0
# Seconds in which a scheduler must answer.
CONNECTION_SECONDS = 20.0
# Times that a piece of work is lost, with workers there, after which the run stops.
MAX_LOSSES = 10
# Seconds before work is run again that was lost twice, and how much longer each time after that.
SECONDS_BETWEEN_LOSSES = 0.1
# Size of a block, in parts of the memory that a thread of a worker may use: making one takes a few times its size.
BLOCKS_IN_MEMORY = 32
# Largest size of a block in bytes that is aimed at.
MAX_BLOCK_BYTES = 2**28
# Seconds between looks at the workers while results are awaited.
SECONDS_BETWEEN_LOOKS = 2.0
# Seconds in which a worker must answer the client; Dask would wait half a minute for one that was killed.
SECONDS_TO_REACH = 5.0
# States of futures that will have no value.
LOST = ("cancelled", "lost", "error")
# Errors of tasks whose worker is gone.
LOST_TASKS = (concurrent.futures.CancelledError, KilledWorker, NoValidWorkerError, NoWorkerError)
# Errors of a connection or of a worker, after which work is run again.
LOSSES = (
    *LOST_TASKS,
    asyncio.CancelledError,
    ClosedClientError,
    OSError,  # which includes closed connections and timeouts
)


@contextmanager
def connected(address: str) -> Iterator[int]:
    """Connect to a scheduler, and yield the number of threads of its workers."""
    try:
        client = Client(address, timeout=CONNECTION_SECONDS)
    except (OSError, ValueError) as error:
        raise ValueError(f"there is no Dask scheduler at {address}: {error}") from error
    with client:
        yield sum(client.nthreads().values())


class ClusterLost(RuntimeError):
    """A cluster has no workers, or it loses them again and again."""


class Blocks:
    """Blocks of rows on the workers, made when they are needed first and made again when they were lost."""

    def __init__(self, cluster: Cluster, recipes: list[Delayed]) -> None:
        self.cluster, self.recipes = cluster, recipes
        self.release()

    def release(self) -> None:
        """Let the cluster forget the blocks."""
        self._futures: list[Future] = []
        self._places: list[str | None] = [None] * len(self.recipes)
        self._lock = threading.Lock()

    def on(self, threads: Mapping[str, int]) -> Placed:
        """Return each block with the worker that is to work on it, given the threads of each worker."""
        client = self.cluster.client
        self.cluster.held.add(self)
        with self._lock:  # chains run side by side
            if any(future.status in LOST for future in self._futures):
                self._futures = []
                client.sync(asyncio.sleep, 0)  # Dask does not run a failed task again before it has forgotten it
            if not self._futures:
                self._futures = client.compute(self.recipes)
                await_all(client, self._futures)
                held = client.who_has(self._futures)
                self._places = [next(iter(held.get(future.key, ())), None) for future in self._futures]
            places = spread(self._places, threads)
            self._places = list(places)
            return list(zip(self._futures, places, strict=True))

    def over(self, function: Any, own: Any = None, shared: Any = None, **options: Any) -> list[Any]:
        """Return ``function(block, shared, own, **options)`` of each block, computed where the block is."""

        def work(threads: Mapping[str, int]) -> list[Any]:
            submitted = self.submit(threads, function, own, shared, **options)
            return self.cluster.results([future for future, _ in submitted], threads)

        return self.cluster.until_done(work)

    def submit(self, threads: Mapping[str, int], function: Any, own: Any, shared: Any, **options: Any) -> Placed:
        """Submit the same once, and return the futures with their workers."""
        placed = self.on(threads)
        own = dict.fromkeys(range(len(self.recipes))) if own is None else own
        here: dict[str, list[int]] = {}
        for number in own:
            here.setdefault(placed[number][1], []).append(number)
        loads = {worker: [shared, *(own[number] for number in numbers)] for worker, numbers in here.items()}
        submit, futures = self.cluster.client.submit, {}
        for worker, (common, *others) in self.cluster.scattered(loads).items():
            for number, other in zip(here[worker], others, strict=True):
                block = placed[number][0]
                futures[number] = submit(function, block, common, other, **options, workers=[worker], pure=False)
        return [(futures[number], placed[number][1]) for number in own]

    def __reduce__(self) -> Any:
        """Keep the recipes only: blocks stay on their cluster."""
        return Blocks, (self.cluster, self.recipes)


def spread(held: Sequence[str | None], threads: Mapping[str, int]) -> list[str]:
    """Return a worker for each block: the one that holds it, as long as it has no more than its share."""
    total = sum(threads.values())
    share = {worker: math.ceil(len(held) * n / total) for worker, n in threads.items()}
    load: Counter[str | None] = Counter()
    places: list[Any] = []
    for worker in held:
        stays = worker is not None and load[worker] < share.get(worker, 0)
        places.append(worker if stays else None)
        load[worker] += stays
    for number, place in enumerate(places):
        if place is None:
            places[number] = min(threads, key=lambda name: ((load[name] + 1) / threads[name], name))
            load[places[number]] += 1
    return places


class Cluster:
    """The workers behind a client."""

    def __init__(self, client: Client | None = None) -> None:
        self._client = client
        self._reaches_workers: bool | None = None
        self.held: set[Blocks] = set()

    def release(self) -> None:
        """Forget all blocks, which are made again when they are needed."""
        while self.held:
            self.held.pop().release()

    @property
    def client(self) -> Client:
        """The client; after unpickling that of the new process."""
        if self._client is None:
            self._client = current_client()
        return self._client

    def threads(self) -> dict[str, int]:
        """Return the number of threads of each worker."""
        return self.until_done(lambda threads: threads)

    def block_bytes(self) -> int:
        """Return the size that a block should not exceed, given the memory limits of the workers."""
        found = self.until_done(lambda _: self.client.scheduler_info(n_workers=-1))
        workers = found["workers"].values()
        shares = [worker["memory_limit"] // worker["nthreads"] for worker in workers if worker["memory_limit"]]
        return min([MAX_BLOCK_BYTES, *(share // BLOCKS_IN_MEMORY for share in shares)])

    def compute(self, recipes: list[Delayed]) -> list[Any]:
        """Return the values of delayed objects, in order."""
        return self.until_done(lambda _: self.results(self.client.compute(recipes)))

    def scattered(self, loads: dict[str, list[Any]]) -> dict[str, list[Future]]:
        """Send a list of objects to each worker, and return what they are there."""
        # One message for each worker. Dask's own broadcast would wait forever for a worker that is killed meanwhile.
        sent: dict[str, list[Future]] = self.client.sync(_scattered, self.client, loads, self._direct())
        return sent

    def results(self, futures: list[Future], needed: Collection[str] = ()) -> list[Any]:
        """Return the values of futures whose workers must stay."""
        await_all(self.client, futures, needed)
        return self.client.sync(_gathered, self.client, futures, self._direct(), needed)

    def _direct(self) -> bool:
        """Return whether the client can reach the workers; otherwise everything goes through the scheduler."""
        if self._reaches_workers is None:
            address = min(self._threads())
            self._reaches_workers = bool(self.client.sync(_answers, address, self.client.connection_args))
        return self._reaches_workers

    def _threads(self) -> dict[str, int]:
        threads = self.client.nthreads()
        if not threads:
            raise WorkersLeft
        return threads

    def until_done(self, work: Callable[[dict[str, int]], T]) -> T:
        """Return the result of work, given the threads of each worker, and run it again if the cluster has lost it."""
        # All that a fit asks of a cluster goes through here.
        losses = 0
        while True:
            threads: dict[str, int] = {}
            try:
                threads = self._threads()
                return work(threads)
            except TaskError as error:
                raise error.args[0] from None
            except (Exception, asyncio.CancelledError) as error:
                if not self._is_loss(error, threads):
                    raise
                losses += 1
                if losses >= MAX_LOSSES:
                    raise ClusterLost(
                        f"the cluster has lost the same work {losses} times, the last time with {error!r}: its workers "
                        "may have too little memory. With checkpoint=DIRECTORY the same call of fit resumes from here"
                    ) from error
                traceback.clear_frames(error.__traceback__)  # their futures would keep Dask from running tasks again
                time.sleep(SECONDS_BETWEEN_LOSSES * (losses - 1))
                self._wait_for_workers(error)

    def _is_loss(self, error: BaseException, workers: Iterable[str]) -> bool:
        """Return whether an error means that one of the workers, or the connection, was lost."""
        if isinstance(error, LOSSES):
            return True
        # Dask raises whatever its scheduler or client runs into then, such as the KeyError of an address: a loss if a
        # worker is gone indeed. An error of another cause occurs again when the work is run again.
        try:
            return self.client.status != "running" or not set(workers) <= set(self._threads())
        except (Exception, asyncio.CancelledError):
            return True  # not even that can be asked

    def _wait_for_workers(self, error: BaseException) -> None:
        """Return when the client is connected and there are workers."""
        deadline = time.monotonic() + MAX_SECONDS_WITHOUT_WORKERS
        while time.monotonic() < deadline and self.client.status != "closed":
            try:
                if self.client.status == "running" and self._threads():
                    return
            except (Exception, asyncio.CancelledError):
                pass  # not yet
            time.sleep(0.1)
        raise ClusterLost(
            f"the cluster has no workers, or the connection to it is lost ({error!r}). Once there is a cluster again, "
            "the same call of fit draws the same, and with checkpoint=DIRECTORY resumes from here"
        ) from error

    def __reduce__(self) -> Any:
        """Leave out the client, which belongs to a process."""
        return Cluster, ()


class WorkersLeft(TimeoutError):
    """Workers that are needed are not there."""


class TaskError(Exception):
    """An error of a task, its argument, which would occur again, unlike those of the cluster."""


def await_all(client: Client, futures: list[Future], needed: Collection[str] = ()) -> None:
    """Return when all futures are done, and raise an error if one has failed."""
    while True:
        try:
            wait(futures, timeout=SECONDS_BETWEEN_LOOKS)
            break
        except TimeoutError:
            check_present(needed, client.nthreads())
    for future in futures:
        if future.status == "error":
            error = future.exception()  # None if the future was cancelled meanwhile
            if error is None or isinstance(error, LOST_TASKS):
                raise error or WorkersLeft
            raise TaskError(error)


def check_present(needed: Collection[str], workers: Collection[str]) -> None:
    """Raise an error unless needed workers are there, and any at all."""
    if not workers or not set(needed) <= set(workers):
        raise WorkersLeft


async def _scattered(client: Client, loads: dict[str, list[Any]], direct: bool) -> dict[str, list[Future]]:
    """Send a list of objects to each worker, at the same time; return what they are there."""
    how = {"hash": False, "direct": direct, "asynchronous": True, "timeout": SECONDS_TO_REACH}
    sends = [client.scatter(objects, workers=[worker], **how) for worker, objects in loads.items()]
    return dict(zip(loads, await _unless_lost(client, asyncio.gather(*sends), list(loads)), strict=True))


async def _gathered(client: Client, futures: list[Future], direct: bool, needed: Collection[str]) -> list[Any]:
    """Return the results of futures."""
    return await _unless_lost(client, client.gather(futures, direct=direct, asynchronous=True), needed)


async def _unless_lost(client: Client, awaitable: Any, needed: Collection[str]) -> Any:
    """Return the awaited result, or raise an error if a needed worker is gone, for which Dask might wait forever."""
    work = asyncio.ensure_future(awaitable)
    assert client.scheduler is not None
    try:
        while not work.done():
            await asyncio.wait({work}, timeout=SECONDS_BETWEEN_LOOKS)
            if not work.done():
                check_present(needed, await client.scheduler.ncores())
    finally:
        work.cancel()
    return work.result()


async def _answers(address: str, arguments: dict[str, Any]) -> bool:
    """Return whether a worker accepts a connection."""
    try:
        comm = await connect(address, timeout=SECONDS_TO_REACH, **arguments)
    except (TimeoutError, OSError):
        return False
    await comm.close()
    return True


def current_client() -> Client:
    """Return the client of this process."""
    try:
        client = Client.current()
    except ValueError:
        raise RuntimeError(
            "X is on a cluster, but there is no client of it: create a distributed.Client(...) first"
        ) from None
    if client.asynchronous:
        raise RuntimeError("the distributed.Client is asynchronous: fit needs Client(..., asynchronous=False)")
    return client
