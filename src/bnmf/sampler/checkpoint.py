"""Checkpoints: draws and states in a directory, so that a run continues where it stopped, and as long as one likes."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bnmf.data.identity import fingerprint
from bnmf.model.model import Model
from bnmf.model.noise import NoiseState
from bnmf.priors.base import Prior
from bnmf.priors.records import to_record
from bnmf.sampler.moves import Moves
from bnmf.sampler.schedule import Schedule
from bnmf.sampler.state import State
from bnmf.sampler.stores import DrawStore, copy_into, lacks_room, room_for
from bnmf.utils import digests
from bnmf.utils.atomic import npz_bytes, replacing, write_bytes
from bnmf.utils.typing import Array

FORMAT = 3
NUMBERS = ("scale", "row_strength", "column_strength", "squared_error", "log_likelihood", "sweep")
"""Numbers of a state, in the order in which its file holds them."""
SETTINGS_FILE = "settings.json"


class CheckpointError(ValueError):
    """A checkpoint directory belongs to another run, is in use, or is damaged."""


class DiskStore(DrawStore):
    """Keeps draws and states in a directory.

    Draws are plain .npy files, mapped into memory and filled in place. The state of each chain is a small file that is
    replaced atomically after the draws before it are on disk. Whatever a killed process wrote after its last state is
    drawn again, with the same result.

    The number of chains and of draws is not a property of the directory: a run takes the first ones of what is there,
    and draws what is not. A file that is too small is replaced atomically by a larger copy, so that files of different
    length, which a process killed in between leaves, are no harm.

    Parameters
    ----------
    model : Model
        What is sampled from.
    schedule : Schedule
        How long.
    dtype : dtype
        Precision of the draws.
    directory : path-like
        Where everything is kept; created if it does not exist.
    settings : dict
        Everything else that determines the draws, from :func:`describe`. It must be the same when a run continues.
    """

    def __init__(
        self, model: Model, schedule: Schedule, dtype: Any, directory: str | os.PathLike[str], settings: dict[str, Any]
    ) -> None:
        self.directory = Path(directory)
        self._lock_directory()
        try:
            self._open(model, schedule, dtype, settings)
        except BaseException:
            self.close()
            raise

    def _open(self, model: Model, schedule: Schedule, dtype: Any, settings: dict[str, Any]) -> None:
        kept = {"burn_in": schedule.burn_in, "thinning": schedule.thinning, "dtype": np.dtype(dtype).name}
        settings = {"format": FORMAT, **settings, **kept}
        self._is_new = not (self.directory / SETTINGS_FILE).exists()
        if not self._is_new:
            _compare(self.directory, settings)
        for abandoned in self.directory.glob(".*.tmp"):  # by a process that was killed: now the lock is ours
            abandoned.unlink()
        super().__init__(model, schedule, dtype)
        if self._is_new:  # written last: without it the directory counts as empty
            write_bytes(self.directory / SETTINGS_FILE, json.dumps(settings, indent=2).encode())
            self._is_new = False

    def _lock_directory(self) -> None:
        """Create the directory and take a lock on it, which ends with the process."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self._lock = open(self.directory / "lock", "a")  # noqa: SIM115 (kept open until `close`)
        try:
            import fcntl
        except ImportError:  # Windows has no such locks
            return
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise CheckpointError(f"another process is sampling into checkpoint={str(self.directory)!r}") from None

    def close(self) -> None:
        """Release the lock."""
        self._lock.close()

    def allocate(self, name: str, shape: tuple[int, ...], dtype: Any = np.float64, fill: float = 0.0) -> Array:
        """Return a memory map of one quantity, created in a new directory and opened or enlarged in an old one."""
        path = self.directory / f"{name}.npy"
        if self._is_new:
            return _create(path, shape, dtype, fill)
        try:
            array = np.lib.format.open_memmap(path, mode="r+")
        except (OSError, ValueError) as error:
            raise CheckpointError(
                f"{path.name} in checkpoint={str(self.directory)!r} cannot be read: {error}"
            ) from error
        if array.ndim != len(shape) or array.shape[2:] != shape[2:] or array.dtype != dtype:
            raise CheckpointError(f"{path.name} in checkpoint={str(self.directory)!r} does not belong to this run")
        if lacks_room(array, shape):
            with replacing(path) as temporary:
                copy_into(_create(temporary, room_for(array, shape), dtype, fill), array)
            array = np.lib.format.open_memmap(path, mode="r+")
        return array[: shape[0], : shape[1]]

    def _state_path(self, chain: int) -> Path:
        return self.directory / f"chain-{chain}.npz"

    def resume(self, chain: int) -> State | None:
        """Return the last state of the chain that is on disk, or None."""
        path = self._state_path(chain)
        if not path.exists():
            return None
        try:
            with open(path, "rb") as content, np.load(content, allow_pickle=False) as file:
                numbers = dict(zip(NUMBERS, file["numbers"].tolist(), strict=True))
                noise = NoiseState(file["row"], file["column"], *(numbers[name] for name in NUMBERS[:3]))
                rates = tuple(file[f"rate_{i}"] for i in range(len(self.model.learned_rates)))
                errors = numbers["squared_error"], numbers["log_likelihood"], int(numbers["sweep"])
                return State(file["W"], file["Zt"], noise, rates, *errors)
        except Exception as error:
            raise CheckpointError(
                f"{path.name} in checkpoint={str(self.directory)!r} cannot be read ({error}); remove that file to "
                "draw this chain again from its start"
            ) from error

    def checkpoint(self, chain: int, state: State) -> None:
        """Flush the draws, then replace the state."""
        for array in (self.W, self.Z, self.train_mse, *self.traces.values()):
            if isinstance(array, np.memmap):
                array.flush()
        noise = state.noise
        arrays = {"W": state.W, "Zt": state.Zt, "row": noise.row, "column": noise.column}
        arrays |= {f"rate_{i}": rate for i, rate in enumerate(state.rates)}
        numbers = [getattr(noise if name in NoiseState._fields else state, name) for name in NUMBERS]
        write_bytes(self._state_path(chain), npz_bytes({**arrays, "numbers": np.array(numbers, float)}))


def _create(path: Path, shape: tuple[int, ...], dtype: Any, fill: float) -> Array:
    """Return a memory map of a new file."""
    array = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
    if fill:  # a new file holds zeros
        array[...] = fill
    return array


def describe(model: Model, seed: int, init: Any, moves: Moves) -> dict[str, Any]:
    """Return everything beside the schedule and the precision that determines the draws, in a form that JSON can hold.

    Parameters
    ----------
    model : Model
        Data, priors and noise.
    seed : int
        Seed of all chains.
    init : "random" or pair of arrays
        Where chains start.
    moves : Moves
        What a sweep does beside drawing each row once.

    Returns
    -------
    dict
        The settings; arrays are replaced by their digests.
    """
    return {
        "data": fingerprint(model.data),
        "n_components": model.n_components,
        "prior_W": _describe_prior(model.priors[0]),
        "prior_Z": _describe_prior(model.priors[1]),
        "rates": [list(learned.factors) for learned in model.learned_rates],
        "noise": {"kind": type(model.noise_model).__name__, **asdict(model.noise_model)},
        "units": _digest_or_number(model.units.scale),
        "offset": None if model.units.offset is None else digests.of_arrays(model.units.offset),
        "moves": moves._asdict(),
        "init": init if isinstance(init, str) else digests.of_arrays(*(np.asarray(x, dtype=float) for x in init)),
        "seed": str(seed),
    }


def _describe_prior(prior: Prior) -> list[dict[str, Any]]:
    """Return the record of a prior with digests in place of arrays."""
    return [
        {name: digests.of_json(value) if isinstance(value, list) else value for name, value in term.items()}
        for term in to_record(prior)
    ]


def _digest_or_number(array: Array) -> Any:
    return float(array[0]) if array.size == 1 else digests.of_arrays(array)


def stored_seed(directory: str | os.PathLike[str]) -> int | None:
    """Return the seed of the run in a directory, None if there is no run."""
    try:
        return int(json.loads((Path(directory) / SETTINGS_FILE).read_bytes())["seed"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _compare(directory: Path, settings: dict[str, Any]) -> None:
    """Raise an error that names the differences if a directory holds another run."""
    try:
        stored = json.loads((directory / SETTINGS_FILE).read_bytes())
    except ValueError as error:
        raise CheckpointError(f"{SETTINGS_FILE} in checkpoint={str(directory)!r} cannot be read: {error}") from error
    settings = json.loads(json.dumps(settings))
    different = [key for key in settings | stored if settings.get(key) != stored.get(key)]
    if different:
        changes = "; ".join(f"{key} was {stored.get(key)!r}, now {settings.get(key)!r}" for key in different)
        raise CheckpointError(
            f"checkpoint={str(directory)!r} holds a run with other data or settings ({changes}): use the same ones to "
            "continue it, or another directory for a new run"
        )
