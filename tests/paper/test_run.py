"""Running many fits: each once, reported, stored at once."""

import numpy as np
import pytest

from bnmf.experiments import run as module
from bnmf.experiments.fits import Fit
from bnmf.experiments.run import run_fits
from bnmf.experiments.store import Store, data_fingerprint

X = np.random.default_rng(0).exponential(2.0, (10, 8))
FITS = [Fit("made", model, 2, repeat, n_sweeps=25, burn_in=5) for model in ("gee", "gl22") for repeat in range(2)]


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path, {"made": data_fingerprint(X)})


def test_results_come_in_the_order_of_the_fits():
    results = run_fits([*FITS, FITS[0]], {"made": X})
    assert list(results) == FITS
    assert all(len(result["train_mse"]) == 25 for result in results.values())


def test_two_processes_give_the_same(store):
    one, two = run_fits(FITS, {"made": X}), run_fits(FITS, {"made": X}, n_jobs=2, store=store)
    for fit in FITS:
        np.testing.assert_allclose(one[fit]["train_mse"], two[fit]["train_mse"])


def test_nothing_is_run_twice(store, monkeypatch):
    first = run_fits(FITS[:3], {"made": X}, store=store)
    ran = []
    original = module.run_fit
    monkeypatch.setattr(module, "run_fit", lambda fit, X: ran.append(fit) or original(fit, X))
    results = run_fits(FITS, {"made": X}, store=store)
    assert ran == FITS[3:]
    np.testing.assert_array_equal(results[FITS[0]]["train_mse"], first[FITS[0]]["train_mse"])
    ran.clear()
    run_fits(FITS, {"made": X}, store=store)
    assert ran == []


def test_an_interruption_keeps_what_is_done(store, monkeypatch):
    original, ran = module.run_fit, []

    def interrupted(fit, X):
        if len(ran) == 2:
            raise KeyboardInterrupt
        ran.append(fit)
        return original(fit, X)

    monkeypatch.setattr(module, "run_fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_fits(FITS, {"made": X}, store=store)
    assert sum(store.load(fit) is not None for fit in FITS) == 2
    monkeypatch.setattr(module, "run_fit", original)
    reports = []
    run_fits(FITS, {"made": X}, store=store, report=reports.append)
    assert reports[0].found == 2
    assert reports[-1].done == reports[-1].total == 4


def test_progress_counts_and_estimates():
    reports = []
    run_fits(FITS, {"made": X}, report=reports.append)
    assert [report.done for report in reports] == [0, 1, 2, 3, 4]
    assert np.isnan(reports[0].left)
    assert all(report.left > 0 for report in reports[1:-1])
    assert reports[-1].left == 0
