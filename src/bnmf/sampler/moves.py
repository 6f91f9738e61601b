"""Moves of a sweep in addition to one draw of each row: they change how fast a chain mixes, not its distribution."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bnmf.kernels.compiled import Memory, rescale, shear
from bnmf.priors.base import Coefficients
from bnmf.sampler.streams import RESCALE, SHEAR, Stream
from bnmf.utils.typing import Floats


class Moves(NamedTuple):
    """Settings of a sweep; all leave the posterior unchanged."""

    n_passes: int = 2  # draws of a row given the sums over its entries
    rescale: bool = True  # whether the scale of each component is drawn
    n_partners: int = 4  # others that each component is sheared with, which change so that all come in turn
    # Whether rows and columns with many values beyond a limit are also drawn with these, on data in memory.
    interweave: bool = True

    def apply(
        self,
        W: Floats,
        Zt: Floats,
        prior_W: Coefficients,
        prior_Z: Coefficients,
        free: tuple[int, int],
        stream: Stream,
        sweep: int,
        memory: Memory,
    ) -> None:
        """Rescale and shear in place the components that are fixed in neither factor: from `free[0]` to `free[1]`."""
        first, end = free
        if end - first < W.shape[1]:
            if end <= first or any(prior.pairwise or prior.max_rate for prior in (prior_W, prior_Z)):
                return  # the penalty of a row depends on what is fixed, which the moves do not know
            free_W, free_Zt = np.ascontiguousarray(W[:, first:end]), np.ascontiguousarray(Zt[:, first:end])
            priors = prior_W.of_components(first, end), prior_Z.of_components(first, end)
            self.apply(free_W, free_Zt, *priors, (0, end - first), stream, sweep, memory)
            W[:, first:end], Zt[:, first:end] = free_W, free_Zt
            return
        kernel_priors = prior_W.kernel_prior, prior_Z.kernel_prior
        if self.rescale:
            rescale(W, Zt, *kernel_priors, stream.key(sweep, RESCALE), memory)
        if self.n_partners and W.shape[1] > 1 and can_shear(prior_W, prior_Z):
            partners = (sweep - 1) * self.n_partners, sweep * self.n_partners
            shear(W, Zt, *kernel_priors, stream.key(sweep, SHEAR), memory, *partners)


def can_shear(prior_W: Coefficients, prior_Z: Coefficients) -> bool:
    """Return whether the density along a shear is smooth, or its interval is finite: what the move is made for."""
    real = [prior.absolute for prior in (prior_W, prior_Z) if prior.absolute is not None]
    return not real or not (any(rates.any() for rates in real) or prior_W.max_rate or prior_Z.max_rate)


MIXING = Moves()
"""The default: what gives most effective draws per second on small tables and on drug response data."""

PLAIN = Moves(n_passes=1, rescale=False, n_partners=0, interweave=False)
"""The plain Gibbs sampler of the paper."""
