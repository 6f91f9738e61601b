"""What helps chains that sit in different modes.

    python -m benchmarks.modes --data-dir ../shared/data [--write docs/mixing.md]
    python -m benchmarks.modes --starts [--write docs/mixing.md]

A fifth of the entries is hidden. Four chains of default length fit the rest, and the hidden entries are predicted by

- *pooled*: all draws with equal weights, as bnmf does;
- *stacked*: chains weighted by stacking of their leave-one-out densities (Yao, Vehtari and Gelman 2022), estimated by
  Pareto smoothed importance sampling from a random part of the observed entries;
- *cooled*: chains whose noise variance is multiplied by a factor that falls from 30 to 1 over the burn-in, pooled;
- *best chain*: the chain with the largest leave-one-out density.

The table has the mean log predictive density per hidden entry, in units of the scaled columns (larger is better), and
the root mean square error of the mean over that of the pooled draws. "weights" are those of the stacked chains.

With --starts: the noise of the first sweeps. Two columns on a line, a quarter of one missing, and how many chains find
nothing in them if the noise of the warm-up is any, or small; and columns without structure beside others that determine
each other, if the noise after the warm-up is any, or alike.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy import special
from sklearn import datasets as packaged

from benchmarks import pages
from bnmf import BayesianNMF, NMFImputer
from bnmf.data.observed import ObservedMatrix
from bnmf.imputer import ANY_TABLE
from bnmf.model.model import Model
from bnmf.model.units import units_of
from bnmf.sampler import gibbs
from bnmf.sampler.gibbs import State
from bnmf.sampler.streams import Stream
from bnmf.sampler.threads import Workers
from bnmf.utils.typing import Floats, Indices

N_CHAINS, BURN_IN, N_DRAWS = 4, 300, 200
HOTTEST = 30.0
MAX_LEFT_OUT = 2000


def tables(data_dir: Path) -> Iterator[tuple[str, Floats, tuple[int, ...]]]:
    """Yield names, matrices and the ranks to fit."""
    yield "wine", packaged.load_wine().data, (5, 10)
    yield "breast cancer", packaged.load_breast_cancer().data, (5, 10)
    digits = packaged.load_digits().data
    yield "digits", digits[:600, digits.std(axis=0) > 0], (5, 10, 15)
    gdsc = data_dir / "gdsc" / "ic50.txt"
    if gdsc.exists():
        yield "GDSC", np.loadtxt(gdsc), (5, 10, 20)


def chain(model: Model, number: int, hottest: float) -> list[State]:
    """Return the kept states of a chain whose noise is cooled over the burn-in."""
    stream, kept = Stream(0, number), []
    with Workers() as workers:
        state = gibbs.start(model, stream, workers=workers)
        for sweep in range(BURN_IN + N_DRAWS):
            factor = hottest ** max(0.0, 1.0 - sweep / (0.9 * BURN_IN))
            noise = state.noise
            heated = state._replace(noise=noise._replace(column=noise.column * factor))
            state = gibbs.step(model, heated, stream, workers)
            if sweep >= BURN_IN:
                kept.append(state)
    return kept


def log_densities(states: list[State], rows: Indices, columns: Indices, values: Floats) -> tuple[Floats, Floats]:
    """Return the log density of each entry in each draw, and the mean of each entry in each draw."""
    means = np.array([np.einsum("ik,ik->i", s.W[rows], s.Zt[columns]) for s in states])
    variances = np.array([np.broadcast_to(s.noise.column, (len(s.Zt),))[columns] for s in states])
    return -0.5 * (np.log(2.0 * np.pi * variances) + (values - means) ** 2 / variances), means


def leave_one_out(log_likelihood: Floats) -> Floats:
    """Return the leave-one-out log density of each entry of one chain."""
    import arviz

    log_weights, _ = arviz.psislw(-log_likelihood.T)
    return special.logsumexp(np.asarray(log_weights) + log_likelihood.T, axis=1)


def stacking_weights(log_density: Floats, iterations: int = 500) -> Floats:
    """Return the weights of chains (columns) that maximise the mean log density of their mixture, by EM."""
    weights = np.full(log_density.shape[1], 1.0 / log_density.shape[1])
    for _ in range(iterations):
        weights = special.softmax(np.log(np.maximum(weights, 1e-300)) + log_density, axis=1).mean(axis=0)
    return weights


def compare(name: str, X: Floats, n_components: int) -> list[str]:
    """Return a row of the table."""
    rng = np.random.default_rng(0)
    rows, columns = np.nonzero(~np.isnan(X))
    hidden = rng.uniform(size=len(rows)) < 0.2
    visible = X.copy()
    visible[rows[hidden], columns[hidden]] = np.nan
    units, data = units_of(ObservedMatrix.from_data(visible), "column", None)
    scaled = X / units.scale
    model = Model(data, n_components, "ard", "column", units)
    held_out = rows[hidden], columns[hidden], scaled[rows[hidden], columns[hidden]]
    chosen = rng.permutation(np.flatnonzero(~hidden))[:MAX_LEFT_OUT]
    observed = rows[chosen], columns[chosen], scaled[rows[chosen], columns[chosen]]

    found = {}
    for kind, hottest in (("plain", 1.0), ("cooled", HOTTEST)):
        chains = [chain(model, number, hottest) for number in range(N_CHAINS)]
        densities, means, loo = [], [], []
        for states in chains:
            log_density, mean = log_densities(states, *held_out)
            densities.append(special.logsumexp(log_density, axis=0) - np.log(len(states)))
            means.append(mean.mean(axis=0))
            loo.append(leave_one_out(log_densities(states, *observed)[0]))
        found[kind] = np.array(densities), np.array(means), np.array(loo)

    def score(kind: str, weights: Floats) -> tuple[float, float]:
        densities, means, _ = found[kind]
        log_density = special.logsumexp(densities, axis=0, b=weights[:, None]).mean()
        return float(log_density), float(np.sqrt(((weights @ means - held_out[2]) ** 2).mean()))

    equal = np.full(N_CHAINS, 1.0 / N_CHAINS)
    stacked = stacking_weights(found["plain"][2].T)
    best = np.eye(N_CHAINS)[found["plain"][2].mean(axis=1).argmax()]
    pooled = score("plain", equal)
    cells = [f"{pooled[0]:.3f}"]
    for kind, weights in (("plain", stacked), ("cooled", equal), ("plain", best)):
        log_density, error = score(kind, weights)
        cells.append(f"{log_density - pooled[0]:+.3f} ({error / pooled[1]:.3f})")
    return [f"{name}, K = {n_components}", *cells, str(np.round(stacked, 2))]


def line(rows: int, noise: float, seed: int) -> tuple[float, int]:
    """Return the error of NMFImputer over that of a straight line, and the number of chains that found nothing."""
    position = np.arange(float(rows))
    errors = noise * position.std() * np.random.default_rng(seed).standard_normal((rows, 2))
    truth = np.column_stack([position, 2.5 * position]) + errors * [1.0, 2.5]
    X = truth.copy()
    X[::4, 0] = np.nan
    imputer = NMFImputer(random_state=seed).fit(X)
    seen, hidden = ~np.isnan(X[:, 0]), np.isnan(X[:, 0])
    straight = np.polyval(np.polyfit(X[seen, 1], X[seen, 0], 1), X[hidden, 1])
    error, best = (np.linalg.norm(guess - truth[hidden, 0]) for guess in (imputer.transform(X)[hidden, 0], straight))
    density = imputer.estimator_.posterior_.log_density.mean(axis=1)
    return float(error / best), int((density < density.max() - 20.0).sum())


def lines(n_seeds: int = 4) -> Iterator[list[str]]:
    """Yield the rows of the table of lines."""
    for rows in (15, 28):
        for noise in (0.01, 0.05, 0.2):
            cells = []
            for gibbs.WARM_UP_VARIANCE in (np.inf, 0.1):
                ratios, stuck = zip(*(line(rows, noise, seed) for seed in range(n_seeds)), strict=True)
                typical, largest = (float(f"{ratio:.2g}") for ratio in (np.median(ratios), max(ratios)))
                cells.append(f"{typical:g} to {largest:g} ({sum(stuck)})")
            yield [str(rows), f"{noise:.0%}", *cells]


def beside(determined: Callable[[Floats], Floats], seed: int) -> tuple[float, float]:
    """Return error and coverage of hidden entries of 14 columns of noise, beside columns that determine each other."""
    rng = np.random.default_rng(seed)
    truth = np.hstack([determined(rng.standard_normal((300, 4))), rng.standard_normal((300, 14))])
    hidden = rng.random(truth.shape) < 0.15
    hidden[:, :-14] = False
    X = np.where(hidden, np.nan, truth)
    imputer = NMFImputer(BayesianNMF(**ANY_TABLE, calibrate=False), random_state=seed).fit(X)
    error = float(np.sqrt(np.mean((imputer.transform(X) - truth)[hidden] ** 2)))
    low, high = imputer.interval(X)
    return error, float(np.mean(((low <= truth) & (truth <= high))[hidden]))


def columns_beside(n_seeds: int = 4) -> Iterator[list[str]]:
    """Yield the rows of the table of columns beside others that determine each other."""
    tables: dict[str, Callable[[Floats], Floats]] = {
        "one column": lambda b: b[:, :1],
        "two equal columns": lambda b: b[:, [0, 0]],
        "two columns and their sum": lambda b: np.column_stack([b[:, :2], b[:, 0] + b[:, 1]]),
        "four pairs of equal columns": lambda b: np.hstack([b, b]),
    }
    for name, determined in tables.items():
        cells = []
        for gibbs.SETTLING_VARIANCE in (0.0, 0.1):
            found = np.array([beside(determined, seed) for seed in range(n_seeds)])
            cells.append("{:.2f} ({:.0%})".format(*found.mean(axis=0)))
        yield [name, *cells]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=Path("../shared/data"))
    parser.add_argument("--starts", action="store_true", help="the noise of the first sweeps")
    parser.add_argument("--write", type=Path, help="the page whose table is replaced")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.starts:
        found = {
            "lines": pages.table(["rows", "noise over signal", "any noise", "small noise"], lines()),
            "beside": pages.table(["beside", "any noise", "noise alike"], columns_beside()),
        }
    else:
        rows = (compare(name, X, k) for name, X, ranks in tables(options.data_dir) for k in ranks)
        found = {"modes": pages.table(["", "pooled", "stacked", "cooled", "best chain", "weights"], rows)}
    print(*found.values(), sep="\n\n")
    if options.write:
        pages.write(options.write, **found)


if __name__ == "__main__":
    main()
