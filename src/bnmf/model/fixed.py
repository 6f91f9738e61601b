"""Components that are given in one of the factors: known signatures, or a column of ones as an offset."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bnmf.utils.typing import Floats, Shape

if TYPE_CHECKING:
    from bnmf.model.model import Model


@dataclass(frozen=True, eq=False)
class Fixed:
    """The first rows of Z (n, columns), in units of the data, and the last columns of W (rows, n), which are given."""

    components: Floats | None = None
    weights: Floats | None = None

    @classmethod
    def of(cls, components: Any, weights: Any, shape: Shape) -> Fixed:
        """Return what a user has fixed, checked against the shape of the data."""
        if components is None and weights is None:
            return NOTHING_FIXED
        return cls(
            _checked(components, "fixed_components", f"(n, {shape[1]})", 1, shape[1]),
            _checked(weights, "fixed_weights", f"({shape[0]}, n)", 0, shape[0]),
        )

    def with_columns(self, n_rows: int) -> Fixed:
        """Return this with a component of equal rows, for effects of columns."""
        weights = np.ones((n_rows, 1))
        return replace(self, weights=weights if self.weights is None else np.hstack([self.weights, weights]))

    def with_rows(self, n_columns: int, scale: Floats) -> Fixed:
        """Return this with a component of equal columns, for effects of rows."""
        given = np.broadcast_to(scale, (1, n_columns))
        return replace(self, components=given if self.components is None else np.vstack([given, self.components]))

    @property
    def counts(self) -> tuple[int, int]:
        """Numbers of fixed components and of fixed columns of weights."""
        n_components = 0 if self.components is None else len(self.components)
        return n_components, 0 if self.weights is None else self.weights.shape[1]

    def check(self, model: Model) -> None:
        """Raise an error if a model has no room for what is fixed, or cannot learn its rates beside it."""
        if not any(self.counts):
            return
        if sum(self.counts) > model.n_components:
            raise ValueError(
                f"n_components counts fixed components too, and must be at least {sum(self.counts)}, got "
                f"{model.n_components}"
            )
        names = ("fixed_weights", self.weights), ("fixed_components", self.components)
        for (name, given), prior in zip(names, model.priors, strict=True):
            if given is not None and (given < 0).any() and not prior.is_real:
                raise ValueError(f"{name} must be finite and nonnegative")
        for learned in model.learned_rates:
            coefficients = learned.term.with_rate(1.0).coefficients((1, model.n_components))
            if coefficients.pairwise or coefficients.max_rate:
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


def _checked(given: Any, name: str, wanted: str, axis: int, size: int) -> Floats | None:
    if given is None:
        return None
    array = np.array(given, dtype=np.float64)
    if array.ndim != 2 or array.shape[axis] != size or array.size == 0:
        raise ValueError(f"{name} must have shape {wanted}, got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite")
    return array


NOTHING_FIXED = Fixed()
