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
QUICK = BayesianNMF(2, n_chains=1, burn_in=5, n_draws=5, random_state=0)
X = low_rank((40, 15), missing=0.1)


def ranks():
    return select_rank(X, [1, 2], estimator=QUICK, n_folds=2, random_state=0).table


def fits_of_the_paper():
    fits = [Fit("made", "gee", k, repeat=0, n_sweeps=10, burn_in=5) for k in (1, 2)]
    results = run_fits(fits, {"made": low_rank((12, 8))}, n_jobs=None)
    return [results[fit]["train_mse"] for fit in fits]


def cross_validation():
    return GridSearchCV(QUICK, {"n_components": [1, 2]}, cv=2).fit(X).cv_results_["mean_test_score"]


def test_joblib_uses_the_workers_of_the_cluster(client):
    with joblib.parallel_config("dask"):
        used = set(joblib.Parallel()(joblib.delayed(lambda: get_worker().address)() for _ in range(12)))
    assert used <= set(client.nthreads())


@pytest.mark.parametrize("run", [pytest.param(ranks, marks=pytest.mark.proof), fits_of_the_paper, cross_validation])
def test_results_are_those_of_one_process(client, run):
    expected = run()
    with joblib.parallel_config("dask"):
        np.testing.assert_array_equal(run(), expected)
