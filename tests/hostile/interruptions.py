"""Processes that are killed, and disks that are full or cannot be written to."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bnmf import BayesianNMF
from bnmf.sampler import chains
from tests.hostile.checkpoints import REMEDY, arrays, fit, undisturbed
from tests.hostile.outcomes import BAD, CLEAR, RIGHT, Outcome, Wrong, judged, require

NO_ROOM = re.compile(r"no room on disk: .* needs .*Make room|checkpoint=.* cannot be written to \(No space left")
KILLED: dict[str, Any] = {"n_components": 2, "n_chains": 2, "burn_in": 50, "n_draws": 300, "random_state": 1}


def _data() -> np.ndarray:
    return np.random.default_rng(0).exponential(size=(20, 12))


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
        except Wrong as error:
            code, message = 3, str(error)
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


def kill(number: int) -> Outcome:
    """Kill a fit several times at random moments, and let it come to its end."""
    rng = np.random.default_rng(number)

    def sample(directory: Path) -> BayesianNMF:
        chains.SECONDS_BETWEEN_CHECKPOINTS = 0.005
        return BayesianNMF(**KILLED, n_jobs=int(rng.integers(1, 3)), checkpoint=directory).fit(_data())

    def attempt() -> None:
        with tempfile.TemporaryDirectory() as folder:
            directory = Path(folder) / "run"
            for _ in range(3):
                code, message = in_child(lambda: sample(directory), rng.uniform(0.0, 0.15))
                require(code in (0, -signal.SIGKILL), f"ended with {code}: {message}")
            before = chains.SECONDS_BETWEEN_CHECKPOINTS
            try:
                found = arrays(sample(directory))
            finally:
                chains.SECONDS_BETWEEN_CHECKPOINTS = before
        expected = arrays(BayesianNMF(**KILLED).fit(_data()))
        for name, draws in found.items():
            require(np.array_equal(draws, expected[name]), f"{name} has other draws")

    return judged(attempt, f"{number}: killed three times", (), "")


# --- disks


def can_mount() -> bool:
    """Return whether this process may mount a file system."""
    if os.name != "posix" or not hasattr(os, "geteuid") or os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as folder:
        try:
            with mounted(Path(folder), 64):
                return True
        except OSError:
            return False


@contextmanager
def mounted(directory: Path, kilobytes: int) -> Iterator[None]:
    """Mount a small disk."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(directory)]
    if subprocess.run(command, capture_output=True).returncode:
        raise OSError("cannot mount")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=True)


def remount(directory: Path, options: str) -> None:
    """Change a mounted disk."""
    subprocess.run(["mount", "-o", f"remount,{options}", str(directory)], check=True)


def _continued(directory: Path, n_draws: int) -> None:
    """Continue a run in this process, in which nothing may fail, and check its draws."""
    for name, draws in arrays(fit(directory, n_draws=n_draws)).items():
        require(np.array_equal(draws, undisturbed(n_draws)[name]), f"{name} has other draws")


def judged_in_child(
    sample: Callable[[], Any], directory: Path, n_draws: int, what: str, make_room: Callable
) -> Outcome:
    """Fit in a child that may find no room on disk; then make room, continue the run here, and judge both."""
    code, message = in_child(sample)
    if code not in (0, 1) or (code == 1 and not NO_ROOM.search(message)):
        return Outcome(BAD, f"{what}: ended with {code}: {message}")
    make_room()
    again = judged(lambda: _continued(directory, n_draws), what, (), "")
    return again if again.kind == BAD else Outcome(RIGHT if code == 0 else CLEAR, what)


def full_disk(number: int) -> Outcome:
    """Fit on a disk of random size, which fills up at a random moment; then make room and resume."""
    rng = np.random.default_rng(number)
    n_draws = int(rng.choice([6, 100, 400]))
    first = int(rng.choice([6, n_draws]))
    kilobytes = 4 * int(rng.integers(1, 120))
    what = f"{number}: {n_draws} draws on {kilobytes} kB"
    with tempfile.TemporaryDirectory() as folder, mounted(Path(folder), kilobytes):
        directory, filler = Path(folder) / "run", Path(folder) / "filler"
        full_after = int(rng.integers(200))

        def fill() -> None:
            with open(filler, "wb", buffering=0) as file:
                try:
                    while True:
                        file.write(bytes(4096))
                except OSError:
                    pass

        def sample() -> None:
            step, count = chains.gibbs.step, iter(range(10**9))

            def filling(*args: Any, **kwargs: Any) -> Any:
                if next(count) == full_after:
                    fill()
                return step(*args, **kwargs)

            chains.SECONDS_BETWEEN_CHECKPOINTS = -1.0
            if first < n_draws:
                fit(directory, n_draws=first)
            if rng.random() < 0.5:
                chains.gibbs.step = filling
            fit(directory, n_draws=n_draws)

        def make_room() -> None:
            filler.unlink(missing_ok=True)
            remount(Path(folder), "size=32m")

        return judged_in_child(sample, directory, n_draws, what, make_room)


def small_files(number: int) -> Outcome:
    """Fit with a limit on the size of files, as where nothing can be mounted; then without it."""
    rng = np.random.default_rng(number)
    limit, n_draws = int(rng.integers(10, 60_000)), int(rng.choice([6, 100]))
    what = f"{number}: {n_draws} draws in files of at most {limit} bytes"
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "run"

        def sample() -> None:
            import resource  # Windows has none

            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            fit(directory, n_draws=n_draws)

        return judged_in_child(sample, directory, n_draws, what, lambda: None)


def read_only(number: int) -> Outcome:
    """Fit into a directory on a disk that cannot be written to, with a run in it or without; then with permission."""
    with tempfile.TemporaryDirectory() as folder, mounted(Path(folder), 4096):
        directory = Path(folder) / "run"
        if number % 2:
            fit(directory)
        remount(Path(folder), "ro")
        found = judged(lambda: fit(directory), f"{number}: read-only", (OSError,), f"checkpoint=.*({REMEDY})")
        remount(Path(folder), "rw")
        again = judged(lambda: _continued(directory, 6), found.what, (), "")
        return found if again.kind == RIGHT else again


def run_kills(number: int, report: Callable[[Outcome], None], n: int = 10) -> None:
    """Attempt n times to lose draws by killing."""
    for i in range(n):
        report(kill(1000 * number + i))


def run_disks(number: int, report: Callable[[Outcome], None], n: int = 20) -> None:
    """Attempt n times to lose draws by a full disk."""
    mounts = sys.platform == "linux" and shutil.which("mount") is not None and can_mount()
    for i in range(n):
        kind = (full_disk, small_files, full_disk, read_only)[i % 4] if mounts else small_files
        report(kind(1000 * number + i))
