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


def results():
    quick = BayesianNMF(2, n_chains=1, burn_in=5, n_draws=5, random_state=0)
    X, fit = low_rank((40, 15), missing=0.1), Fit("made", "gee", 1, repeat=0, n_sweeps=10, burn_in=5)
    return [
        select_rank(X, [1, 2], estimator=quick, n_folds=2, random_state=0).table["rmse"],
        run_fits([fit], {"made": X}, n_jobs=None)[fit]["train_mse"],
        GridSearchCV(quick, {"n_components": [1, 2]}, cv=2).fit(X).cv_results_["mean_test_score"],
    ]


def test_results_are_those_of_one_process(client):
    expected = results()
    with joblib.parallel_config("dask"):
        used = set(joblib.Parallel()(joblib.delayed(lambda: get_worker().address)() for _ in range(12)))
        found = results()
    assert used <= set(client.nthreads())
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
