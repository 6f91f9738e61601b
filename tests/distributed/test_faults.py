"""What happens to clusters happens here to real processes, and the draws are those of an undisturbed run."""

import itertools
import os
import signal

import dask.array as da
import pytest
from distributed import Client

from bnmf import BayesianNMF
from bnmf.distributed import cluster
from tests.distributed.clusters import low_rank, start_cluster
from tests.posteriors import assert_same_draws

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X = low_rank((700, 300), missing=0.2)
# Half-sweeps after which something happens, and something else after as many again; there are 36 of them.
N_BEFORE = 12


@pytest.fixture(scope="module")
def machines():
    with start_cluster(1, processes=True) as machines:
        yield machines


@pytest.fixture
def client(machines):
    with Client(machines) as client:
        yield client


@pytest.fixture(scope="module")
def expected():
    return model().fit(X).posterior_


def model(**options):
    return BayesianNMF(3, n_chains=2, burn_in=3, n_draws=6, random_state=5, **options)


def sharded():
    return da.from_array(X, chunks=(300, 300))


@pytest.fixture
def in_the_middle(monkeypatch):
    """Return a function that has others called once each, when a half-sweep was submitted and is awaited."""
    wait_for, numbers, planned = cluster.await_all, itertools.count(1), {}

    def counted(client, futures, needed=()):
        if futures[0].key.startswith("draw_block"):
            happens = planned.pop(next(numbers), None)  # chains run side by side: each gets a number of its own
            if happens is not None:
                happens(client)
        wait_for(client, futures, needed)

    def plan(*happen):
        planned.update({N_BEFORE * (i + 1): happens for i, happens in enumerate(happen)})

    monkeypatch.setattr(cluster, "await_all", counted)
    yield plan
    assert not planned, "the run was over before everything had happened"


@pytest.mark.proof
def test_worker_that_joins_late_gets_work(machines, client, expected, in_the_middle, monkeypatch):
    used, spread = [], cluster.spread

    def watched(held, threads):
        places = spread(held, threads)
        used.append(len(set(places)))
        return places

    def joins(client):
        machines.scale(2)
        client.wait_for_workers(2, timeout=300)

    monkeypatch.setattr(cluster, "spread", watched)
    in_the_middle(joins)
    assert_same_draws(model().fit(sharded()).posterior_, expected)
    assert (used[0], used[-1]) == (1, 2)


@pytest.mark.proof  # each loss on its own, at every call, is in test_losses.py
def test_killed_workers(machines, client, expected, in_the_middle):
    machines.scale(2)
    client.wait_for_workers(2, timeout=300)

    def one(client):
        os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)

    def all_of_them(client):
        for pid in client.run(os.getpid).values():
            os.kill(pid, signal.SIGKILL)

    in_the_middle(one, all_of_them)
    assert_same_draws(model().fit(sharded()).posterior_, expected)


@pytest.mark.proof
def test_client_that_loses_its_connection(client, expected, in_the_middle):
    def lost(client):
        client.loop.add_callback(client.scheduler_comm.comm.abort)

    in_the_middle(lost)
    assert_same_draws(model().fit(sharded()).posterior_, expected)
