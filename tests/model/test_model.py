"""The model: shapes, coefficients, weights and validation."""

import inspect
import warnings

import numpy as np
import pytest

from bnmf.data import ObservedMatrix
from bnmf.model import Model
from bnmf.model.noise import common
from bnmf.noise import CommonNoise, StudentT
from bnmf.priors import L1, L1Squared, L2Squared, LInf, exact_draws
from bnmf.utils import memory


@pytest.fixture
def data():
    return ObservedMatrix.from_data(np.arange(20.0).reshape(5, 4))


RATES_W, RATES_Z = np.arange(1.0, 11.0).reshape(5, 2), np.arange(1.0, 9.0).reshape(2, 4)


@pytest.mark.parametrize(
    ("prior", "of_W", "of_Z"),  # linear, quadratic, pairwise and max_rate
    [
        ((L1(0.5), L2Squared(2.0) + LInf(3.0)), (0.5, 0.0, 0.0, 0.0), (0.0, 2.0, 0.0, 3.0)),
        (L1Squared(0.7), (0.0, 0.7, 0.7, 0.0), (0.0, 0.7, 0.7, 0.0)),
        (Model.prior, (0.0, 0.1, 0.0, 0.0), (0.0, 0.1, 0.0, 0.0)),  # the default
        ((L1(RATES_W), L2Squared(RATES_Z)), (RATES_W, 0.0, 0.0, 0.0), (0.0, RATES_Z.T, 0.0, 0.0)),
        (L1([1.0, 2.0]), ([1.0, 2.0], 0.0, 0.0, 0.0), ([1.0, 2.0], 0.0, 0.0, 0.0)),
    ],
)
def test_coefficients_of_both_factors(data, prior, of_W, of_Z):
    """A matrix of rates for Z is given as (K, columns), and the coefficients are those of its transpose."""
    model = Model(data, 2, prior)
    assert model.noise_model == CommonNoise(1.0, 1.0)
    for found, expected in zip(model.coefficients(), (of_W, of_Z), strict=True):
        for name, value in zip(("linear", "quadratic"), expected, strict=False):
            array = getattr(found, name)
            np.testing.assert_array_equal(array, np.broadcast_to(value, array.shape))
            assert array.shape == (np.shape(value) if np.ndim(value) == 2 else (1, 2))
            assert array.flags.c_contiguous
        assert (found.pairwise, found.max_rate) == expected[2:]


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ((L1(1.0), L1(np.ones((4, 2)))), r"a rate of L1 has shape \(2, 4\).*a matrix of 4 x 2"),
        ((L1(1.0), L1(0.0)), "improper prior"),
    ],
)
def test_wrong_priors_are_refused_at_once(data, prior, words):
    with pytest.raises(ValueError, match=words):
        Model(data, 2, prior)


def test_number_of_components(data):
    assert type(Model(data, np.uint8(2)).n_components) is int
    with pytest.raises(TypeError, match=r"n_components must be a whole number, got 2\.0"):
        Model(data, 2.0)
    with pytest.raises(ValueError, match="n_components must be at least 1, got 0"):
        Model(data, 0)


@pytest.mark.parametrize("wide", [False, True])
def test_more_components_than_the_smaller_side(wide):
    """Four components are as many as the smaller side, five are more; the warning points to the caller."""
    X = np.arange(24.0).reshape((4, 6) if wide else (6, 4))
    data = ObservedMatrix.from_data(X)
    Model(data, 4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = inspect.currentframe().f_lineno + 1
        model = Model(data, 5)
    assert model.factor_shapes == ((X.shape[0], 5), (X.shape[1], 5))
    (warning,) = caught
    assert "n_components=5 is larger than the smaller side of the matrix, 4" in str(warning.message)
    assert (warning.filename, warning.lineno) == (__file__, line)


# --- noise, units and learned rates


def test_roots_of_weights():
    """In the order of rows and in that of columns: known precisions times the factors of entries."""
    known, entry, X = np.random.default_rng(2).uniform(0.2, 5.0, size=(3, 5, 4))
    X[0, 1] = X[3, 2] = np.nan
    seen, data = ~np.isnan(X), ObservedMatrix.from_data(X)
    student = Model(data, 2, noise=StudentT(), entry_precision=known[seen])
    roots = student.roots(common(1.0)._replace(df=4.0, entry=entry[seen]))
    np.testing.assert_allclose(roots["W"], np.sqrt(known * entry)[seen], rtol=1e-15)
    np.testing.assert_allclose(roots["Z"], np.sqrt(known * entry).T[seen.T], rtol=1e-15)
    np.testing.assert_array_equal(student.roots(common(1.0))["W"], np.sqrt(known[seen]))
    assert Model(data, 2, noise="both").roots(common(1.0)) == {"W": None, "Z": None}


def test_one_prior_shares_its_learned_rate_and_a_pair_does_not(data):
    shared = Model(data, 2, L1())
    assert [learned.factors for learned in shared.learned_rates] == [(0, 1)]
    one = L1()
    for pair in ((L1(), L1()), (one, one)):
        assert [learned.factors for learned in Model(data, 2, pair).learned_rates] == [(0,), (1,)]
    assert [learned.factors for learned in Model(data, 2, (L1(1.0), L1())).learned_rates] == [(1,)]
    assert Model(data, 2, L1(1.0)).learned_rates == []
    assert Model(data, 2).starting_rates == ()


def test_coefficients_at_learned_rates(data):
    of_W, of_Z = Model(data, 2, L1()).coefficients((np.array([3.0]),))
    np.testing.assert_array_equal(of_W.linear, [[3.0, 3.0]])
    np.testing.assert_array_equal(of_Z.linear, [[3.0, 3.0]])
    pair = Model(data, 2, (L1(by="component"), LInf()))
    of_W, of_Z = pair.coefficients((np.array([1.0, 2.0]), np.array([7.0])))
    np.testing.assert_array_equal(of_W.linear, [[1.0, 2.0]])
    assert of_Z.max_rate == 7.0
    assert [rate.shape for rate in pair.starting_rates] == [(2,), (1,)]


@pytest.mark.parametrize("prior", [L1(), L2Squared(), L1Squared(), LInf(), L1(by="component")], ids=str)
def test_rates_start_where_predictions_have_the_size_of_scaled_data(data, prior):
    """An entry of W Z has prior mean 1 at the starting rates."""
    model = Model(data, 3, prior)
    rng = np.random.default_rng(0)
    draws = [exact_draws.draw(prior, (4000, 3), rng) for prior in model.coefficients(model.starting_rates)]
    # 4000 products with a relative spread of about 1: five standard errors.
    assert np.mean((draws[0] * draws[1]).sum(axis=1)) == pytest.approx(1.0, abs=0.1)


def test_more_components_than_fit_into_memory(monkeypatch):
    with pytest.raises(MemoryError, match=r"one draw with n_components=10{30} takes .* GB, .*: take fewer components"):
        Model(ObservedMatrix.from_data(np.ones((3, 2))), 10**30)
    monkeypatch.setattr(memory, "available", lambda: 8 * 2 * 5)
    Model(ObservedMatrix.from_data(np.ones((3, 2))), 2)
    with pytest.raises(MemoryError, match="take fewer components"):
        Model(ObservedMatrix.from_data(np.ones((3, 3))), 2)
