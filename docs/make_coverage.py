"""Replace the tables of docs/coverage.md: coverage of the predictive intervals for hidden drug responses.

Run from the root of the repository: python -m docs.make_coverage --data-dir ../shared/data
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from benchmarks import pages

from bnmf import BayesianNMF
from bnmf.datasets import fetch_gdsc_ic50

PROBABILITIES = (0.5, 0.8, 0.9, 0.95)
RANKS = (5, 10, 20)
# Fraction of the observed entries that is hidden.
HIDDEN_FRACTION = 0.3


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", help="directory with gdsc/ic50.txt; without it, the data are downloaded")
    data = fetch_gdsc_ic50(data_home=parser.parse_args().data_dir).data.to_numpy()
    observed = np.flatnonzero(~np.isnan(data))
    hidden = np.random.default_rng(0).permutation(observed)[: int(HIDDEN_FRACTION * len(observed))]
    X = data.copy()
    X.flat[hidden] = np.nan
    truth = data.flat[hidden]

    def fit(rank, noise):
        with warnings.catch_warnings(action="ignore"):
            return BayesianNMF(rank, noise=noise, n_jobs=2, random_state=0).fit(X)

    def covered(model, probability):
        low, high = (end.flat[hidden] for end in model.interval(probability))
        return (low <= truth) & (truth <= high)

    ranks, drugs, groups = [], [], []
    for rank in RANKS:
        model = fit(rank, "column")
        error = np.sqrt(np.mean((truth - model.reconstruct().flat[hidden]) ** 2))
        shares = (f"{covered(model, probability).mean():.1%}" for probability in PROBABILITIES)
        ranks.append([str(rank), f"{error:.1f}", *shares])
        print(ranks[-1], flush=True)
    for noise in ("common", "column"):
        model = fit(RANKS[-1], noise)
        inside = covered(model, 0.9)
        by_drug = pd.Series(inside).groupby(hidden % data.shape[1]).agg(["mean", "size"])
        quantiles = by_drug["mean"][by_drug["size"] >= 50].quantile([0, 0.1, 0.5, 0.9, 1])
        drugs.append([noise, *(f"{share:.1%}" for share in quantiles)])
    mean, sd = model.reconstruct().flat[hidden], model.posterior_.std(noise=True).flat[hidden]
    for group in np.array_split(np.argsort(sd), 5):
        error = np.sqrt(np.mean((truth - mean)[group] ** 2))
        width = f"{sd[group].min():.1f} to {sd[group].max():.1f}"
        groups.append([width, f"{len(group):,}", f"{error:.1f}", f"{inside[group].mean():.1%}"])
    spread = ["lowest", "10% of the drugs below", "median", "90% of the drugs below", "highest"]
    of_group = ["predictive sd (K = 20)", "entries", "root mean squared error", "inside the 90% interval"]
    pages.write(
        Path(__file__).with_name("coverage.md"),
        ranks=pages.table(["K", "root mean squared error", *(f"{p:.0%}" for p in PROBABILITIES)], ranks),
        drugs=pages.table(["noise", *spread], drugs),
        groups=pages.table(of_group, groups),
    )


if __name__ == "__main__":
    main()
