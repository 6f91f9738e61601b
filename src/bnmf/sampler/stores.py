"""Where the draws of a run go: memory, disk, or running moments."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bnmf.gibbs import Model, State

Array = NDArray[Any]

FORMAT = 1


@dataclass(frozen=True)
class Schedule:
    """How long to sample.

    Parameters
    ----------
    n_chains, burn_in, n_draws, thinning : int
        Chains, sweeps that are thrown away, draws that are kept of each chain, and sweeps from one to the next.
    """

    n_chains: int = 4
    burn_in: int = 300
    n_draws: int = 200
    thinning: int = 1

    def __post_init__(self) -> None:
        for name, lowest in (("n_chains", 1), ("burn_in", 0), ("n_draws", 1), ("thinning", 1)):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
                raise TypeError(f"{name} must be a whole number, got {value!r}")
            if value < lowest:
                raise ValueError(f"{name} must be at least {lowest}, got {value}")

    @property
    def n_sweeps(self) -> int:
        """Sweeps of one chain."""
        return self.burn_in + self.n_draws * self.thinning

    def draws_after(self, sweep: int) -> int:
        """Return how many draws a chain has kept after `sweep` sweeps."""
        return max(sweep - self.burn_in, 0) // self.thinning

    def keeps(self, sweep: int) -> bool:
        """Return whether the state after `sweep` sweeps is a draw to keep."""
        return sweep > self.burn_in and (sweep - self.burn_in) % self.thinning == 0


def draw_bytes(model: Model, schedule: Schedule, dtype: Any) -> int:
    """Return the bytes that all draws of a run take."""
    entries = sum(model.data.shape) * model.n_components
    return schedule.n_chains * schedule.n_draws * entries * np.dtype(dtype).itemsize


class MemoryStore:
    """Keeps every draw in memory.

    Attributes
    ----------
    W, Z : ndarray of shape (chain, draw, rows, K) and (chain, draw, K, columns)
        The draws.
    noise_variance : ndarray of shape (chain, draw)
        σ².
    train_mse : ndarray of shape (chain, sweep)
        Mean squared error on the observed entries after every sweep, burn-in included.
    """

    def __init__(self, model: Model, schedule: Schedule, dtype: Any = np.float64) -> None:
        self.schedule = schedule
        self.n_observed = model.data.n_observed
        for name, shape in _shapes(model, schedule).items():
            kind = dtype if name in ("W", "Z") else np.float64
            setattr(self, name, self._array(name, shape, np.dtype(kind)))

    W: Array
    Z: Array
    noise_variance: Array
    train_mse: Array

    def _array(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        return np.full(shape, np.nan, dtype) if name == "train_mse" else np.empty(shape, dtype)

    def resume(self, chain: int) -> State | None:
        """Return the state that a chain goes on from, or None for a new one."""
        return None

    def record(self, chain: int, state: State) -> None:
        """Take the state after a sweep."""
        self.train_mse[chain, state.sweep - 1] = state.squared_error / self.n_observed
        if self.schedule.keeps(state.sweep):
            self._keep(chain, self.schedule.draws_after(state.sweep) - 1, state)

    def _keep(self, chain: int, draw: int, state: State) -> None:
        self.W[chain, draw] = state.W
        self.Z[chain, draw] = state.Z
        self.noise_variance[chain, draw] = state.sigma2

    def checkpoint(self, chain: int, state: State) -> None:
        """Make all up to this state safe."""


class MomentStore(MemoryStore):
    """Keeps the mean and the spread of W Z, W and Z in place of the draws.

    Attributes
    ----------
    mean, squares : dict of str to ndarray with a leading chain axis
        Running mean, and sum of squared differences from it, of "prediction" (rows, columns), "W" and "Z".
    """

    def __init__(self, model: Model, schedule: Schedule, dtype: Any = np.float64) -> None:
        super().__init__(model, schedule, dtype)
        (rows, columns), k = model.data.shape, model.n_components
        shapes = {"prediction": (rows, columns), "W": (rows, k), "Z": (k, columns)}
        self.mean = {name: np.zeros((schedule.n_chains, *shape)) for name, shape in shapes.items()}
        self.squares = {name: np.zeros_like(mean) for name, mean in self.mean.items()}

    def _array(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        return super()._array(name, (0, 0, 0, 0) if name in ("W", "Z") else shape, dtype)

    def _keep(self, chain: int, draw: int, state: State) -> None:
        self.noise_variance[chain, draw] = state.sigma2
        for name, value in (("prediction", state.W @ state.Z), ("W", state.W), ("Z", state.Z)):
            mean = self.mean[name][chain]
            difference = value - mean
            mean += difference / (draw + 1)
            self.squares[name][chain] += difference * (value - mean)


class CheckpointError(ValueError):
    """A checkpoint directory that belongs to another run, or is in use."""


class DiskStore(MemoryStore):
    """Keeps draws and states in a directory, so that a run that was cut off goes on where it stopped.

    Draws are plain .npy files, mapped into memory and filled in place; the state of each chain is a small file that
    is replaced in one step after the draws before it are on disk. Whatever a killed process had written after its
    last state is drawn again, and comes out the same.

    Parameters
    ----------
    model : Model
        What is sampled from.
    schedule : Schedule
        How long.
    dtype : dtype
        Precision of the draws.
    directory : path-like
        Where to keep everything; made if it is not there.
    settings : dict
        Everything that decides the draws. It must be the same when the run goes on.
    """

    def __init__(
        self, model: Model, schedule: Schedule, dtype: Any, directory: str | os.PathLike[str], settings: dict[str, Any]
    ) -> None:
        self.directory = Path(directory)
        self._claim()
        try:
            self._open(model, schedule, dtype, settings)
        except BaseException:
            self.close()
            raise

    def _open(self, model: Model, schedule: Schedule, dtype: Any, settings: dict[str, Any]) -> None:
        settings = {"format": FORMAT, **settings, **asdict(schedule), "dtype": np.dtype(dtype).name}
        self._new = not (self.directory / "settings.json").exists()
        if not self._new:
            _compare(self.directory, settings)
        super().__init__(model, schedule, dtype)
        if self._new:  # written last: without it the directory counts as empty
            write_atomically(self.directory / "settings.json", json.dumps(settings, indent=2).encode())

    def _claim(self) -> None:
        """Make the directory and hold a lock on it, which ends with the process."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self._lock = open(self.directory / "lock", "a")  # noqa: SIM115 (held open on purpose)
        try:
            import fcntl
        except ImportError:  # no such locks on Windows
            return
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise CheckpointError(f"another process is sampling into checkpoint={str(self.directory)!r}") from None

    def close(self) -> None:
        """Let go of the directory."""
        self._lock.close()

    def _array(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        path = self.directory / f"{name}.npy"
        if self._new:
            array = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
            if name == "train_mse":
                array[...] = np.nan
            return array
        try:
            array = np.lib.format.open_memmap(path, mode="r+")
        except (OSError, ValueError) as error:
            raise CheckpointError(
                f"{path.name} in checkpoint={str(self.directory)!r} cannot be read: {error}"
            ) from error
        if array.shape != shape or array.dtype != dtype:
            raise CheckpointError(f"{path.name} in checkpoint={str(self.directory)!r} is not of this run")
        return array

    def _state_path(self, chain: int) -> Path:
        return self.directory / f"chain-{chain}.npz"

    def resume(self, chain: int) -> State | None:
        """Return the last state of the chain that is safe on disk, or None."""
        path = self._state_path(chain)
        if not path.exists():
            return None
        try:
            with open(path, "rb") as content, np.load(content, allow_pickle=False) as file:
                sigma2, squared_error, sweep = file["numbers"]
                return State(file["W"], file["Zt"], float(sigma2), float(squared_error), int(sweep))
        except Exception as error:
            raise CheckpointError(
                f"{path.name} in checkpoint={str(self.directory)!r} cannot be read ({error}); remove that file to "
                "draw this chain again from its start"
            ) from error

    def checkpoint(self, chain: int, state: State) -> None:
        """Flush the draws, then replace the state."""
        for array in (self.W, self.Z, self.noise_variance, self.train_mse):
            array.flush()  # type: ignore[attr-defined]
        numbers = np.array([state.sigma2, state.squared_error, state.sweep])
        write_atomically(self._state_path(chain), npz_bytes(W=state.W, Zt=state.Zt, numbers=numbers))


def _shapes(model: Model, schedule: Schedule) -> dict[str, tuple[int, ...]]:
    (rows, columns), k = model.data.shape, model.n_components
    draws = (schedule.n_chains, schedule.n_draws)
    return {
        "W": (*draws, rows, k),
        "Z": (*draws, k, columns),
        "noise_variance": draws,
        "train_mse": (schedule.n_chains, schedule.n_sweeps),
    }


def _compare(directory: Path, settings: dict[str, Any]) -> None:
    """Refuse a directory of another run, and say in what it differs."""
    try:
        stored = json.loads((directory / "settings.json").read_bytes())
    except ValueError as error:
        raise CheckpointError(f"settings.json in checkpoint={str(directory)!r} cannot be read: {error}") from error
    settings = json.loads(json.dumps(settings))
    different = [key for key in settings | stored if settings.get(key) != stored.get(key)]
    if different:
        changes = "; ".join(f"{key} was {stored.get(key)!r}, now {settings.get(key)!r}" for key in different)
        raise CheckpointError(
            f"checkpoint={str(directory)!r} holds a run with other data or settings ({changes}): use the same ones to "
            "go on with it, or another directory for a new run"
        )


def stored_seed(directory: str | os.PathLike[str]) -> int | None:
    """Return the seed of the run that a directory holds, None if it holds none."""
    try:
        return int(json.loads((Path(directory) / "settings.json").read_bytes())["seed"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def npz_bytes(**arrays: Array) -> bytes:
    """Return arrays as the bytes of an .npz file."""
    import io

    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that at any instant there is the old one or the new one, whole."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
