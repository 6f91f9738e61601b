"""How large a run is: everything that the experiments take besides the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bnmf.experiments.models import EXACT


def _paper_fractions() -> dict[str, tuple[float, ...]]:
    return {"gdsc": (0.3, 0.4, 0.5, 0.6, 0.7, 0.8), "methylation": (0.1, 0.3, 0.5, 0.6, 0.7, 0.8)}


@dataclass(frozen=True)
class Settings:
    """Settings of a run; the defaults are those of the paper and, where it does not say, those of the full run.

    Parameters
    ----------
    datasets : tuple of str
        Names of the data sets of convergence, factors and prediction.
    repeats : int
        Repeats of everything.
    seed : int
        Seed of the run.
    n_sweeps, burn_in : int
        Length of a chain, and its burn-in.
    rate : float
        λ of every prior.
    full_k : tuple of int
        Components in convergence and factors.
    full_models : tuple of str
        Models in convergence and factors.
    runaway_repeats : int
        Repeats of the printed rule of GL∞, which runs away.
    prediction_k : tuple of int
        Components in prediction.
    prediction_models : tuple of str
        Models in prediction.
    printed_rule_from : float
        The printed rule of GL2²,∞ is added from this fraction on, on the data set of the printed table.
    fractions : mapping of str to tuple of float
        Fractions unobserved, by data set.
    baselines : bool
        Whether the baselines run too.
    noise_dataset, noise_k, noise_levels, noise_held_out :
        Data, components, noise-to-signal ratios and held-out part of the observed entries of the noise experiment.
    start_scenarios : tuple of (float, int)
        Fractions and K at which GL1² is started from different places.
    """

    datasets: tuple[str, ...] = ("gdsc", "methylation")
    repeats: int = 10
    seed: int = 0
    n_sweeps: int = 500
    burn_in: int = 300
    rate: float = 0.1
    full_k: tuple[int, ...] = (10, 20, 30, 40, 50)
    full_models: tuple[str, ...] = (*EXACT, "gl22inf-published", "glinf-published")
    runaway_repeats: int = 3
    prediction_k: tuple[int, ...] = (20, 30, 40, 50)
    prediction_models: tuple[str, ...] = EXACT
    printed_rule_from: float = 0.6
    fractions: Mapping[str, tuple[float, ...]] = field(default_factory=_paper_fractions)
    baselines: bool = True
    noise_dataset: str = "gdsc"
    noise_k: int = 10
    noise_levels: tuple[float, ...] = (0.0, 0.1, 0.2, 0.5, 1.0)
    noise_held_out: float = 0.1
    start_scenarios: tuple[tuple[float, int], ...] = ((0.6, 20), (0.8, 50))

    def chain(self) -> dict[str, Any]:
        """Return what every fit takes from here."""
        return {"n_sweeps": self.n_sweeps, "burn_in": self.burn_in, "rate": self.rate, "seed": self.seed}


def quick(settings: Settings) -> Settings:
    """Return a much smaller run: a first look in a few minutes, not a comparison.

    Parameters
    ----------
    settings : Settings
        A full run.

    Returns
    -------
    Settings
        At most two repeats, fewer K and fractions, and the same chains.
    """
    return replace(
        settings,
        repeats=min(settings.repeats, 2),
        full_k=(10, 20),
        runaway_repeats=1,
        prediction_k=(20, 50),
        printed_rule_from=0.8,
        fractions={"gdsc": (0.6, 0.8), "methylation": (0.6, 0.8)},
        noise_levels=(0.0, 0.1, 1.0),
        start_scenarios=((0.8, 50),),
    )
