"""Long runs: killed, interrupted and continued, they end with the draws of a run that was never disturbed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields

import numpy as np
import pytest

from bnmf import BayesianNMF
from bnmf.data import ObservedMatrix
from bnmf.model import Model
from bnmf.model.build import build
from bnmf.noise import CommonNoise, GroupedNoise, StudentT
from bnmf.priors import L1, Gamma, L2Squared
from bnmf.sampler import chains, checkpoint
from bnmf.sampler.checkpoint import NUMBERS, CheckpointError, Checksums, DiskStore, describe
from bnmf.sampler.moves import MIXING, PLAIN
from bnmf.sampler.stores import Schedule

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

Usage = namedtuple("Usage", "free")
SETTINGS = {"n_components": 3, "n_chains": 2, "burn_in": 300, "n_draws": 1200, "random_state": 3}
SETTINGS |= {"prior": "gl22", "noise": "common", "scale": None, "calibrate": False}
SCRIPT = """
import sys
import numpy as np
from bnmf import BayesianNMF
from bnmf.sampler import chains
chains.SECONDS_BETWEEN_CHECKPOINTS = 0.01
BayesianNMF(**SETTINGS, checkpoint=sys.argv[1]).fit(np.random.default_rng(0).exponential(size=(30, 20)))
"""
# Forks children that run the same fit, and kills each after a moment. Forked, they need not import anything.
KILLER = """
import os, random, signal, sys, time, warnings
import numpy as np
from bnmf import BayesianNMF
from bnmf.sampler import chains
chains.SECONDS_BETWEEN_CHECKPOINTS = 0.01
X = np.random.default_rng(0).exponential(size=(30, 20))
warnings.simplefilter("ignore")
BayesianNMF(**SETTINGS | {"burn_in": 1, "n_draws": 5}).fit(X)  # compiles and loads everything
clock = random.Random(1)
for number in range(4):
    child = os.fork()
    if child == 0:
        BayesianNMF(**SETTINGS, n_jobs=2, checkpoint=sys.argv[1]).fit(X)
        os._exit(0)
    time.sleep(clock.uniform(0.0, 0.1))
    while number > 1 and not os.path.exists(sys.argv[1] + "/chain-0.npz"):  # on a busy machine
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    print("killed" if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL else "came to its end")
"""


def python(tmp_path, script, settings, directory):
    """Start Python on a script with these settings."""
    path = tmp_path / "run.py"
    path.write_text(script.replace("SETTINGS", repr(settings)))
    return subprocess.Popen([sys.executable, path, directory], stdout=subprocess.PIPE, text=True)


def data():
    return np.random.default_rng(0).exponential(size=(30, 20))


def quick(**settings):
    return BayesianNMF(**SETTINGS | {"burn_in": 20, "n_draws": 20, "n_jobs": 1} | settings)


def draws(model):
    return [np.array(getattr(model.posterior_, name)) for name in ("W", "Z", "noise_variance", "train_mse")]


def assert_same(a, b):
    for x, y in zip(draws(a), draws(b), strict=True):
        np.testing.assert_array_equal(x, y)


def test_checkpoint_changes_nothing(tmp_path):
    kept = quick(checkpoint=tmp_path).fit(data())
    assert_same(kept, quick().fit(data()))
    assert isinstance(kept.posterior_.W, np.memmap)


def test_a_finished_run_is_read_and_not_sampled_again(tmp_path, monkeypatch):
    first = quick(checkpoint=tmp_path).fit(data())

    def refuse(*args, **kwargs):
        raise AssertionError("sampled again")

    monkeypatch.setattr(chains.gibbs, "step", refuse)
    assert_same(quick(checkpoint=tmp_path).fit(data()), first)


@pytest.mark.proof  # `bnmf fit` is killed in the tests of the command line
@pytest.mark.skipif("BNMF_TEST_SALT" in os.environ, reason="other processes have no salt")
def test_killed_at_random_moments_it_ends_the_same(tmp_path):
    """Four kills, of processes that write a checkpoint about every hundredth of a second."""
    settings = SETTINGS | {"n_draws": 4000}
    directory = tmp_path / "checkpoint"
    with python(tmp_path, KILLER, settings, directory) as process:
        output = process.communicate(timeout=300)[0]
    assert output.count("killed") >= 3
    with np.load(directory / "chain-0.npz") as state:
        assert 0 < state["numbers"][NUMBERS.index("sweep")] < 4300  # it was in the middle of the run
    model = BayesianNMF(**settings, checkpoint=directory).fit(data())
    assert_same(model, BayesianNMF(**settings).fit(data()))


def test_other_settings_are_refused(tmp_path):
    quick(checkpoint=tmp_path).fit(data())
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for change, word in (
        ({"n_components": 4}, "n_components was 3, now 4"),
        ({"burn_in": 21}, "burn_in was 20, now 21"),
        ({"thinning": 2}, "thinning was 1, now 2"),
        ({"random_state": 4}, "seed was '3', now '4'"),
        ({"draws_dtype": "float32"}, "dtype was 'float64', now 'float32'"),
    ):
        with pytest.raises(CheckpointError, match=f"other data or settings .{word}"):
            quick(checkpoint=tmp_path, **change).fit(data())
    changed = data()
    changed[3, 4] += 1e-12
    with pytest.raises(CheckpointError, match="data was"):
        quick(checkpoint=tmp_path).fit(changed)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def described(given, **changes):
    """Return the settings of a model, as a file holds them."""
    parameters = {"n_components": 3, "prior": "gl22", "noise": "common", "scale": None, "offset": None} | changes
    built = build(ObservedMatrix.from_data(data()), **parameters, **given)
    return json.loads(json.dumps(describe(built.model, 3, "random", MIXING)))


SCALE = np.random.default_rng(2).uniform(0.5, 2.0, size=(30, 20))


@pytest.mark.parametrize(
    ("first", "second", "key"),
    [
        ({"prior": "gl22"}, {"prior": "gee"}, "prior_W"),
        ({}, {"noise": CommonNoise(scale=2.0)}, "noise"),
        ({"noise": "column"}, {"noise": "row"}, "noise"),
        ({"noise": "column"}, {"noise": "both"}, "noise"),
        ({"noise": "both"}, {"noise": GroupedNoise("both", 4.0)}, "noise"),
        ({"noise": GroupedNoise("row", 3.0)}, {"noise": GroupedNoise("row", 4.0)}, "noise"),
        ({"noise": "column"}, {"noise": StudentT()}, "noise"),
        ({"noise": StudentT()}, {"noise": StudentT(5)}, "noise"),
        ({"noise": StudentT(np.int64(4))}, {"noise": StudentT(None)}, "noise"),
        ({}, {"scale": "matrix"}, "units"),
        ({"scale": "matrix"}, {"scale": "column"}, "units"),
        ({}, {"offset": "min"}, "offset"),
        ({"prior": L2Squared(0.1)}, {"prior": L2Squared()}, "prior_W"),
        ({"prior": L2Squared()}, {"prior": L2Squared(by="component")}, "prior_W"),
        ({"prior": L1(Gamma(1.0, 2.0))}, {"prior": L1(Gamma(2.0, 2.0))}, "prior_W"),
        ({"prior": (L1(1.0), L1(Gamma(1.0, 2.0)))}, {"prior": (L1(1.0), L1(Gamma(1.0, 3.0)))}, "prior_Z"),
        ({"prior": L1()}, {"prior": (L1(), L1())}, "rates"),  # one learned rate, or two
        ({}, {"fixed_components": np.ones((1, 20))}, "fixed"),
        ({}, {"noise_scale": SCALE}, "known_noise"),
        ({"noise_scale": SCALE}, {"noise_scale": SCALE * np.linspace(1.0, 1.001, 20)}, "known_noise"),
        ({"noise_scale": SCALE}, {"noise_scale": SCALE, "sample_weight": np.arange(1.0, 31.0)}, "known_noise"),
    ],
)
def test_settings_tell_models_apart(first, second, key):
    first, again, second = (described({}, **changes) for changes in (first, first, second))
    assert first == again
    assert key in {name for name in first if first[name] != second[name]}


def test_other_moves_are_refused(tmp_path):
    model = Model(ObservedMatrix.from_data(data()), 2)
    schedule = Schedule(n_chains=1, burn_in=0, n_draws=1)
    DiskStore(model, schedule, float, tmp_path, describe(model, 0, "random", MIXING)).close()
    with pytest.raises(CheckpointError, match=r"moves was .*'rescale': True.* now .*'rescale': False"):
        DiskStore(model, schedule, float, tmp_path, describe(model, 0, "random", PLAIN))


def test_without_a_seed_the_stored_one_is_used(tmp_path):
    first = quick(checkpoint=tmp_path, random_state=None).fit(data())
    assert_same(quick(checkpoint=tmp_path, random_state=None).fit(data()), first)


@pytest.mark.parametrize("name", ["settings.json", "chain-0.npz", "W.npy"])
@pytest.mark.parametrize("damage", ["cut", "foreign"])
def test_damaged_files_are_refused(tmp_path, name, damage):
    quick(checkpoint=tmp_path).fit(data())
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:40] if damage == "cut" else b"something else")
    with pytest.raises(CheckpointError, match=name):
        quick(checkpoint=tmp_path).fit(data())


def test_one_process_at_a_time(tmp_path):
    directory = tmp_path / "checkpoint"
    with python(tmp_path, SCRIPT, SETTINGS | {"n_draws": 10**6}, directory) as process:
        try:
            while not (directory / "chain-0.npz").exists():
                time.sleep(0.05)
                assert process.poll() is None
            with pytest.raises(CheckpointError, match="another process"):
                quick(checkpoint=directory).fit(data())
        finally:
            process.kill()


def interrupt_after(monkeypatch, n_sweeps):
    """Press Ctrl-C after `n_sweeps` sweeps of all chains together."""
    step, count = chains.gibbs.step, iter(range(10**9))

    def counting(*args, **kwargs):
        if next(count) == n_sweeps:
            time.sleep(
                0.2
            )  # until the main thread has left the pool's own code, which loses a thread that it is starting
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)
        return step(*args, **kwargs)

    monkeypatch.setattr(chains.gibbs, "step", counting)


def test_ctrl_c_keeps_what_was_drawn(monkeypatch):
    interrupt_after(monkeypatch, 30)
    with pytest.warns(UserWarning, match="sample_more continues from here"):
        model = quick(n_draws=200).fit(data())
    n_draws = model.posterior_.n_draws
    assert 5 < n_draws < 30
    whole = quick(n_draws=200, n_chains=1)
    monkeypatch.undo()
    np.testing.assert_array_equal(model.posterior_.W[0], whole.fit(data()).posterior_.W[0, :n_draws])


def test_ctrl_c_while_a_chain_is_being_started(monkeypatch):
    class Interrupted(ThreadPoolExecutor):
        def submit(self, *args, **kwargs):
            super().submit(*args, **kwargs)
            time.sleep(0.5)  # sweeps go on meanwhile
            raise KeyboardInterrupt

    monkeypatch.setattr(chains, "ThreadPoolExecutor", Interrupted)
    with pytest.warns(UserWarning, match="sample_more continues from here"):
        model = quick(n_draws=10**5, n_chains=1, n_components=1).fit(data())
    assert 1 < model.posterior_.n_draws < 10**5


def test_ctrl_c_with_a_checkpoint_goes_on(tmp_path, monkeypatch):
    interrupt_after(monkeypatch, 50)
    with pytest.warns(UserWarning, match="call fit again with checkpoint="):
        quick(n_draws=200, checkpoint=tmp_path).fit(data())
    monkeypatch.undo()
    assert_same(quick(n_draws=200, checkpoint=tmp_path).fit(data()), quick(n_draws=200).fit(data()))


def test_threads_may_change(tmp_path, monkeypatch):
    interrupt_after(monkeypatch, 50)
    with pytest.warns(UserWarning, match="interrupted"):
        first = quick(n_draws=200, checkpoint=tmp_path, n_jobs=1).fit(data())
    assert first.posterior_.n_draws < 200
    monkeypatch.undo()
    second = quick(n_draws=200, checkpoint=tmp_path, n_jobs=2).fit(data())
    assert_same(second, quick(n_draws=200).fit(data()))


def test_ctrl_c_before_the_first_draw(monkeypatch):
    interrupt_after(monkeypatch, 3)
    with pytest.raises(KeyboardInterrupt, match="before the first draw"):
        quick().fit(data())


def test_an_error_in_a_chain_is_raised(monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(chains.gibbs, "step", fail)
    with pytest.raises(RuntimeError, match="broken on purpose"):
        quick(n_jobs=2).fit(data())


def test_settings_hold_no_path_and_no_data(tmp_path):
    quick(checkpoint=tmp_path).fit(data())
    settings = json.loads((tmp_path / "settings.json").read_text())
    assert settings["format"] == 5
    assert settings["n_components"] == 3
    assert str(tmp_path) not in json.dumps(settings)


# --- noise, units and learned rates

LEARNED = L1(by="component"), L2Squared(Gamma(2.0, 0.5))
VARIANTS = {
    "noise by column": {"noise": "column"},
    "noise by row": {"noise": "row"},
    "rates by component": {"prior": L1(by="component")},
    "factors of both signs": {"prior": ("laplace", "normal"), "noise": "column"},
    "Student's t by both, learned": {"noise": StudentT(None, "both"), "scale": "column"},
    "everything": {"prior": LEARNED, "noise": "both", "scale": "column", "offset": "min"},
}


def incomplete():
    X = data()
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    return X


def fail_after(monkeypatch, n_sweeps):
    """Write a checkpoint after every sweep, raise an error after so many of all chains, and count the sweeps."""
    step, count = chains.gibbs.step, []

    def failing(*args, **kwargs):
        if len(count) == n_sweeps:
            raise RuntimeError("broken on purpose")
        count.append(1)
        return step(*args, **kwargs)

    monkeypatch.setattr(chains, "SECONDS_BETWEEN_CHECKPOINTS", -1.0)
    monkeypatch.setattr(chains.gibbs, "step", failing)
    return count


def arrays_of(posterior):
    """Return every array of a posterior by its name."""
    found = {item.name: getattr(posterior, item.name) for item in fields(posterior)}
    return {name: np.asarray(value) for name, value in found.items() if isinstance(value, np.ndarray)}


@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS)
def test_every_model_resumes_with_the_same_draws(tmp_path, monkeypatch, settings):
    """After 3 sweeps of the first chain, and in the middle of the draws of the second: bit for bit."""
    settings = {"burn_in": 6, "n_draws": 8, "thinning": 2, **settings}
    expected = arrays_of(quick(**settings).fit(incomplete()).posterior_)
    for n_sweeps in [3, 30]:
        directory = tmp_path / str(n_sweeps)
        fail_after(monkeypatch, n_sweeps)
        with pytest.raises(RuntimeError, match="broken on purpose"):
            quick(checkpoint=directory, **settings).fit(incomplete())
        monkeypatch.undo()
        count = fail_after(monkeypatch, 10**9)
        found = arrays_of(quick(checkpoint=directory, **settings).fit(incomplete()).posterior_)
        monkeypatch.undo()
        assert len(count) == 2 * (6 + 2 * 8) - n_sweeps
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.parametrize(
    "settings",
    [
        {"noise": CommonNoise(np.int64(2), np.float32(1.0))},
        {"noise": GroupedNoise("column", np.float32(2.0))},
        {"prior": L1(Gamma(np.int64(2), np.float32(1.0)))},
    ],
    ids=["common", "grouped", "gamma"],
)
def test_numbers_of_numpy_in_settings(tmp_path, settings):
    first = quick(checkpoint=tmp_path, burn_in=1, n_draws=4, **settings).fit(data())
    assert_same(quick(checkpoint=tmp_path, burn_in=1, n_draws=4, **settings).fit(data()), first)


# --- whose files they are


@pytest.mark.parametrize("name", ["", b"", b"directory", 3, ["a"]])
def test_names_that_are_no_directory(name):
    with pytest.raises((ValueError, TypeError), match="checkpoint"):
        quick(checkpoint=name).fit(data())


def test_draws_on_disk_cannot_be_changed(tmp_path):
    posterior = quick(checkpoint=tmp_path).fit(data()).posterior_
    for draws_on_disk in (posterior.W, posterior.Z):
        with pytest.raises(ValueError, match="read-only"):
            draws_on_disk[0, 0, 0, 0] = 1.0


FOREIGN = [
    ".something.tmp",
    ".W.npy.mine.tmp",
    ".notes.npy.tmp",
    ".chain-a.npz.1-2.tmp",
    "notes.txt",
    ".hidden",
    "W.csv",
]


def test_foreign_files_are_left_alone(tmp_path):
    foreign = {name: f"content of {name}".encode() for name in [*FOREIGN, "lock"]}
    for name, content in foreign.items():
        (tmp_path / name).write_bytes(content)
    quick(checkpoint=tmp_path).fit(data())
    (tmp_path / "mine.npy").write_bytes(b"mine")  # comes later
    for settings in ({}, {"n_draws": 30}, {"n_chains": 3}):
        quick(checkpoint=tmp_path, **settings).fit(data())
    assert {name: (tmp_path / name).read_bytes() for name in foreign} == foreign
    assert (tmp_path / "mine.npy").read_bytes() == b"mine"


@pytest.mark.parametrize("name", ["W.npy", "chain-0.npz", "settings.json", "mine.npy"])
def test_a_directory_with_files_of_these_names_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes(b"{}")
    with pytest.raises(CheckpointError, match="use another directory"):
        quick(checkpoint=tmp_path).fit(data())
    assert (tmp_path / name).read_bytes() == b"{}"


def test_unfinished_files_of_a_killed_process_are_removed(tmp_path):
    quick(checkpoint=tmp_path).fit(data())
    names = [".W.npy.123-140230.tmp", ".chain-0.npz.123-140230.tmp", ".settings.json.1-2.tmp"]
    for name in names:
        (tmp_path / name).write_bytes(b"half")
    quick(checkpoint=tmp_path).fit(data())
    assert not any((tmp_path / name).exists() for name in names)


@pytest.mark.parametrize("name", ["settings.json", "W.npy", "lock"])
def test_a_directory_in_place_of_a_file(tmp_path, name):
    quick(checkpoint=tmp_path).fit(data())
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    with pytest.raises((CheckpointError, IsADirectoryError), match=r"remove|use a directory"):
        quick(checkpoint=tmp_path).fit(data())


def test_a_file_that_was_cut_off_is_not_filled_with_zeros(tmp_path):
    quick(checkpoint=tmp_path).fit(data())
    path = tmp_path / "W.npy"
    path.write_bytes(path.read_bytes()[:-8])
    n_bytes = path.stat().st_size
    with pytest.raises(CheckpointError, match=r"W.npy .* cannot be read .*; remove the directory"):
        quick(checkpoint=tmp_path, n_draws=10).fit(data())
    assert path.stat().st_size == n_bytes


def test_a_changed_number_is_found(tmp_path):
    quick(checkpoint=tmp_path).fit(data())
    file = np.lib.format.open_memmap(tmp_path / "W.npy", mode="r+")
    file[1, 7, 3, 2] = np.nextafter(file[1, 7, 3, 2], 2.0)
    file.flush()
    with pytest.raises(CheckpointError, match=r"W.npy, sweeps 1 to 40 of chain 1.* is damaged; remove chain-1.npz"):
        quick(checkpoint=tmp_path).fit(data())
    (tmp_path / "chain-1.npz").unlink()  # what the message says
    assert_same(quick(checkpoint=tmp_path).fit(data()), quick().fit(data()))


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="needs the number of blocks of a file")
def test_the_room_of_every_file_is_reserved(tmp_path, monkeypatch):
    """Before the first draw: the fit fails in its first sweep, and no file has holes."""
    fail_after(monkeypatch, 0)
    with pytest.raises(RuntimeError, match="broken on purpose"):
        quick(checkpoint=tmp_path, n_draws=500).fit(data())
    files = list(tmp_path.glob("*.npy"))
    assert len(files) >= 4
    for path in files:
        assert 512 * path.stat().st_blocks >= path.stat().st_size


def test_a_disk_without_room_is_refused_before_the_first_file(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(10_000))
    with pytest.raises(OSError, match=r"no room on disk: the draws in checkpoint=.* needs .* kB, and 9.8 kB are free"):
        quick(checkpoint=tmp_path).fit(data())
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_draws_are_on_disk_before_their_state(tmp_path, monkeypatch):
    """Every state is written after all files of draws were, since the state before."""
    events = []
    flush, write = np.memmap.flush, checkpoint.write_bytes
    monkeypatch.setattr(np.memmap, "flush", lambda array: (events.append("flush"), flush(array))[1])
    monkeypatch.setattr(checkpoint, "write_bytes", lambda *args: (events.append(args[0].name), write(*args))[1])
    monkeypatch.setattr(chains, "SECONDS_BETWEEN_CHECKPOINTS", -1.0)
    quick(checkpoint=tmp_path, burn_in=1, n_draws=3).fit(data())
    states = [i for i, event in enumerate(events) if event.startswith("chain-")]
    assert len(states) == 2 * 4
    n_files = len(list(tmp_path.glob("*.npy")))
    for i in states:
        assert events[i - n_files : i] == ["flush"] * n_files


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("has_run", [True, False])
def test_a_directory_that_cannot_be_written_to(tmp_path, has_run):
    """As root: tests/hostile/interruptions.py, on a disk that is mounted read-only."""
    directory = tmp_path / "run"
    directory.mkdir()
    if has_run:
        quick(checkpoint=directory).fit(data())
        (directory / "lock").unlink()
    directory.chmod(0o500)
    try:
        with pytest.raises(PermissionError, match=r"checkpoint=.* cannot be written to \(Permission denied\): use a"):
            quick(checkpoint=directory).fit(data())
    finally:
        directory.chmod(0o700)
    assert_same(quick(checkpoint=directory).fit(data()), quick().fit(data()))


def test_a_name_that_is_too_long(tmp_path):
    with pytest.raises(OSError, match=r"checkpoint=.* cannot be written to \(File name too long\): use a directory"):
        quick(checkpoint=tmp_path / ("a" * 300)).fit(data())


# --- known standard errors


def test_a_fit_with_known_noise_resumes_with_the_same_draws(tmp_path, monkeypatch):
    scale = np.random.default_rng(2).uniform(0.5, 2.0, size=(30, 20))
    for number, noise in enumerate(("known", StudentT())):
        settings = {"burn_in": 6, "n_draws": 8, "noise": noise}
        directory = tmp_path / str(number)
        fail_after(monkeypatch, 17)
        with pytest.raises(RuntimeError, match="broken on purpose"):
            quick(checkpoint=directory, **settings).fit(incomplete(), noise_scale=scale)
        monkeypatch.undo()
        resumed = quick(checkpoint=directory, **settings).fit(incomplete(), noise_scale=scale)
        whole = quick(**settings).fit(incomplete(), noise_scale=scale)
        found, expected = (arrays_of(model.posterior_) for model in (resumed, whole))
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value, err_msg=name)


# --- checksums: what was written is recognised, and anything else is not

SCHEDULE = Schedule(n_chains=1, burn_in=3, n_draws=4, thinning=2)
PIECES = (2, 5, 11)  # in the burn-in, after one draw, and the end


def quantities():
    rng = np.random.default_rng(0)
    return {"W": rng.random((4, 3, 2)), "Z": rng.random((4, 2, 5)), "train_mse": rng.random(11)}


def written(values, identity="run 0"):
    sums = Checksums(identity, SCHEDULE)
    for sweep in PIECES:
        sums.add(values, sweep)
    return sums


def read_again(sums, identity="run 0"):
    arrays = sums.arrays()
    return Checksums(identity, SCHEDULE, arrays["ends"], arrays["checksums"])


def test_what_was_written_is_recognised():
    values = quantities()
    sums = read_again(written(values))
    assert sums.end == 11
    assert sums.damaged(values, 11) == ""


def test_a_new_chain_has_none():
    sums = Checksums("run 0", SCHEDULE)
    assert sums.end == 0
    assert sums.damaged(quantities(), 0) == ""


@pytest.mark.parametrize(
    ("name", "place", "words"),
    [
        ("train_mse", 0, "train_mse.npy, sweeps 1 to 2"),
        ("train_mse", 2, "train_mse.npy, sweeps 3 to 5"),
        ("train_mse", 10, "train_mse.npy, sweeps 6 to 11"),
        ("W", (0, 0, 0), "W.npy, sweeps 3 to 5"),
        ("Z", (3, 1, 4), "Z.npy, sweeps 6 to 11"),
    ],
)
def test_the_last_bit_of_any_number_matters(name, place, words):
    values = quantities()
    sums = written(values)
    values[name][place] = np.nextafter(values[name][place], 2.0)
    assert sums.damaged(values, 11) == words


def test_what_came_after_the_last_piece_does_not_matter():
    values = quantities()
    sums = Checksums("run 0", SCHEDULE)
    sums.add(values, 5)
    values["W"][1:] = np.nan
    values["train_mse"][5:] = np.nan
    assert sums.damaged(values, 5) == ""


def test_other_chains_and_runs_are_told_apart():
    values = quantities()
    assert read_again(written(values), "run 1").damaged(values, 11) != ""


def test_draws_in_another_place_are_found():
    values = quantities()
    sums = written(values)
    values["W"][[1, 2]] = values["W"][[2, 1]]
    assert sums.damaged(values, 11) == "W.npy, sweeps 6 to 11"


def test_a_state_of_another_sweep():
    values = quantities()
    assert written(values).damaged(values, 10) == "the record of checksums"


def test_a_quantity_more_or_less():
    values = quantities()
    sums = written(values)
    assert sums.damaged(values | {"rate_W": np.ones(4)}, 11) == "the record of checksums"
    del values["W"]
    assert sums.damaged(values, 11) == "the record of checksums"


@pytest.mark.parametrize("ends", [[2, 5], [2, 5, 5], [5, 2, 11]])
def test_pieces_that_no_run_writes(ends):
    sums = written(quantities()).arrays()["checksums"]
    with pytest.raises(ValueError, match="checksums are incomplete"):
        Checksums("run 0", SCHEDULE, np.array(ends), sums)
