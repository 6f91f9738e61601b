"""From a model to its posterior: what is drawn, what is kept of it, and what goes along."""

import math

import numpy as np
import pytest
from tests.posteriors import sample_posterior

from bnmf.data import ObservedMatrix
from bnmf.model import Model
from bnmf.model.units import units_of
from bnmf.sampler import chains as sampler_chains
from bnmf.sampler.gibbs import sample
from bnmf.sampler.run import Run
from bnmf.sampler.stores import Schedule
from bnmf.sampler.streams import Stream
from bnmf.utils import memory
from bnmf.utils.memory import MemoryWarning

SEED = 3
SCHEDULE = Schedule(n_chains=3, burn_in=2, n_draws=5, thinning=2)


@pytest.fixture
def X():
    X = np.random.default_rng(0).exponential(size=(8, 6))
    X[2, 3] = X[7, 0] = np.nan
    return X


@pytest.fixture
def model(X):
    return Model(ObservedMatrix.from_data(X), 2)


def states_of(model, chain):
    return list(sample(model, Stream(SEED, chain), n_sweeps=SCHEDULE.n_sweeps))


def kept_of(model, chain, n_draws=5):
    """Return the states of a chain that are kept."""
    return [state for state in states_of(model, chain) if SCHEDULE.keeps(state.sweep)][:n_draws]


def assert_draws(posterior, model, chains, n_draws):
    """Assert that a posterior holds the first draws of these chains and nothing else."""
    assert posterior.W.shape == (len(chains), n_draws, 8, 2)
    assert posterior.Z.shape == (len(chains), n_draws, 2, 6)
    assert posterior.noise_variance.shape == (len(chains), n_draws)
    for place, chain in enumerate(chains):
        kept = kept_of(model, chain, n_draws)
        np.testing.assert_array_equal(posterior.W[place], [state.W for state in kept])
        np.testing.assert_array_equal(posterior.Z[place], [state.Zt.T for state in kept])
        np.testing.assert_array_equal(posterior.noise_variance[place], [state.sigma2 for state in kept])
        mse = [state.squared_error / 46 for state in states_of(model, chain)[: 2 + 2 * n_draws]]
        np.testing.assert_array_equal(posterior.train_mse[place], mse)


def interrupt(monkeypatch, counts):
    """Let a run report that its chains have only so many draws, and forget the rest."""
    run = sampler_chains.run

    def interrupted(store, *args, **options):
        run(store, *args, **options)
        for chain, count in enumerate(counts):
            store.arrays["train_mse"][chain, store.schedule.sweeps_for(count) :] = np.nan
        return counts

    monkeypatch.setattr(sampler_chains, "run", interrupted)


@pytest.mark.parametrize("keep_draws", [True, False])
def test_lower_bound(X, keep_draws):
    """It is that of the data themselves, not of what was allowed, and not of data without their offsets."""
    below = X.copy()
    below[4, 4] = -0.1
    for values, negative, bound in ((X, False, 0.0), (X, True, 0.0), (below, True, -math.inf)):
        data = ObservedMatrix.from_data(values, negative=negative)
        assert sample_posterior(Model(data, 2), SCHEDULE, SEED, keep_draws=keep_draws).lower_bound == bound
        units, shifted = units_of(data, None, "min")
        model = Model(shifted, 2, units=units)
        posterior = sample_posterior(model, SCHEDULE, SEED, keep_draws=keep_draws, data=data)
        assert posterior.lower_bound == bound


# --- interruption


@pytest.mark.parametrize(
    ("counts", "chains", "n_draws"),
    [([5, 3, 1], [0, 1], 3), ([5, 0, 4], [0, 2], 4), ([2, 2, 2], [0, 1, 2], 2), ([0, 0, 1], [2], 1)],
)
def test_an_interruption_keeps_the_largest_block(model, monkeypatch, tmp_path, counts, chains, n_draws):
    interrupt(monkeypatch, counts)
    words = f"interrupted: {n_draws} draws of {len(chains)} of 3 chains are kept; "
    again = "call fit again with checkpoint='.*' to continue"
    for remedy, options in (("sample_more continues from here", {}), (again, {"checkpoint": tmp_path})):
        with pytest.warns(UserWarning, match=words + remedy):
            posterior = sample_posterior(model, SCHEDULE, SEED, **options)
        assert_draws(posterior, model, chains, n_draws)
    interrupt(monkeypatch, [0, 0, 0])
    with pytest.raises(KeyboardInterrupt, match="before the first draw; with checkpoint=DIRECTORY"):
        sample_posterior(model, SCHEDULE, SEED)


@pytest.mark.parametrize("counts", [[0, 5, 5], [5, 0, 0], [5, 4, 0], [4, 5, 4], [1, 1, 1]])
def test_moments_of_an_interrupted_run(model, monkeypatch, counts):
    """Those of all draws of the chains in use, each chain with the same weight."""

    def run(store, seed, **options):
        """Give the store only the states that each chain reached, as a run that is interrupted does."""
        for chain, count in enumerate(counts):
            for state in states_of(model, chain)[: SCHEDULE.sweeps_for(count) if count else 0]:
                store.record(chain, state)
        return counts

    monkeypatch.setattr(sampler_chains, "run", run)
    with pytest.warns(UserWarning, match="interrupted"):
        moments = sample_posterior(model, SCHEDULE, SEED, keep_draws=False)
    chains, _ = Run(model, SEED, counts=counts).kept
    products = [np.array([s.W @ s.Zt.T for s in kept_of(model, chain, counts[chain])]) for chain in chains]
    means = np.array([draws.mean(axis=0) for draws in products])
    np.testing.assert_allclose(moments.mean(), means.mean(axis=0), rtol=1e-10)
    within = np.mean([draws.var(axis=0) for draws in products], axis=0)
    np.testing.assert_allclose(moments.std(noise=False), np.sqrt(within + means.var(axis=0)), rtol=1e-8)


# --- memory

# Chains, draws or moments, sides, components. Noise, log density, training error of each sweep, and sampling.
DRAW_BYTES = 3 * 5 * (8 + 6) * 2 * 8
REST_BYTES = 8 * (3 * (5 * 2 + SCHEDULE.n_sweeps) + 4 * (8 + 6) * 2)
MOMENT_BYTES = 3 * 2 * 8 * (8 * 6 + (8 + 6) * 2)


@pytest.mark.parametrize(
    ("options", "n_bytes", "words"),
    [
        ({}, DRAW_BYTES + REST_BYTES, "keeping all draws in memory, and sampling, .*keep_draws=False.*checkpoint=DIR"),
        ({"dtype": "float32"}, DRAW_BYTES // 2 + REST_BYTES, "keeping all draws in memory, and sampling, will take"),
        ({"keep_draws": False}, MOMENT_BYTES + REST_BYTES, "keeping mean and variance of every entry in memory"),
    ],
)
def test_memory_warning(model, monkeypatch, tmp_path, options, n_bytes, words):
    monkeypatch.setattr(memory, "available", lambda: 2 * n_bytes)
    sample_posterior(model, SCHEDULE, SEED, **options)  # half of the memory: no warning
    monkeypatch.setattr(memory, "available", lambda: 2 * n_bytes - 1)
    with pytest.warns(MemoryWarning, match=words):
        sample_posterior(model, SCHEDULE, SEED, **options)
    monkeypatch.setattr(memory, "available", lambda: 1)
    sample_posterior(model, SCHEDULE, SEED, checkpoint=tmp_path)  # draws on disk: no warning


@pytest.mark.parametrize("options", [{}, {"keep_draws": False}])
@pytest.mark.parametrize("change", [{"n_draws": 10**17}, {"n_chains": 10**30}, {"burn_in": 10**30}])
@pytest.mark.filterwarnings("ignore::bnmf.utils.memory.MemoryWarning")
def test_draws_that_no_machine_can_hold(model, options, change):
    with pytest.raises(MemoryError, match=r"takes .* GB, .* see whether n_components, n_chains, burn_in, n_draws and"):
        sample_posterior(model, Schedule(**{"n_chains": 1, "burn_in": 1, "n_draws": 1} | change), 0, **options)
