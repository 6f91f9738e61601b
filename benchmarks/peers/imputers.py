"""Fill a table of numbers with a library that bnmf does not depend on: imputers.py LIBRARY FILE SEED

The file is CSV and is replaced.
"""

import sys

import numpy as np
import pandas as pd


def miceforest(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return means of five imputations by boosted trees."""
    import miceforest as mf

    names = {name: f"c{number}" for number, name in enumerate(table)}
    kernel = mf.ImputationKernel(table.rename(columns=names), num_datasets=5, random_state=seed)
    kernel.mice(3, num_threads=1, n_estimators=30)
    copies = [kernel.complete_data(dataset).to_numpy() for dataset in range(5)]
    return pd.DataFrame(np.mean(copies, axis=0), columns=table.columns)


def gcimpute(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return medians by a Gaussian copula."""
    vars(np)["round_"] = np.round  # gcimpute 0.0.4 is older than NumPy 2
    from gcimpute.gaussian_copula import GaussianCopula

    model = GaussianCopula(random_state=seed, verbose=0)
    return pd.DataFrame(model.fit_transform(X=table.to_numpy()), columns=table.columns)


if __name__ == "__main__":
    library, path, seed = sys.argv[1:]
    table = pd.read_csv(path)
    {"miceforest": miceforest, "gcimpute": gcimpute}[library](table, int(seed)).to_csv(path, index=False)
