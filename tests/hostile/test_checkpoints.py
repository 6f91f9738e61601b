"""Checkpoints that are damaged, killed or without room on disk: the right draws, or an error that says what to do."""

import os
import re
import shutil
import signal
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from bnmf import BayesianNMF
from bnmf.sampler import chains
from tests.hostile.outcomes import count_right, is_right

SETTINGS: dict[str, Any] = {"n_components": 2, "n_chains": 2, "burn_in": 4, "n_draws": 6, "random_state": 1}
REMEDY = r"checkpoint=.*(remove|use (a|another) directory|use the same ones|[Mm]ake room)"
NO_ROOM = re.compile(r"no room on disk: .* needs .*Make room|checkpoint=.* cannot be written to \(No space left")
FAULTS = ["flip", "flip", "cut", "zeros", "empty", "remove", "directory", "other chain", "other run", "append", "old"]
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def fit(directory: Path | None, **settings: Any) -> dict[str, np.ndarray]:
    """Continue a run, or make it, and return its draws."""
    X = np.random.default_rng(0).exponential(size=(7, 5))
    X[2, 3] = np.nan
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # so few sweeps need not fit at all
        posterior = BayesianNMF(**SETTINGS | settings, checkpoint=directory).fit(X).posterior_
    return {name: np.array(getattr(posterior, name)) for name in ("W", "Z", "noise_variance", "train_mse")}


@cache
def undisturbed(n_draws: int) -> dict[str, np.ndarray]:
    return fit(None, n_draws=n_draws)


def resume(directory: Path, n_draws: int = SETTINGS["n_draws"]) -> None:
    """Continue a run and check its draws, bit for bit."""
    for name, found in fit(directory, n_draws=n_draws).items():
        assert np.array_equal(found, undisturbed(n_draws)[name]), f"{name} has other draws"


# --- damaged files


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Directories of runs: finished, at several stages, and one of another seed."""
    root = tmp_path_factory.mktemp("runs")
    fit(root / "finished")
    fit(root / "other", random_state=2)
    for n_sweeps in (2, 7, 13):
        step, count = chains.gibbs.step, iter(range(10**9))

        def failing(*args, step=step, count=count, n_sweeps=n_sweeps):
            if next(count) == n_sweeps:
                raise RuntimeError("broken on purpose")
            return step(*args)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chains.gibbs, "step", failing)
            patch.setattr(chains, "SECONDS_BETWEEN_CHECKPOINTS", -1.0)
            with pytest.raises(RuntimeError, match="on purpose"):
                fit(root / f"after {n_sweeps} sweeps")
    return {path.name: path for path in root.iterdir()}


def damage(path: Path, fault: str, runs: dict[str, Path], rng: np.random.Generator) -> None:
    """Do something to a file of a run."""
    content = bytearray(path.read_bytes())
    place = int(rng.integers(max(1, len(content))))
    if fault == "flip" and content:
        content[place] ^= 1 << int(rng.integers(8))
    elif fault == "cut":
        content = content[:place]
    elif fault == "zeros":
        content[place:] = bytes(len(content) - place)
    elif fault == "empty":
        content = bytearray()
    elif fault == "append":
        content += rng.bytes(int(rng.integers(1, 5000)))
    path.write_bytes(content)
    if fault in ("remove", "directory"):
        path.unlink()
    if fault == "directory":
        path.mkdir()
    other_chain = re.sub(r"chain-(\d)", lambda found: f"chain-{1 - int(found[1])}", path.name)
    sources = {
        "other run": runs["other"] / path.name,
        "old": runs["after 7 sweeps"] / path.name,
        "other chain": path.with_name(other_chain),
    }
    if fault in sources and sources[fault].exists() and sources[fault] != path:
        shutil.copy(sources[fault], path)


def test_damaged_files(runs):
    """One or two files of a finished or unfinished run."""

    def attempt(number, rng):
        stage = str(rng.choice(sorted(name for name in runs if name != "other")))
        with TemporaryDirectory() as folder:
            directory = Path(folder) / "run"
            shutil.copytree(runs[stage], directory)
            what = f"{number}: {stage}"
            for _ in range(int(rng.integers(1, 3))):
                name = str(rng.choice(sorted(path.name for path in directory.iterdir() if path.is_file())))
                fault = str(rng.choice(FAULTS))
                damage(directory / name, fault, runs, rng)
                what += f", {fault} {name}"
            return is_right(lambda: resume(directory), what, (ValueError, OSError), REMEDY)

    assert 0.07 < count_right(attempt, 40) < 0.6


# --- kills


def in_child(call: Callable[[], Any], seconds: float | None = None) -> tuple[int, str]:
    """Call in a forked process, killed after some seconds, and return how it ended and the message of its error."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads, which Python warns of and which have nothing to do here
        child = os.fork()
    if child == 0:
        code, message = 0, ""
        try:
            warnings.simplefilter("ignore")
            call()
        except BaseException as error:
            code, message = (1 if isinstance(error, (OSError, ValueError)) else 2), f"{type(error).__name__}: {error}"
        os.write(writer, message.encode()[:4000])
        os._exit(code)
    os.close(writer)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    with open(reader, errors="replace") as pipe:
        message = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), message


@needs_fork
@pytest.mark.parametrize("n", [1, pytest.param(6, marks=pytest.mark.proof)])
def test_kills(n, tmp_path):
    """Of processes that write a checkpoint about every hundredth of a second, or make files longer."""
    codes = []

    def attempt(number, rng):
        directory, lengths = tmp_path / str(number), [[2000] * 4, [800, 1200, 1600, 2000]][number % 2]

        def sample(n_draws, n_jobs):
            chains.SECONDS_BETWEEN_CHECKPOINTS = 0.005
            fit(directory, n_draws=n_draws, n_jobs=n_jobs)

        def kill_and_resume():
            for n_draws in lengths:
                options = n_draws, int(rng.integers(1, 3))
                code, message = in_child(lambda: sample(*options), rng.uniform(0.0, 0.15))
                assert code in (0, -signal.SIGKILL), f"ended with {code}: {message}"
                codes.append(code)
            for n_draws in (200, 2000):
                resume(directory, n_draws)

        return is_right(kill_and_resume, f"{number}: killed", (), "")

    assert count_right(attempt, n) == 1.0
    assert codes.count(-signal.SIGKILL) > 0.7 * len(codes)


# --- disks


def mount(directory: Path, options: str, *source: str) -> None:
    subprocess.run(["mount", *source, "-o", options, str(directory)], check=True, capture_output=True)


@contextmanager
def disk(directory: Path, kilobytes: int) -> Iterator[None]:
    """Mount a small disk."""
    directory.mkdir()
    mount(directory, f"size={kilobytes}k", "-t", "tmpfs", "tmpfs")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=True)


@cache
def can_mount(directory: Path) -> bool:
    """Return whether this process may mount a file system: as root on Linux."""
    try:
        with disk(directory, 64):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def fill(path: Path) -> None:
    """Write a file until the disk is full."""
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass


def judged_in_child(sample: Callable, make_room: Callable, directory: Path, n_draws: int, what: str) -> bool:
    """Fit in a child that may find no room on disk; then make room, and continue the run here."""
    code, message = in_child(sample)
    assert code == 0 or (code == 1 and NO_ROOM.search(message)), f"{what}: ended with {code}: {message}"
    make_room()
    is_right(lambda: resume(directory, n_draws), what, (), "")
    return code == 0


def full_disk(number: int, rng: np.random.Generator, place: Path) -> bool:
    """Fit on a disk of random size, which may fill up at a random moment; then make room and resume."""
    n_draws, kilobytes, full_after = int(rng.choice([6, 100, 400])), 4 * int(rng.integers(1, 120)), rng.integers(200)
    first, fills = int(rng.choice([6, n_draws])), rng.random() < 0.5
    directory, filler = place / "run", place / "filler"

    def sample() -> None:
        step, count = chains.gibbs.step, iter(range(10**9))

        def filling(*args: Any) -> Any:
            if next(count) == full_after:
                fill(filler)
            return step(*args)

        chains.SECONDS_BETWEEN_CHECKPOINTS = -1.0
        if first < n_draws:
            fit(directory, n_draws=first)
        if fills:
            chains.gibbs.step = filling
        fit(directory, n_draws=n_draws)

    def make_room() -> None:
        filler.unlink(missing_ok=True)
        mount(place, "remount,size=32m")

    with disk(place, kilobytes):
        what = f"{number}: {n_draws} draws on {kilobytes} kB"
        return judged_in_child(sample, make_room, directory, n_draws, what)


def small_files(number: int, rng: np.random.Generator, place: Path) -> bool:
    """Fit with a limit on the size of files, as where nothing can be mounted; then without it."""
    limit, n_draws = int(rng.integers(10, 60_000)), int(rng.choice([6, 100]))

    def sample() -> None:
        import resource  # Windows has none

        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        fit(place, n_draws=n_draws)

    what = f"{number}: {n_draws} draws in files of at most {limit} bytes"
    return judged_in_child(sample, lambda: None, place, n_draws, what)


@needs_fork
def test_full_disks(tmp_path):
    mounts = can_mount(tmp_path / "disk")

    def attempt(number, rng):
        kind = full_disk if mounts and number % 4 else small_files
        return kind(number, rng, tmp_path / str(number))

    assert 0.0 <= count_right(attempt, 4) < 1.0


@needs_fork
@pytest.mark.parametrize("has_run", [True, False])
def test_a_directory_that_cannot_be_written_to(tmp_path, has_run):
    """By a disk that is mounted without permission as root, who may write everywhere else."""
    place = tmp_path / "place"
    is_root = os.geteuid() == 0
    if is_root and not can_mount(tmp_path / "disk"):
        pytest.skip("root may write everywhere")
    with disk(place, 4096) if is_root else contextmanager(lambda: iter([place.mkdir()]))():
        if has_run:
            fit(place / "run")
        for allowed in (False, True):
            if is_root:
                mount(place, "remount,rw" if allowed else "remount,ro")
            else:
                for path in (place / "run", place) if has_run else (place,):
                    path.chmod(0o700 if allowed else 0o500)
            found = is_right(lambda: resume(place / "run"), "read-only", (OSError,), REMEDY)
            assert found == allowed
