"""The split of Brouwer et al.: its counts, its guarantee, its errors."""

import numpy as np
import pytest
from tests.conftest import GDSC

from bnmf.datasets import fetch_gdsc_ic50, make_drug_response
from bnmf.paper.splits import _smallest_cover, training_mask


def split(X, unobserved, seed, n_train):
    """Return the mask of a training set after a check of what every split guarantees."""
    observed = ~np.isnan(X)
    train = training_mask(observed, unobserved, np.random.default_rng(seed))
    assert not (train & ~observed).any()
    assert train.sum() == n_train
    for axis in (0, 1):
        np.testing.assert_array_equal(train.any(axis=axis), observed.any(axis=axis))
    return train


def test_counts_and_guarantee():
    X = make_drug_response(120, 40, random_state=0).data
    for unobserved in (0.3, 0.6, 0.8, 0.9):
        split(X, unobserved, 1, round(X.size * (1 - unobserved)))
    X = np.random.default_rng(0).random((12, 9))
    X[[0, 5]] = np.nan  # rows and a column without observed entries
    X[:, 8] = np.nan
    split(X, 0.6, 1, 43)


@pytest.mark.skipif(not GDSC.exists(), reason="needs ../shared/data/gdsc/ic50.txt next to the repository")
def test_gdsc():
    # Two cell lines of GDSC have one and two observed entries, so rejection sampling would be slow.
    X = fetch_gdsc_ic50(data_home=GDSC.parents[1], download_if_missing=False).data.to_numpy()
    for unobserved, n_train in ((0.6, 39309), (0.8, 19654)):
        split(X, unobserved, 0, n_train)


def test_the_only_entry_of_a_row_is_always_in_the_training_set():
    X = np.ones((30, 20))
    X[3, 1:] = np.nan
    assert all(split(X, 0.5, seed, 300)[3, 0] for seed in range(30))


def test_every_entry_is_kept_equally_often_without_constraints():
    kept = np.mean([split(np.ones((20, 20)), 0.5, seed, 200) for seed in range(500)], axis=0)
    # 400 proportions of 500 each: five standard errors.
    np.testing.assert_allclose(kept, 0.5, atol=5 * np.sqrt(0.25 / 500))


def test_smallest_possible_training_set():
    # 10 entries can cover 10 rows and 10 columns, but the first 10 of a random order hardly ever do.
    split(np.ones((10, 10)), 0.9, 0, 10)
    with pytest.raises(ValueError, match=r"unobserved=0.91 leaves 9 entries for training, but 10 are needed"):
        split(np.ones((10, 10)), 0.91, 0, 9)


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
        split(np.ones((3, 3)), unobserved, 0, 0)


def test_a_fraction_that_is_missing_already():
    X = np.ones((10, 10))
    X[:4] = np.nan
    with pytest.raises(ValueError, match=r"unobserved=0.4 leaves nothing to test: 0.4 of X is missing already"):
        split(X, 0.4, 0, 60)
