"""Several chains: their draws are those of one chain at a time, however they are run, stopped and continued."""

import threading
import time
import warnings
from itertools import product
from unittest.mock import Mock, call

import numpy as np
import pytest

from bnmf.data import ObservedMatrix
from bnmf.model import Model
from bnmf.sampler import chains
from bnmf.sampler.chains import run
from bnmf.sampler.gibbs import sample
from bnmf.sampler.moves import PLAIN
from bnmf.sampler.run import Run
from bnmf.sampler.stores import Schedule, Store
from bnmf.sampler.streams import Stream

SEED = 5
SCHEDULE = Schedule(n_chains=3, burn_in=2, n_draws=4, thinning=2)


@pytest.fixture
def model():
    X = np.random.default_rng(0).exponential(size=(8, 6))
    X[2, 3] = X[7, 0] = X[0, 5] = np.nan
    return Model(ObservedMatrix.from_data(X), 2)


def states_of(model, chain, **options):
    """Return the states of one chain after each sweep."""
    return list(sample(model, Stream(SEED, chain), n_sweeps=SCHEDULE.n_sweeps, **options))


def assert_holds(store, chain, states):
    """Assert that a store holds the draws of a chain with these states."""
    kept = [state for state in states if store.schedule.keeps(state.sweep)]
    expected = {"W": [state.W for state in kept], "Z": [state.Z for state in kept]}
    expected["noise_variance"] = [state.sigma2 for state in kept]
    for name, values in expected.items():
        found = store.arrays[name][chain, : len(kept)]
        np.testing.assert_array_equal(found, np.array(values, found.dtype))
    mse = [state.squared_error / 45 for state in states]
    np.testing.assert_array_equal(store.arrays["train_mse"][chain, states[0].sweep - 1 : states[-1].sweep], mse)


# --- the draws


@pytest.mark.parametrize("options", [{}, {"moves": PLAIN, "init": (np.full((8, 2), 0.5), np.full((2, 6), 1.5))}])
@pytest.mark.parametrize(("n_jobs", "dtype"), [(1, np.float64), (7, np.float32)])
def test_draws_are_those_of_single_chains_whatever_the_threads(model, n_jobs, dtype, options):
    store = Store(model, SCHEDULE, dtype)
    assert store.arrays["W"].dtype == store.arrays["Z"].dtype == dtype
    assert run(store, SEED, n_jobs=n_jobs, **options) == [4, 4, 4]
    for chain in range(3):
        assert_holds(store, chain, states_of(model, chain, **options))
    assert not np.array_equal(store.arrays["W"][0], store.arrays["W"][1])


def test_the_deadline_stops_all_chains(model):
    schedule = Schedule(n_chains=2, burn_in=0, n_draws=100_000)  # without a stop this would take minutes
    counts = run(Store(model, schedule), SEED, n_jobs=2, deadline=time.monotonic() + 0.3)
    assert all(0 < count < 100_000 for count in counts)


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
        assert last.startswith(f"chain {chain}: 10/10 sweeps, ")
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


def test_what_is_kept_is_largest(model):
    for counts in product(range(5), repeat=4):
        kept, n_draws = Run(model, SEED, counts=counts).kept
        assert kept == [chain for chain in range(4) if counts[chain] >= n_draws]
        assert len(kept) * n_draws == max(n * sum(count >= n for count in counts) for n in range(5))


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
