"""What the peers measure: times, and effective samples of predictions."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from arviz_stats.base import array_stats

from bnmf.utils.typing import Floats


def timed(call: Callable[[], Any]) -> float:
    """Return the seconds of a call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def by_difference(fit: Callable[[int], Any], n: int) -> float:
    """Return the seconds per iteration as the difference of a long and a short fit, so that the set-up cancels."""
    return (timed(lambda: fit(1 + n)) - timed(lambda: fit(1))) / n


def worst_ess(predictions: Floats) -> float:
    """Return the smallest bulk effective sample size over predictions (draws, entries) of one chain."""
    return float(np.min(array_stats.ess(predictions[None], chain_axis=0, draw_axis=1, method="bulk")))
