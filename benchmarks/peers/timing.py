"""Timing functions shared by the peers."""

import time
from collections.abc import Callable
from typing import Any


def timed(call: Callable[[], Any]) -> float:
    """Return the seconds of a call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def by_difference(fit: Callable[[int], Any], n: int) -> float:
    """Return the seconds per iteration as the difference of a long and a short fit, so that the set-up cancels."""
    return (timed(lambda: fit(1 + n)) - timed(lambda: fit(1))) / n
