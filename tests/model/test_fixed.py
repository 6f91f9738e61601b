"""Components that are fixed in one of the factors: they stay, the others are learned beside them."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from bnmf import BayesianNMF
from bnmf.priors import L1, LInf

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def signatures(noise=0.05, seed=0):
    """Return data of three components, their rows of Z and columns of W."""
    rng = np.random.default_rng(seed)
    W, Z = rng.exponential(size=(60, 3)), rng.exponential(size=(3, 15))
    X = W @ Z + noise * rng.standard_normal((60, 15))
    X = np.abs(X)
    X[rng.random(X.shape) < 0.2] = np.nan
    return X, W, Z


def quick(**settings):
    return BayesianNMF(
        **{"n_chains": 2, "burn_in": 100, "n_draws": 50, "random_state": 0, "noise": "column"} | settings
    )


@pytest.mark.parametrize(("prior", "scale"), [("ard", "column"), ("gl22inf", "matrix"), ("gl12", None)])
def test_what_is_fixed_stays_and_keeps_its_place(prior, scale):
    X, W, Z = signatures()
    settings = {"prior": prior, "scale": scale, "burn_in": 20, "n_draws": 20}
    model = quick(n_components=4, fixed_components=Z[:1], fixed_weights=W[:, 2:], **settings).fit(X)
    draws = model.posterior_
    np.testing.assert_allclose(draws.Z[:, :, 0], np.broadcast_to(Z[0], draws.Z[:, :, 0].shape), rtol=1e-12)
    np.testing.assert_array_equal(draws.W[..., -1], np.broadcast_to(W[:, 2], draws.W[..., -1].shape))
    np.testing.assert_allclose(model.components_[0], Z[0], rtol=1e-12)
    assert np.ptp(draws.W[..., 0], axis=1).min() > 0  # the weights of a fixed component are drawn
    assert np.ptp(draws.Z[:, :, -1], axis=1).min() > 0
    assert np.ptp(draws.Z[:, :, 1:3], axis=1).min() > 0


def test_known_signatures_beside_an_unknown_one():
    """Given two of three signatures, the weights of all and the third signature are found up to its scale."""
    X, W, Z = signatures()
    model = quick(n_components=3, fixed_components=Z[:2]).fit(X)
    weights = model.transform(X)
    for k in range(2):
        assert np.corrcoef(weights[:, k], W[:, k])[0, 1] > 0.99
        assert weights[:, k].mean() == pytest.approx(W[:, k].mean(), rel=0.15)  # in the scale of what was given
    assert np.corrcoef(model.components_[2], Z[2])[0, 1] > 0.99
    model = quick(n_components=3, fixed_components=Z).fit(X)
    assert np.corrcoef(model.transform(X).ravel(), W.ravel())[0, 1] > 0.99


def test_auto_counts_what_is_fixed_beside_the_others():
    X = np.random.default_rng(0).exponential(size=(30, 25))
    assert quick(fixed_components=np.ones((2, 25)), n_draws=5, burn_in=5).fit(X).n_components_ == 22
    assert quick(fixed_components=np.ones((8, 25)), n_draws=5, burn_in=5).fit(X).n_components_ == 25


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"fixed_components": np.ones((2, 3))}, r"fixed_components must have shape \(n, 15\), got \(2, 3\)"),
        ({"fixed_components": np.ones(15)}, r"fixed_components must have shape \(n, n_features\), got \(15,\)"),
        ({"fixed_weights": np.ones((2, 3))}, r"fixed_weights must have shape \(60, n\), got \(2, 3\)"),
        ({"fixed_components": np.ones((1, 15)), "prior": (L1(1.0), LInf())}, "a learned rate of L1Squared or LInf"),
        ({"fixed_components": "all"}, "'fixed_components' parameter"),
    ],
)
def test_bad_settings(settings, words):
    with pytest.raises(ValueError, match=words):
        quick(**settings).fit(signatures()[0])


def test_effects_above_zero_do_not_take_negative_entries():
    with pytest.raises(ValueError, match=r"(?i)negative"):
        quick(n_components=2, offset="both").fit(-signatures()[0])


def test_new_rows_with_unknown_weights_are_refused():
    X, W, _ = signatures()
    model = quick(n_components=3, fixed_weights=W[:, :1]).fit(X)
    np.testing.assert_array_equal(model.transform(X[:5]), model.transform(X)[:5])  # those of fitted rows are known
    with pytest.raises(ValueError, match="fixed_weights differ between rows"):
        model.transform(X[:5] + 0.1)


@pytest.mark.parametrize(
    ("prior", "scale"), [("normal", "matrix"), ("normal", None), ("ard", "matrix"), ("gl12", None)]
)
def test_effects_of_rows_and_columns(prior, scale):
    """They are one component of equal columns and one of equal rows, around the mean if factors may be negative."""
    X = signatures()[0]
    shift = np.nanmean(X) if prior == "normal" else 0.0
    short = {"burn_in": 20, "n_draws": 20, "prior": prior, "scale": scale}
    model = quick(n_components=2, offset="both", **short).fit(X)
    ones = {"fixed_components": np.full((1, 15), 1.0), "fixed_weights": np.ones((60, 1))}
    if scale == "matrix":
        ones["fixed_components"] *= np.sqrt(np.nanmean((X - shift) ** 2))
    expected = quick(n_components=4, **short, **ones).fit(X - shift)
    predicted = np.maximum(expected.reconstruct() + shift, 0.0)  # no entry of X is negative
    np.testing.assert_allclose(model.reconstruct(), predicted, rtol=1e-6, atol=1e-9)
    new = model.posterior_of(X[:3] * 1.01)
    np.testing.assert_array_equal(new.W[..., -1], np.ones(new.W.shape[:3]))


@pytest.mark.parametrize("n_components", [2, "auto"])
def test_offsets_of_columns_are_learned(n_components):
    """They are a component of equal rows, beside the others: a year is no problem then."""
    X = signatures()[0]
    X = np.column_stack([X, 1990.0 + np.arange(60) % 20])
    settings = {"prior": "ard", "scale": "column", "burn_in": 100, "n_draws": 50}
    model = quick(n_components=n_components, offset="learned", **settings).fit(X)
    assert model.n_components_ == (3 if n_components == 2 else 16)
    expected = quick(n_components=model.n_components_, fixed_weights=np.ones((60, 1)), **settings).fit(X)
    np.testing.assert_array_equal(model.reconstruct(), expected.reconstruct())
    assert abs(model.components_[-1, -1] - 1999.5) < 100.0
    assert np.sqrt(np.mean((model.reconstruct()[:, -1] - X[:, -1]) ** 2)) < 1.2 * X[:, -1].std()


@pytest.mark.parametrize(
    ("settings", "n_offsets"),
    [
        ({}, 1),
        ({"prior": ("ard", "normal")}, 1),
        ({"offset": None}, 0),
        ({"n_components": 3}, 0),
        ({"prior": "gl22"}, 0),
        ({"fixed_components": np.ones((1, 15))}, 0),
    ],
)
def test_offsets_are_learned_by_default_where_components_are_chosen(settings, n_offsets):
    X = signatures()[0]
    with warnings.catch_warnings(action="ignore"):
        model = quick(**{"n_components": "auto", "prior": "ard", "burn_in": 5, "n_draws": 5} | settings).fit(X)
    assert model.posterior_.n_fixed[1] == n_offsets
    if not settings:
        zeros = np.where(X > 3.0, X, 0.0)
        assert model.fit(sp.csr_array(zeros)).posterior_.n_fixed == (0, 0)


def test_effects_beside_what_is_fixed_and_in_columns_of_other_units():
    X, W, Z = signatures()
    unit = 2.0 ** np.arange(15)
    given = {"fixed_components": Z[:1] * unit, "fixed_weights": W[:, 2:], "burn_in": 20, "n_draws": 20}
    model = quick(n_components=3, prior="normal", offset="both", **given).fit(X * unit)
    draws = model.posterior_
    assert draws.n_components == 5
    np.testing.assert_allclose(draws.Z[:, :, 1], np.broadcast_to(Z[0] * unit, draws.Z[:, :, 1].shape))
    np.testing.assert_array_equal(draws.W[..., -2], np.broadcast_to(W[:, 2], draws.W[..., -2].shape))
    assert np.ptp(draws.Z[:, :, 0] / draws.scale, axis=-1).max() < 1e-12  # equal in the units of the columns
    plain = quick(n_components=3, prior="normal", offset="both", **given | {"fixed_components": Z[:1]}).fit(X)
    np.testing.assert_array_equal(model.reconstruct(), plain.reconstruct() * unit)
