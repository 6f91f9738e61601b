"""Gaussian noise with an inverse-gamma prior on its variance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class InverseGamma:
    """Inverse-gamma prior of the noise variance σ², density ∝ (σ²)^(-shape - 1) exp(-scale / σ²).

    Parameters
    ----------
    shape, scale : float
        α and β, both positive.
    """

    shape: float = 1.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        for name, value in (("noise_shape", self.shape), ("noise_scale", self.scale)):
            if not (isinstance(value, (int, float, np.number)) and 0 < value < math.inf):
                raise ValueError(f"{name} must be a positive finite number, got {value!r}")

    def draw(self, n_observed: int, squared_error: float, rng: np.random.Generator) -> float:
        """Draw σ² given the squared error over the observed entries; without any, from the prior.

        Parameters
        ----------
        n_observed : int
            Number of observed entries, not M times N.
        squared_error : float
            Σ (a - w z)² over them.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        float
            σ².
        """
        return (self.scale + 0.5 * squared_error) / rng.gamma(self.shape + 0.5 * n_observed)
