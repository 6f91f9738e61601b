"""Durations and sizes as people write them."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """Return a duration with the two units that matter.

    Examples
    --------
    >>> duration(8.2), duration(200), duration(7300)
    ('8 s', '3 min 20 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def size(n_bytes: float) -> str:
    """Return a number of bytes with the unit that suits it.

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
