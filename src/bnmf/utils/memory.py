"""Available memory: a warning before a run that may exceed it, and an error before a result that certainly does."""

from __future__ import annotations

import warnings
from pathlib import Path

from bnmf.utils.text import size

# Warn if an allocation takes more than this fraction of the available memory.
WARNING_FRACTION = 0.5


class MemoryWarning(UserWarning):
    """A run may exceed the available memory."""


def available() -> int | None:
    """Return the available bytes of this machine or container, None if the system does not say."""
    found = []
    try:
        facts = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        found.append(int(facts["MemAvailable"].split()[0]) * 1024)
    except (OSError, ValueError, KeyError):
        pass
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        used = Path("/sys/fs/cgroup/memory.current").read_text().strip()
        if limit != "max":
            found.append(int(limit) - int(used))
    except (OSError, ValueError):
        pass
    return min(found) if found else None


def require(needed: int, what: str, options: str) -> None:
    """Raise an error if `needed` bytes are more than the available memory, before the system ends the process."""
    free = available()
    if free is not None and needed > free:
        raise MemoryError(f"{what} takes {size(needed)}, and {size(free)} of memory are free: {options}")


def warn_if_large(needed: int, what: str, options: str) -> None:
    """Warn if `needed` bytes exceed a fraction of the available memory."""
    free = available()
    if free is not None and needed > WARNING_FRACTION * free:
        warnings.warn(
            f"{what} will take {size(needed)}, and {size(free)} of memory are free: {options}",
            MemoryWarning,
            stacklevel=3,
        )
