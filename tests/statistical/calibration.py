"""Is the sampler's posterior the posterior? Two exact answers for small problems.

Both draw everything from the joint prior, and data given that, so that the truth is itself a draw from the posterior
given the data.

- *Return to the prior* (Geweke's test with independent replicates). From the truth, a few sweeps given the data are
  again a draw from the posterior, so over many replicates they are again draws from the prior. This holds after any
  number of sweeps, so nothing needs to be thinned and every replicate is independent.
- *Ranks* (simulation-based calibration). The rank of the truth among draws from its posterior is uniform. The draws
  must be independent, so they are thinned.
"""

from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from bnmf.data import ObservedMatrix
from bnmf.model import Model, contaminated
from bnmf.model.fixed import NOTHING_FIXED, Fixed
from bnmf.model.noise import NoiseState
from bnmf.model.units import NO_UNITS, Units
from bnmf.noise import CommonNoise
from bnmf.priors import exact_draws
from bnmf.priors.base import Coefficients
from bnmf.sampler.gibbs import State, sample
from bnmf.sampler.moves import MIXING, Moves
from bnmf.sampler.streams import Stream
from bnmf.sampler.threads import single_threaded_blas
from tests.statistical.checks import assert_same
from tests.statistical.joint import coarsened, draw_noise

NOISE = CommonNoise(5.0, 5.0)  # the default of (1, 1) has no mean
OF_FACTORS = "Σ max W", "Σ W", "Σ W²", "Σ max Z", "Σ Z", "Σ Z²", "prediction"
STATISTICS = (*OF_FACTORS, "log variance of a column", "of a row", "scale", "strength", "first rate", "last rate",
              "degrees of freedom", "log factor of an entry", "share of gross errors")  # fmt: skip
RANKED = STATISTICS[: len(OF_FACTORS) + 1]
# Draws for the ranks are this many sweeps apart. In ten chains of 2000 sweeps from the truth (all observed, the
# rescaling move on) the largest autocorrelation of a statistic at this lag is 0.035 for LInf, and 0.01 or less for L1,
# L1Squared and L2Squared + LInf. Without the move LInf has 0.76 left: it is proven by the other test.
THINNING = 20


class Truth(NamedTuple):
    """A draw from the joint prior."""

    W: np.ndarray
    Zt: np.ndarray
    noise: NoiseState
    rates: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Problem:
    """A small factorisation: its model, fraction missing, moves of the sweeps, and whether data are limits."""

    prior: Any
    noise: Any = NOISE
    shape: tuple[int, int] = (4, 3)
    n_components: int = 3
    missing: float = 0.3
    moves: Moves = MIXING
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

    def factors(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        """Draw W (count, M, K), Zᵀ (count, N, K) and learned rates (count, 1 or K) from the priors."""
        model = self.model(ObservedMatrix.from_data(np.ones(self.shape)))
        rates, factors = [], []
        for learned in model.learned_rates:
            size = (count, self.n_components if learned.term.is_by_component else 1)
            hyperprior = getattr(learned.term, learned.term.rate_name)
            rates.append(rng.gamma(hyperprior.shape, size=size) / hyperprior.rate)
        priors = model.coefficients(tuple(np.ones(rate.shape[1]) for rate in rates))
        for factor, (prior, shape) in enumerate(zip(priors, model.factor_shapes, strict=True)):
            rows = [coefficients_of_row(prior, i) for i in range(shape[0])]
            draws = np.stack([exact_draws.draw(row, (count, shape[1]), rng) for row in rows], axis=1)
            for learned, rate in zip(model.learned_rates, rates, strict=True):
                if factor in learned.factors:  # its penalty is homogeneous
                    draws = draws / rate[:, None, :] ** (1.0 / learned.term.degree)
            factors.append(draws)
        return factors[0], factors[1], rates

    def truths(self, count: int, rng: np.random.Generator) -> list[Truth]:
        """Draw from the joint prior."""
        W, Zt, rates = self.factors(count, rng)
        noise = self.model(ObservedMatrix.from_data(np.ones(self.shape))).noise_model
        return [
            Truth(W[i], Zt[i], draw_noise(noise, self.shape, rng), tuple(rate[i] for rate in rates))
            for i in range(count)
        ]

    def posterior(self, truth: Truth, rng: np.random.Generator) -> tuple[Model, State]:
        """Make data from a truth, in the user's units, and return the model and the truth as a state of its chain."""
        row, column = (np.broadcast_to(x, n) for x, n in zip(truth.noise[:2], self.shape, strict=True))
        sd, noise = np.sqrt(np.outer(row, column)), truth.noise
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


def coefficients_of_row(c: Coefficients, row: int) -> Coefficients:
    """Return the coefficients of one row of a factor."""
    arrays = {name: getattr(c, name) for name in ("linear", "quadratic", "absolute")}
    return replace(c, **{name: x[[row % len(x)]] for name, x in arrays.items() if x is not None})


def of_factors(W: np.ndarray, Zt: np.ndarray) -> np.ndarray:
    """Return the statistics of the factors of one state, or of many along the first axis."""
    of_each = [(x.max(axis=-1).sum(axis=-1), x.sum(axis=(-2, -1)), (x**2).sum(axis=(-2, -1))) for x in (W, Zt)]
    return np.stack([*of_each[0], *of_each[1], (W[..., 0, :] * Zt[..., -1, :]).sum(axis=-1)], axis=-1)


def statistics(truth: Truth | State) -> list[float]:
    """Return the statistics of one draw."""
    noise, rates = truth.noise, truth.rates
    return [
        *of_factors(truth.W, truth.Zt),
        np.log(noise.column[-1]),
        np.log(noise.row[0]),
        noise.scale,
        noise.row_strength + 100 * noise.column_strength,
        rates[0][0] if rates else 0.0,
        rates[-1][-1] if rates else 0.0,
        noise.df,
        np.log(noise.entry[0]) if noise.entry.size else 0.0,
        noise.share[-1] if noise.share.size else 0.0,
    ]


def returned_to_prior(problem: Problem, replicates: int, seed: int, sweeps: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Return statistics after some sweeps from the truth, and of fresh draws from the prior, five times as many."""
    rng = np.random.default_rng(seed)
    after = []
    with single_threaded_blas():
        for i, truth in enumerate(problem.truths(replicates, rng)):
            model, state = problem.posterior(truth, rng)
            *_, last = sample(model, Stream(seed, i), state=state, n_sweeps=sweeps, moves=problem.moves)
            after.append(statistics(last))
    return np.array(after), np.array([statistics(truth) for truth in problem.truths(5 * replicates, rng)])


def assert_returns_to_prior(problem: Problem, replicates: int, seed: int) -> None:
    """Assert that sweeps from draws of the joint prior give draws of the joint prior."""
    for after, fresh in zip(*(x.T for x in returned_to_prior(problem, replicates, seed)), strict=True):
        if np.ptp(fresh) > 0:
            assert_same(after, fresh)
        else:  # not part of this problem
            np.testing.assert_array_equal(after, fresh[0])


def ranks(problem: Problem, replicates: int, draws: int, seed: int, thinning: int = THINNING) -> np.ndarray:
    """Return the ranks, 0 to `draws`, of the truth's statistics `RANKED` among those of draws from its posterior."""
    rng = np.random.default_rng(seed)
    below = np.empty((replicates, len(RANKED)), int)
    with single_threaded_blas():
        for i, truth in enumerate(problem.truths(replicates, rng)):
            model, state = problem.posterior(truth, rng)
            chain = sample(model, Stream(seed, i), state=state, n_sweeps=draws * thinning, moves=problem.moves)
            values = np.array([statistics(state) for state in islice(chain, thinning - 1, None, thinning)])
            below[i] = (values < statistics(truth)).sum(axis=0)[: len(RANKED)]
    return below
