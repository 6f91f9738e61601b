"""Means and standard deviations without draws, against the same computed from all draws."""

import numpy as np
import pytest
from scipy import stats

from bnmf.data import ObservedMatrix
from bnmf.model import Model
from bnmf.model.noise import NoiseState, common
from bnmf.model.units import Units
from bnmf.posterior.moments import Moments
from bnmf.sampler.state import State
from bnmf.sampler.stores import MomentStore, Schedule

N_OBSERVED = 11


class Draws:
    """A store of moments, with all states that went into it."""

    def __init__(self, schedule, seed=0):
        rng = np.random.default_rng(seed)
        X = np.ones((4, 3))
        X[1, 1] = np.nan
        self.schedule = schedule
        self.store = MomentStore(Model(ObservedMatrix.from_data(X), 2), schedule)
        shape = schedule.n_chains, schedule.n_sweeps
        self.W, self.Zt = rng.exponential(size=(*shape, 4, 2)), rng.exponential(size=(*shape, 3, 2))
        self.sigma2, self.squared_error = rng.uniform(0.1, 3.0, size=shape), rng.uniform(0.1, 3.0, size=shape)
        self.log_density = rng.normal(size=shape)

    def recorded(self):
        for chain in range(self.schedule.n_chains):
            for i in range(self.schedule.n_sweeps):
                error, noise = float(self.squared_error[chain, i]), common(float(self.sigma2[chain, i]))
                density = float(self.log_density[chain, i])
                self.store.record(chain, State(self.W[chain, i], self.Zt[chain, i], noise, (), error, density, i + 1))
        return self

    @property
    def kept(self):
        return [i for i in range(self.schedule.n_sweeps) if self.schedule.keeps(i + 1)]

    @property
    def products(self):
        """W Z of the kept draws, (chain, draw, rows, columns)."""
        return np.einsum("cdmk,cdnk->cdmn", self.W, self.Zt)[:, self.kept]


@pytest.fixture
def draws():
    return Draws(Schedule(n_chains=3, burn_in=4, n_draws=6, thinning=2)).recorded()


@pytest.fixture
def moments(draws):
    return Moments(draws.store, [0, 1, 2], 6, N_OBSERVED)


def test_mean_and_std(draws, moments):
    np.testing.assert_allclose(moments.mean(), draws.products.mean(axis=(0, 1)), rtol=1e-12)
    np.testing.assert_allclose(moments.std(), draws.products.std(axis=(0, 1)), rtol=1e-12)
    total = draws.products.var(axis=(0, 1)) + draws.sigma2[:, draws.kept].mean()
    np.testing.assert_allclose(moments.std(noise=True), np.sqrt(total), rtol=1e-12)


def test_chosen_entries(draws, moments):
    rows, columns = [3, 0, 3], [2, 1, 0]
    products = draws.products[:, :, rows, columns]
    np.testing.assert_allclose(moments.mean(rows, columns), products.mean(axis=(0, 1)), rtol=1e-12)
    np.testing.assert_allclose(moments.std(rows, columns), products.std(axis=(0, 1)), rtol=1e-12)
    total = products.var(axis=(0, 1)) + draws.sigma2[:, draws.kept].mean()
    np.testing.assert_allclose(moments.std(rows, columns, noise=True), np.sqrt(total), rtol=1e-12)
    np.testing.assert_allclose(moments.mean_of_rows(slice(1, 3)), draws.products.mean(axis=(0, 1))[1:3], rtol=1e-12)


def test_some_of_the_chains(draws):
    moments = Moments(draws.store, [2, 0], 6, N_OBSERVED)
    products = draws.products[[0, 2]]
    np.testing.assert_allclose(moments.mean(), products.mean(axis=(0, 1)), rtol=1e-12)
    np.testing.assert_allclose(moments.std(), products.std(axis=(0, 1)), rtol=1e-12)
    np.testing.assert_array_equal(moments.noise_variance, draws.sigma2[[2, 0]][:, draws.kept])
    np.testing.assert_array_equal(moments.train_mse, draws.squared_error[[2, 0]] / N_OBSERVED)
    assert moments.n_draws == 6
    assert moments.n_observed == N_OBSERVED


@pytest.mark.parametrize("best", [0, 1, 2])
def test_factors_are_those_of_the_chain_that_fits_best(best):
    """By the log density of its draws: before them, that chain is the worst, and its squared error does not count."""
    draws = Draws(Schedule(n_chains=3, burn_in=20, n_draws=6))
    draws.log_density[best] = np.where(np.arange(26) < 20, -90.0, 5.0)
    draws.squared_error[best] = 9.0
    moments = Moments(draws.recorded().store, [0, 1, 2], 6, N_OBSERVED)
    W, Z = moments.factor_means()
    np.testing.assert_allclose(W, draws.W[best][draws.kept].mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(Z, draws.Zt[best][draws.kept].mean(axis=0).T, rtol=1e-12)


def test_best_of_the_chains_that_are_used():
    draws = Draws(Schedule(n_chains=3, burn_in=0, n_draws=6))
    draws.log_density[:] = [[3.0], [1.0], [2.0]]
    moments = Moments(draws.recorded().store, [1, 2], 6, N_OBSERVED)
    np.testing.assert_allclose(moments.factor_means()[0], draws.W[2].mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("noise", [True, False])
@pytest.mark.parametrize("prob", [0.5, 0.9])
def test_interval(draws, prob, noise):
    moments = Moments(draws.store, [0, 1, 2], 6, N_OBSERVED, -np.inf)
    low, high = moments.interval(prob, noise=noise)
    variance = draws.products.var(axis=(0, 1)) + (draws.sigma2[:, draws.kept].mean() if noise else 0.0)
    expected = stats.norm.interval(prob, draws.products.mean(axis=(0, 1)), np.sqrt(variance))
    np.testing.assert_allclose(low, expected[0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(high, expected[1], rtol=1e-9)
    assert (low < 1.0).any()
    bounded = Moments(draws.store, [0, 1, 2], 6, N_OBSERVED, 1.0)
    np.testing.assert_array_equal(bounded.interval(prob, noise=noise)[0], np.maximum(low, 1.0))
    above = Moments(draws.store, [0, 1, 2], 6, N_OBSERVED, 1e3)
    for end in above.interval(prob, noise=noise):
        np.testing.assert_array_equal(end, 1e3)


def test_interval_has_90_percent_and_noise_and_starts_at_zero_by_default(moments):
    assert moments.interval()[0].min() == 0.0
    for end, expected in zip(moments.interval(), moments.interval(0.9, noise=True), strict=True):
        np.testing.assert_array_equal(end, expected)


# --- noise by column and by row, and units

SCALE, OFFSET = np.array([2.0, 0.5, 10.0]), np.array([-3.0, 0.0, 7.0])


class Unequal(Draws):
    """The same with a variance for each column and each row, in scaled units and with offsets."""

    def __init__(self, schedule, noise):
        super().__init__(schedule)
        rng, self.by = np.random.default_rng(9), noise
        data = ObservedMatrix.from_data(np.ones((4, 3)))
        self.store = MomentStore(Model(data, 2, noise=noise, units=Units(SCALE, OFFSET)), schedule)
        shape = schedule.n_chains, schedule.n_sweeps
        self.row = rng.uniform(0.1, 3.0, size=(*shape, 4 if noise in ("row", "both") else 1))
        self.column = rng.uniform(0.1, 3.0, size=(*shape, 3 if noise in ("column", "both") else 1))
        if noise == "column":
            self.row[:] = 1.0
        if noise == "row":
            self.column[:] = 1.0

    def recorded(self):
        for chain, i in np.ndindex(self.row.shape[:2]):
            strengths = 2.0 * (self.by != "column"), 2.0 * (self.by != "row")
            noise = NoiseState(self.row[chain, i], self.column[chain, i], 0.7, *strengths)
            self.store.record(chain, State(self.W[chain, i], self.Zt[chain, i], noise, (), 1.0, 0.0, i + 1))
        return self


@pytest.mark.parametrize("noise", ["column", "row", "both"])
def test_noise_by_column_and_by_row(noise):
    draws = Unequal(Schedule(n_chains=2, burn_in=1, n_draws=6, thinning=2), noise).recorded()
    moments = Moments(draws.store, [0, 1], 6, 12, -np.inf)
    products = draws.products * SCALE
    variance = (draws.row[..., :, None] * draws.column[..., None, :] * SCALE**2)[:, draws.kept].mean(axis=(0, 1))
    np.testing.assert_allclose(moments.mean(), products.mean(axis=(0, 1)) + OFFSET, rtol=1e-12)
    np.testing.assert_allclose(moments.mean_of_rows(slice(1, 3)), moments.mean()[1:3], rtol=1e-12)
    np.testing.assert_allclose(moments.std(), products.std(axis=(0, 1)), rtol=1e-12)
    total = np.sqrt(products.var(axis=(0, 1)) + variance)
    np.testing.assert_allclose(moments.std(noise=True), total, rtol=1e-12)
    rows, columns = [3, 0, 3], [2, 1, 0]
    np.testing.assert_allclose(moments.std(rows, columns, noise=True), total[rows, columns], rtol=1e-12)
    np.testing.assert_allclose(moments.mean(rows, columns), moments.mean()[rows, columns], rtol=1e-12)
    expected = stats.norm.interval(0.9, moments.mean(), total)
    for found, end in zip(moments.interval(0.9), expected, strict=True):
        np.testing.assert_allclose(found, end, rtol=1e-9)
    assert moments.noise_variance.shape == (2, 6, 3)


@pytest.mark.parametrize("prob", [0.0, 1.0, -0.1, 1.5])
def test_probability_of_an_interval(moments, prob):
    with pytest.raises(ValueError, match="prob must be a number between 0 and 1"):
        moments.interval(prob)


def test_no_new_rows(moments):
    with pytest.raises(ValueError, match="new rows need the draws of Z"):
        moments.for_data(ObservedMatrix.from_data(np.ones((1, 3))), 0)


def test_summary():
    draws = Draws(Schedule(n_chains=2, burn_in=3, n_draws=40)).recorded()
    table = Moments(draws.store, [0, 1], 40, N_OBSERVED).summary()
    assert list(table.index) == ["noise variance", "log likelihood"]
    assert table.loc["noise variance", "mean"] == pytest.approx(draws.sigma2[:, 3:].mean(), rel=1e-12)
    assert table.loc["log likelihood", "mean"] == pytest.approx(draws.log_density[:, 3:].mean(), rel=1e-12)


def test_summary_with_thinning():
    draws = Draws(Schedule(n_chains=2, burn_in=3, n_draws=40, thinning=2)).recorded()
    table = Moments(draws.store, [0, 1], 40, N_OBSERVED).summary()
    expected = draws.log_density[:, draws.kept].mean()
    assert table.loc["log likelihood", "mean"] == pytest.approx(expected, rel=1e-12)


def test_burn_in_is_what_comes_before_the_draws(draws, moments):
    assert moments.thinning == 2
    assert moments.burn_in == 4
    assert Moments(draws.store, [0, 1, 2], 3, N_OBSERVED).burn_in == 4
