"""Checkpoints that are made longer: what was there is used and never lost, what was not is drawn."""

import os
import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest

from bnmf import BayesianNMF
from bnmf.priors import L1
from bnmf.sampler import chains
from bnmf.sampler.checkpoint import CheckpointError
from bnmf.utils import files

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SETTINGS = {"n_components": 3, "n_chains": 2, "burn_in": 6, "n_draws": 8, "random_state": 3, "calibrate": False}
# Forks children, each of which makes the same checkpoint longer, and kills each after a moment.
KILLER = """
import os, random, signal, sys, time, warnings
import numpy as np
from bnmf import BayesianNMF
from bnmf.sampler import chains
chains.SECONDS_BETWEEN_CHECKPOINTS = 0.005
X = np.random.default_rng(0).exponential(size=(30, 20))
warnings.simplefilter("ignore")
def fit(n_draws):
    BayesianNMF(**SETTINGS | {"n_draws": n_draws}, n_jobs=2, checkpoint=sys.argv[1]).fit(X)
fit(500)
clock = random.Random(1)
for i in range(4):
    child = os.fork()
    if child == 0:
        fit(4000 + 1000 * i)
        os._exit(0)
    time.sleep(clock.uniform(0.0, 0.15))
    os.kill(child, signal.SIGKILL)
    print("killed" if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL else "came to its end")
"""


def data():
    return np.random.default_rng(0).exponential(size=(30, 20))


def fit(**settings):
    return BayesianNMF(**SETTINGS | settings).fit(data())


def assert_same(a, b):
    """Assert that all arrays of two fits are equal."""
    for item in fields(a.posterior_):
        found, expected = getattr(a.posterior_, item.name), getattr(b.posterior_, item.name)
        if isinstance(expected, np.ndarray):
            np.testing.assert_array_equal(found, expected, err_msg=item.name)
    np.testing.assert_array_equal(a.components_, b.components_)


@pytest.fixture
def sweeps(monkeypatch):
    """Return a list that gets an element for each sweep."""
    step, count = chains.gibbs.step, []

    def counting(*args):
        count.append(1)
        return step(*args)

    monkeypatch.setattr(chains.gibbs, "step", counting)
    return count


@pytest.mark.parametrize(
    ("settings", "n_jobs"),
    [({"thinning": 3}, 1), ({"noise": "both", "prior": (L1(), L1(by="component")), "offset": "min"}, 2)],
)
def test_more_draws(tmp_path, sweeps, settings, n_jobs):
    fit(checkpoint=tmp_path, **settings)
    n_before = len(sweeps)
    longer = fit(checkpoint=tmp_path, n_draws=13, n_jobs=n_jobs, **settings)
    assert len(sweeps) - n_before == 2 * 5 * settings.get("thinning", 1)
    assert_same(longer, fit(n_draws=13, **settings))


def test_more_chains(tmp_path, sweeps):
    fit(checkpoint=tmp_path)
    n_before = len(sweeps)
    assert_same(fit(checkpoint=tmp_path, n_chains=3), fit(n_chains=3))
    assert len(sweeps) - n_before == (1 + 3) * 14


def test_fewer_draws_and_chains_are_the_first_ones(tmp_path, sweeps):
    """Nothing is drawn, and nothing is lost."""
    whole = fit(checkpoint=tmp_path)
    del sweeps[:]
    short = fit(checkpoint=tmp_path, n_draws=3, n_chains=1)
    again = fit(checkpoint=tmp_path)
    assert not sweeps
    assert_same(again, whole)
    assert_same(short, fit(n_draws=3, n_chains=1))


def test_a_run_that_was_cut_off_can_be_made_longer(tmp_path, monkeypatch):
    step, count = chains.gibbs.step, iter(range(10**9))

    def failing(*args):
        if next(count) == 18:
            raise RuntimeError("broken on purpose")
        return step(*args)

    monkeypatch.setattr(chains, "SECONDS_BETWEEN_CHECKPOINTS", -1.0)
    monkeypatch.setattr(chains.gibbs, "step", failing)
    with pytest.raises(RuntimeError, match="broken on purpose"):
        fit(checkpoint=tmp_path)
    monkeypatch.undo()
    assert_same(fit(checkpoint=tmp_path, n_draws=11), fit(n_draws=11))


@pytest.mark.parametrize("n_files", [0, 1, 4])
def test_cut_off_between_the_files(tmp_path, monkeypatch, n_files):
    """Files of different length: both the old and the new length still work, and nothing of the old was lost."""
    old = fit(checkpoint=tmp_path, noise="common")
    replace_file, count = files.os.replace, iter(range(100))

    def failing(*args):
        if next(count) == n_files:
            raise RuntimeError("broken on purpose")
        replace_file(*args)

    monkeypatch.setattr(files.os, "replace", failing)
    with pytest.raises(RuntimeError, match="broken on purpose"):
        fit(checkpoint=tmp_path, n_draws=13, noise="common")
    monkeypatch.undo()
    assert_same(fit(checkpoint=tmp_path, noise="common"), old)
    assert_same(fit(checkpoint=tmp_path, n_draws=13, noise="common"), fit(n_draws=13, noise="common"))


@pytest.mark.proof
@pytest.mark.skipif("BNMF_TEST_SALT" in os.environ, reason="other processes have no salt")
def test_killed_while_it_is_made_longer(tmp_path):
    settings = SETTINGS | {"prior": "gl22", "noise": "common", "scale": None, "calibrate": False}
    script = tmp_path / "run.py"
    script.write_text(KILLER.replace("SETTINGS", repr(settings)))
    directory = tmp_path / "checkpoint"
    done = subprocess.run([sys.executable, script, directory], capture_output=True, text=True, check=True, timeout=200)
    assert done.stdout.count("killed") >= 3
    sizes = {np.load(directory / f"{name}.npy", mmap_mode="r").shape[1] for name in ("W", "Z", "noise_variance")}
    assert max(sizes) > 3999  # some were killed after they had made files longer
    assert_same(fit(**settings | {"n_draws": 400}, checkpoint=directory), fit(**settings | {"n_draws": 400}))
    assert_same(fit(**settings | {"n_draws": 3000}, checkpoint=directory), fit(**settings | {"n_draws": 3000}))


def test_a_file_of_another_run(tmp_path):
    fit(checkpoint=tmp_path)
    np.save(tmp_path / "W.npy", np.zeros((2, 8, 29, 3)))
    with pytest.raises(CheckpointError, match=r"W.npy in .* does not belong to this run"):
        fit(checkpoint=tmp_path, n_draws=9)
