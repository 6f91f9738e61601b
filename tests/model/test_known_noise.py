"""Known standard errors and weights of rows: factors of the noise in units of the model, or a clear error."""

import numpy as np
import pytest
import scipy.sparse as sp

from bnmf.data import ObservedMatrix
from bnmf.model.build import _weights_of_rows, at_observed, check_known_noise, noise_factor
from bnmf.model.units import Units
from bnmf.noise import GroupedNoise, KnownNoise

NAN = np.nan
X = np.array([[1.0, NAN, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, NAN], [NAN, NAN, 2.0]])
DATA, SEEN = ObservedMatrix.from_data(X), ~np.isnan(X)
UNITS = Units(np.array([2.0, 10.0, 0.5]))
ERRORS = np.arange(1.0, 13.0).reshape(4, 3) / 7.0
WEIGHTS = np.array([1.0, 4.0, 0.25, 9.0])


def factor_of(noise_scale=None, sample_weight=None, noise=None, data=DATA, units=UNITS):
    noise = KnownNoise() if noise is None else noise
    check_known_noise(noise, noise_scale, sample_weight)
    weight = None if sample_weight is None else _weights_of_rows(sample_weight, data.shape[0])
    return noise_factor(data, units, noise, noise_scale, weight)


@pytest.mark.parametrize(
    "given", [ERRORS, ERRORS[0], ERRORS[:1], ERRORS[:, :1]], ids=["matrix", "columns", "one row", "rows"]
)
def test_known_standard_errors_are_in_units_of_the_model(given):
    found = factor_of(given)
    np.testing.assert_allclose(np.broadcast_to(found, X.shape), np.broadcast_to(given, X.shape) / UNITS.scale)
    np.testing.assert_allclose(at_observed(found, DATA), np.broadcast_to(found, X.shape)[SEEN], rtol=1e-15)


def test_learned_noise_takes_ratios():
    """They have a geometric mean of 1 over the observed entries, so that the unit of the errors does not count."""
    found = factor_of(ERRORS, noise=GroupedNoise())
    assert np.log(found[SEEN]).mean() == pytest.approx(0.0, abs=1e-14)
    ratio = found * UNITS.scale / ERRORS
    np.testing.assert_allclose(ratio, np.full(X.shape, ratio[0, 0]))
    np.testing.assert_allclose(factor_of(1e6 * ERRORS, noise=GroupedNoise()), found)


@pytest.mark.parametrize("noise", [GroupedNoise(), KnownNoise()], ids=["learned", "known"])
def test_weights_divide_the_variance(noise):
    plain, weighted = factor_of(ERRORS, noise=noise), factor_of(ERRORS, WEIGHTS, noise)
    ratio = (plain / weighted) ** 2 / WEIGHTS[:, None]
    np.testing.assert_allclose(ratio, np.full(X.shape, ratio[0, 0]))
    np.testing.assert_allclose(weighted, factor_of(ERRORS / np.sqrt(WEIGHTS)[:, None], noise=noise))


def test_weights_alone_have_no_unit():
    """Weights of one are no weights, in columns of any unit; of others only their ratios count."""
    np.testing.assert_array_equal(factor_of(sample_weight=np.ones(4), noise=GroupedNoise()), np.ones((4, 3)))
    found = factor_of(sample_weight=WEIGHTS, noise=GroupedNoise())
    np.testing.assert_allclose(found[1] / found[0], np.full(3, 0.5))
    np.testing.assert_allclose(factor_of(sample_weight=5.0 * WEIGHTS, noise=GroupedNoise()), found)
    by_row = factor_of(1.0 / np.sqrt(WEIGHTS)[:, None], noise=GroupedNoise(), units=Units(np.ones(1)))
    np.testing.assert_allclose(by_row, found)


def test_errors_of_missing_entries_are_medians():
    given = np.where(SEEN, ERRORS, NAN)
    given[2, 2] = 100.0  # known, though the entry is missing
    found = factor_of(given, units=Units(np.ones(1)))
    np.testing.assert_array_equal(found[SEEN], ERRORS[SEEN])
    assert found[2, 2] == 100.0
    assert found[3, 0] == np.median(given[:3, 0])
    np.testing.assert_array_equal(found[[0, 3], 1], np.median(given[[1, 2], 1]))
    data = ObservedMatrix.from_data(np.where([[True, False, True]], X, NAN))  # of a column without entries, of all
    given = np.where(data.mask(), ERRORS, NAN)
    found = factor_of(given, data=data, units=Units(np.ones(1)))
    np.testing.assert_array_equal(found[:, 1], np.full(4, np.nanmedian(given)))


@pytest.mark.parametrize(
    ("noise_scale", "sample_weight", "words"),
    [
        (None, None, "noise='known' needs noise_scale"),
        (None, WEIGHTS, "noise='known' needs noise_scale"),
        (ERRORS[:3], None, r"noise_scale must have the shape of X, \(4, 3\).* got \(3, 3\)"),
        (ERRORS[:, 0], None, r"noise_scale must have the shape of X.* got \(4,\)"),
        (0.5, None, r"noise_scale must have the shape of X.* got \(\)"),
        (ERRORS[None], None, r"noise_scale must have the shape of X.* got \(1, 4, 3\)"),
        (np.where(ERRORS > 1.0, NAN, ERRORS), None, "noise_scale is NaN where X was observed"),
        (np.array([1.0, NAN, 1.0]), None, "noise_scale is NaN where X was observed"),
        (ERRORS - ERRORS[1, 1], None, "noise_scale must be positive and finite, got -"),
        (np.where(ERRORS[1, 1] == ERRORS, 0.0, ERRORS), None, "noise_scale must be positive and finite, got 0.0"),
        (np.full(3, np.inf), None, "noise_scale must be positive and finite, got inf"),
        ([["a", "b", "c"]], None, "noise_scale must be an array of numbers, got list"),
        (sp.csr_array(ERRORS), None, "noise_scale must be an array of numbers, got csr_array"),
        (ERRORS, WEIGHTS[:3], r"sample_weight must have one number for each row of X, shape \(4,\), got \(3,\)"),
        (ERRORS, WEIGHTS[:, None], r"sample_weight must have one number for each row of X.* got \(4, 1\)"),
        (ERRORS, 2.0, r"sample_weight must have one number for each row of X.* got \(\)"),
        (ERRORS, WEIGHTS * 0.0, "sample_weight must be above zero for at least one row"),
        (ERRORS, -WEIGHTS, "sample_weight must be finite and not negative, got -"),
        (ERRORS, WEIGHTS * NAN, "sample_weight must be finite and not negative, got nan"),
        (ERRORS, list("abcd"), "sample_weight must be an array of numbers, got list"),
    ],
)
def test_wrong_standard_errors_and_weights(noise_scale, sample_weight, words):
    with pytest.raises(TypeError if "array of numbers" in words else ValueError, match=words):
        factor_of(noise_scale, sample_weight)
