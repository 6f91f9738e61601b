"""Ratios of timings, their spread, and exponents of growth."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

Timings = Sequence[float | None]


class Spread(NamedTuple):
    """Median, and the 10% and 90% quantiles over the repeats."""

    median: float
    low: float
    high: float


def spread(values: Timings) -> Spread:
    """Return the spread of the values that are not None."""
    present = [value for value in values if value is not None]
    low, median, high = np.quantile(present, [0.1, 0.5, 0.9])
    return Spread(float(median), float(low), float(high))


def ratios(numerator: Timings, denominator: Timings) -> list[float]:
    """Return the ratio for each repeat in which both have a timing."""
    pairs = zip(numerator, denominator, strict=False)
    return [a / b for a, b in pairs if a is not None and b is not None]


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the least-squares slope of log seconds against log size: 1 is linear growth."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
