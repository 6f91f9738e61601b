"""How much memory is free, and a word before a run that would not fit."""

from __future__ import annotations

import warnings
from pathlib import Path

# Draws that would take more than this part of the free memory are worth a warning.
PART = 0.5


class MemoryWarning(UserWarning):
    """A run that may not fit into the memory."""


def available() -> int | None:
    """Return the free bytes of this machine or container, None where they cannot be known."""
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


def warn_if_large(needed: int, what: str, options: str, free: int | None = None) -> None:
    """Warn if `needed` bytes are more than a set part of what is free.

    Parameters
    ----------
    needed : int
        Bytes.
    what : str
        What needs them.
    options : str
        What the user can do.
    free : int, optional
        Free bytes; looked up by default.
    """
    free = available() if free is None else free
    if free is not None and needed > PART * free:
        warnings.warn(
            f"{what} will take {size(needed)}, and {size(free)} of memory are free: {options}",
            MemoryWarning,
            stacklevel=3,
        )


def size(n_bytes: float) -> str:
    """Return a number of bytes for people.

    Examples
    --------
    >>> size(1536), size(3 * 1024**3)
    ('1.5 kB', '3.0 GB')
    """
    for unit in ("B", "kB", "MB"):
        if abs(n_bytes) < 1024:
            return f"{n_bytes:.1f} {unit}" if unit != "B" else f"{n_bytes:.0f} B"
        n_bytes /= 1024
    return f"{n_bytes:.1f} GB"
