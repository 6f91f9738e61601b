"""The model: shapes, coefficients and validation. Its density is tested in tests/sampler/test_gibbs.py."""

import inspect
import warnings

import numpy as np
import pytest

from bnmf.data import ObservedMatrix
from bnmf.model import Model
from bnmf.model.noise import CommonNoise, common
from bnmf.priors import L1, L1Squared, L2Squared, LInf


@pytest.fixture
def data():
    return ObservedMatrix.from_data(np.arange(20.0).reshape(5, 4))


def coefficients_of(model):
    """Return the coefficients of the priors of W and of Zᵀ."""
    return model.coefficients()


def test_factor_shapes(data):
    assert Model(data, 3).factor_shapes == ((5, 3), (4, 3))
    assert Model(data, 1).factor_shapes == ((5, 1), (4, 1))


def test_priors_of_both_factors(data):
    model = Model(data, 2, (L1(0.5), L2Squared(2.0) + LInf(3.0)))
    of_W, of_Z = coefficients_of(model)
    np.testing.assert_array_equal(of_W.linear, [[0.5, 0.5]])
    np.testing.assert_array_equal(of_W.quadratic, [[0.0, 0.0]])
    assert (of_W.pairwise, of_W.max_rate) == (0.0, 0.0)
    np.testing.assert_array_equal(of_Z.linear, [[0.0, 0.0]])
    np.testing.assert_array_equal(of_Z.quadratic, [[2.0, 2.0]])
    assert (of_Z.pairwise, of_Z.max_rate) == (0.0, 3.0)


def test_one_prior_is_that_of_both(data):
    for coefficients in coefficients_of(Model(data, 2, L1Squared(0.7))):
        np.testing.assert_array_equal(coefficients.quadratic, [[0.7, 0.7]])
        assert coefficients.pairwise == 0.7


def test_defaults(data):
    model = Model(data, 2)
    for coefficients in coefficients_of(model):  # half-normal, λ = 0.1
        np.testing.assert_array_equal(coefficients.linear, [[0.0, 0.0]])
        np.testing.assert_array_equal(coefficients.quadratic, [[0.1, 0.1]])
    assert model.noise_model == CommonNoise(1.0, 1.0)


def test_rates_by_entry_have_the_shape_of_their_factor(data):
    """A matrix of rates for Z is given as (K, columns), and the coefficients are those of its transpose."""
    rates_W, rates_Z = np.arange(1.0, 11.0).reshape(5, 2), np.arange(1.0, 9.0).reshape(2, 4)
    of_W, of_Z = coefficients_of(Model(data, 2, (L1(rates_W), L2Squared(rates_Z))))
    np.testing.assert_array_equal(of_W.linear, rates_W)
    np.testing.assert_array_equal(of_Z.quadratic, rates_Z.T)
    assert of_Z.quadratic.flags.c_contiguous


def test_rates_by_component_are_not_transposed(data):
    of_W, of_Z = coefficients_of(Model(data, 2, L1(np.array([1.0, 2.0]))))
    np.testing.assert_array_equal(of_W.linear, [[1.0, 2.0]])
    np.testing.assert_array_equal(of_Z.linear, [[1.0, 2.0]])


@pytest.mark.parametrize(
    "prior",
    [
        (L1(np.ones((2, 5))), L1(1.0)),  # W transposed
        (L1(1.0), L1(np.ones((4, 2)))),  # Z transposed
        L1(np.ones(3)),
    ],
)
def test_rates_of_a_wrong_shape_are_refused_at_once(data, prior):
    with pytest.raises(ValueError, match=r"a rate of L1 has shape"):
        Model(data, 2, prior)


def test_improper_priors_are_refused_at_once(data):
    with pytest.raises(ValueError, match="improper prior"):
        Model(data, 2, (L1(1.0), L1(0.0)))
    with pytest.raises(ValueError, match="prior must be a Prior or one of"):
        Model(data, 2, "gaussian")


@pytest.mark.parametrize("number", [2, np.int64(2), np.uint8(2), np.int32(2)])
def test_whole_numbers_of_components(data, number):
    model = Model(data, number)
    assert model.n_components == 2
    assert type(model.n_components) is int
    assert all(type(size) is int for shape in model.factor_shapes for size in shape)


@pytest.mark.parametrize("wrong", [2.0, np.float64(2.0), "2", None, [2], np.array([2, 3])])
def test_other_numbers_of_components_are_refused(data, wrong):
    with pytest.raises(TypeError, match="n_components must be a whole number, got"):
        Model(data, wrong)


@pytest.mark.parametrize("wrong", [0, -1, np.int64(-3)])
def test_at_least_one_component(data, wrong):
    with pytest.raises(ValueError, match=f"n_components must be at least 1, got {wrong}"):
        Model(data, wrong)


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


def test_log_joint_of_one_entry():
    """Every term by hand: likelihood, noise prior and both factor priors, without their constants."""
    model = Model(ObservedMatrix.from_data([[3.0]]), 1, (L1(0.5), L2Squared(2.0)), CommonNoise(1.5, 0.7))
    w, z, sigma2 = 1.2, 0.8, 0.6
    expected = -0.5 * np.log(sigma2) - 0.5 * (3.0 - w * z) ** 2 / sigma2
    expected += -2.5 * np.log(sigma2) - 0.7 / sigma2 - 0.5 * w - 0.5 * 2.0 * z**2
    assert model.log_joint(np.array([[w]]), np.array([[z]]), common(sigma2)) == pytest.approx(expected, rel=1e-12)
    assert model.log_joint(np.array([[-w]]), np.array([[z]]), common(sigma2)) == -np.inf
