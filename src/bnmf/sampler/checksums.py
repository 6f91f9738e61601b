"""Checksums of the draws of a chain on disk: a damaged file is found before its numbers are used."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bnmf.sampler.schedule import Schedule
from bnmf.utils import digests
from bnmf.utils.typing import Array

SWEEPS = "train_mse"
"""The quantity that has a value for each sweep; all others have one for each kept draw."""


class Checksums:
    """Checksums of one chain: one for each quantity and each piece of the run between two checkpoints.

    Parameters
    ----------
    identity : str
        What tells this chain of this run from others, so that files of different runs cannot be mixed.
    schedule : Schedule
        Which sweeps are kept as draws.
    ends : array of int of shape (pieces,), optional
        Last sweep of each piece.
    sums : array of uint64 of shape (pieces, quantities), optional
        The checksums, quantities in the order of their names.
    """

    def __init__(self, identity: str, schedule: Schedule, ends: Array | None = None, sums: Array | None = None) -> None:
        self.identity, self.schedule = identity, schedule
        self._ends: list[int] = [] if ends is None else [int(end) for end in ends]
        self._sums: list[list[int]] = [] if sums is None else [[int(value) for value in row] for row in sums]
        if len(self._ends) != len(self._sums) or self._ends != sorted(set(self._ends)):
            raise ValueError("its checksums are incomplete")

    @property
    def end(self) -> int:
        """The sweep up to which there are checksums."""
        return self._ends[-1] if self._ends else 0

    def add(self, quantities: Mapping[str, Array], sweep: int) -> None:
        """Add the piece from the last one to a sweep."""
        self._sums.append([self._sum(name, quantities[name], self.end, sweep) for name in sorted(quantities)])
        self._ends.append(sweep)

    def damaged(self, quantities: Mapping[str, Array], sweep: int) -> str:
        """Return what is not as it was written up to the end of the chain, or an empty string."""
        if self.end != sweep:
            return "the record of checksums"
        begin = 0
        for end, expected in zip(self._ends, self._sums, strict=True):
            names = sorted(quantities)
            if len(names) != len(expected):
                return "the record of checksums"
            for name, value in zip(names, expected, strict=True):
                if self._sum(name, quantities[name], begin, end) != value:
                    return f"{name}.npy, sweeps {begin + 1} to {end}"
            begin = end
        return ""

    def arrays(self) -> dict[str, Array]:
        """Return what a file holds of these checksums."""
        return {"ends": np.array(self._ends, np.int64), "checksums": np.array(self._sums, np.uint64)}

    def _sum(self, name: str, array: Array, begin: int, end: int) -> int:
        if name != SWEEPS:
            begin, end = self.schedule.draws_after(begin), self.schedule.draws_after(end)
        label = np.frombuffer(f"{self.identity} {name} {begin} {end}".encode(), np.uint8)
        return int(digests.of_arrays(label, np.asarray(array[begin:end]))[:16], 16)
