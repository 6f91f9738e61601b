"""Many fits on a cluster through joblib, without code of their own."""

import joblib
import numpy as np
import pytest
from distributed import get_worker
from sklearn.model_selection import GridSearchCV

from bnmf import BayesianNMF, select_rank
from bnmf.paper.fits import Fit, run_fits
from tests.distributed.clusters import low_rank

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def quick():
    return BayesianNMF(2, n_chains=1, burn_in=5, n_draws=5, random_state=0)


def test_joblib_uses_the_workers_of_the_cluster(client):
    with joblib.parallel_config("dask"):
        used = set(joblib.Parallel()(joblib.delayed(lambda: get_worker().address)() for _ in range(12)))
    assert used <= set(client.nthreads())


@pytest.mark.proof
def test_select_rank(client):
    X = low_rank((40, 15), missing=0.1)
    expected = select_rank(X, [1, 2], estimator=quick(), n_folds=2, random_state=0)
    with joblib.parallel_config("dask"):
        choice = select_rank(X, [1, 2], estimator=quick(), n_folds=2, n_jobs=-1, random_state=0)
    np.testing.assert_array_equal(choice.table, expected.table)


def test_fits_of_the_paper(client):
    X = low_rank((12, 8))
    fits = [Fit("made", "gee", k, repeat=0, n_sweeps=10, burn_in=5) for k in (1, 2)]
    expected = run_fits(fits, {"made": X})
    with joblib.parallel_config("dask"):
        results = run_fits(fits, {"made": X}, n_jobs=-1)
    for fit in fits:
        np.testing.assert_array_equal(results[fit]["train_mse"], expected[fit]["train_mse"])


def test_cross_validation(client):
    X = low_rank((40, 15), missing=0.1)
    expected = GridSearchCV(quick(), {"n_components": [1, 2]}, cv=2).fit(X)
    with joblib.parallel_config("dask"):
        search = GridSearchCV(quick(), {"n_components": [1, 2]}, cv=2).fit(X)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])
