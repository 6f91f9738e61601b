"""The protocol of the experiments: their settings, for a full and for a quick run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bnmf.paper.methods import EXACT_MODELS


def _paper_fractions() -> dict[str, tuple[float, ...]]:
    return {"gdsc": (0.3, 0.4, 0.5, 0.6, 0.7, 0.8), "methylation": (0.1, 0.3, 0.5, 0.6, 0.7, 0.8)}


@dataclass(frozen=True)
class Settings:
    """Settings of a run.

    The defaults are those of the paper, or our choice where the paper does not specify them.

    Parameters
    ----------
    datasets : tuple of str
        Names of the data sets of convergence, factors and prediction.
    repeats : int
        Number of repeats of every fit.
    seed : int
        Random seed.
    n_sweeps, burn_in : int
        Length of a chain, and its burn-in.
    rate : float
        Rate λ of every prior.
    full_k : tuple of int
        Numbers of components in convergence and factors.
    full_models : tuple of str
        Models in convergence and factors.
    divergent_repeats : int
        Number of repeats of the printed rule of GL∞, which diverges.
    prediction_k : tuple of int
        Numbers of components in prediction.
    prediction_models : tuple of str
        Models in prediction.
    printed_rule_from : float
        Smallest fraction at which the printed rule of GL2²,∞ is run, on the data set of the printed table.
    fractions : mapping of str to tuple of float
        Fractions of unobserved entries, by data set.
    baselines : bool
        Whether to run the baselines.
    noise_dataset, noise_k, noise_levels, noise_held_out :
        Data set, number of components, noise-to-signal ratios and held-out fraction of the observed entries in the
        noise experiment.
    start_scenarios : tuple of (float, int)
        Fractions and K for which GL1² is run from different starting points.
    """

    datasets: tuple[str, ...] = ("gdsc", "methylation")
    repeats: int = 10
    seed: int = 0
    n_sweeps: int = 500
    burn_in: int = 300
    rate: float = 0.1
    full_k: tuple[int, ...] = (10, 20, 30, 40, 50)
    full_models: tuple[str, ...] = (*EXACT_MODELS, "gl22inf-published", "glinf-published")
    divergent_repeats: int = 3
    prediction_k: tuple[int, ...] = (20, 30, 40, 50)
    prediction_models: tuple[str, ...] = EXACT_MODELS
    printed_rule_from: float = 0.6
    fractions: Mapping[str, tuple[float, ...]] = field(default_factory=_paper_fractions)
    baselines: bool = True
    noise_dataset: str = "gdsc"
    noise_k: int = 10
    noise_levels: tuple[float, ...] = (0.0, 0.1, 0.2, 0.5, 1.0)
    noise_held_out: float = 0.1
    start_scenarios: tuple[tuple[float, int], ...] = ((0.6, 20), (0.8, 50))

    def chain(self) -> dict[str, Any]:
        """Return the settings that all fits share."""
        return {"n_sweeps": self.n_sweeps, "burn_in": self.burn_in, "rate": self.rate, "seed": self.seed}


def quick(settings: Settings) -> Settings:
    """Return the settings of a run of a few minutes, too small for a comparison with the paper.

    Parameters
    ----------
    settings : Settings
        The settings of a full run.

    Returns
    -------
    Settings
        The same chains with at most two repeats, fewer K and fewer fractions.
    """
    return replace(
        settings,
        repeats=min(settings.repeats, 2),
        full_k=(10, 20),
        divergent_repeats=1,
        prediction_k=(20, 50),
        printed_rule_from=0.8,
        fractions={"gdsc": (0.6, 0.8), "methylation": (0.6, 0.8)},
        noise_levels=(0.0, 0.1, 1.0),
        start_scenarios=((0.8, 50),),
    )
