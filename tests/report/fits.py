"""Posteriors with known factors, and data that fit them, for the tests of the report."""

from dataclasses import replace

import numpy as np
import pandas as pd

from bnmf import Posterior

EVIL = [
    "<script>window.hacked = 1</script>",
    '</script><img src=x onerror="window.hacked = 1">',
    "\"'><b onmouseover=window.hacked=1>bold</b>",
    "a & b < c \u2028 d",
]


def fake(n_rows=40, n_columns=12, n_components=3, *, n_chains=2, n_draws=30, apart=0.0, seed=0, **options):
    """Return a posterior around known factors; chains differ by `apart`."""
    rng = np.random.default_rng(seed)
    W, Z = rng.exponential(size=(n_rows, n_components)), rng.exponential(size=(n_components, n_columns))
    shape = (n_chains, n_draws)
    shift = 1 + apart * np.arange(n_chains)[:, None, None, None]
    return Posterior(
        W * shift * rng.uniform(0.95, 1.05, (*shape, *W.shape)),
        Z * rng.uniform(0.95, 1.05, (*shape, *Z.shape)),
        options.pop("noise_variance", rng.uniform(0.03, 0.05, (*shape, n_columns))),
        np.exp(-np.arange(n_draws + 10) / 5) + rng.uniform(0.1, 0.12, (n_chains, n_draws + 10)),
        n_observed=options.pop("n_observed", n_rows * n_columns),
        log_density=rng.normal(size=shape),
        **options,
    )


def with_effects(posterior):
    """Return a posterior whose first component is an effect of the rows, and whose last is an offset of the columns."""
    W, Z = posterior.W.copy(), posterior.Z.copy()
    Z[:, :, 0], W[..., -1] = (1.0 if posterior.scale is None else posterior.scale), 1.0
    return replace(posterior, W=W, Z=Z, n_fixed=(1, 1))


def table_of(posterior, missing=0.2, seed=1, *, names=True):
    """Return data that the posterior predicts, as a DataFrame with names of which some are hostile."""
    rng = np.random.default_rng(seed)
    X = np.abs(posterior.mean() + rng.normal(0, 0.2, posterior.shape))
    X[rng.random(X.shape) < missing] = np.nan
    if not names:
        return X
    rows, columns = ([f"{kind} {i}" for i in range(size)] for kind, size in zip(("cell", "drug"), X.shape, strict=True))
    rows[: len(EVIL)], columns[: len(EVIL)] = EVIL, EVIL
    return pd.DataFrame(X, index=rows, columns=columns)
