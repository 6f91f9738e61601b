"""As many draws as good predictions need: when it stops, what it says, and whether it lengthens chains or adds some."""

import itertools
import time
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tests.posteriors import assert_same_draws

from bnmf import BayesianNMF
from bnmf.posterior import fitting, posterior
from bnmf.posterior.verdict import PREDICTION_ERRORS
from bnmf.sampler import chains, until_converged
from bnmf.sampler.stores import Schedule
from bnmf.sampler.until_converged import more_chains_help
from bnmf.utils.text import counted


def data():
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(20, 2)) @ rng.exponential(size=(2, 8)) + 0.3 * rng.random((20, 8))
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


def auto(**settings):
    return BayesianNMF(
        **{"n_components": 2, "n_chains": 2, "burn_in": 20, "n_draws": "auto", "random_state": 1}
        | {"calibrate": False, "n_jobs": 1, "noise": "column"}
        | settings
    )


def fixed(model, **settings):
    """Return the fit with as many chains and draws as another had in the end."""
    n_chains, n_draws = model.posterior_.W.shape[:2]
    return auto(n_chains=n_chains, n_draws=n_draws, **settings).fit(data())


def assert_same(a, b):
    assert_same_draws(a.posterior_, b.posterior_)


def let_errors_be(monkeypatch, *errors):
    """Let predictions have these Monte Carlo errors, one after each look; the last one is repeated."""
    reported = {}

    def error(draws):
        return reported.setdefault(draws.shape[:2], errors[min(len(reported), len(errors) - 1)])

    monkeypatch.setattr(until_converged, "monte_carlo_error", error)
    monkeypatch.setattr(posterior, "monte_carlo_error", error)


def choose(monkeypatch, *choices):
    """Let it add chains where a choice is True."""
    remaining = itertools.chain(choices, itertools.repeat(choices[-1]))
    monkeypatch.setattr(until_converged, "more_chains_help", lambda draws, schedule: next(remaining))


# --- the end


def test_good_predictions_end_it():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = auto().fit(data())
    error = model.posterior_.prediction_error()
    assert error <= PREDICTION_ERRORS[0]
    n_chains, n_draws = model.posterior_.W.shape[:2]
    assert model.ending_ == "complete"
    assert model.message_ == f"{counted(n_draws, 'draw')} of {counted(n_chains, 'chain')} were taken"
    assert model.n_iter_ == 20 + n_draws
    assert_same(model, fixed(model))


def test_chains_are_doubled_in_length_or_in_number_until_predictions_are_good(monkeypatch):
    let_errors_be(monkeypatch, 0.9, 0.3, 0.1)
    choose(monkeypatch, False, True)
    model = auto(n_jobs=2, thinning=2).fit(data())
    assert model.posterior_.W.shape[:2] == (4, 200)
    assert_same(model, fixed(model, thinning=2))


def test_time_is_up_in_the_middle(monkeypatch, before_each_sweep):
    """By a clock that jumps: what there is is returned, without a warning, and no Ctrl-C is reported."""
    let_errors_be(monkeypatch, 0.2)
    choose(monkeypatch, False)
    count, now = itertools.count(), [0.0]

    def stopping(state):
        now[0] += 0.01
        if next(count) == 2 * 120 + 50:  # in the middle of the second hundred of the first chain
            now[0] = 100.0
            time.sleep(0.6)  # until that is noticed

    before_each_sweep(stopping)
    monkeypatch.setattr(until_converged.time, "monotonic", lambda: now[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = auto(max_time=50).fit(data())
    assert model.ending_ == "max_time"
    assert model.message_ == "the time was up after 100 draws of 2 chains"
    monkeypatch.undo()
    assert_same(model, fixed(model))
    assert_same(model.sample_more(70), auto(n_draws=170).fit(data()))


def test_not_yet_is_a_warning(monkeypatch):
    let_errors_be(monkeypatch, 0.5)
    choose(monkeypatch, False)
    monkeypatch.setattr(until_converged, "MIN_GROWTH", 1e9)
    with pytest.warns(ConvergenceWarning, match="Monte Carlo error 50% of") as caught:
        model = auto().fit(data())
    assert caught[0].filename == __file__
    assert model.ending_ == "max_time"


@pytest.mark.parametrize("n_draws", ["auto", 80])
def test_time_is_up_in_the_burn_in(monkeypatch, before_each_sweep, tmp_path, n_draws):
    """Nothing was drawn, which is an error that says what to do; a checkpoint keeps the sweeps."""
    before_each_sweep(lambda state: time.sleep(0.1 * (state.sweep >= 20)))
    began = time.monotonic()
    with pytest.raises(TimeoutError, match=r"before the first draw, after \d+ of .* call fit again with checkpoint="):
        auto(burn_in=40, n_draws=n_draws, max_time=0.3, checkpoint=tmp_path).fit(data())
    assert time.monotonic() - began < 3.0
    monkeypatch.undo()
    model = auto(burn_in=40, n_draws=30, checkpoint=tmp_path).fit(data())
    assert_same(model, auto(burn_in=40, n_draws=30).fit(data()))


def test_the_first_draws_are_taken_in_any_case_if_the_user_sets_no_limit(monkeypatch):
    monkeypatch.setattr(fitting, "MAX_TIME", 1e-6)
    let_errors_be(monkeypatch, 0.5)
    with pytest.warns(ConvergenceWarning):
        model = auto().fit(data())
    assert model.ending_ == "max_time"
    assert model.posterior_.n_draws == until_converged.N_FIRST_DRAWS


def test_time_is_up_with_a_number_of_draws(monkeypatch, before_each_sweep):
    before_each_sweep(lambda state: time.sleep(0.1 * (state.sweep >= 25)))
    model = auto(n_draws=1000, max_time=0.5).fit(data())
    assert model.ending_ == "max_time"
    n_chains, n_draws = model.posterior_.W.shape[:2]
    assert n_draws < 50
    assert model.message_ == f"the time was up after {counted(n_draws, 'draw')} of {counted(n_chains, 'chain')}"
    monkeypatch.undo()
    assert_same(model, fixed(model))


@pytest.mark.parametrize("adds", [True, False])
def test_no_more_is_begun_than_there_is_time_for(monkeypatch, before_each_sweep, adds):
    """A clock by which every sweep takes a hundredth of a second: 2.4 s for the first draws, 1.6 s are left."""
    now = [0.0]

    def slow(state):
        now[0] += 0.01

    before_each_sweep(slow)
    monkeypatch.setattr(until_converged.time, "monotonic", lambda: now[0])
    let_errors_be(monkeypatch, 0.2)
    choose(monkeypatch, adds)
    model = auto(max_time=4.0).fit(data())
    assert model.posterior_.W.shape[:2] == ((3, 100) if adds else (2, 180))
    assert model.ending_ == "max_time"


def test_without_a_limit(monkeypatch):
    let_errors_be(monkeypatch, 0.3, 0.01)
    assert auto(max_time=np.inf).fit(data()).ending_ == "complete"


def test_memory_is_full(monkeypatch):
    let_errors_be(monkeypatch, 0.2)
    choose(monkeypatch, False)
    # Draws, noise and log density, training errors, sampling.
    n_bytes = 8 * (2 * 200 * ((20 + 8) * 2 + 13) + 2 * 220 + 4 * (20 + 8) * 2)
    monkeypatch.setattr(until_converged.memory, "available", lambda: 2 * n_bytes)
    model = auto().fit(data())
    assert model.posterior_.W.shape[:2] == (2, 200)
    assert model.ending_ == "memory"
    assert model.message_ == "more than 200 draws of 2 chains would not fit into memory"


def test_ctrl_c(monkeypatch):
    let_errors_be(monkeypatch, 0.2)
    choose(monkeypatch, False)
    calls = itertools.count()
    run = chains.run

    def interrupted(*args, **options):
        counts = run(*args, **options)
        return counts if next(calls) == 0 else [150, 120]

    monkeypatch.setattr(chains, "run", interrupted)
    with pytest.warns(UserWarning, match=r"interrupted: 120 draws of 2 of 2 chains are kept; sample_more continues"):
        model = auto().fit(data())
    assert model.posterior_.W.shape[:2] == (2, 120)
    monkeypatch.undo()
    assert_same(model.sample_more(10), auto(n_draws=130).fit(data()))


# --- with other features


def test_with_a_checkpoint(tmp_path, monkeypatch):
    """A fit that is repeated reads what is there, and goes on only if it must."""
    let_errors_be(monkeypatch, 0.3, 0.05)
    choose(monkeypatch, True)
    model = auto(checkpoint=tmp_path).fit(data())
    assert model.posterior_.W.shape[:2] == (4, 100)
    assert_same(model, fixed(model))
    choose(monkeypatch, True)
    monkeypatch.setattr(chains.gibbs, "step", None)
    assert_same(auto(checkpoint=tmp_path).fit(data()), model)


# --- longer chains or more of them

SCHEDULE = Schedule(n_chains=4, burn_in=300, n_draws=400)


def autoregression(rng, n_draws, correlation):
    """Return 4 stationary chains (chain, draw, 100) of variance 1."""
    noise = rng.standard_normal((n_draws, 4, 100))
    draws = [noise[0]]
    for step in noise[1:]:
        draws.append(correlation * draws[-1] + np.sqrt(1 - correlation**2) * step)
    return np.array(draws).swapaxes(0, 1)


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_chains_that_mix_are_made_longer_and_those_in_different_modes_get_more_of_them(correlation):
    rng = np.random.default_rng(0)
    draws, modes = autoregression(rng, 400, correlation), rng.standard_normal((4, 1, 100))
    assert not more_chains_help(draws, SCHEDULE)
    assert more_chains_help(draws + modes, SCHEDULE)


def test_the_cost_of_the_burn_in_counts():
    """The same chains: with a long burn-in it is cheaper to go on."""
    rng = np.random.default_rng(0)
    draws = autoregression(rng, 400, 0.5) + 0.2 * rng.standard_normal((4, 1, 100))
    assert more_chains_help(draws, Schedule(n_chains=4, burn_in=300, n_draws=400))
    assert not more_chains_help(draws, Schedule(n_chains=4, burn_in=300_000, n_draws=400))


def test_one_chain_is_made_longer():
    assert not more_chains_help(np.random.default_rng(0).normal(size=(1, 40, 3)), SCHEDULE)
