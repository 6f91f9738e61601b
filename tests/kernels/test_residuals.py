"""Rows with missing entries of their own, drawn from their residuals: draws equal those of direct conditionals."""

import numpy as np
import pytest

from bnmf.data import half_sweeps
from bnmf.data.half_sweeps import min_sharing
from bnmf.kernels.compiled import testing
from bnmf.priors import L1, L1Squared, L2Squared, LInf
from tests.kernels.draws import WIDTH, padded_length
from tests.kernels.half_sweeps import SIGMA2, direct_draws, drawn, problem, squared_errors, view_of

MAX_GATHERED = testing.MAX_GATHERED
PRIORS = {
    "L1": L1(0.5),
    "L1Squared + L1": L1Squared(0.2) + L1(0.5),
    "L2Squared + LInf": L2Squared(0.5) + LInf(1.0),
    "paper rule": L2Squared(0.5) + LInf(1.0, rule="paper"),
}


@pytest.fixture(autouse=True)
def errors_of_the_kernel(monkeypatch):
    """Compare squared errors as the kernel computes them: those that have cancelled are not computed again."""
    monkeypatch.setattr(half_sweeps, "MIN_TRUSTED_ERROR", -1e100)


WHICH = pytest.mark.parametrize("which", ["missing", "observed", "mixed", "weighted"])


def listed_by(A, which):
    """Return which rows list their missing positions: all, none, or every other one and a few more."""
    numbers = np.arange(len(A))
    return {"missing": numbers >= 0, "mixed": (numbers % 2 == 0) | (numbers > 13)}.get(which, numbers < 0)


def assert_drawn_as_from_scratch(A, mask, W, Z, which, prior=PRIORS["L1"], rtol=1e-8, rows=None, **options):
    """Assert that no row shares its system, and that draws and squared errors are right.

    `which` rows list their missing positions is given by name or for each row. With "weighted", only observed entries
    are stored, and have weights from 1/400 to 400.
    """
    is_weighted = isinstance(which, str) and which == "weighted"
    weights = np.exp(np.random.default_rng(5).uniform(-6.0, 6.0, size=A.shape)) if is_weighted else np.ones(A.shape)
    lists_missing = listed_by(A, which) if isinstance(which, str) else which
    view = view_of(A, mask, "only observed stored" if is_weighted else lists_missing)
    split = view.split(min_sharing(W.shape[1]))
    assert not split.n_sharing.any() or is_weighted
    np.testing.assert_array_equal(split.rows, np.arange(len(A)))
    coefficients = prior.coefficients(W.shape)
    rows = np.arange(len(A)) if rows is None else rows
    expected = direct_draws(A, mask, W, Z, coefficients, SIGMA2 / weights, rows=rows, **options)[rows]
    got, errors = drawn(view, W, Z, coefficients, roots=np.sqrt(weights[mask]) if is_weighted else None, **options)
    np.testing.assert_allclose(got[rows], expected, rtol=rtol, atol=1e-2 * rtol)
    assert np.isfinite(got).all()
    residuals = np.where(mask, A - got @ Z.T, 0.0)
    np.testing.assert_allclose(errors, (weights * residuals**2).sum(axis=1), rtol=10 * rtol, atol=10 * rtol)


# Padding: ranks around multiples of the width and its half, numbers of rows likewise, lists of any length.
@WHICH
@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
def test_any_rank(which, prior):
    for K in [1, 2, 4, 5, 7, 8, 9, 12, 13, 15, 16, 17]:
        A, mask, W, Z = problem(rows=19, columns=37, K=K)
        assert_drawn_as_from_scratch(A, mask, W, Z, which, prior)


@WHICH
def test_any_number_of_rows(which):
    for n_rows in [*range(2, 10), 16, 17]:
        A, mask, W, Z = problem(rows=n_rows, columns=29, K=5)
        assert_drawn_as_from_scratch(A, mask, W, Z, which)


@pytest.mark.parametrize("n_passes", [2, 3])
@WHICH
@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
def test_several_passes(which, prior, n_passes):
    A, mask, W, Z = problem(rows=19, columns=37, K=9)
    assert_drawn_as_from_scratch(A, mask, W, Z, which, prior, n_passes=n_passes)


@WHICH
def test_lists_of_every_length(which):
    """Lengths from 0 to all columns in the lanes of the same vectors."""
    A, mask, W, Z = problem(rows=48, columns=46, K=6)
    rng = np.random.default_rng(3)
    for row in range(48):
        mask[row] = True
        mask[row, rng.permutation(46)[: max(row - 1, 0)]] = False  # two rows are complete: too few to share
    assert_drawn_as_from_scratch(A, mask, W, Z, which)


def test_empty_lists():
    """Complete rows that list nothing missing, and unobserved rows that list nothing observed, next to others."""
    A, mask, W, Z = problem(rows=8, columns=11, K=3)
    mask[:2], mask[2:4] = True, False
    lists_missing = np.array([True, True, False, False, True, False, True, False])
    assert_drawn_as_from_scratch(A, mask, W, Z, lists_missing)
    only = np.array([2, 3])
    assert_drawn_as_from_scratch(A[only], mask[only], W[only], Z, lists_missing[only])


# --- panels: components that are gathered at a time


def n_panels(lengths, K):
    """Return the number of panels of rows that are drawn together and list as many positions."""
    n_listed = sum(padded_length(length) for length in lengths)
    assert n_listed * WIDTH <= MAX_GATHERED
    return -(-padded_length(K) // max(WIDTH, MAX_GATHERED // (n_listed + 1) // WIDTH * WIDTH))


@pytest.mark.parametrize("n_passes", [1, 2])
@WHICH
def test_several_panels(which, n_passes):
    """100 components of lists of 3000 positions do not fit the cache: 13 panels of eight."""
    A, mask, W, Z = problem(rows=10, columns=6000, K=100, observed=0.5)
    mask[:2] = mask[2:4, ::-1]
    assert n_panels((mask != listed_by(A, which)[:, None])[:8].sum(axis=1), 100) == 13
    assert_drawn_as_from_scratch(A, mask, W, Z, which, rtol=1e-6, rows=[0, 7, 8], n_passes=n_passes)


@pytest.mark.parametrize("which", ["mixed", "weighted"])
@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
def test_panels_of_several_vectors(prior, which):
    """Panels of 16 components, of which the last is not full: 16, 16 and 3."""
    A, mask, W, Z = problem(rows=8, columns=4000, K=35, observed=0.5)
    mask[:2] = mask[2:4, ::-1]
    assert n_panels((mask != listed_by(A, which)[:, None]).sum(axis=1), 35) == 3
    assert_drawn_as_from_scratch(A, mask, W, Z, which, prior, rtol=1e-6, rows=[0, 1, 7])


@WHICH
def test_lists_of_which_few_fit(which):
    """Eight lists of 15,000 positions are too many: rows are drawn two at a time."""
    A, mask, W, Z = problem(rows=7, columns=30_000, K=9, observed=0.5)
    mask[:2] = mask[2:4, ::-1]
    assert 3 * 15_000 * WIDTH > MAX_GATHERED > 2 * 15_000 * WIDTH
    assert_drawn_as_from_scratch(A, mask, W, Z, which, rtol=1e-6)


@WHICH
def test_list_longer_than_fits(which):
    """Not even eight components of one row fit: memory grows with the longest list."""
    A, mask, W, Z = problem(rows=3, columns=75_000, K=10, observed=0.5)
    mask[:2] = mask[2, ::-1], ~mask[2]
    assert mask.sum(axis=1).min() * WIDTH > MAX_GATHERED
    assert_drawn_as_from_scratch(A, mask, W, Z, which, rtol=1e-6)


@pytest.mark.parametrize("longest", [0, 1, 9, 5000, MAX_GATHERED // WIDTH, MAX_GATHERED // WIDTH + 1, 10**6])
def test_memory_is_enough(longest):
    """For any number of rows whose lists are at most that long, drawn together or alone."""
    rows_together = max(1, min(WIDTH, MAX_GATHERED // WIDTH // max(padded_length(longest), 1)))
    n_listed = rows_together * padded_length(longest)
    assert n_listed <= testing.max_listed(longest)
    for side in (8, 24, 104):
        panel = max(WIDTH, min(side, MAX_GATHERED // (n_listed + 1) // WIDTH * WIDTH))
        assert testing.residuals_size(side, longest) >= n_listed * (panel + 1) + 9 * WIDTH * side + WIDTH**3


# --- rows that are drawn from their complement


@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
def test_rows_that_cancel_next_to_rows_that_do_not(prior):
    """Of rows drawn together, some cancel, some list observed positions, and some cancel in no component."""
    for K in [3, 8, 17]:
        for n_passes in [1, 2]:
            A, mask, W, Z = problem(rows=21, columns=40, K=K, observed=0.7)
            Z[[3, 20], 2] = 1e9
            lists_missing = np.arange(21) % 3 > 0
            mask[:, [3, 20]] = False
            # These rows observe the large entries, with data that fit them, and cancel nowhere.
            mask[[1, 5, 9, 13], 3] = True
            A[[1, 5, 9, 13], 3] = 1e9 * W[[1, 5, 9, 13], 2]
            coefficients = prior.coefficients(W.shape)
            expected = direct_draws(A, mask, W, Z, coefficients, n_passes=n_passes)
            got, errors = drawn(view_of(A, mask, lists_missing), W, Z, coefficients, n_passes=n_passes)
            apart = ~mask[:, 3]
            np.testing.assert_allclose(got[apart], expected[apart], rtol=1e-8, atol=1e-10)
            np.testing.assert_allclose(errors[apart], squared_errors(A, mask, got, Z)[apart], rtol=1e-7, atol=1e-7)
            # In the others a residual is a difference of numbers around 1e9, in any form.
            np.testing.assert_allclose(got[~apart], expected[~apart], rtol=1e-4, atol=1e-6)


def test_all_rows_cancel():
    A, mask, W, Z = problem(rows=20, columns=40, K=5, observed=0.8)
    Z[7, 2], Z[8, 4] = 1e9, 1e12
    mask[:, [7, 8]] = False
    assert_drawn_as_from_scratch(A, mask, W, Z, np.ones(20, bool))


def test_complements_in_several_panels():
    A, mask, W, Z = problem(rows=9, columns=4000, K=35, observed=0.9)
    mask[0], mask[1] = mask[2, ::-1], mask[3, ::-1]
    mask[:, 11] = False
    mask[4:] &= np.arange(4000) % 2 == 0
    Z[11, [0, 20, 34]] = 1e9
    assert_drawn_as_from_scratch(A, mask, W, Z, np.arange(9) < 5, rtol=1e-6)


@pytest.mark.parametrize("n_cancelling", [1, 2, 4, 7, 8])
def test_complements_of_which_few_fit(n_cancelling):
    """Short lists of missing positions are drawn together, but only one of their complements fits at a time.

    Rows that follow, and list observed positions, then come to lanes in which others had cancelled.
    """
    A, mask, W, Z = problem(rows=18, columns=20_000, K=2)
    rng = np.random.default_rng(1)
    lists_missing = np.arange(18) < n_cancelling
    mask[:] = np.where(lists_missing[:, None], rng.uniform(size=A.shape) < 0.999, rng.uniform(size=A.shape) < 0.01)
    mask[:, :5] = False
    Z[:5, 1] = 1e9
    assert_drawn_as_from_scratch(A, mask, W, Z, lists_missing)


def test_nothing_is_observed_of_a_row_that_lists_missing_positions():
    A, mask, W, Z = problem(rows=9, columns=12, K=3)
    mask[5] = False
    assert_drawn_as_from_scratch(A, mask, W, Z, np.arange(9) % 4 < 2)


def test_weights_of_one_change_no_bit():
    A, mask, W, Z = problem(rows=19, columns=37, K=9)
    view, coefficients = view_of(A, mask, "only observed stored"), L1(0.5).coefficients(W.shape)
    plain, weighted = (drawn(view, W, Z, coefficients, roots=roots) for roots in (None, np.ones(mask.sum())))
    np.testing.assert_array_equal(weighted[0], plain[0])
    np.testing.assert_array_equal(weighted[1], plain[1])
