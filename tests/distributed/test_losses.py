"""The last worker leaves at exactly one call of the cluster: the run waits for another, or stops and can be resumed.

Scheduler and worker are in this process, so that the worker is gone before the call continues.
"""

import asyncio
import inspect
from types import SimpleNamespace

import dask.array as da
import distributed
import numpy as np
import pytest
from dask import delayed
from distributed import Client, KilledWorker, LocalCluster, Worker
from distributed.comm import CommClosedError
from distributed.scheduler import NoValidWorkerError, NoWorkerError

from bnmf import BayesianNMF
from bnmf.distributed import ClusterLost, cluster
from bnmf.distributed.cluster import Blocks, Cluster
from bnmf.distributed.sharded import ShardedFilled, ShardedScaledView
from tests.distributed.clusters import low_rank
from tests.posteriors import assert_same_draws

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X = low_rank((300, 40), missing=0.2)


class Machine:
    """A worker that joins, and leaves when it is due to."""

    def __init__(self, client):
        self.client, self.workers, self.is_due = client, [], False

    async def join(self):
        self.workers.append(await Worker(self.client.scheduler.address, nthreads=1, memory_limit="1GB"))

    async def join_late(self):
        """Join so late that a run that would wait forever ends, and its test fails."""
        await asyncio.sleep(120)
        await self.join()

    async def leave(self):
        self.is_due = False
        while self.workers:
            await self.workers.pop().close()
        while await self.client.scheduler.ncores():
            await asyncio.sleep(0.01)


@pytest.fixture(scope="module")
def scheduler():
    with LocalCluster(n_workers=0, processes=False, protocol="tcp", dashboard_address=":0") as scheduler:
        yield scheduler


@pytest.fixture
def machine(scheduler):
    with Client(scheduler) as client:
        machine = Machine(client)
        client.sync(machine.join)
        late = asyncio.run_coroutine_threadsafe(machine.join_late(), client.loop.asyncio_loop)
        yield machine
        late.cancel()
        if client.status == "running":
            client.sync(machine.leave)


@pytest.fixture
def losses(monkeypatch):
    """Return the list of errors after which the cluster was found to have lost workers."""
    errors, wait = [], Cluster._wait_for_workers

    def noted(self, error):
        errors.append(error)
        wait(self, error)

    monkeypatch.setattr(Cluster, "_wait_for_workers", noted)
    return errors


@pytest.fixture
def another(machine, losses, monkeypatch):
    """Have another worker join while the run waits for one."""
    wait = Cluster._wait_for_workers

    def joined(self, error):
        if not machine.workers:
            asyncio.run_coroutine_threadsafe(machine.join(), machine.client.loop.asyncio_loop)
        wait(self, error)

    monkeypatch.setattr(Cluster, "_wait_for_workers", joined)


@pytest.fixture
def none(losses, monkeypatch):
    """Have the run not wait for another worker."""
    monkeypatch.setattr(cluster, "MAX_SECONDS_WITHOUT_WORKERS", 0.0)


# --- each call

# When the worker leaves, and at which call.
CALLS = {
    "nthreads": ("before", Client, "nthreads"),
    "compute": ("before", Client, "compute"),
    "scatter": ("before", Client, "scatter"),
    "scatter, data sent": ("after", distributed.client, "scatter_to_workers"),
    "scatter by the scheduler": ("before", distributed.scheduler, "scatter_to_workers"),
    "scatter by the scheduler, data sent": ("after", distributed.scheduler, "scatter_to_workers"),
    "submit": ("before", Client, "submit"),
    "wait": ("before", cluster, "await_all"),
    "gather": ("before", Client, "gather"),
    "gather, workers known": ("before", distributed.client, "gather_from_workers"),
    "gather by the scheduler": ("before", distributed.scheduler, "gather_from_workers"),
}


@pytest.fixture
def call(request, machine, losses, monkeypatch):
    """Have the worker leave at a call when it is due to, and return the name of the call."""
    name = request.param
    when, owner, attribute = CALLS[name]
    real = getattr(owner, attribute)

    async def in_loop(*args, **options):
        if when == "before" and machine.is_due:
            await machine.leave()
        result = await real(*args, **options)
        if when == "after" and machine.is_due:
            await machine.leave()
        return result

    def disturbed(*args, **options):
        if options.get("asynchronous") or inspect.iscoroutinefunction(real):
            return in_loop(*args, **options)
        if machine.is_due:
            machine.client.sync(machine.leave)
        return real(*args, **options)

    monkeypatch.setattr(owner, attribute, disturbed)
    monkeypatch.setattr(cluster, "SECONDS_BETWEEN_LOOKS", 600 if "data sent" in name else 0.05)
    monkeypatch.setattr(Cluster, "_direct", lambda self: "by the scheduler" not in name)
    yield name
    assert not machine.is_due, "the call was not made"
    assert len(losses) == 1
    if "data sent" in name:
        assert isinstance(losses[0], KeyError)  # of a worker that the scheduler does not know


def results(machine, call):
    """Return results of two blocks, whose worker is due to leave."""
    blocks = Blocks(Cluster(), [delayed(range)(n) for n in (2, 3)])
    if call != "compute":
        blocks.over(scaled_sum, {0: 1, 1: 1}, 1)  # makes the blocks
    machine.is_due = True
    return blocks.over(scaled_sum, {0: 5, 1: 7}, 100)


def scaled_sum(block, shared, own):
    return shared * sum(block) + own


@pytest.mark.parametrize("call", CALLS, indirect=True)
def test_call_is_made_again_if_another_worker_comes(machine, call, another):
    assert results(machine, call) == [105, 307]


@pytest.mark.parametrize("call", CALLS, indirect=True)
def test_call_fails_if_no_worker_comes(machine, call, none):
    with pytest.raises(ClusterLost, match="the same call of fit draws the same, and with checkpoint=DIRECTORY resumes"):
        results(machine, call)


@pytest.mark.parametrize("call", ["compute", "wait", "gather"], indirect=True)
def test_results_of_any_worker_are_not_awaited_without_one(machine, call, none):
    machine.is_due = True
    with pytest.raises(ClusterLost):
        Cluster().compute([delayed(1)])


# --- a fit


def model(**options):
    return BayesianNMF(2, **{"n_chains": 1, "burn_in": 1, "n_draws": 1, "random_state": 0, **options})


def sharded(X):
    return da.from_array(X, chunks=(100, 40))


@pytest.mark.parametrize("call", ["scatter, data sent", "submit", "gather"], indirect=True)
def test_fit_without_workers_stops_and_resumes(machine, call, none, before_each_sweep, tmp_path):
    sweeps = []

    def noted(state):
        sweeps.append(state.sweep + 1)
        machine.is_due = len(sweeps) == 2

    expected = model().fit(X).posterior_
    before_each_sweep(noted)
    with pytest.raises(ClusterLost, match="with checkpoint=DIRECTORY resumes from here"):
        model(checkpoint=tmp_path).fit(sharded(X))
    machine.client.sync(machine.join)
    assert_same_draws(model(checkpoint=tmp_path).fit(sharded(X)).posterior_, expected)
    assert sweeps == [1, 2, 2]


@pytest.mark.parametrize("call", ["submit"], indirect=True)
def test_latent_values_are_drawn_again_from_the_factors_before_the_sweep(machine, call, another, monkeypatch):
    draw_all, half_sweep, numbers = ShardedFilled.draw_all, ShardedScaledView.half_sweep, []

    def drawn(*args, **given):
        numbers.append(0)
        draw_all(*args, **given)

    def half(self, *args, **options):
        if numbers:
            numbers[-1] += 1
            machine.is_due = len(numbers) == numbers[-1] == 2  # columns, in the second sweep with latent values
        return half_sweep(self, *args, **options)

    capped = np.minimum(X, 3.0)
    limits = {"lower": np.where(capped == 3.0, 3.0, np.nan)}
    expected = model(n_draws=3).fit(capped, **limits).posterior_
    monkeypatch.setattr(ShardedFilled, "draw_all", drawn)
    monkeypatch.setattr(ShardedScaledView, "half_sweep", half)
    assert_same_draws(model(n_draws=3).fit(sharded(capped), **limits).posterior_, expected)


# --- what is no loss, and what is one again and again


def test_error_is_raised_as_it_is_while_all_workers_are_there(machine, another, losses, monkeypatch):
    address = machine.workers[0].address

    def fails(*_):
        if machine.is_due:
            machine.client.sync(machine.leave)
        raise KeyError(address)

    with pytest.raises(KeyError, match=address):  # in a task
        Cluster().compute([delayed(dict)()[address]])
    monkeypatch.setattr(Client, "compute", fails)
    for n_losses in (0, 1):  # in a call, and again after workers were lost in it
        machine.is_due = bool(n_losses)
        with pytest.raises(KeyError, match=address):
            Cluster().compute([delayed(1)])
        assert len(losses) == n_losses


@pytest.mark.parametrize(
    "error",
    [
        KilledWorker("task", SimpleNamespace(address="gone"), 3),
        NoWorkerError("task", 1.0),
        NoValidWorkerError("task", set(), set(), {}, 1.0),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("are_blocks", [False, True])
def test_task_that_its_workers_did_not_survive_is_run_again(machine, losses, tmp_path, error, are_blocks):
    def second_time(path):
        if path.exists():
            return "value"
        path.touch()
        raise error

    workers, recipes = Cluster(), [delayed(second_time)(tmp_path / "once")]
    found = Blocks(workers, recipes).over(lambda block, *_: block) if are_blocks else workers.compute(recipes)
    assert (found, len(losses)) == (["value"], 1)


def test_work_that_is_lost_every_time(machine, losses, monkeypatch):
    def fails(self, recipes):
        raise CommClosedError

    monkeypatch.setattr(Client, "compute", fails)
    monkeypatch.setattr(cluster, "SECONDS_BETWEEN_LOSSES", 0.0)
    with pytest.raises(ClusterLost, match=r"lost the same work 10 times.*the same call of fit resumes from here"):
        Cluster().compute([delayed(1)])


def test_closed_client(machine):
    machine.client.sync(machine.leave)
    machine.client.close()
    with pytest.raises(ClusterLost, match="the connection to it is lost"):
        Cluster(machine.client).threads()
