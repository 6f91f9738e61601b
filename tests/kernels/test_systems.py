"""Rows that share their missing entries: the system of a pattern, and draws of the rows that have it."""

from itertools import product

import numpy as np
import pytest

from bnmf.data import half_sweeps
from bnmf.data.half_sweeps import min_sharing
from bnmf.priors import L1, L2Squared
from bnmf.priors.names import MODELS
from bnmf.sampler.threads import Workers
from tests.kernels.half_sweeps import (
    KEY,
    SIGMA2,
    assert_from_scratch,
    direct_draws,
    drawn,
    problem,
    problem_with_patterns,
    view_of,
)


@pytest.fixture(autouse=True)
def errors_of_the_kernel(monkeypatch):
    """Compare squared errors as the kernel computes them: those that have cancelled are not computed again."""
    monkeypatch.setattr(half_sweeps, "MIN_TRUSTED_ERROR", -1e100)


def n_shared(view, n_components):
    """Return the number of rows that share their missing entries."""
    return view.split(min_sharing(n_components)).n_sharing.sum()


def rows_with_patterns(sizes, columns=30, K=9):
    """Return a problem with as many rows of each pattern as given, shuffled; patterns have 0, 1, 2, ... missing."""
    A, _, W, Z = problem(sum(sizes), columns, K)
    rng = np.random.default_rng(5)
    patterns = np.ones((len(sizes), columns), bool)
    for i, pattern in enumerate(patterns):
        pattern[rng.permutation(columns)[:i]] = False
    mask = patterns[rng.permutation(np.repeat(np.arange(len(sizes)), sizes))]
    return A, mask, W, Z


@pytest.mark.parametrize("K", [1, 8, 17, 41])
def test_any_number_of_missing_entries(K):
    """Missing columns are subtracted 32 at a time; where too little is left of a sum, it is that of the others."""
    for n_missing, large in product([0, 1, 31, 32, 33, 90, 160], [1.0, 1e9]):
        A, _, W, Z = problem(rows=40, columns=160, K=K)
        mask = np.ones(A.shape, bool)
        missing = np.sort(np.random.default_rng(K).permutation(160)[:n_missing])
        mask[:, missing] = False
        Z[missing[:2], K // 2] = large
        view = view_of(A, mask, "missing listed")
        assert n_shared(view, K) == 40
        assert_from_scratch(view, A, mask, W, Z, (L1(0.5) + L2Squared(0.3)).coefficients(W.shape), rtol=1e-7)


# Fewer rows than a vector has lanes, as many, and more; patterns that follow each other; complete rows alone.
@pytest.mark.parametrize("sizes", [[3], [8], [9], [40], [0, 3], [0, 17], [8, 8, 8], [3, 5, 7, 9, 20, 1, 2], [17, 1, 1]])
@pytest.mark.parametrize("name", ["gee", "gl22inf"])
def test_any_number_of_rows_with_a_pattern(sizes, name):
    A, mask, W, Z = rows_with_patterns(sizes)
    view = view_of(A, mask, "missing listed")
    assert n_shared(view, W.shape[1]) == sum(size for size in sizes if size >= min_sharing(W.shape[1]))
    assert_from_scratch(view, A, mask, W, Z, MODELS[name](1.0).coefficients(W.shape))


@pytest.mark.parametrize("K", [1, 20, 100])
def test_from_how_many_rows_a_system_is_shared(K):
    """Rows of patterns that are too rare are drawn from their residuals, with the same result."""
    least = min_sharing(K)
    assert isinstance(least, int)
    assert least >= 2  # a row alone shares nothing
    A, mask, W, Z = rows_with_patterns([0, least, least - 1], K=K)
    view = view_of(A, mask, "missing listed")
    assert n_shared(view, K) == least
    assert_from_scratch(view, A, mask, W, Z, L1(1.0).coefficients(W.shape), rtol=1e-7)


def test_component_concentrated_in_columns_that_are_missing_together():
    A, mask, W, Z = problem_with_patterns()
    columns = np.flatnonzero((mask[12:] == mask[12:, [20]]).all(axis=0))[:3]
    Z[columns, 2] = 1e9
    coefficients = L1(1.0).coefficients(W.shape)
    expected = direct_draws(A, mask, W, Z, coefficients)
    got, _ = drawn(view_of(A, mask, "missing listed"), W, Z, coefficients)
    missing = ~mask[:, columns].any(axis=1)
    assert missing.sum() > 10
    np.testing.assert_allclose(got[missing], expected[missing], rtol=1e-7)
    # The other rows observe the 1e9, in either form.
    np.testing.assert_allclose(got[~missing], expected[~missing], rtol=1e-4)


@pytest.mark.parametrize("name", ["gee", "gl12", "gl22inf"])
def test_draw_of_a_row_does_not_depend_on_rows_that_share_its_system(name):
    A, mask, W, Z = problem_with_patterns()
    view = view_of(A, mask, "missing listed")
    assert n_shared(view, W.shape[1]) > len(A) // 2
    coefficients = MODELS[name](1.0).coefficients(W.shape)
    together, _ = drawn(view, W, Z, coefficients)
    for row in range(len(A)):
        alone, ids = W[[row]].copy(), np.array([row], np.uint64)
        one = view.select(np.array([row])).scaled()
        one.half_sweep(alone, Z, coefficients, np.ones(1), np.array([SIGMA2]), KEY, Workers(), ids)
        np.testing.assert_allclose(alone[0], together[row], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("which", ["linear", "quadratic"])
def test_matrix_rates_with_shared_systems(which):
    A, mask, W, Z = problem_with_patterns()
    rates = np.random.default_rng(5).uniform(0.5, 2.0, size=W.shape)
    prior = L1(rates) if which == "linear" else L2Squared(rates)
    assert_from_scratch(view_of(A, mask, "missing listed"), A, mask, W, Z, prior.coefficients(W.shape))
