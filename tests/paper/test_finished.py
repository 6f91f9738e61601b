"""Finished fits: saving, loading, and their keys."""

import os
from dataclasses import replace

import numpy as np
import pytest

from bnmf.paper import finished as module
from bnmf.paper.finished import FinishedFits, data_fingerprint
from bnmf.paper.fits import Fit

FIT = Fit("made", "gee", 3, 0)


@pytest.fixture
def finished(tmp_path):
    return FinishedFits(tmp_path / "fits", {"made": data_fingerprint(np.eye(3))})


def test_a_saved_result_is_loaded(finished):
    result = {"train_mse": np.array([3.0, np.nan]), "w_mean": np.array(2.5)}
    assert finished.load(FIT) is None
    finished.save(FIT, result)
    back = finished.load(FIT)
    assert back.keys() == result.keys()
    np.testing.assert_array_equal(back["train_mse"], result["train_mse"])
    assert [path.name for path in finished.directory.iterdir()] == [finished.path(FIT).name]


@pytest.mark.parametrize("change", [{"k": 4}, {"repeat": 1}, {"unobserved": 0.5}, {"seed": 1}, {"start": "gee"}])
def test_other_settings_have_another_key(finished, change):
    assert finished.key(replace(FIT, **change)) != finished.key(FIT)


def test_other_data_or_another_sampler_have_another_key(finished, monkeypatch):
    other = FinishedFits(finished.directory, {"made": data_fingerprint(2 * np.eye(3))})
    assert other.key(FIT) != finished.key(FIT)
    before, baseline = finished.key(FIT), finished.key(Fit("made", "knn", 0, 0))
    monkeypatch.setattr(module, "sampler_fingerprint", lambda model: "another")
    assert finished.key(FIT) != before
    assert finished.key(Fit("made", "knn", 0, 0)) == baseline


def test_a_truncated_file_counts_as_missing(finished):
    finished.save(FIT, {"w_mean": np.array(1.0)})
    path = finished.path(FIT)
    path.write_bytes(path.read_bytes()[:50])
    assert finished.load(FIT) is None
    path.write_bytes(b"")
    assert finished.load(FIT) is None


def test_a_failed_write_leaves_no_file(finished, monkeypatch):
    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        finished.save(FIT, {"w_mean": np.array(1.0)})
    assert list(finished.directory.iterdir()) == []


def test_fingerprint_of_data_depends_on_missing_entries_values_and_shape():
    X = np.array([[1.0, np.nan], [0.0, 2.0]])
    same = np.array([[1.0, -np.nan], [-0.0, 2.0]])
    assert data_fingerprint(X) == data_fingerprint(same)
    assert data_fingerprint(X) != data_fingerprint(np.nan_to_num(X))
    assert data_fingerprint(X) != data_fingerprint(X.reshape(1, 4))


def test_keys_do_not_change_between_versions(monkeypatch):
    # Keys of files that earlier versions wrote: if these change, finished fits are run again.
    X = np.array([[1.0, np.nan], [-0.0, 2.0]])
    assert data_fingerprint(X) == "328f2d37a6dade1a"
    monkeypatch.setattr(module, "sampler_fingerprint", lambda model: "184d9e56c25c4635")
    finished = FinishedFits("unused", {"gdsc": data_fingerprint(X)})
    assert finished.key(Fit("gdsc", "gee", 10, 3)) == "6b112b0d4cb7b0ceb634dbb3cd1ea847"
    assert finished.key(Fit("gdsc", "knn", 10, 3)) == "ab85b3df18a1a824abf2107c41c7f16a"
