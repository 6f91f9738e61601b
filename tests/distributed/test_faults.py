"""What happens to clusters happens here to real processes, and the draws are those of an undisturbed run."""

import os
import signal

import dask.array as da
import pytest
from distributed import Client

from bnmf import BayesianNMF
from bnmf.distributed import ClusterLost, cluster
from bnmf.sampler import chains
from tests.distributed.clusters import assert_same_draws, low_rank, start_cluster

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X = low_rank((700, 300), missing=0.2)
# Half-sweeps after which something happens; there are 36 of them.
N_BEFORE = 12


@pytest.fixture(scope="module")
def machines():
    with start_cluster(1) as machines:
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
    """Return a function that has another one called once, when a half-sweep was submitted and is awaited."""
    wait_for, n_calls = cluster.await_all, 0

    def plan(happens):
        def counted(client, futures, needed=()):
            nonlocal n_calls
            n_calls += futures[0].key.startswith("draw_block")
            if n_calls == N_BEFORE and futures[0].key.startswith("draw_block"):
                happens(client)
            wait_for(client, futures, needed)

        monkeypatch.setattr(cluster, "await_all", counted)

    yield plan
    assert n_calls > N_BEFORE, "the run was over before anything happened"


def test_one_worker(client, expected):
    assert len(client.nthreads()) == 1
    assert_same_draws(model().fit(sharded()).posterior_, expected)


def test_worker_that_joins_late_gets_work(machines, client, expected, in_the_middle, monkeypatch):
    seen, spread = set(), cluster.spread

    def watched(held, threads):
        places = spread(held, threads)
        seen.update(places)
        return places

    def joins(client):
        machines.scale(2)
        client.wait_for_workers(2, timeout=60)

    monkeypatch.setattr(cluster, "spread", watched)
    in_the_middle(joins)
    assert_same_draws(model().fit(sharded()).posterior_, expected)
    assert len(seen) == 2


def test_killed_worker(machines, client, expected, in_the_middle):
    machines.scale(2)
    client.wait_for_workers(2, timeout=60)

    def killed(client):
        pids = client.run(os.getpid)
        os.kill(min(pids.values()), signal.SIGKILL)

    in_the_middle(killed)
    assert_same_draws(model().fit(sharded()).posterior_, expected)


def test_all_workers_killed(machines, client, expected, in_the_middle):
    def killed(client):
        for pid in client.run(os.getpid).values():
            os.kill(pid, signal.SIGKILL)

    in_the_middle(killed)
    assert_same_draws(model().fit(sharded()).posterior_, expected)


def test_client_that_loses_its_connection(client, expected, in_the_middle):
    def lost(client):
        client.loop.add_callback(client.scheduler_comm.comm.abort)

    in_the_middle(lost)
    assert_same_draws(model().fit(sharded()).posterior_, expected)


def test_run_without_workers_stops_and_goes_on(machines, client, expected, in_the_middle, monkeypatch, tmp_path):
    monkeypatch.setattr(cluster, "MAX_SECONDS_WITHOUT_WORKERS", 1.0)
    monkeypatch.setattr(chains, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)

    def gone(client):
        machines.scale(0)

    in_the_middle(gone)
    with pytest.raises(ClusterLost, match="the same call of fit draws the same"):
        model(checkpoint=tmp_path).fit(sharded())
    assert list(tmp_path.glob("chain-*.npz"))
    machines.scale(1)
    client.wait_for_workers(1, timeout=60)
    assert_same_draws(model(checkpoint=tmp_path).fit(sharded()).posterior_, expected)
