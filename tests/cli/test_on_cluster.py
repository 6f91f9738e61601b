"""``bnmf fit --scheduler``: Parquet parts on a cluster give the fit of one process."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from distributed import Client
from tests.distributed.clusters import start_cluster

from bnmf import BayesianNMF, Posterior

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT = ("-k", "2", "--chains", "2", "--burn-in", "20", "--draws", "30")


@pytest.fixture(scope="module")
def address():
    with start_cluster(2, processes=True) as cluster, Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2)
        yield cluster.scheduler_address


@pytest.fixture
def parts(tmp_path):
    """Return a directory of triples in two parts, and the same data."""
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(300, 2)) @ rng.exponential(size=(2, 12)) + 0.1 * rng.random((300, 12))
    rows, columns = np.nonzero(rng.random(X.shape) < 0.3)
    frame = pd.DataFrame({"row": rows, "column": columns, "value": X[rows, columns]})
    (tmp_path / "parts").mkdir()
    for number, part in enumerate((frame[:500], frame[500:])):
        part.to_parquet(tmp_path / "parts" / f"{number}.parquet")
    return tmp_path / "parts", sp.csr_array((X[rows, columns], (rows, columns)), shape=X.shape)


@pytest.mark.proof  # fits of blocks are in tests/distributed
def test_a_fit_of_parts_is_that_of_one_process(program, address, parts, tmp_path):
    directory, X = parts
    out = tmp_path / "out"
    result = program("fit", directory, "--triples", "--scheduler", address, "--out", out, *SHORT)
    assert f"Connected to {address}: 2 threads." in result.stdout
    settings = {"n_chains": 2, "burn_in": 20, "random_state": 0, "unstored": "missing"}
    local = BayesianNMF(2, n_draws=30, **settings).fit(X)
    np.testing.assert_array_equal(Posterior.load(out / "posterior.npz").W, local.posterior_.W)
    assert len((out / "W.csv").read_text().splitlines()) == 301
    # More draws, by the command that goes on.
    program("fit", "--resume", "--scheduler", address, "--out", out, "--draws", "40")
    longer = BayesianNMF(2, n_draws=40, **settings).fit(X)
    np.testing.assert_array_equal(Posterior.load(out / "posterior.npz").W, longer.posterior_.W)


def test_no_scheduler(program, parts, tmp_path, monkeypatch):
    monkeypatch.setattr("bnmf.distributed.cluster.CONNECTION_SECONDS", 1.0)
    call = ("fit", parts[0], "--scheduler", "tcp://127.0.0.1:1", "--out", tmp_path / "out", *SHORT)
    program.fails("there is no Dask scheduler at tcp://127.0.0.1:1", *call, code=1)
    assert not (tmp_path / "out").exists()
