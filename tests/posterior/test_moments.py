"""Means and standard deviations without draws, against the same computed from the draws of the same chains."""

import numpy as np
import pytest
from scipy import stats
from tests.posteriors import sample_posterior

from bnmf import BayesianNMF
from bnmf.data import ObservedMatrix
from bnmf.model import Model
from bnmf.model.units import units_of
from bnmf.sampler.stores import Schedule


def data(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.exponential(size=(8, 2)) @ rng.exponential(size=(2, 5)) * [1.0, 0.1, 10.0, 1.0, 1.0]
    X[2, 3] = np.nan
    return X


def pair(noise="common", offset=None, **schedule):
    """Return the posterior with draws, and that without."""
    observed = ObservedMatrix.from_data(data() - (0.3 if offset else 0.0), negative=True)
    units, shifted = units_of(observed, "column", offset)
    options = Schedule(**{"n_chains": 3, "burn_in": 4, "n_draws": 6, "thinning": 2} | schedule), 5
    model = Model(shifted, 2, noise=noise, units=units)
    return (sample_posterior(model, *options, data=observed, keep_draws=keep) for keep in (True, False))


@pytest.mark.parametrize(
    ("noise", "offset"), [("common", None), ("column", "min"), ("row", None), ("both", "min"), ("student-t", None)]
)
def test_they_are_those_of_the_draws(noise, offset):
    draws, moments = pair(noise, offset)
    rows, columns = [3, 0, 3], [2, 1, 0]
    np.testing.assert_allclose(moments.mean(), draws.mean(), rtol=1e-12)
    np.testing.assert_allclose(moments.mean(rows, columns), draws.mean(rows, columns), rtol=1e-12)
    np.testing.assert_allclose(moments.mean_of_rows(slice(1, 3)), draws.mean()[1:3], rtol=1e-12)
    for with_noise in (True, False):
        std = draws.std(noise=with_noise)
        np.testing.assert_allclose(moments.std(noise=with_noise), std, rtol=1e-9)
        np.testing.assert_allclose(moments.std(rows, columns, noise=with_noise), std[rows, columns], rtol=1e-9)
        if np.isfinite(std).all():
            W, Z, _ = draws.flat
            mean = np.einsum("sik,skj->ij", W, Z) / len(W) + (0.0 if draws.offset is None else draws.offset)
            ends = stats.norm.interval(0.8, mean, std)
            at = moments.interval(0.8, [1, 2], [0, 1], noise=with_noise)
            np.testing.assert_array_equal(at, np.array(moments.interval(0.8, noise=with_noise))[:, [1, 2], [0, 1]])
            for found, end in zip(moments.interval(0.8, noise=with_noise), ends, strict=True):
                np.testing.assert_allclose(found, np.maximum(end, draws.lower_bound), rtol=1e-8, atol=1e-12)
    for name in ("noise_variance", "log_density", "train_mse", "n_observed", "thinning", "burn_in", "notes"):
        np.testing.assert_array_equal(getattr(moments, name), getattr(draws, name))
    np.testing.assert_allclose(moments.summary(), draws.summary().loc[["noise variance", "log likelihood"]])


def test_factors_are_those_of_the_chain_that_fits_best():
    draws, moments = pair(n_chains=4)
    best = draws.log_density.mean(axis=1).argmax()
    W, Z = draws.W[best].mean(axis=0), draws.Z[best].mean(axis=0)
    order = np.argsort(-W.sum(axis=0) * (Z / draws.scale).sum(axis=1))
    found_W, found_Z = moments.factor_means()
    np.testing.assert_allclose(found_W, (W / W.mean(axis=0))[:, order], rtol=1e-12)
    np.testing.assert_allclose(found_Z, (Z * W.mean(axis=0)[:, None])[order], rtol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fixed_components_keep_their_places_and_scales():
    settings = {"fixed_components": np.full((1, 5), 0.01), "fixed_weights": np.full((8, 1), 0.01), "keep_draws": False}
    model = BayesianNMF(4, n_chains=2, burn_in=5, n_draws=10, random_state=0, **settings)
    W = model.fit_transform(data())
    np.testing.assert_allclose(model.components_[0], 0.01, rtol=1e-9)
    np.testing.assert_allclose(W[:, 3], 0.01, rtol=1e-9)
    np.testing.assert_allclose(W[:, 1:3].mean(axis=0), 1.0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_needs_draws_says_so():
    model = BayesianNMF(2, n_chains=2, burn_in=5, n_draws=10, keep_draws=False, random_state=0).fit(data())
    with pytest.raises(ValueError, match="prob must be a number between 0 and 1"):
        model.posterior_.interval(1.5)
    with pytest.raises(ValueError, match="keep_draws=False"):
        model.transform(data(1))
    with pytest.raises(AttributeError, match="quantile: it keeps only means and standard dev"):
        model.posterior_.quantile(0.5)
