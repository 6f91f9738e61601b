"""Checkpoints whose files are damaged, lost or exchanged: the right draws, or an error that says what to do."""

import atexit
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bnmf import BayesianNMF
from bnmf.sampler import chains
from tests.hostile.outcomes import Outcome, judged, require

SETTINGS: dict[str, Any] = {"n_components": 2, "n_chains": 2, "burn_in": 4, "n_draws": 6, "random_state": 1}
REMEDY = r"remove|use (a|another) directory|use the same ones|[Mm]ake room"
FAULTS = ["flip", "flip", "cut", "zeros", "empty", "remove", "directory", "other chain", "other run", "append", "old"]


def data() -> np.ndarray:
    """Return the data of all runs."""
    X = np.random.default_rng(0).exponential(size=(7, 5))
    X[2, 3] = np.nan
    return X


def fit(directory: Path | None, **settings: Any) -> BayesianNMF:
    """Continue a run, or make it."""
    return BayesianNMF(**SETTINGS | settings, checkpoint=directory).fit(data())


def arrays(model: BayesianNMF) -> dict[str, np.ndarray]:
    """Return the draws."""
    return {name: np.array(getattr(model.posterior_, name)) for name in ("W", "Z", "noise_variance", "train_mse")}


@cache
def undisturbed(n_draws: int = SETTINGS["n_draws"]) -> dict[str, np.ndarray]:
    """Return the right draws."""
    return arrays(fit(None, n_draws=n_draws))


def require_right(model: BayesianNMF) -> None:
    """Raise `Wrong` if a fit does not have the right draws, bit for bit."""
    for name, found in arrays(model).items():
        require(np.array_equal(found, undisturbed()[name]), f"{name} has other draws")


def unfinished(directory: Path, n_sweeps: int, **settings: Any) -> None:
    """Leave a run that failed after some sweeps of all its chains, with a checkpoint after each."""
    step, seconds, count = chains.gibbs.step, chains.SECONDS_BETWEEN_CHECKPOINTS, iter(range(10**9))

    def failing(*args: Any, **kwargs: Any) -> Any:
        if next(count) == n_sweeps:
            raise RuntimeError("broken on purpose")
        return step(*args, **kwargs)

    chains.gibbs.step, chains.SECONDS_BETWEEN_CHECKPOINTS = failing, -1.0
    try:
        fit(directory, **settings)
    except RuntimeError:
        pass
    finally:
        chains.gibbs.step, chains.SECONDS_BETWEEN_CHECKPOINTS = step, seconds


@cache
def runs() -> dict[str, Path]:
    """Return directories of runs, made once: finished, at several stages, and one of another seed."""
    root = Path(tempfile.mkdtemp(prefix="hostile-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    found = {"finished": root / "finished", "other": root / "other"}
    fit(found["finished"])
    fit(found["other"], random_state=2)
    for n_sweeps in (2, 7, 13):
        found[f"after {n_sweeps} sweeps"] = root / f"after-{n_sweeps}"
        unfinished(found[f"after {n_sweeps} sweeps"], n_sweeps)
    return found


def damage(directory: Path, name: str, fault: str, rng: np.random.Generator) -> None:
    """Do something to a file."""
    path = directory / name
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
    sources = {"other run": runs()["other"], "old": runs()["after 7 sweeps"]}
    if fault in sources and (sources[fault] / name).exists():
        shutil.copy(sources[fault] / name, path)
    if fault == "other chain" and name.startswith("chain-"):
        other = directory / f"chain-{1 - int(name[6])}.npz"
        if other.exists():
            shutil.copy(other, path)


def attempt(number: int) -> Outcome:
    """Damage a file of a run, or two, and continue it."""
    rng = np.random.default_rng(number)
    stage = str(rng.choice([name for name in runs() if name != "other"]))
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "run"
        shutil.copytree(runs()[stage], directory)
        what = f"{number}: {stage}"
        for _ in range(int(rng.integers(1, 3))):
            name = str(rng.choice(sorted(path.name for path in directory.iterdir() if path.is_file())))
            fault = str(rng.choice(FAULTS))
            damage(directory, name, fault, rng)
            what += f", {fault} {name}"
        return judged(lambda: require_right(fit(directory)), what, (ValueError, OSError), f"checkpoint=.*({REMEDY})")


def run(number: int, report: Callable[[Outcome], None], n: int = 100) -> None:
    """Attempt n faults."""
    for i in range(n):
        report(attempt(1000 * number + i))
