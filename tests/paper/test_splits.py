"""The split of Brouwer et al.: its counts, its guarantee, its errors."""

from pathlib import Path

import numpy as np
import pytest

from bnmf.datasets import fetch_gdsc_ic50, make_drug_response
from bnmf.paper.splits import _smallest_cover, hold_out

SHARED_DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def assert_is_a_split(X, split, n_train):
    observed = ~np.isnan(X)
    np.testing.assert_array_equal(split.train | split.test, observed)
    assert not (split.train & split.test).any()
    assert split.train.sum() == n_train
    for axis in (0, 1):
        np.testing.assert_array_equal(split.train.any(axis=axis), observed.any(axis=axis))


def test_counts_and_guarantee():
    X = make_drug_response(120, 40, random_state=0).data
    for unobserved in (0.3, 0.6, 0.8, 0.9):
        split = hold_out(X, unobserved, np.random.default_rng(1))
        assert_is_a_split(X, split, round(X.size * (1 - unobserved)))


@pytest.mark.skipif(
    not (SHARED_DATA / "gdsc" / "ic50.txt").exists(), reason="needs ../shared/data/gdsc/ic50.txt next to the repository"
)
def test_gdsc():
    # Two cell lines of GDSC have one and two observed entries, so rejection sampling would be slow.
    X = fetch_gdsc_ic50(data_home=SHARED_DATA, download_if_missing=False).data
    for unobserved, n_train in ((0.6, 39309), (0.8, 19654)):
        split = hold_out(X, unobserved, np.random.default_rng(0))
        assert_is_a_split(X.to_numpy(), split, n_train)


def test_rows_and_columns_without_observed_entries():
    X = np.random.default_rng(0).random((12, 9))
    X[[0, 5]] = np.nan
    X[:, 8] = np.nan
    split = hold_out(X, 0.6, np.random.default_rng(1))
    assert_is_a_split(X, split, 43)


def test_the_only_entry_of_a_row_is_always_in_the_training_set():
    X = np.ones((30, 20))
    X[3, 1:] = np.nan
    assert all(hold_out(X, 0.5, np.random.default_rng(seed)).train[3, 0] for seed in range(30))


def test_every_entry_is_kept_equally_often_without_constraints():
    X = np.ones((20, 20))
    rng = np.random.default_rng(0)
    kept = np.mean([hold_out(X, 0.5, rng).train for _ in range(500)], axis=0)
    # 400 proportions of 500 each: five standard errors.
    np.testing.assert_allclose(kept, 0.5, atol=5 * np.sqrt(0.25 / 500))


def test_smallest_possible_training_set():
    # 10 entries can cover 10 rows and 10 columns, but the first 10 of a random order hardly ever do.
    X = np.ones((10, 10))
    split = hold_out(X, 0.9, np.random.default_rng(0))
    assert_is_a_split(X, split, 10)
    with pytest.raises(ValueError, match=r"unobserved=0.91 leaves 9 entries for training, but 10 are needed"):
        hold_out(X, 0.91, np.random.default_rng(0))


def test_the_smallest_cover_of_a_star_and_a_path():
    # A star: row 0 with columns 0 to 3 needs all four entries. A path: a matching and one more entry.
    assert len(_smallest_cover(np.array([0, 0, 0, 0]), np.array([0, 1, 2, 3]))) == 4
    path = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 2])
    cover = _smallest_cover(*path)
    assert len(cover) == 3
    assert set(path[0][cover]) == {0, 1}
    assert set(path[1][cover]) == {0, 1, 2}


@pytest.mark.parametrize("unobserved", [0.0, 1.0, 60, float("nan")])
def test_invalid_fraction(unobserved):
    with pytest.raises(ValueError, match="unobserved must be a fraction between 0 and 1, got"):
        hold_out(np.ones((3, 3)), unobserved, np.random.default_rng(0))
    X = np.ones((10, 10))
    X[:4] = np.nan
    with pytest.raises(ValueError, match=r"unobserved=0.4 leaves nothing to test: 0.4 of X is missing already"):
        hold_out(X, 0.4, np.random.default_rng(0))
