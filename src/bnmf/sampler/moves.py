"""What a sweep does beside one draw of each row: settings that change how fast a chain mixes, and not where to."""

from __future__ import annotations

from typing import NamedTuple


class Moves(NamedTuple):
    """Settings of a sweep; all leave the posterior unchanged.

    Attributes
    ----------
    n_passes : int
        How often a row is drawn given the sums over its entries.
    rescale : bool
        Draw the scale of each component.
    n_partners : int
        With how many others each component is sheared. They change from sweep to sweep, so that all come in turn.
    """

    n_passes: int = 2
    rescale: bool = True
    n_partners: int = 4


MIXING = Moves()
"""The default: what gives most effective draws per second on small tables and on drug response data."""

PLAIN = Moves(n_passes=1, rescale=False, n_partners=0)
"""The plain Gibbs sampler of the paper."""
