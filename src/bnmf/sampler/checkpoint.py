"""Checkpoints: draws and states in a directory, from which a run resumes where it stopped, or is made longer."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bnmf.data.identity import fingerprint
from bnmf.model.model import Model
from bnmf.model.noise import NoiseState
from bnmf.priors.base import Prior
from bnmf.priors.names import to_record
from bnmf.sampler.gibbs import State
from bnmf.sampler.moves import Moves
from bnmf.sampler.stores import DrawStore, Schedule, stored_bytes
from bnmf.utils import digests, files
from bnmf.utils.files import npz_bytes, replacing, write_bytes
from bnmf.utils.typing import Array

FORMAT = 5
NUMBERS = ("scale", "row_strength", "column_strength", "df", "squared_error", "log_likelihood", "sweep")
"""Numbers of a state, in the order in which its file holds them."""
ARRAYS = ("row", "column", "entry", "share")
"""Arrays of the noise of a state."""
SETTINGS_FILE = "settings.json"
OWN_FILES = (SETTINGS_FILE, "*.npy", "chain-*.npz")
"""Names of the files of a checkpoint, except its lock."""
ABANDONED = re.compile(r"\.(settings\.json|\w+\.npy|chain-\d+\.npz)\.\d+-\d+\.tmp")
"""Names of unfinished files of a process that was killed."""
AGAIN = "remove the directory to draw everything again"
SWEEPS = "train_mse"
"""The quantity that has a value for each sweep; all others have one for each kept draw."""


class CheckpointError(ValueError):
    """A checkpoint directory belongs to another run, is in use, or is damaged."""


class DiskStore(DrawStore):
    """Keeps draws and states in a directory."""

    # Draws are plain .npy files, mapped into memory and filled in place. The state of each chain is a small file that
    # is replaced atomically after the draws before it are on disk, and holds their checksums. Whatever a killed process
    # wrote after its last state is drawn again, with the same result. A run takes the first chains and draws of what is
    # there, and draws what is not: files that are too small are replaced by larger copies, one after the other.
    # `settings` are everything else that determines the draws, from `describe`.

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
        if (self.directory / SETTINGS_FILE).exists():
            _compare(self.directory, settings)
            for path in self.directory.iterdir():
                if ABANDONED.fullmatch(path.name) and path.is_file():  # the lock is ours now
                    path.unlink()
        else:
            _refuse_foreign_files(self.directory)
            files.require_room(self.directory, stored_bytes(model, schedule, dtype), self._what("the draws"))
            content = json.dumps(settings, indent=2).encode()
            with files.explain_full_disk(len(content), self._what(SETTINGS_FILE), self.directory):
                write_bytes(self.directory / SETTINGS_FILE, content)
        self._has_states = any(self.directory.glob("chain-*.npz"))
        self._checksums: dict[int, Checksums] = {}
        self._identity = digests.of_json(settings)
        super().__init__(model, schedule, dtype)

    def _what(self, what: str) -> str:
        return f"{what} in checkpoint={str(self.directory)!r}"

    def _lock_directory(self) -> None:
        """Create the directory and take a lock on it, which ends with the process."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock = open(self.directory / "lock", "a")  # noqa: SIM115 (kept open until `close`)
        except OSError as error:
            what = f"checkpoint={str(self.directory)!r} cannot be written to ({error.strerror})"
            raise OSError(error.errno, f"{what}: use a directory in which files can be created") from error
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

    def _existing(self, name: str, shape: tuple[int, ...], dtype: Any) -> Array | None:
        """Return a memory map of the file of a quantity, None in a new directory."""
        path = self.directory / f"{name}.npy"
        if not path.exists() and not self._has_states:
            return None
        try:
            np.lib.format.open_memmap(path, mode="r")  # refuses a file that was cut off; "r+" would fill it
            array = np.lib.format.open_memmap(path, mode="r+")
        except Exception as error:  # a damaged header can raise almost anything
            raise CheckpointError(f"{self._what(path.name)} cannot be read ({error}); {AGAIN}") from error
        if array.ndim != len(shape) or array.shape[2:] != shape[2:] or array.dtype != dtype:
            raise CheckpointError(f"{self._what(path.name)} does not belong to this run; {AGAIN}")
        return array

    def _create(self, name: str, shape: tuple[int, ...], dtype: Any, fill: float, old: Array | None = None) -> Array:
        """Write a file with room for all draws, and those of an old one in it, and return a memory map of it."""
        path, n_bytes = self.directory / f"{name}.npy", math.prod(shape) * np.dtype(dtype).itemsize
        with files.explain_full_disk(n_bytes, self._what(path.name), self.directory), replacing(path) as temporary:
            array = np.lib.format.open_memmap(temporary, mode="w+", dtype=dtype, shape=shape)
            files.reserve(temporary)
            if fill:  # a new file holds zeros
                array[...] = fill
            if old is not None:
                array[: old.shape[0], : old.shape[1]] = old
            array.flush()
        return np.lib.format.open_memmap(path, mode="r+")

    def _state_path(self, chain: int) -> Path:
        return self.directory / f"chain-{chain}.npz"

    def resume(self, chain: int) -> State | None:
        """Return the last state of the chain on disk, before which all draws are verified, or None."""
        path = self._state_path(chain)
        if not path.exists():
            self._checksums[chain] = Checksums(f"{self._identity} {chain}", self.schedule)
            return None
        again = f"remove {path.name} to draw this chain again from its start"
        try:
            with open(path, "rb") as content, np.load(content, allow_pickle=False) as file:
                numbers = dict(zip(NUMBERS, file["numbers"].tolist(), strict=True))
                noise = NoiseState(**{name: file[name] for name in ARRAYS}, **{n: numbers[n] for n in NUMBERS[:4]})
                rates = tuple(file[f"rate_{i}"] for i in range(len(self.model.learned_rates)))
                errors = numbers["squared_error"], numbers["log_likelihood"], int(numbers["sweep"])
                state = State(file["W"], file["Zt"], noise, rates, *errors)
                checksums = Checksums(f"{self._identity} {chain}", self.schedule, file["ends"], file["checksums"])
        except Exception as error:
            raise CheckpointError(f"{self._what(path.name)} cannot be read ({error}); {again}") from error
        damaged = checksums.damaged(self._of_chain(chain))
        if damaged:
            raise CheckpointError(f"{self._what(f'{damaged} of chain {chain}')} is damaged; {again}")
        self._checksums[chain] = checksums
        return state

    def _of_chain(self, chain: int) -> dict[str, Array]:
        return {name: array[chain] for name, array in self._arrays.items()}

    def checkpoint(self, chain: int, state: State) -> None:
        """Flush the draws, then replace the state."""
        if state.sweep == self._checksums[chain].end:  # nothing new
            return
        for array in self._arrays.values():
            array.flush()  # type: ignore[attr-defined]
        self._checksums[chain].add(self._of_chain(chain), state.sweep)
        noise = state.noise
        arrays = {"W": state.W, "Zt": state.Zt} | {name: getattr(noise, name) for name in ARRAYS}
        arrays |= {f"rate_{i}": rate for i, rate in enumerate(state.rates)} | self._checksums[chain].arrays()
        numbers = [getattr(noise if name in NoiseState._fields else state, name) for name in NUMBERS]
        content = npz_bytes({**arrays, "numbers": np.array(numbers, float)})
        with files.explain_full_disk(len(content), self._what(self._state_path(chain).name)):
            write_bytes(self._state_path(chain), content)


class Checksums:
    """Checksums of the draws of a chain: one for each quantity and each piece of the run between two checkpoints."""

    # They depend on `identity`, so that files of different runs and chains cannot be mixed.

    def __init__(self, identity: str, schedule: Schedule, ends: Array | None = None, sums: Array | None = None) -> None:
        self.identity, self.schedule = identity, schedule
        self._ends: list[int] = [] if ends is None else [int(end) for end in ends]
        self._sums: list[list[int]] = [] if sums is None else [[int(value) for value in row] for row in sums]

    @property
    def end(self) -> int:
        """The sweep up to which there are checksums."""
        return self._ends[-1] if self._ends else 0

    def add(self, quantities: Mapping[str, Array], sweep: int) -> None:
        """Add the piece from the last one to a sweep."""
        self._sums.append([self._sum(name, quantities[name], self.end, sweep) for name in sorted(quantities)])
        self._ends.append(sweep)

    def damaged(self, quantities: Mapping[str, Array]) -> str:
        """Return where the first damage is, or an empty string."""
        for begin, end, expected in zip([0, *self._ends], self._ends, self._sums, strict=False):
            for name, value in zip(sorted(quantities), expected, strict=True):
                if self._sum(name, quantities[name], begin, end) != value:
                    return f"{name}.npy, sweeps {begin + 1} to {end}"
        return ""

    def arrays(self) -> dict[str, Array]:
        """Return the arrays that a file holds of these checksums."""
        return {"ends": np.array(self._ends, np.int64), "checksums": np.array(self._sums, np.uint64)}

    def _sum(self, name: str, array: Array, begin: int, end: int) -> int:
        if name != SWEEPS:
            begin, end = self.schedule.draws_after(begin), self.schedule.draws_after(end)
        label = np.frombuffer(f"{self.identity} {name} {begin} {end}".encode(), np.uint8)
        return int(digests.of_arrays(label, np.asarray(array[begin:end]))[:16], 16)


def describe(model: Model, seed: int, init: Any, moves: Moves) -> dict[str, Any]:
    """Return everything but the schedule and the dtype that determines the draws, as JSON can hold it."""
    scale = model.units.scale
    return {
        "data": fingerprint(model.data),
        "n_components": model.n_components,
        "prior_W": _describe_prior(model.priors[0]),
        "prior_Z": _describe_prior(model.priors[1]),
        "rates": [list(learned.factors) for learned in model.learned_rates],
        "noise": {"kind": type(model.noise_model).__name__, **vars(model.noise_model)},
        "fixed": [None if x is None else digests.of_arrays(x) for x in (model.fixed.components, model.fixed.weights)],
        "known_noise": None if model.entry_precision is None else digests.of_arrays(model.entry_precision),
        "units": float(scale[0]) if scale.size == 1 else digests.of_arrays(scale),
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


def stored_seed(directory: str | os.PathLike[str]) -> int | None:
    """Return the seed of the run in a directory, None if there is no run."""
    try:
        return int(json.loads((Path(directory) / SETTINGS_FILE).read_bytes())["seed"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _refuse_foreign_files(directory: Path) -> None:
    """Raise an error if a directory without settings holds files that a new run would write."""
    found = sorted(path.name for name in OWN_FILES for path in directory.glob(name))
    if found:
        raise CheckpointError(
            f"checkpoint={str(directory)!r} has no {SETTINGS_FILE}, but files that a run would overwrite "
            f"({', '.join(found[:3])}{', ...' if len(found) > 3 else ''}): use another directory, or remove them to "
            "draw everything again"
        )


def _compare(directory: Path, settings: dict[str, Any]) -> None:
    """Raise an error that names the differences if a directory holds another run."""
    try:
        stored = json.loads((directory / SETTINGS_FILE).read_bytes())
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"{SETTINGS_FILE} in checkpoint={str(directory)!r} cannot be read ({error}); {AGAIN}"
        ) from error
    if not isinstance(stored, dict) or "format" not in stored:
        raise CheckpointError(
            f"{SETTINGS_FILE} in checkpoint={str(directory)!r} is not that of a run: use another directory"
        )
    settings = json.loads(json.dumps(settings))
    different = [key for key in settings | stored if settings.get(key) != stored.get(key)]
    if different:
        changes = "; ".join(f"{key} was {stored.get(key)!r}, now {settings.get(key)!r}" for key in different)
        raise CheckpointError(
            f"checkpoint={str(directory)!r} holds a run with other data or settings ({changes}): use the same ones to "
            "continue it, or another directory for a new run"
        )
