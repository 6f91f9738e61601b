"""Components that are given in one of the factors: known signatures, or a column of ones as an offset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bnmf.priors.names import as_pair
from bnmf.utils.arguments import numbers
from bnmf.utils.typing import Floats, Shape


@dataclass(frozen=True, eq=False)
class Fixed:
    """The first rows of Z (n, columns), in units of the data, and the last columns of W (rows, n), which are given."""

    components: Floats | None = None
    weights: Floats | None = None

    @classmethod
    def of(cls, components: Any, weights: Any, shape: Shape | None = None) -> Fixed:
        """Return the components and weights that a user gives, checked against the shape of the data if it is known."""
        if components is None and weights is None:
            return NOTHING_FIXED
        n_rows, n_columns = ("n_samples", "n_features") if shape is None else shape
        return cls(
            _checked(components, "fixed_components", ("n", n_columns)),
            _checked(weights, "fixed_weights", (n_rows, "n")),
        )

    def with_effects(self, shape: Shape, scale: Floats, *, rows: bool) -> Fixed:
        """Return this with a component of equal rows, for effects of columns, and one of equal columns for `rows`."""
        equal_rows, equal_columns = np.ones((shape[0], 1)), np.broadcast_to(scale, (1, shape[1]))
        weights = equal_rows if self.weights is None else np.hstack([self.weights, equal_rows])
        if not rows:
            return Fixed(self.components, weights)
        return Fixed(equal_columns if self.components is None else np.vstack([equal_columns, self.components]), weights)

    @property
    def counts(self) -> tuple[int, int]:
        """Numbers of fixed components and of fixed columns of weights."""
        n_components = 0 if self.components is None else len(self.components)
        return n_components, 0 if self.weights is None else self.weights.shape[1]

    def check(self, n_components: int | str, prior: Any) -> None:
        """Raise an error if there is no room for what is fixed, or no way to learn rates beside it."""
        n_fixed, priors = sum(self.counts), as_pair(prior)
        if not n_fixed:
            return
        if isinstance(n_components, int) and n_fixed > n_components:
            raise ValueError(
                f"n_components counts fixed components too, and must be at least {n_fixed}, got {n_components}"
            )
        names = ("fixed_weights", self.weights), ("fixed_components", self.components)
        for (name, given), of_factor in zip(names, priors, strict=True):
            if given is not None and (given < 0).any() and not of_factor.is_real:
                raise ValueError(f"{name} must be finite and nonnegative")
        # Those of L1Squared and LInf, whose penalty is of all entries of a row.
        if any(of_factor.learned is not None and not of_factor.learned.allows_arrays for of_factor in priors):
            raise ValueError(
                "a learned rate of L1Squared or LInf cannot be combined with fixed components: give it a number"
            )

    def apply(self, W: Floats, Zt: Floats, scale: Floats) -> None:
        """Write what is fixed into factors, in units of the model."""
        n_components, n_weights = self.counts
        if self.components is not None:
            Zt[:, :n_components] = (self.components / scale).T
        if self.weights is not None:
            W[:, W.shape[1] - n_weights :] = self.weights


def _checked(given: Any, name: str, shape: tuple[int | str, int | str]) -> Floats | None:
    """Return a matrix of finite numbers, of a shape in which names stand for what any number may be."""
    if given is None:
        return None
    array = numbers(given, name)
    is_right = array.ndim == 2 and all(isinstance(n, str) or n == m for n, m in zip(shape, array.shape, strict=True))
    if not is_right or array.size == 0:
        raise ValueError(f"{name} must have shape ({shape[0]}, {shape[1]}), got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite")
    return array


NOTHING_FIXED = Fixed()
