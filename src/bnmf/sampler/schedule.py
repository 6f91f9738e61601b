"""How long to sample, and which states are kept."""

from __future__ import annotations

from dataclasses import dataclass

from bnmf.utils.arguments import whole_number


@dataclass(frozen=True)
class Schedule:
    """Length of a run.

    Parameters
    ----------
    n_chains : int, default=4
        Number of chains.
    burn_in : int, default=300
        Sweeps discarded at the start of each chain.
    n_draws : int, default=200
        Draws kept of each chain.
    thinning : int, default=1
        Sweeps from one kept draw to the next.
    """

    n_chains: int = 4
    burn_in: int = 300
    n_draws: int = 200
    thinning: int = 1

    def __post_init__(self) -> None:
        for name, lowest in (("n_chains", 1), ("burn_in", 0), ("n_draws", 1), ("thinning", 1)):
            object.__setattr__(self, name, whole_number(getattr(self, name), name, lowest))

    @property
    def n_sweeps(self) -> int:
        """Sweeps of one chain."""
        return self.sweeps_for(self.n_draws)

    def sweeps_for(self, n_draws: int) -> int:
        """Return how many sweeps a chain needs for `n_draws` draws."""
        return self.burn_in + n_draws * self.thinning

    def draws_after(self, sweep: int) -> int:
        """Return how many draws a chain has kept after `sweep` sweeps."""
        return max(sweep - self.burn_in, 0) // self.thinning

    def keeps(self, sweep: int) -> bool:
        """Return whether the state after `sweep` sweeps is kept."""
        return sweep > self.burn_in and (sweep - self.burn_in) % self.thinning == 0
