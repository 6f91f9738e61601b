"""The return to the prior of what is learned besides the factors: variances of rows and columns, and rates.

As in `calibration`: draw everything from the joint prior, data given that, and take some sweeps given the data. The
result is again a draw from the joint prior.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bnmf.data import ObservedMatrix
from bnmf.model import Model, contaminated
from bnmf.model.fixed import NOTHING_FIXED, Fixed
from bnmf.model.noise import NoiseState
from bnmf.model.units import NO_UNITS, Units
from bnmf.sampler.gibbs import step
from bnmf.sampler.state import State
from bnmf.sampler.streams import Stream
from bnmf.sampler.threads import Workers, single_threaded_blas
from tests.statistical.coarse import coarsened

STATISTICS = ("Σ W", "Σ Z²", "prediction", "log variance of a row", "of a column", "scale", "strength", "first rate",
              "last rate", "degrees of freedom", "log factor of an entry", "share of gross errors")  # fmt: skip


class Truth(NamedTuple):
    """A draw from the joint prior."""

    W: np.ndarray
    Zt: np.ndarray
    noise: NoiseState
    rates: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Problem:
    """A small factorisation with learned rates or unequal variances, in units of its columns."""

    prior: Any
    noise: Any
    shape: tuple[int, int] = (5, 4)
    n_components: int = 2
    missing: float = 0.3
    units: Units = NO_UNITS
    has_known_precisions: bool = False
    n_fixed: tuple[int, int] = (0, 0)
    is_coarse: bool = False

    def model(self, data: ObservedMatrix, fixed: Fixed = NOTHING_FIXED) -> Model:
        known = self.known_precisions[data.mask()] if self.has_known_precisions else None
        return Model(data, self.n_components, self.prior, self.noise, self.units, known, fixed)

    @property
    def known_precisions(self) -> np.ndarray:
        return np.exp(2.0 * np.random.default_rng(0).normal(size=self.shape))

    def truths(self, count: int, rng: np.random.Generator) -> list[Truth]:
        """Draw from the joint prior: rates, then factors of a homogeneous penalty by scaling those of rate 1."""
        model = self.model(ObservedMatrix.from_data(np.ones(self.shape)))
        rates = []
        for learned in model.learned_rates:
            size = (count, self.n_components if learned.term.is_by_component else 1)
            hyperprior = getattr(learned.term, learned.term.rate_name)
            rates.append(rng.gamma(hyperprior.shape, size=size) / hyperprior.rate)
        factors = []
        for factor, (side, k) in enumerate(model.factor_shapes):
            prior = model.priors_at(tuple(np.ones(rate.shape[1]) for rate in rates))[factor]
            draws = prior.draw((count * side, k), rng).reshape(count, side, k)
            for learned, rate in zip(model.learned_rates, rates, strict=True):
                if factor in learned.factors:
                    draws = draws / rate[:, None, :] ** (1.0 / learned.term.degree)
            factors.append(draws)
        noises = [model.noise_model.draw_prior(self.shape, rng) for _ in range(count)]
        return [
            Truth(W, Zt, noise, tuple(rate[i] for rate in rates))
            for i, (W, Zt, noise) in enumerate(zip(*factors, noises, strict=True))
        ]

    def posterior(self, truth: Truth, rng: np.random.Generator) -> tuple[Model, State]:
        """Make data from a truth, in the user's units, and return the model and the truth as a state of its chain."""
        sd = np.sqrt(np.outer(np.broadcast_to(truth.noise.row, self.shape[0]),
                              np.broadcast_to(truth.noise.column, self.shape[1])))  # fmt: skip
        noise = truth.noise
        observed = rng.uniform(size=self.shape) >= self.missing
        observed[0, 0] = observed[0, 0] or not observed.any()
        if noise.df:
            factor = noise.entry.reshape(self.shape)
            sd, noise = sd / np.sqrt(factor), noise._replace(entry=factor[observed])
        if noise.share.size:
            sd = np.where(rng.uniform(size=self.shape) < noise.share, np.sqrt(contaminated.FACTOR), 1.0) * sd
        if self.has_known_precisions:
            sd = sd / np.sqrt(self.known_precisions)
        A = (truth.W @ truth.Zt.T + sd * rng.normal(size=self.shape)) * self.units.scale
        n_components, n_weights = self.n_fixed
        fixed = Fixed(
            truth.Zt.T[:n_components] * self.units.scale if n_components else None,
            truth.W[:, self.n_components - n_weights :] if n_weights else None,
        )
        lower, upper = coarsened(A, self.units.scale) if self.is_coarse else (None, None)
        model = self.model(ObservedMatrix.from_data(A, observed, lower=lower, upper=upper, negative=True), fixed)
        return model, State(truth.W, truth.Zt, noise, truth.rates, 0.0, 0.0, 0)


def statistics(truth: Truth | State) -> list[float]:
    """Return the statistics of one draw."""
    noise, rates = truth.noise, truth.rates
    return [
        truth.W.sum(),
        (truth.Zt**2).sum(),
        truth.W[0] @ truth.Zt[-1],
        np.log(noise.row[0]),
        np.log(noise.column[-1]),
        noise.scale,
        noise.row_strength + 100 * noise.column_strength,
        rates[0][0] if rates else 0.0,
        rates[-1][-1] if rates else 0.0,
        noise.df,
        np.log(noise.entry[0]) if noise.entry.size else 0.0,
        noise.share[-1] if noise.share.size else 0.0,
    ]


def returned_to_prior(problem: Problem, replicates: int, sweeps: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return statistics after some sweeps from the truth, and of fresh draws from the prior, five times as many."""
    rng = np.random.default_rng(seed)
    after = []
    with single_threaded_blas(), Workers() as workers:
        for i, truth in enumerate(problem.truths(replicates, rng)):
            model, state = problem.posterior(truth, rng)
            stream = Stream(seed, i)
            for _ in range(sweeps):
                state = step(model, state, stream, workers)
            after.append(statistics(state))
    return np.array(after), np.array([statistics(truth) for truth in problem.truths(5 * replicates, rng)])
