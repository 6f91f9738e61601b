"""Rates that are learned: a gamma prior on λ, which is conjugate for every single-term prior.

A penalty that is homogeneous of degree d in w has a normalising constant proportional to λ^(-K/d) for each row, so

    λ | W ~ Gamma(a + entries / d, b + penalty at λ = 1)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Gamma:
    """Gamma prior of a rate λ, density ∝ λ^(shape - 1) exp(-rate λ).

    Parameters
    ----------
    shape, rate : float
        a and b, both positive.
    """

    shape: float = 1.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        for name, value in (("shape", self.shape), ("rate", self.rate)):
            if not (isinstance(value, (int, float, np.number)) and 0 < value < math.inf):
                raise ValueError(f"{name} of Gamma must be a positive finite number, got {value!r}")
            object.__setattr__(self, name, float(value))
