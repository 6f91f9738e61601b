"""What is kept of a draw, and when. That stores hold the draws of chains is in test_run.py."""

import numpy as np
import pytest

from bnmf.data import ObservedMatrix
from bnmf.model import Model
from bnmf.model.noise import NoiseState, common
from bnmf.model.units import Units
from bnmf.priors import L1, L2Squared
from bnmf.sampler.gibbs import State
from bnmf.sampler.stores import Schedule, Store, add_to_moments


@pytest.fixture
def model():
    """A matrix of 4 rows and 3 columns with 10 observed entries."""
    X = np.arange(12.0).reshape(4, 3)
    X[0, 1] = X[2, 2] = np.nan
    return Model(ObservedMatrix.from_data(X), 2)


def test_running_moments_do_not_cancel():
    """With Σx² - (Σx)²/n every digit of the sum of squared deviations would be lost."""
    values = 1e9 + np.random.default_rng(0).normal(size=(200, 2, 2))
    moments = np.zeros((2, 2, 2))
    for draw, value in enumerate(values):
        add_to_moments(moments, draw, value)
    centred = values - 1e9  # exact
    squares = ((centred - centred.mean(axis=0)) ** 2).sum(axis=0)
    np.testing.assert_allclose(moments[1], squares, rtol=1e-6)


# --- traces in the user's units

COUNTS = np.array([4, 3, 3])  # observed entries of each column


def traced(model, noise, rates=()):
    """Return what is kept of one state with squared error 6 and log likelihood -2."""
    store = Store(model, Schedule(n_chains=1, burn_in=0, n_draws=1))
    state = State(np.ones((4, 2)), np.arange(6.0).reshape(3, 2), noise, rates, 6.0, -2.0, 1)
    store.record(0, state)
    return {name: array[0, 0] for name, array in store.arrays.items()}


@pytest.mark.parametrize("scale", [np.array([1.0]), np.array([3.0]), np.array([2.0, 0.5, 10.0])])
@pytest.mark.parametrize("by", ["common", "column", "row", "both"])
def test_traces_are_in_the_units_of_the_user(model, by, scale):
    """The variance of every entry, the density of the data and Z are those of data that are not scaled."""
    rng = np.random.default_rng(0)
    column = rng.uniform(0.5, 2.0, size=3 if by in ("column", "both") else 1)
    row = rng.uniform(0.5, 2.0, size=4) if by in ("row", "both") else np.ones(1)
    if by == "row":
        column = np.ones(1)
    strengths = 4.0 * (by in ("row", "both")), 8.0 * (by in ("column", "both"))
    noise = NoiseState(row, column, 1.0 if by == "common" else 0.3, *strengths)
    scaled = Model(model.data, 2, noise=by, units=Units(scale))
    traces = traced(scaled, noise)
    assert ("row_noise" in traces) == ("row_strength" in traces) == (by in ("row", "both"))
    variance = np.outer(traces.get("row_noise", np.ones(4)), np.broadcast_to(traces["noise_variance"], 3))
    expected = np.broadcast_to(row, 4)[:, None] * column * scale**2
    np.testing.assert_allclose(variance, np.broadcast_to(expected, (4, 3)), rtol=1e-14)
    assert traces["noise_variance"].shape == ((3,) if by in ("column", "both") or scale.size == 3 else ())
    assert traces["log_density"] == pytest.approx(-2.0 - (COUNTS * np.log(scale)).sum(), rel=1e-14)
    np.testing.assert_array_equal(traces["Z"], np.arange(6.0).reshape(3, 2).T * scale)
    assert traces["train_mse"] == pytest.approx(6.0 / 10 * (1.0 if scale.size == 3 else scale[0] ** 2), rel=1e-14)
    if by == "row":  # the mean of the precisions of rows is in the variance, as that of columns would be
        assert traces["noise_variance"] == pytest.approx(0.3 * scale**2)
    if by in ("row", "both"):
        assert traces["row_strength"] == 4.0


def test_traces_of_learned_rates(model):
    noise = common(1.0)
    assert "rate_W" not in traced(model, noise)
    shared = traced(Model(model.data, 2, L1()), noise, (np.array([3.0]),))
    np.testing.assert_array_equal(shared["rate_W"], [3.0])
    np.testing.assert_array_equal(shared["rate_Z"], [3.0])
    pair = Model(model.data, 2, (L1(1.0), L2Squared(by="component")))
    only_Z = traced(pair, noise, (np.array([1.5, 2.5]),))
    assert "rate_W" not in only_Z
    np.testing.assert_array_equal(only_Z["rate_Z"], [1.5, 2.5])
    both = Model(model.data, 2, (L1(by="component"), L2Squared()))
    found = traced(both, noise, (np.array([1.5, 2.5]), np.array([4.0])))
    np.testing.assert_array_equal(found["rate_W"], [1.5, 2.5])
    np.testing.assert_array_equal(found["rate_Z"], [4.0])


# --- which sweeps are kept, counted one by one


def test_schedule_by_hand():
    schedule = Schedule(n_chains=np.int64(2), burn_in=np.int32(4), n_draws=np.uint8(3), thinning=2)
    assert schedule.n_sweeps == 10
    assert [sweep for sweep in range(13) if schedule.keeps(sweep)] == [6, 8, 10, 12]
    assert [schedule.draws_after(sweep) for sweep in range(11)] == [0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3]
    assert [schedule.sweeps_for(n) for n in range(4)] == [4, 6, 8, 10]


@pytest.mark.parametrize(("name", "lowest"), [("n_chains", 1), ("burn_in", 0), ("n_draws", 1), ("thinning", 1)])
def test_limits_of_a_schedule(name, lowest):
    assert getattr(Schedule(**{name: lowest}), name) == lowest
    with pytest.raises(ValueError, match=f"{name} must be at least {lowest}, got {lowest - 1}"):
        Schedule(**{name: lowest - 1})
    with pytest.raises(TypeError, match=f"{name} must be a whole number, got True"):
        Schedule(**{name: True})
