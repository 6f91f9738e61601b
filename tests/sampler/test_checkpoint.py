"""Long runs: killed, interrupted or made longer, they end with the draws of a run that was never disturbed."""

import json
import os
import pickle
import shutil
import signal
import time
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.posteriors import assert_same_draws

from bnmf import BayesianNMF
from bnmf.data import ObservedMatrix
from bnmf.model.build import build
from bnmf.noise import CommonNoise, GroupedNoise, StudentT
from bnmf.priors import L1, Gamma, L2Squared
from bnmf.sampler import chains, checkpoint
from bnmf.sampler.checkpoint import CheckpointError, DiskStore, describe
from bnmf.sampler.moves import MIXING, PLAIN
from bnmf.sampler.stores import Schedule
from bnmf.utils import files

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

Usage = namedtuple("Usage", "free")
SETTINGS = {"n_components": 3, "n_chains": 2, "burn_in": 6, "n_draws": 8, "random_state": 3, "n_jobs": 1}
SETTINGS |= {"prior": "gl22", "noise": "common", "scale": None, "calibrate": False}
X = np.random.default_rng(0).exponential(size=(30, 20))
INCOMPLETE = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)


def fit(data=X, *, given=None, **settings):
    return BayesianNMF(**SETTINGS | settings).fit(data, **(given or {}))


def assert_same(a, b):
    assert_same_draws(a.posterior_, b.posterior_)


@pytest.fixture(scope="module")
def plain():
    """The fit without a checkpoint."""
    return fit()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A directory with a finished run; each test takes a copy."""
    directory = tmp_path_factory.mktemp("finished")
    fit(checkpoint=directory)
    return directory


@pytest.fixture
def directory(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


@pytest.fixture
def sweeps(before_each_sweep):
    """A list that gets an element for each sweep, and raises an error when it has as many as `limit`."""

    class Count(list):
        limit = None

    count = Count()

    def counting(state):
        if len(count) == count.limit:
            raise RuntimeError("broken on purpose")
        count.append(1)

    before_each_sweep(counting)
    return count


def fail_after(sweeps, n_sweeps, *args, **settings):
    """Start a fit that ends with an error after some sweeps of all chains."""
    sweeps.limit = n_sweeps
    with pytest.raises(RuntimeError, match="broken on purpose"):
        fit(*args, **settings)
    sweeps.clear()
    sweeps.limit = None


def test_a_finished_run_is_read_and_not_sampled_again(directory, plain, sweeps):
    read = fit(checkpoint=directory)
    assert_same(read, plain)
    assert not sweeps
    for draws in (read.posterior_.W, read.posterior_.Z):
        assert isinstance(draws, np.memmap)
        with pytest.raises(ValueError, match="read-only"):
            draws[0, 0, 0, 0] = 1.0


# --- settings


def test_other_settings_are_refused(directory):
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    for change, word in (
        ({"n_components": 4}, "n_components was 3, now 4"),
        ({"burn_in": 21}, "burn_in was 6, now 21"),
        ({"thinning": 2}, "thinning was 1, now 2"),
        ({"random_state": 4}, "seed was '3', now '4'"),
        ({"draws_dtype": "float32"}, "dtype was 'float64', now 'float32'"),
    ):
        with pytest.raises(CheckpointError, match=f"other data or settings .{word}"):
            fit(checkpoint=directory, **change)
    changed = X.copy()
    changed[3, 4] += 1e-12
    with pytest.raises(CheckpointError, match=r"settings \(the data differ\): use"):
        fit(changed, checkpoint=directory)
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == before


def described(moves=MIXING, **changes):
    """Return the settings of a model, as a file holds them."""
    parameters = {"n_components": 3, "prior": "gl22", "noise": "common", "scale": None, "offset": None} | changes
    built = build(ObservedMatrix.from_data(X), **parameters)
    return json.loads(json.dumps(describe(built.model, 3, "random", moves)))


SCALE = np.random.default_rng(2).uniform(0.5, 2.0, size=(30, 20))


@pytest.mark.parametrize(
    ("first", "second", "key"),
    [
        ({"prior": "gl22"}, {"prior": "gee"}, "prior_W"),
        ({}, {"noise": CommonNoise(scale=2.0)}, "noise"),
        ({"noise": "column"}, {"noise": "row"}, "noise"),
        ({"noise": "both"}, {"noise": GroupedNoise("both", 4.0)}, "noise"),
        ({"noise": GroupedNoise("row", 3.0)}, {"noise": GroupedNoise("row", 4.0)}, "noise"),
        ({"noise": "column"}, {"noise": StudentT()}, "noise"),
        ({"noise": StudentT(np.int64(4))}, {"noise": StudentT(None)}, "noise"),
        ({}, {"scale": "matrix"}, "units"),
        ({"scale": "matrix"}, {"scale": "column"}, "units"),
        ({}, {"offset": "min"}, "offset"),
        ({"prior": L2Squared(0.1)}, {"prior": L2Squared()}, "prior_W"),
        ({"prior": L2Squared()}, {"prior": L2Squared(by="component")}, "prior_W"),
        ({"prior": (L1(1.0), L1(Gamma(1.0, 2.0)))}, {"prior": (L1(1.0), L1(Gamma(1.0, 3.0)))}, "prior_Z"),
        ({"prior": L1()}, {"prior": (L1(), L1())}, "rates"),  # one learned rate, or two
        ({}, {"fixed_components": np.ones((1, 20))}, "fixed"),
        ({}, {"noise_scale": SCALE}, "known_noise"),
        ({"noise_scale": SCALE}, {"noise_scale": SCALE * np.linspace(1.0, 1.001, 20)}, "known_noise"),
        ({"noise_scale": SCALE}, {"noise_scale": SCALE, "sample_weight": np.arange(1.0, 31.0)}, "known_noise"),
        ({}, {"moves": PLAIN}, "moves"),
        # Numbers of NumPy are written as plain ones.
        ({"noise": CommonNoise(np.int64(2), np.float32(1.0))}, {"noise": CommonNoise(2.0, 3.0)}, "noise"),
        ({"noise": GroupedNoise("column", np.float32(2.0))}, {"noise": GroupedNoise("column", 3.0)}, "noise"),
        ({"prior": L1(Gamma(np.int64(2), np.float32(1.0)))}, {"prior": L1(Gamma(2.0, 2.0))}, "prior_W"),
    ],
)
def test_settings_tell_models_apart(first, second, key):
    first, again, second = (described(**changes) for changes in (first, first, second))
    assert first == again
    assert key in {name for name in first if first[name] != second[name]}


def test_without_a_seed_the_stored_one_is_used(tmp_path):
    first = fit(checkpoint=tmp_path, random_state=None)
    assert_same(fit(checkpoint=tmp_path, random_state=None), first)


# --- Ctrl-C


def test_ctrl_c_while_a_chain_is_being_started(monkeypatch):
    class Interrupted(ThreadPoolExecutor):
        def submit(self, *args, **kwargs):
            super().submit(*args, **kwargs)
            time.sleep(0.5)  # sweeps go on meanwhile
            raise KeyboardInterrupt

    monkeypatch.setattr(chains, "ThreadPoolExecutor", Interrupted)
    with pytest.warns(UserWarning, match="sample_more continues from here"):
        model = fit(n_draws=10**5, n_chains=1, n_components=1)
    assert 1 < model.posterior_.n_draws < 10**5


def test_ctrl_c_with_a_checkpoint_goes_on_with_more_threads(tmp_path, monkeypatch, before_each_sweep):
    count = iter(range(10**9))

    def press(state):
        if next(count) == 30:
            time.sleep(0.2)  # until the main thread has left the pool's own code, which loses a thread that it starts
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)

    before_each_sweep(press)
    with pytest.warns(UserWarning, match="interrupted.* call fit again with checkpoint="):
        first = fit(n_draws=50, checkpoint=tmp_path)
    assert first.posterior_.n_draws < 50
    assert_same(pickle.loads(pickle.dumps(first)), first)
    monkeypatch.undo()
    assert_same(fit(n_draws=50, checkpoint=tmp_path, n_jobs=2), fit(n_draws=50))


# --- errors and kills

LEARNED = L1(by="component"), L2Squared(Gamma(2.0, 0.5))
VARIANTS = {
    "noise by column": {"noise": "column"},
    "noise by row": {"noise": "row"},
    "gross errors": {"noise": "contaminated"},
    "factors of both signs": {"prior": ("laplace", "normal"), "noise": "column"},
    "Student's t by both, learned": {"noise": StudentT(None, "both"), "scale": "column"},
    "known noise": {"noise": "known", "given": {"noise_scale": SCALE}},
    "Student's t, known errors": {"noise": StudentT(), "given": {"noise_scale": SCALE}},
    "everything": {"prior": LEARNED, "noise": "both", "scale": "column", "offset": "min"},
}


@pytest.mark.parametrize(("number", "name"), list(enumerate(VARIANTS)))
def test_every_model_resumes_with_the_same_draws(tmp_path, sweeps, number, name):
    """After 3 sweeps of the first chain, or in the middle of the draws of the second: bit for bit."""
    settings, n_sweeps = {"thinning": 2, **VARIANTS[name]}, (3, 30)[number % 2]
    fail_after(sweeps, n_sweeps, INCOMPLETE, checkpoint=tmp_path, **settings)
    resumed = fit(INCOMPLETE, checkpoint=tmp_path, **settings)
    assert len(sweeps) == 2 * (6 + 2 * 8) - n_sweeps
    assert_same(resumed, fit(INCOMPLETE, **settings))


def test_a_run_that_was_cut_off_can_be_made_longer(tmp_path, sweeps):
    fail_after(sweeps, 18, checkpoint=tmp_path)
    assert_same(fit(checkpoint=tmp_path, n_draws=11), fit(n_draws=11))


def test_draws_are_on_disk_before_their_state(tmp_path, monkeypatch):
    """Every state is written after all files of draws were, since the state before."""
    events = []
    flush, write = np.memmap.flush, checkpoint.write_bytes
    monkeypatch.setattr(np.memmap, "flush", lambda array: (events.append("flush"), flush(array))[1])
    monkeypatch.setattr(checkpoint, "write_bytes", lambda *args: (events.append(args[0].name), write(*args))[1])
    monkeypatch.setattr(chains, "SECONDS_BETWEEN_CHECKPOINTS", -1.0)
    fit(checkpoint=tmp_path, burn_in=1, n_draws=3)
    states = [i for i, event in enumerate(events) if event.startswith("chain-")]
    assert len(states) == 2 * 4
    n_files = len(list(tmp_path.glob("*.npy")))
    for i in states:
        assert events[i - n_files : i] == ["flush"] * n_files


# --- longer and shorter runs


@pytest.mark.parametrize(
    ("settings", "change", "n_sweeps"),
    [
        ({"thinning": 3}, {"n_draws": 13}, 30),
        ({"noise": "both", "prior": (L1(), L1(by="component")), "offset": "min"}, {"n_draws": 13, "n_jobs": 2}, 10),
        ({}, {"n_chains": 3}, 14),
        ({}, {"n_draws": 3, "n_chains": 1}, 0),
    ],
)
def test_another_length_draws_what_is_missing_and_loses_nothing(tmp_path, sweeps, settings, change, n_sweeps):
    first = fit(checkpoint=tmp_path, **settings)
    sweeps.clear()
    changed = fit(checkpoint=tmp_path, **settings | change)
    assert len(sweeps) == n_sweeps
    assert_same(fit(checkpoint=tmp_path, **settings), first)
    assert len(sweeps) == n_sweeps
    assert_same(changed, fit(**settings | change))


@pytest.mark.parametrize("n_files", [0, 1, 4])
def test_cut_off_between_the_files(directory, plain, monkeypatch, n_files):
    """Files of different length: both the old and the new length still work, and nothing of the old was lost."""
    replace_file, count = files.os.replace, iter(range(100))

    def failing(*args):
        if next(count) == n_files:
            raise RuntimeError("broken on purpose")
        replace_file(*args)

    monkeypatch.setattr(files.os, "replace", failing)
    with pytest.raises(RuntimeError, match="broken on purpose"):
        fit(checkpoint=directory, n_draws=13)
    monkeypatch.undo()
    assert_same(fit(checkpoint=directory), plain)
    assert_same(fit(checkpoint=directory, n_draws=13), fit(n_draws=13))


# --- whose files they are


def test_one_process_at_a_time(directory, plain):
    """The lock is that of an open file, whichever process has opened it."""
    model = build(ObservedMatrix.from_data(X), n_components=3, prior="gl22", noise="common", scale=None, offset=None)[0]
    schedule = Schedule(n_chains=2, burn_in=6, n_draws=8)
    other = DiskStore(model, schedule, float, directory, describe(model, 3, "random", MIXING))
    with pytest.raises(CheckpointError, match="another process"):
        fit(checkpoint=directory)
    other.close()
    assert_same(fit(checkpoint=directory), plain)


FOREIGN = [".something.tmp", ".W.npy.mine.tmp", ".notes.npy.tmp", ".chain-a.npz.1-2.tmp", "notes.txt", ".hidden"]
ABANDONED = [".W.npy.123-140230.tmp", ".chain-0.npz.123-140230.tmp", ".settings.json.1-2.tmp"]


def test_foreign_files_are_left_alone(tmp_path):
    """And unfinished files of a killed process are removed."""
    foreign = {name: f"content of {name}".encode() for name in [*FOREIGN, "lock"]}
    for name, content in foreign.items():
        (tmp_path / name).write_bytes(content)
    fit(checkpoint=tmp_path)
    for name in ("mine.npy", *ABANDONED):  # come later
        (tmp_path / name).write_bytes(b"mine")
    for settings in ({}, {"n_draws": 10}, {"n_chains": 3}):
        fit(checkpoint=tmp_path, **settings)
    assert {name: (tmp_path / name).read_bytes() for name in foreign} == foreign
    assert (tmp_path / "mine.npy").read_bytes() == b"mine"
    assert not any((tmp_path / name).exists() for name in ABANDONED)


@pytest.mark.parametrize("name", ["W.npy", "chain-0.npz", "settings.json", "mine.npy"])
def test_a_directory_with_files_of_these_names_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"{}")
    with pytest.raises(CheckpointError, match="use another directory"):
        fit(checkpoint=tmp_path)
    assert (tmp_path / name).read_bytes() == b"{}"


# --- damage


def test_a_file_that_was_cut_off_is_not_filled_with_zeros(directory):
    path = directory / "W.npy"
    path.write_bytes(path.read_bytes()[:-8])
    n_bytes = path.stat().st_size
    with pytest.raises(CheckpointError, match=r"W.npy .* cannot be read .*; remove the directory"):
        fit(checkpoint=directory, n_draws=5)
    assert path.stat().st_size == n_bytes


@pytest.mark.parametrize(
    ("name", "place", "words"),
    [
        ("train_mse", (1, 2), "train_mse.npy, sweeps 1 to 14"),
        ("W", (1, 7, 3, 2), "W.npy, sweeps 1 to 14"),
        ("Z", (1, 8, 0, 19), "Z.npy, sweeps 15 to 17"),
    ],
)
def test_a_changed_number_is_found(directory, plain, name, place, words):
    """Its last bit, in any piece of the run."""
    fit(checkpoint=directory, n_draws=11)
    file = np.lib.format.open_memmap(directory / f"{name}.npy", mode="r+")
    file[place] = np.nextafter(file[place], 2.0)
    file.flush()
    with pytest.raises(CheckpointError, match=rf"{words} of chain 1.* is damaged; remove chain-1.npz"):
        fit(checkpoint=directory, n_draws=11)
    (directory / "chain-1.npz").unlink()  # what the message says
    assert_same(fit(checkpoint=directory), plain)


def test_files_of_other_runs_and_chains_are_found(directory):
    for path in directory.glob("*.npy"):
        file = np.lib.format.open_memmap(path, mode="r+")
        file[1] = file[0]
    shutil.copy(directory / "chain-0.npz", directory / "chain-1.npz")
    with pytest.raises(CheckpointError, match=r"of chain 1.* is damaged"):
        fit(checkpoint=directory)
    np.save(directory / "W.npy", np.zeros((2, 8, 29, 3)))
    with pytest.raises(CheckpointError, match=r"W.npy in .* does not belong to this run"):
        fit(checkpoint=directory, n_draws=9)


# --- room on disk


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="needs the number of blocks of a file")
def test_the_room_of_every_file_is_reserved(tmp_path, sweeps):
    """Before the first draw: the fit fails in its first sweep, and no file has holes."""
    fail_after(sweeps, 0, checkpoint=tmp_path, n_draws=500)
    found = list(tmp_path.glob("*.npy"))
    assert len(found) >= 4
    for path in found:
        assert 512 * path.stat().st_blocks >= path.stat().st_size


def test_a_disk_without_room_is_refused_before_the_first_file(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(10_000))
    with pytest.raises(OSError, match=r"no room on disk: the draws in checkpoint=.* needs .* kB, and 9.8 kB are free"):
        fit(checkpoint=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]
