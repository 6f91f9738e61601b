"""A cluster for all tests that do no harm to it."""

import pytest
from distributed import Client

from tests.distributed.clusters import start_cluster


@pytest.fixture(scope="session")
def client():
    """A client of three workers, which are the same for all tests that do no harm to them."""
    with start_cluster(3) as cluster, Client(cluster) as client:
        yield client
