"""Factors drawn together with values beyond limits: the density of a step, and what it leaves as it is."""

import numpy as np
import pytest
from scipy import stats

from bnmf.kernels.compiled import Given, Interwoven
from bnmf.priors import L1, L1Squared, L2Squared, Normal, TruncatedNormal
from tests.statistical.checks import P_VALUE, assert_follows, assert_uniform, grid_cdf

N, K, COLUMNS = 3000, 3, 11
DATA, ABOVE = 5, 8  # of the columns the first are data, the next lie above their limit, and the last below
VARIANCE, ROW_VARIANCE, SCALE = 0.4, 1.7, 0.5

PRIORS = {
    "L1": L1(0.8),
    "L2Squared and L1Squared": L2Squared(0.5) + L1Squared(0.7),
    "truncated normal": TruncatedNormal(0.5, 2.0),
    "normal": Normal(0.1, 0.9),
}


def problem(prior, *, has_errors=False, has_weights=False, distance=1.0):
    """Return the same row many times, each with its own stream: kernel, factors and what the density is made of.

    Values are `distance` from their limits on average.
    """
    rng = np.random.default_rng(5)
    is_real = prior.is_real
    z = rng.normal(size=(COLUMNS, K)) if is_real else rng.exponential(size=(COLUMNS, K))
    w = rng.normal(size=K) if is_real else rng.exponential(size=K)
    unit = SCALE * rng.uniform(0.5, 2.0, COLUMNS)
    above = np.arange(COLUMNS) < ABOVE
    value = z @ w / unit + rng.normal(size=COLUMNS)
    error = np.where(np.arange(COLUMNS) % 3 == 0, 0.7, 0.0) if has_errors else np.zeros(COLUMNS)
    limit = value + error + np.where(above, -1.0, 1.0) * distance * rng.exponential(size=COLUMNS)
    limit[:DATA] = np.nan
    weight = rng.exponential(size=COLUMNS) if has_weights else np.ones(COLUMNS)
    values = np.tile(value, N)
    kernel = Interwoven(
        n_columns=COLUMNS,
        indptr=np.arange(N + 1) * COLUMNS,
        columns=np.tile(np.arange(COLUMNS, dtype=np.uint32), N),
        limit=np.tile(limit, N),
        above=np.tile(above, N).astype(np.uint8),
        errors=error if has_errors else None,
        places=np.tile(np.where(error > 0, np.arange(COLUMNS), -1), N) if has_errors else None,
        targets=[(values, np.arange(N * COLUMNS))],
    )
    W = np.tile(w, (N, 1))

    def draw(drawn, start=0, stop=N):
        given = Given(
            W=W, Z=z, entry_scale=unit / SCALE, row_scale=np.array([SCALE]), row_variance=np.array([ROW_VARIANCE]),
            column_variance=np.full(COLUMNS, VARIANCE), ids=np.arange(N, dtype=np.uint64), key=(3, 4), drawn=drawn,
            prior=prior.coefficients((N, K)).kernel_prior, weight=np.tile(weight, N) if has_weights else None,
        )  # fmt: skip
        kernel.draw(given, start, stop)

    return draw, W, values.reshape(N, COLUMNS), (w, z, unit, value, limit - error, above, weight)


@pytest.mark.parametrize("options", [{}, {"has_errors": True}, {"has_weights": True}], ids=str)
@pytest.mark.parametrize("name", PRIORS)
def test_one_component_against_the_joint_density(name, options):
    prior, k = PRIORS[name], 1
    draw, W, values, (w, z, unit, value, limit, above, weight) = problem(prior, **options)
    draw((k, k + 1))
    np.testing.assert_array_equal(np.delete(W, k, axis=1), np.tile(np.delete(w, k), (N, 1)))
    np.testing.assert_array_equal(values[:, :DATA], np.tile(value[:DATA], (N, 1)))
    beyond = np.where(above, 1.0, -1.0)[DATA:]
    assert (beyond * (values - limit)[:, DATA:] >= 0.0).all()
    residual, before = values * unit - W @ z.T, value * unit - z @ w
    np.testing.assert_allclose(residual[:, DATA:], np.tile(before[DATA:], (N, 1)), rtol=1e-9, atol=1e-12)

    def log_density(x):
        """Of W with an element x, and the values that follow it."""
        row = np.tile(w, (len(x), 1))
        row[:, k] = x
        moved = (before + row @ z.T) / unit
        follows = (beyond * (moved - limit)[:, DATA:] >= 0.0).all(axis=1)
        fit = -0.5 * (weight * (value * unit - row @ z.T) ** 2 / (VARIANCE * ROW_VARIANCE))[:, :DATA].sum(axis=1)
        density = fit + np.array([prior.log_density(each[None]) for each in row])
        return np.where(follows & (prior.is_real | (x >= 0.0)), density, -np.inf)

    assert_follows(W[:, k], grid_cdf(log_density, np.linspace(W[:, k].min() - 1e-3, W[:, k].max() + 1e-3, 20_001)))


def test_components_are_drawn_one_after_the_other():
    """Given those before it, a component follows a normal that is cut at zero and where a value reaches its limit."""
    draw, W, values, (w, z, unit, value, limit, above, _) = problem(PRIORS["L1"], distance=10.0)
    draw((0, 2))
    assert (W[:, :2] != w[:2]).all()
    residual = values * unit - W @ z.T
    expected = np.tile((value * unit - z @ w)[DATA:], (N, 1))
    np.testing.assert_allclose(residual[:, DATA:], expected, rtol=1e-9, atol=1e-12)
    precision = 1.0 / (VARIANCE * ROW_VARIANCE)
    of_others = value * unit - W[:, [0, 2]] @ z[:, [0, 2]].T
    p = precision * (z[:DATA, 1] ** 2).sum()
    mean = (precision * of_others[:, :DATA] @ z[:DATA, 1] - PRIORS["L1"].rate) / p
    before = value * unit - z @ w + W[:, [0, 2]] @ z[:, [0, 2]].T  # of the values that follow, without w_1 z_1
    reached = ((limit * unit - before) / z[:, 1])[:, DATA:]  # w_1 at which a value is at its limit
    is_above = above[DATA:]
    low, high = np.maximum(reached[:, is_above].max(axis=1), 0.0), reached[:, ~is_above].min(axis=1)
    ends = [np.sqrt(p) * (end - mean) for end in (low, high, W[:, 1])]
    cdf = [stats.norm.cdf(end) for end in ends]
    u = (cdf[2] - cdf[0]) / (cdf[1] - cdf[0])
    assert_uniform(u)
    assert stats.spearmanr(u, W[:, 0]).pvalue > P_VALUE  # whatever the component before


def test_draws_do_not_depend_on_how_rows_are_divided():
    draw, W, values, _ = problem(PRIORS["normal"])
    draw((0, K))
    again, other_W, other_values, _ = problem(PRIORS["normal"])
    for start, stop in ((100, N), (0, 7), (7, 100)):
        again((0, K), start, stop)
    np.testing.assert_array_equal(W, other_W)
    np.testing.assert_array_equal(values, other_values)
