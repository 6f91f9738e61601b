"""Checkpoints: draws and states in a directory, from which a run resumes where it stopped, or is made longer."""

from __future__ import annotations

import json
import math
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bnmf.data.identity import fingerprint
from bnmf.model.model import Model
from bnmf.model.noise import NoiseState
from bnmf.priors.base import Prior
from bnmf.priors.names import to_record
from bnmf.sampler.gibbs import State
from bnmf.sampler.moves import Moves
from bnmf.sampler.stores import SWEEPS, Quantity, Schedule, Store, larger, stored_bytes
from bnmf.utils import digests, files
from bnmf.utils.files import npz_bytes, replacing, write_bytes
from bnmf.utils.typing import Array

FORMAT = 6
OF_STATE = ("W", "Zt", "squared_error", "log_likelihood", "sweep")
"""What a file holds of a state in addition to its noise and rates."""
SETTINGS_FILE = "settings.json"
OWN_FILES = (SETTINGS_FILE, "*.npy", "chain-*.npz")
"""Names of the files of a checkpoint, except its lock."""
ABANDONED = re.compile(r"\.(settings\.json|\w+\.npy|chain-\d+\.npz)\.\d+-\d+\.tmp")
"""Names of unfinished files of a process that was killed."""
DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
AGAIN = "remove the directory to draw everything again"


class CheckpointError(ValueError):
    """A checkpoint directory belongs to another run, is in use, or is damaged."""


class DiskStore(Store):
    """Keeps draws and states in a directory."""

    # Draws are plain .npy files, mapped into memory and filled in place. The state of each chain is a small file that
    # is replaced atomically after the draws before it are on disk, and holds their checksums: one for each quantity and
    # each piece of the run between two checkpoints. Whatever a killed process wrote after its last state is drawn
    # again, with the same result. A run takes the first chains and draws of what is there, and draws what is not: files
    # that are too small are replaced by larger copies, one after the other. `settings` are everything else that
    # determines the draws, from `describe`.

    def __init__(self, model: Model, schedule: Schedule, dtype: Any, directory: Path, settings: dict[str, Any]) -> None:
        self.directory = directory
        self._pieces: dict[int, list[Piece]] = {}
        self._lock_directory()
        try:
            kept = {"burn_in": schedule.burn_in, "thinning": schedule.thinning, "dtype": np.dtype(dtype).name}
            self._open({"format": FORMAT, **settings, **kept}, stored_bytes(model, schedule, dtype))
            super().__init__(model, schedule, dtype)
            for chain in range(schedule.n_chains):
                self._load_state(chain)
        except BaseException:
            self._lock.close()
            raise

    def _open(self, settings: dict[str, Any], n_bytes: int) -> None:
        """Take over the directory of a run with these settings, or begin one."""
        self._identity = digests.of_json(settings)
        if (self.directory / SETTINGS_FILE).exists():
            _compare(self.directory, settings)
            for path in self.directory.iterdir():
                if ABANDONED.fullmatch(path.name) and path.is_file():  # the lock is ours now
                    path.unlink()
        else:
            _refuse_foreign_files(self.directory)
            with files.room_for(self._what("the draws"), n_bytes, self.directory):
                write_bytes(self.directory / SETTINGS_FILE, json.dumps(settings, indent=2).encode())
        self._has_states = any(self.directory.glob("chain-*.npz"))

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
        """Release the lock, and make the arrays read-only: the files must stay as their checksums say."""
        self._lock.close()
        for array in self.arrays.values():
            array.flags.writeable = False

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the lock, which belongs to a process, and the room for draws that were not taken."""
        content = {name: value for name, value in vars(self).items() if name != "_lock"}
        last = min(max(self.sweeps), self.schedule.n_sweeps)
        ends = dict.fromkeys(self.arrays, self.schedule.draws_after(last)) | {SWEEPS: last}
        content["arrays"] = {name: array[: self.schedule.n_chains, : ends[name]] for name, array in self.arrays.items()}
        return content

    def _allocated(self, name: str, wanted: Quantity) -> Array:
        """Return a memory map of the file of a quantity, which is made or made larger if need be."""
        path, old, shape = self.directory / f"{name}.npy", self._recorded(name, wanted), wanted.shape
        if old is not None:
            shape = larger(shape, old.shape)
            if shape == old.shape:
                return old
        n_bytes = math.prod(shape) * wanted.dtype.itemsize
        with files.room_for(self._what(path.name), n_bytes, self.directory), replacing(path) as temporary:
            array = np.lib.format.open_memmap(temporary, mode="w+", dtype=wanted.dtype, shape=shape)
            files.reserve(temporary)
            if old is not None:
                array[: old.shape[0], : old.shape[1]] = old
            array.flush()
        return np.lib.format.open_memmap(path, mode="r+")

    def _recorded(self, name: str, wanted: Quantity) -> Array | None:
        """Return a memory map of a file that is there, None in a new directory."""
        path = self.directory / f"{name}.npy"
        if not path.exists() and not self._has_states:
            return None
        try:
            np.lib.format.open_memmap(path, mode="r")  # refuses a file that was cut off; "r+" would fill it
            array = np.lib.format.open_memmap(path, mode="r+")
        except Exception as error:  # a damaged header can raise almost anything
            raise CheckpointError(f"{self._what(path.name)} cannot be read ({error}); {AGAIN}") from error
        if array.ndim != len(wanted.shape) or array.shape[2:] != wanted.shape[2:] or array.dtype != wanted.dtype:
            raise CheckpointError(f"{self._what(path.name)} does not belong to this run; {AGAIN}")
        return array

    def _state_path(self, chain: int) -> Path:
        return self.directory / f"chain-{chain}.npz"

    def _load_state(self, chain: int) -> None:
        """Take the last state of a chain on disk, if there is one, and verify all draws before it."""
        path, self._pieces[chain] = self._state_path(chain), []
        if not path.exists():
            return
        again = f"remove {path.name} to draw this chain again from its start"
        try:
            with open(path, "rb") as content, np.load(content, allow_pickle=False) as file:
                values = {name: array if array.ndim else array.item() for name, array in file.items()}
            noise = NoiseState(*(values[name] for name in NoiseState._fields))
            rates = tuple(values[f"rate_{i}"] for i in range(len(self.model.learned_rates)))
            state = State(noise=noise, rates=rates, **{name: values[name] for name in OF_STATE})
            pieces = [Piece(*row) for row in zip(values["ends"].tolist(), values["checksums"].tolist(), strict=True)]
        except Exception as error:
            raise CheckpointError(f"{self._what(path.name)} cannot be read ({error}); {again}") from error
        for piece in pieces:
            begin = self._end(chain)
            found = self._checksums(chain, begin, piece.end)
            for name, checksum, expected in zip(sorted(self.arrays), found, piece.checksums, strict=True):
                if checksum != expected:
                    damaged = f"{name}.npy, sweeps {begin + 1} to {piece.end} of chain {chain}"
                    raise CheckpointError(f"{self._what(damaged)} is damaged; {again}")
            self._pieces[chain].append(piece)
        self.states[chain] = state

    def checkpoint(self, chain: int, state: State) -> None:
        """Flush the draws, then replace the state."""
        begin, pieces = self._end(chain), self._pieces[chain]
        if state.sweep == begin:  # nothing new
            return
        for array in self.arrays.values():
            array.flush()  # type: ignore[attr-defined]
        pieces.append(Piece(state.sweep, self._checksums(chain, begin, state.sweep)))
        values = {name: getattr(state, name) for name in OF_STATE} | state.noise._asdict()
        values |= {f"rate_{i}": rate for i, rate in enumerate(state.rates)}
        values["ends"] = [piece.end for piece in pieces]
        values["checksums"] = np.array([piece.checksums for piece in pieces], np.uint64)
        content, path = npz_bytes(values), self._state_path(chain)
        with files.room_for(self._what(path.name), len(content), self.directory):
            write_bytes(path, content)

    def _end(self, chain: int) -> int:
        """Return the sweep up to which there are checksums."""
        return self._pieces[chain][-1].end if self._pieces[chain] else 0

    def _checksums(self, chain: int, begin: int, end: int) -> list[int]:
        """Return checksums of what a chain has drawn between two sweeps, so that files of others cannot be mixed in."""
        sums = []
        for name in sorted(self.arrays):
            first, last = begin, end
            if name != SWEEPS:
                first, last = self.schedule.draws_after(begin), self.schedule.draws_after(end)
            label = np.frombuffer(f"{self._identity} {chain} {name} {first} {last}".encode(), np.uint8)
            content = np.asarray(self.arrays[name][chain, first:last])
            sums.append(int(digests.of_arrays(label, content)[:16], 16))
        return sums


class Piece(NamedTuple):
    """The sweep at which a piece of a chain ends, and a checksum of each quantity in it."""

    end: int
    checksums: list[int]


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
        "fixed": [_digest(model.fixed.components), _digest(model.fixed.weights)],
        "known_noise": _digest(model.entry_precision),
        "units": float(scale[0]) if scale.size == 1 else digests.of_arrays(scale),
        "offset": _digest(model.units.offset),
        "moves": moves._asdict(),
        "init": init if isinstance(init, str) else digests.of_arrays(*(np.asarray(x, dtype=float) for x in init)),
        "seed": str(seed),
    }


def _digest(array: Array | None) -> str | None:
    return None if array is None else digests.of_arrays(array)


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
        _ = stored["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{SETTINGS_FILE} in checkpoint={str(directory)!r} is not that of a run ({error!r}): use another "
            "directory, or remove this one to draw everything again"
        ) from error
    settings = json.loads(json.dumps(settings))
    different = [key for key in settings | stored if settings.get(key) != stored.get(key)]
    if different:
        if "data" in different:
            different = [key for key in different if key not in ("units", "offset")]  # which follow from the data
        changes = "; ".join(_change(key, stored.get(key), settings.get(key)) for key in different)
        raise CheckpointError(
            f"checkpoint={str(directory)!r} holds a run with other data or settings ({changes}): use the same ones to "
            "continue it, or another directory for a new run"
        )


def _change(key: str, old: Any, new: Any) -> str:
    """Return what differs between a stored setting and a new one, in words where digests stand for values."""
    if DIGEST.search(f"{old} {new}"):
        return "the data differ" if key == "data" else f"the values of {key} differ"
    return f"{key} was {old!r}, now {new!r}"
