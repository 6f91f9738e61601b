"""Small clocks that the contestants share."""

import time
from collections.abc import Callable
from typing import Any


def timed(call: Callable[[], Any]) -> float:
    """Return the seconds that a call takes."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def by_difference(fit: Callable[[int], Any], n: int) -> float:
    """Return the seconds of one iteration as a longer fit minus a shorter one, so that setting up cancels."""
    return (timed(lambda: fit(1 + n)) - timed(lambda: fit(1))) / n
