"""The joint density of data, factors and noise."""

from __future__ import annotations

import operator
import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from bnmf.data.observed import ObservedMatrix
from bnmf.model.noise import InverseGamma
from bnmf.priors.base import Coefficients, Prior
from bnmf.priors.names import as_pair
from bnmf.utils.typing import Floats, Shape


@dataclass(frozen=True, eq=False)
class Model:
    """Data, number of components, priors and noise.

    Parameters
    ----------
    data : ObservedMatrix
        The data.
    n_components : int
        K.
    prior : Prior, str or pair of them, default="gl22"
        Prior of both factors, or one for W and one for Z. A matrix of rates for Z has shape (K, columns).
    noise : InverseGamma, optional
        Prior of the noise variance; shape 1 and scale 1 by default.
    """

    data: ObservedMatrix
    n_components: int
    prior: Any = "gl22"
    noise: InverseGamma = field(default_factory=InverseGamma)

    def __post_init__(self) -> None:
        k = self.n_components
        try:
            k = operator.index(k)
        except TypeError:
            raise TypeError(f"n_components must be a whole number, got {k!r}") from None
        if k < 1:
            raise ValueError(f"n_components must be at least 1, got {k}")
        object.__setattr__(self, "n_components", k)
        if k > min(self.data.shape):
            warnings.warn(
                f"n_components={k} is larger than the smaller side of the matrix, {min(self.data.shape)}: that is a "
                "valid model, but more components than the data can tell apart",
                stacklevel=3,
            )
        _ = self.coefficients  # raises an error now, rather than in the first sweep, if a rate has the wrong shape

    @cached_property
    def priors(self) -> tuple[Prior, Prior]:
        """Priors of W and of Zᵀ, both with rows first."""
        prior_W, prior_Z = as_pair(self.prior)
        return prior_W, prior_Z.transposed()

    @property
    def factor_shapes(self) -> tuple[Shape, Shape]:
        """Shapes of W and of Zᵀ."""
        n_rows, n_columns = self.data.shape
        return (n_rows, self.n_components), (n_columns, self.n_components)

    @cached_property
    def coefficients(self) -> tuple[Coefficients, Coefficients]:
        """Coefficients of the priors of W and of Zᵀ."""
        (prior_W, prior_Z), (shape_W, shape_Z) = self.priors, self.factor_shapes
        return prior_W.coefficients(shape_W), prior_Z.coefficients(shape_Z)

    def log_joint(self, W: Floats, Zt: Floats, sigma2: float) -> float:
        """Return the log joint density of data, factors and noise variance, up to a constant.

        Parameters
        ----------
        W, Zt : ndarray of shape (rows, K) and (columns, K)
            The factors; Zt is Z transposed.
        sigma2 : float
            The noise variance.

        Returns
        -------
        float
            Log likelihood plus log priors.
        """
        squared_error = self.data.sum_squared_error(W, Zt)
        n = self.data.n_observed + 2.0 * (self.noise.shape + 1.0)
        fit = -0.5 * n * np.log(sigma2) - (0.5 * squared_error + self.noise.scale) / sigma2
        return float(fit + self.priors[0].log_density(W) + self.priors[1].log_density(Zt))
