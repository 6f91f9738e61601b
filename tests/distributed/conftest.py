"""Clusters for all tests that do no harm to them."""

import dask
import pytest
from distributed import Client

from bnmf.data import latent
from tests.distributed.clusters import start_cluster


@pytest.fixture(autouse=True)
def _no_values_that_follow_factors(monkeypatch):
    """Without the draws that only one process takes: all others have the same bits on a cluster."""
    monkeypatch.setattr(latent, "MIN_FOLLOWING", 2.0)


@pytest.fixture(scope="module")
def cluster():
    """Three workers in this process, which takes more memory than they are told to have.

    Their threads use Python's random numbers, which Hypothesis does not allow beside its tests.
    """
    limits = {f"distributed.worker.memory.{limit}": False for limit in ("target", "spill", "pause")}
    with dask.config.set(limits), start_cluster(3, processes=False) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    with Client(cluster) as client:
        yield client


@pytest.fixture
def client_of_processes():
    with start_cluster(2, processes=True) as cluster, Client(cluster) as client:
        yield client
