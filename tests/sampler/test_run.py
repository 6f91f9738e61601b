"""Chains and what is kept of them: that of one chain at a time, however they are run, stopped and continued."""

import math
import threading
import time
import warnings
from itertools import product
from unittest.mock import Mock, call

import numpy as np
import pytest
from tests.posteriors import sample_posterior

from bnmf.data import ObservedMatrix
from bnmf.model import Model
from bnmf.model.units import units_of
from bnmf.sampler import chains
from bnmf.sampler.chains import run
from bnmf.sampler.gibbs import sample
from bnmf.sampler.moves import PLAIN
from bnmf.sampler.run import Run
from bnmf.sampler.stores import Schedule, Store
from bnmf.sampler.streams import Stream
from bnmf.utils import memory
from bnmf.utils.memory import MemoryWarning

SEED = 5
SCHEDULE = Schedule(n_chains=3, burn_in=2, n_draws=5, thinning=2)
X = np.random.default_rng(0).exponential(size=(8, 6))
X[2, 3] = X[7, 0] = np.nan


@pytest.fixture
def model():
    return Model(ObservedMatrix.from_data(X), 2)


def states_of(model, chain, n_draws=5, **options):
    """Return the states of one chain after each sweep up to a draw."""
    n_sweeps = SCHEDULE.sweeps_for(n_draws) if n_draws else 0
    return list(sample(model, Stream(SEED, chain), n_sweeps=n_sweeps, **options))


def assert_draws(posterior, model, of_chains, n_draws, dtype=float, **options):
    """Assert that a posterior holds the first draws of these chains and nothing else."""
    assert posterior.W.dtype == posterior.Z.dtype == dtype
    assert posterior.train_mse.shape == (len(of_chains), SCHEDULE.sweeps_for(n_draws))
    for place, chain in enumerate(of_chains):
        states = states_of(model, chain, n_draws, **options)
        kept = [state for state in states if SCHEDULE.keeps(state.sweep)]
        np.testing.assert_array_equal(posterior.W[place], np.array([state.W for state in kept], dtype))
        np.testing.assert_array_equal(posterior.Z[place], np.array([state.Z for state in kept], dtype))
        np.testing.assert_array_equal(posterior.noise_variance[place], [state.sigma2 for state in kept])
        np.testing.assert_array_equal(posterior.train_mse[place], [state.squared_error / 46 for state in states])


# --- the draws


@pytest.mark.parametrize("options", [{}, {"moves": PLAIN, "init": (np.full((8, 2), 0.5), np.full((2, 6), 1.5))}])
@pytest.mark.parametrize(("n_jobs", "dtype"), [(1, np.float64), (7, np.float32)])
def test_draws_are_those_of_single_chains_whatever_the_threads(model, n_jobs, dtype, options):
    posterior = sample_posterior(model, SCHEDULE, SEED, n_jobs=n_jobs, dtype=dtype, **options)
    assert_draws(posterior, model, range(3), 5, dtype, **options)
    assert not np.array_equal(posterior.W[0], posterior.W[1])


@pytest.mark.parametrize("keep_draws", [True, False])
def test_lower_bound(keep_draws):
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


# --- threads


@pytest.mark.parametrize(
    ("n_jobs", "n_chains", "at_once", "threads_each"), [(1, 3, 1, 1), (2, 3, 2, 1), (5, 2, 2, 2), (4, 1, 1, 4)]
)
def test_threads_go_to_chains_first(model, monkeypatch, n_jobs, n_chains, at_once, threads_each):
    pools = Mock(side_effect=chains.ThreadPoolExecutor)
    workers = Mock(side_effect=chains.gibbs.Workers)
    monkeypatch.setattr(chains, "ThreadPoolExecutor", pools)
    monkeypatch.setattr(chains.gibbs, "Workers", workers)
    schedule = Schedule(n_chains, burn_in=0, n_draws=1)
    run(Store(model, schedule), SEED, n_jobs=n_jobs)
    assert pools.call_args_list == [call(at_once)]
    assert workers.call_args_list == [call(threads_each)] * n_chains


def test_progress(model, capsys):
    store = Store(model, SCHEDULE)
    run(store, SEED)
    assert capsys.readouterr().err == ""
    run(Store(model, SCHEDULE), SEED, progress=True)
    lines = capsys.readouterr().err.splitlines()
    for chain in range(3):
        last = [line for line in lines if line.startswith(f"chain {chain}: ")][-1]
        assert last.startswith(f"chain {chain}: 12/12 sweeps, ")
        mse = store.arrays["train_mse"][chain, -1]
        assert last.endswith(f"training MSE {mse:.4g}")


# --- errors and interruption


def change_step(monkeypatch, change):
    """Call change(chain, state) after every sweep, and go on with the state that it returns."""
    step = chains.gibbs.step

    def changed(model, state, stream, *args, **options):
        return change(stream.chain, step(model, state, stream, *args, **options))

    monkeypatch.setattr(chains.gibbs, "step", changed)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_in_one_chain_stops_the_others_and_is_raised(model, monkeypatch, n_jobs):
    schedule = Schedule(n_chains=2, burn_in=0, n_draws=200_000)  # without a stop this would take minutes
    store, started = Store(model, schedule), threading.Event()

    def change(chain, state):
        if chain == n_jobs - 1 and state.sweep == 3:
            assert n_jobs == 1 or started.wait(10)
            raise RuntimeError("broken on purpose")
        started.set()
        return state

    change_step(monkeypatch, change)
    with pytest.raises(RuntimeError, match="broken on purpose"):
        run(store, SEED, n_jobs=n_jobs)
    assert np.count_nonzero(store.arrays["train_mse"], axis=1).max() < 100_000


def changed_factor(name, value):
    def change(state):
        factor = getattr(state, name).copy()
        factor[-1, -1] = value
        return state._replace(**{name: factor})

    return change


def changed_variance(row, column=1.0):
    return lambda state: state._replace(noise=state.noise._replace(row=np.full(8, row), column=np.full(6, column)))


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state._replace(squared_error=np.inf),
        *(changed_factor(*at) for at in (("W", np.nan), ("Zt", np.inf), ("Zt", np.nan))),
        *map(changed_variance, (0.0, np.inf, np.nan)),
        changed_variance(1e200, 1e200),
    ],
)
def test_a_state_that_is_not_finite_is_an_error(model, monkeypatch, change):
    change_step(monkeypatch, lambda chain, state: change(state) if (chain, state.sweep) == (1, 4) else state)
    store = Store(model, SCHEDULE)
    with pytest.raises(FloatingPointError, match="range of floating-point numbers in sweep 4"):
        run(store, SEED)
    assert store.states[1].sweep == 3


def test_an_interruption_keeps_the_counts_of_a_resumed_run(model, monkeypatch):
    """Ctrl-C before any chain of a resumed run has started: the draws of the first run count."""
    schedule = Schedule(n_chains=2, burn_in=2, n_draws=50, thinning=2)

    class Refusing(chains.ThreadPoolExecutor):
        def submit(self, *args):
            raise KeyboardInterrupt

    monkeypatch.setattr(chains, "ThreadPoolExecutor", Refusing)
    store = Store(model, schedule)
    store.states[1] = states_of(model, 1)[8]
    assert run(store, SEED) == [0, 3]


# --- what is kept of an interrupted run


def interrupt(monkeypatch, counts):
    """Let a run end when its chains have only so many draws."""

    def run(store, *args, **options):
        for chain, count in enumerate(counts):
            for state in states_of(store.model, chain, count):
                store.record(chain, state)
        return counts

    monkeypatch.setattr(chains, "run", run)


def test_what_is_kept_is_largest(model):
    for counts in product(range(5), repeat=4):
        kept, n_draws = Run(model, SEED, counts=counts).kept
        assert kept == [chain for chain in range(4) if counts[chain] >= n_draws]
        assert len(kept) * n_draws == max(n * sum(count >= n for count in counts) for n in range(5))


@pytest.mark.parametrize(
    ("counts", "of_chains", "n_draws"),
    [([5, 3, 1], [0, 1], 3), ([5, 0, 4], [0, 2], 4), ([2, 2, 2], [0, 1, 2], 2), ([0, 0, 1], [2], 1)],
)
def test_an_interruption_keeps_the_largest_block(model, monkeypatch, tmp_path, counts, of_chains, n_draws):
    interrupt(monkeypatch, counts)
    words = f"interrupted: {n_draws} draws of {len(of_chains)} of 3 chains are kept; "
    again = "call fit again with checkpoint='.*' to continue"
    for remedy, options in (("sample_more continues from here", {}), (again, {"checkpoint": tmp_path})):
        with pytest.warns(UserWarning, match=words + remedy):
            posterior = sample_posterior(model, SCHEDULE, SEED, **options)
        assert_draws(posterior, model, of_chains, n_draws)
    interrupt(monkeypatch, [0, 0, 0])
    with pytest.raises(KeyboardInterrupt, match="before the first draw; with checkpoint=DIRECTORY"):
        sample_posterior(model, SCHEDULE, SEED)


@pytest.mark.parametrize("counts", [[0, 5, 5], [5, 0, 0], [5, 4, 0], [4, 5, 4], [1, 1, 1]])
def test_moments_of_an_interrupted_run(model, monkeypatch, counts):
    """Those of all draws of the chains in use, each chain with the same weight."""
    interrupt(monkeypatch, counts)
    with pytest.warns(UserWarning, match="interrupted"):
        moments = sample_posterior(model, SCHEDULE, SEED, keep_draws=False)
    kept = [states_of(model, chain, counts[chain]) for chain in Run(model, SEED, counts=counts).kept[0]]
    products = [np.array([state.W @ state.Z for state in states if SCHEDULE.keeps(state.sweep)]) for states in kept]
    means = np.array([draws.mean(axis=0) for draws in products])
    np.testing.assert_allclose(moments.mean(), means.mean(axis=0), rtol=1e-10)
    within = np.mean([draws.var(axis=0) for draws in products], axis=0)
    np.testing.assert_allclose(moments.std(noise=False), np.sqrt(within + means.var(axis=0)), rtol=1e-8)


# --- long runs are announced


def long_run(model, monkeypatch, before_each_sweep, seconds_left, waits=(0.02,) * 20, **options):
    """Run with sweeps that seem to take so long that some seconds are left, and return what was warned of."""
    monkeypatch.setattr(chains, "SECONDS_BEFORE_ESTIMATE", 0.05)
    monkeypatch.setattr(chains, "SECONDS_BETWEEN_WAITS", 0.01)
    monkeypatch.setattr(chains, "LONG_RUN_SECONDS", seconds_left)
    waits = iter(waits)
    before_each_sweep(lambda state: time.sleep(next(waits, 0.0)))
    schedule = Schedule(n_chains=2, burn_in=0, n_draws=10)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(Store(model, schedule), SEED, **options)
    return [found for found in caught if found.category is chains.LongRunWarning]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_long_run_is_announced_once(model, monkeypatch, before_each_sweep, n_jobs):
    (found,) = long_run(model, monkeypatch, before_each_sweep, 0.01, n_jobs=n_jobs)
    assert "this run will take about" in str(found.message)
    assert "progress=True" in str(found.message)
    assert "checkpoint=DIRECTORY" in str(found.message)


@pytest.mark.parametrize(
    ("seconds", "options"),
    [
        (600.0, {}),
        (0.01, {"progress": True}),
        (0.01, {"deadline": time.monotonic() + 1e6}),
        (3.0, {"waits": (0.4, 0.4)}),  # only the first sweeps are slow
    ],
)
def test_other_runs_are_not_announced(model, monkeypatch, before_each_sweep, capsys, seconds, options):
    assert long_run(model, monkeypatch, before_each_sweep, seconds, **options) == []


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
