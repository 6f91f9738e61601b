"""Finished fits are found again, and only those."""

import os
from dataclasses import replace

import numpy as np
import pytest

from bnmf.experiments import store as module
from bnmf.experiments.fits import Fit
from bnmf.experiments.store import Store, data_fingerprint

FIT = Fit("made", "gee", 3, 0)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "fits", {"made": data_fingerprint(np.eye(3))})


def test_what_was_saved_comes_back(store):
    result = {"train_mse": np.array([3.0, np.nan]), "w_mean": np.array(2.5)}
    assert store.load(FIT) is None
    store.save(FIT, result)
    back = store.load(FIT)
    assert back.keys() == result.keys()
    np.testing.assert_array_equal(back["train_mse"], result["train_mse"])
    assert [path.name for path in store.directory.iterdir()] == [store.path(FIT).name]


@pytest.mark.parametrize("change", [{"k": 4}, {"repeat": 1}, {"unobserved": 0.5}, {"seed": 1}, {"start": "gee"}])
def test_other_settings_are_another_fit(store, change):
    assert store.key(replace(FIT, **change)) != store.key(FIT)


def test_other_data_or_sampler_is_another_fit(store, monkeypatch):
    other = Store(store.directory, {"made": data_fingerprint(2 * np.eye(3))})
    assert other.key(FIT) != store.key(FIT)
    before, baseline = store.key(FIT), store.key(Fit("made", "knn", 0, 0))
    monkeypatch.setattr(module, "sampler_fingerprint", lambda model: "another")
    assert store.key(FIT) != before
    assert store.key(Fit("made", "knn", 0, 0)) == baseline


def test_a_file_that_was_cut_short_counts_as_missing(store):
    store.save(FIT, {"w_mean": np.array(1.0)})
    path = store.path(FIT)
    path.write_bytes(path.read_bytes()[:50])
    assert store.load(FIT) is None
    path.write_bytes(b"")
    assert store.load(FIT) is None


def test_nothing_is_left_of_a_write_that_failed(store, monkeypatch):
    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        store.save(FIT, {"w_mean": np.array(1.0)})
    assert list(store.directory.iterdir()) == []


def test_fingerprint_of_data_sees_holes_values_and_shape():
    X = np.array([[1.0, np.nan], [0.0, 2.0]])
    same = np.array([[1.0, -np.nan], [-0.0, 2.0]])
    assert data_fingerprint(X) == data_fingerprint(same)
    assert data_fingerprint(X) != data_fingerprint(np.nan_to_num(X))
    assert data_fingerprint(X) != data_fingerprint(X.reshape(1, 4))
