"""Draws for ArviZ, before and after its version 1: names, dimensions and groups."""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest

from bnmf import BayesianNMF, Posterior
from bnmf.posterior import inference_data
from bnmf.selection import leave_one_out
from bnmf.utils import memory


@pytest.fixture(autouse=True, scope="module")
def arviz():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # ArviZ announces its next version on import
        return pytest.importorskip("arviz")


def groups_of(found):
    """Return the names of the groups of InferenceData, or of the DataTree of ArviZ 1."""
    return list(found.children) if hasattr(found, "children") else found.groups()


def make(**options):
    """Return 2 chains of 4 draws of a matrix of 5 rows and 3 columns."""
    rng = np.random.default_rng(0)
    W, Z = rng.exponential(size=(2, 4, 5, 2)), rng.exponential(size=(2, 4, 2, 3))
    options = {"noise_variance": rng.uniform(0.5, 1.5, size=(2, 4))} | options
    return Posterior(W, Z, train_mse=rng.uniform(0.5, 1.5, size=(2, 9)), n_observed=12, **options)


def test_posterior_group():
    """Names, dimensions and coordinates, of everything that a posterior may have and of the least."""
    rng = np.random.default_rng(2)
    dims = {"W": ("row", "component"), "Z": ("component", "column"), "noise_variance": ("column",), "df": ()}
    dims |= {"row_noise": ("row",), "rate_W": ("component",), "rate_Z": ()}
    sizes = {"noise_variance": (3,), "df": (), "row_noise": (5,), "rate_W": (2,), "rate_Z": (1,), "log_density": ()}
    given = {name: rng.uniform(size=(2, 4, *size)) for name, size in sizes.items()}
    draws = make(**given, row_names=pd.Index(list("abcde")), column_names=pd.Index(list("xyz")))
    least = {"W": dims["W"], "Z": dims["Z"], "noise_variance": ()}
    for given, expected in ((draws, dims), (make(), least)):
        found = inference_data.convert(given)
        posterior = found.posterior
        assert set(posterior.data_vars) == set(expected)
        for name, of_draw in expected.items():
            assert posterior[name].dims == ("chain", "draw", *of_draw)
            np.testing.assert_array_equal(posterior[name].values, np.squeeze(getattr(given.align(), name)))
        named = given is draws
        coords = {"row": list("abcde") if named else range(5), "column": list("xyz") if named else range(3)}
        for name, values in (coords | {"component": range(2), "chain": range(2), "draw": range(4)}).items():
            assert list(posterior[name].values) == list(values)
        assert groups_of(found) == ["posterior", "sample_stats"][: 1 + named]
        if named:
            np.testing.assert_array_equal(found.sample_stats["log_density"].values, draws.log_density)


def test_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match=r"to_inference_data needs ArviZ: pip install 'bnmf\[arviz\]'"):
        make().to_inference_data()


@pytest.fixture(scope="module")
def limited():
    """A fit with names, an offset and entries between limits, its arguments, and where the observed entries are."""
    rng = np.random.default_rng(4)
    X = pd.DataFrame(5.0 + rng.exponential(size=(12, 2)) @ rng.exponential(size=(2, 4)), columns=list("abcd"))
    X.iloc[1, 2] = X.iloc[3, 0] = np.nan
    X.index = [f"row {i}" for i in range(12)]
    limits = {"lower": X.clip(upper=9.0).where(X > 9.0), "upper": X.mask(X > 0.0, np.inf).where(X > 9.0)}
    model = BayesianNMF(2, offset="min", noise="common", n_chains=2, burn_in=30, n_draws=50, random_state=0)
    with warnings.catch_warnings(action="ignore"):
        posterior = model.fit(X, **limits).posterior_
    return posterior, X, limits, np.nonzero(X.notna().to_numpy())


def test_loo_of_arviz_is_ours(arviz, limited):
    posterior, X, limits, (rows, columns) = limited
    found = posterior.to_inference_data(X, **limits)
    with warnings.catch_warnings(action="ignore"):  # of entries whose importance weights have a heavy tail
        loo = arviz.loo(found, pointwise=True, reff=1.0)
    sides = [side.to_numpy()[rows, columns] for side in limits.values()]
    values = np.where(np.isnan(sides[0]), X.to_numpy()[rows, columns], 9.0)
    expected = leave_one_out(posterior, rows, columns, values, *sides)[0]
    found_i = loo.elpd_i if hasattr(loo, "elpd_i") else loo.loo_i  # before ArviZ 1
    np.testing.assert_allclose(found_i, expected, rtol=1e-6)
    assert list(found.constant_data["lower"].dims) == ["entry"]
    np.testing.assert_array_equal(found.constant_data["upper"], sides[1])


def test_predictive_draws_beside_the_data(arviz, limited):
    posterior, X, limits, (rows, columns) = limited
    found = posterior.to_inference_data(X, **limits)
    np.testing.assert_allclose(found.observed_data["X"], np.minimum(X.to_numpy()[rows, columns], 9.0), rtol=1e-12)
    names = {"posterior", "sample_stats", "posterior_predictive", "log_likelihood", "observed_data", "constant_data"}
    assert set(groups_of(found)) == names
    assert found.log_likelihood["X"].dims == ("chain", "draw", "entry")
    np.testing.assert_array_equal(found.log_likelihood["entry"].values, np.arange(len(rows)))
    drawn = found.posterior_predictive["X"]
    np.testing.assert_array_equal(drawn, posterior.draws_of(rows, columns))
    for group in (found.observed_data, found.posterior_predictive, found.log_likelihood):
        assert list(group["row"].values) == [X.index[row] for row in rows]
        assert list(group["column"].values) == [X.columns[column] for column in columns]
    if hasattr(arviz, "plot_ppc"):  # before ArviZ 1
        with warnings.catch_warnings(action="ignore"):
            axes = arviz.plot_ppc(found, num_pp_samples=10, backend="matplotlib")
        assert len(axes.get_lines()) >= 10
        axes.figure.clear()


def test_a_sample_of_the_entries(limited, monkeypatch):
    posterior, X, limits, _ = limited
    whole = posterior.to_inference_data(X, **limits)
    found = posterior.to_inference_data(X, **limits, max_entries=10)
    assert found.log_likelihood["X"].shape == (2, 50, 10)
    names = [[f"{row} {column}" for row, column in zip(part["row"].values, part["column"].values, strict=True)]
             for part in (whole.log_likelihood, found.log_likelihood)]  # fmt: skip
    chosen = [names[0].index(name) for name in names[1]]
    assert len(set(chosen)) == 10
    for group in ("log_likelihood", "observed_data"):
        np.testing.assert_array_equal(found[group]["X"], whole[group]["X"].isel(entry=chosen))
    monkeypatch.setattr(memory, "available", lambda: 60_000)
    with pytest.raises(MemoryError, match=r"46 observed entries takes .* pass max_entries="):
        posterior.to_inference_data(X, **limits)
    with pytest.raises(ValueError, match="max_entries must be"):
        posterior.to_inference_data(X, max_entries=0)
    with pytest.raises(ValueError, match=r"X must have the shape of the fitted data, \(12, 4\)"):
        posterior.to_inference_data(X.iloc[:5])
    n_limited = np.isfinite(limits["lower"]).any(axis=1).sum()
    with pytest.raises(ValueError, match=f"must be those of the fit, and {n_limited} of 12 rows differ"):
        posterior.to_inference_data(X)  # without the limits
    with pytest.raises(ValueError, match="rows differ"):
        posterior.to_inference_data(X[["b", "a", "c", "d"]], **limits)
