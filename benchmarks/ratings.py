"""Ratings: the error on the five official splits of MovieLens 100K, and by how sure the model is.

    python -m benchmarks.ratings --data-dir ../shared/data [--splits 1 2 3 4 5] [--write docs/ratings.md]
    python -m benchmarks.ratings --data-dir ../shared/data --trials

`movielens100k/u.data` has user, film, rating and time; `u1.test` to `u5.test` are the test sets.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import svds
from scipy.stats import norm

from benchmarks import pages
from bnmf import BayesianNMF

CHAINS = {"n_chains": 2, "burn_in": 300, "n_draws": 300, "calibrate": False, "unstored": "missing", "n_jobs": 2}
EFFECTS = {"offset": "both", "noise": "both", "scale": "matrix"}
MODELS = {
    "`BayesianNMF()`": {},
    '`BayesianNMF(offset="both", noise="both", scale="matrix")`': EFFECTS,
    'the same with `prior="normal"`': {**EFFECTS, "prior": "normal"},
    "the same, stars as intervals": {**EFFECTS, "prior": "normal", "stars": "halves"},
    "numbers, and what is rated together": {**EFFECTS, "prior": "normal", "n_together": 10},
}
# Tried on the third split.
NORMAL = {**EFFECTS, "prior": "normal"}
LONG = {"burn_in": 800, "n_draws": 800, "draws_dtype": "float32"}
TRIALS = {
    "K = 40": {**NORMAL, "n_components": 40},
    "Laplace": {**NORMAL, "prior": "laplace"},
    "longer chains": {**NORMAL, **LONG},
    "cut points from the shares of stars, longer chains": {**NORMAL, **LONG, "stars": "margins"},
}
BEST = 'the same with `prior="normal"`'
# Level of latent values whose cut points follow the shares of stars: entries of sparse data must not be zero.
LEVEL = 5.0
N_GROUPS = 10


def load(directory: Path, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Return training and test set of a split: rows of (user, film, rating)."""
    every = np.loadtxt(directory / "u.data", dtype=int)[:, :3]
    test = np.loadtxt(directory / f"u{split}.test", dtype=int)[:, :3]
    hidden = {(user, film) for user, film, _ in test.tolist()}
    return np.array([row for row in every.tolist() if (row[0], row[1]) not in hidden]), test


def cut_points(train: np.ndarray, stars: str) -> np.ndarray:
    """Return the limits between stars: half-way, or so that the latent values of all ratings are standard normal."""
    if stars == "halves":
        return np.array([1.5, 2.5, 3.5, 4.5])
    shares = np.bincount(train[:, 2], minlength=6)[1:] / len(train)
    return LEVEL + norm.ppf(np.cumsum(shares)[:-1])


def rated_together(pattern: sp.csr_array, n: int) -> np.ndarray:
    """Return components (n, films) in which films are near that the same users rated, whatever the ratings.

    They are singular vectors of the pattern of ratings over the roots of its sums, without the first, which has these
    sums alone.
    """
    roots = [np.sqrt(np.maximum(pattern.sum(axis=axis), 1.0)) for axis in (1, 0)]
    _, sizes, vectors = svds(sp.diags_array(1.0 / roots[0]) @ pattern @ sp.diags_array(1.0 / roots[1]), k=n + 1, rng=0)
    vectors = vectors[np.argsort(-sizes)[1:]]
    return vectors / vectors.std(axis=1, keepdims=True)


def fitted(
    train: np.ndarray, shape: tuple[int, int], stars: str | None = None, n_together: int = 0, **settings
) -> BayesianNMF:
    """Return a model of ratings, as numbers or as intervals between cut points."""

    def matrix(values: np.ndarray) -> sp.csr_array:
        return sp.csr_array((values.astype(float), (train[:, 0] - 1, train[:, 1] - 1)), shape=shape)

    limits = {}
    if stars:
        ends = np.concatenate([[-np.inf], cut_points(train, stars), [np.inf]])
        limits = {"lower": matrix(ends[train[:, 2] - 1]), "upper": matrix(ends[train[:, 2]])}
    if n_together:
        settings["fixed_components"] = rated_together(matrix(np.ones(len(train))), n_together)
    with warnings.catch_warnings(action="ignore"):
        return BayesianNMF(random_state=0, **CHAINS | settings).fit(matrix(train[:, 2]), **limits)


def predicted(model: BayesianNMF, test: np.ndarray, cuts: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of each rating, and its standard deviation."""
    rows, columns = test[:, 0] - 1, test[:, 1] - 1
    deviation = model.posterior_.std(rows, columns, noise=True)
    if cuts is None:
        return np.clip(model.posterior_.mean(rows, columns), 1.0, 5.0), deviation
    draws = model.posterior_.draws_of(rows, columns, noise=True).reshape(-1, len(rows))
    return 1.0 + sum((draws > cut).mean(axis=0) for cut in cuts), deviation


def by_width(error: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Return the root mean square error of each tenth of the predictions, the surest first."""
    return np.array([np.sqrt(np.mean(error[part] ** 2)) for part in np.array_split(np.argsort(deviation), N_GROUPS)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--splits", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--trials", action="store_true", help="other settings, on the third split")
    parser.add_argument("--write", type=Path, help="put the tables into a page")
    options = parser.parse_args()
    models, splits = (TRIALS, [3]) if options.trials else (MODELS, options.splits)
    errors: dict[str, list[float]] = {name: [] for name in models}
    seconds: dict[str, float] = dict.fromkeys(models, 0.0)
    groups = []
    for split in splits:
        train, test = load(options.data_dir / "movielens100k", split)
        shape = tuple(np.vstack([train, test])[:, :2].max(axis=0))
        for name, settings in models.items():
            start = time.process_time()
            model = fitted(train, shape, **settings)
            seconds[name] += time.process_time() - start
            stars = settings.get("stars")
            mean, deviation = predicted(model, test, cut_points(train, stars) if stars else None)
            errors[name].append(float(np.sqrt(np.mean((mean - test[:, 2]) ** 2))))
            if name == BEST:
                groups.append(by_width(mean - test[:, 2], deviation))
            print(f"split {split}: {name} {errors[name][-1]:.4f}", flush=True)
    if options.trials:
        return
    base = min(seconds.values())
    table = pages.table(
        ["model", *(f"split {split}" for split in options.splits), "mean", "time"],
        [
            [name, *(f"{error:.4f}" for error in found), f"{np.mean(found):.4f}", f"{seconds[name] / base:.1f}"]
            for name, found in errors.items()
        ],
    )
    widths = ["error", *(f"{error:.2f}" for error in np.mean(groups, axis=0))]
    tenths = pages.table(["tenth", *map(str, range(1, N_GROUPS + 1))], [widths])
    print(f"\n{table}\n\n{tenths}")
    if options.write:
        pages.write(options.write, errors=table, tenths=tenths)


if __name__ == "__main__":
    main()
