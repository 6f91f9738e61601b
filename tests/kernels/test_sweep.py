"""The half-sweep: correct conditionals, and the same draws from every form of the data and from the reference."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from bnmf.data.half_sweeps import ScaledView
from bnmf.data.observed import ObservedMatrix
from bnmf.kernels.compiled import ROWS_PER_TILE
from bnmf.model.model import Model
from bnmf.model.noise import NoiseState, common
from bnmf.model.units import Units
from bnmf.noise import StudentT
from bnmf.priors import L1, L1Squared, L2Squared, LInf
from bnmf.priors.names import MODELS
from bnmf.sampler.threads import Workers
from tests.kernels.draws import scalar_draws, streams_of
from tests.kernels.half_sweeps import (
    FORMS,
    KEY,
    SIGMA2,
    assert_from_scratch,
    direct_draws,
    drawn,
    problem,
    problem_with_patterns,
    used_workers,
    view_of,
)
from tests.reference import draw_component
from tests.statistical.checks import P_VALUE, assert_follows, grid_cdf
from tests.statistical.joint import log_joint
from tests.statistical.prior_pairs import NAMES, pairs


@pytest.mark.parametrize("name", NAMES)
def test_conditionals_from_scratch(name):
    """Rows that share their missing entries and rows that do not, under every prior, drawn once or several times."""
    A, mask, W, Z = problem_with_patterns()
    coefficients = pairs(*A.shape, Z.shape[1])[name][0].coefficients(W.shape)
    for form, n_passes in product(FORMS, [1, 2]):
        assert_from_scratch(view_of(A, mask, form), A, mask, W, Z, coefficients, n_passes, rtol=1e-7)


# Ranks around multiples of the vector width, lists longer than a chunk, and a factor that exceeds the cache.
@pytest.mark.parametrize(("columns", "observed"), [(1, 0.5), (31, 0.5), (33, 0.9), (200, 0.6), (6000, 0.01)])
def test_every_rank_and_length(columns, observed):
    for K, form in product([1, 2, 6, 7, 8, 9, 15, 16, 17, 24, 31], FORMS):
        A, mask, W, Z = problem(rows=12, columns=columns, K=K, observed=observed)
        coefficients = (L1(0.5) + L1Squared(0.1)).coefficients(W.shape)
        assert_from_scratch(view_of(A, mask, form), A, mask, W, Z, coefficients, rtol=1e-6)


@pytest.mark.parametrize(("by_row", "by_column"), [(True, False), (False, True), (True, True)])
def test_variances_and_scales_of_rows_and_columns(by_row, by_column):
    """Unequal variances of rows and columns, and data in other units, against conditionals from scratch.

    Weights multiply the precisions of rows and columns, here for more rows than a tile and with two threads.
    """
    unweighted = [(form, kind) for form in FORMS for kind in (problem_with_patterns(), problem(30, 45, 5))]
    for form, (A, mask, W, Z) in [*unweighted, ("weighted", problem(2 * ROWS_PER_TILE + 5, 21, 5))]:
        rng = np.random.default_rng(3)
        row_variance = rng.uniform(0.2, 3.0, size=len(A)) if by_row else np.array([0.7])
        entry_variance = rng.uniform(0.2, 3.0, size=len(Z)) if by_column else np.array([1.3])
        row_scale, entry_scale = rng.uniform(0.5, 2.0, size=len(A)), rng.uniform(0.5, 2.0, size=len(Z))
        weights = rng.uniform(0.05, 20.0, size=A.shape) if form == "weighted" else np.ones(A.shape)
        roots = np.sqrt(weights[mask]) if form == "weighted" else None
        coefficients = (L1(0.5) + L1Squared(0.1)).coefficients(W.shape)
        expected = direct_draws(A, mask, W, Z, coefficients, row_variance[:, None] * entry_variance / weights)
        raw = view_of(A / np.outer(row_scale, entry_scale), mask, FORMS[-1] if form == "weighted" else form)
        view, got = ScaledView(raw, entry_scale, row_scale), W.copy()
        with Workers(2) if form == "weighted" else used_workers() as workers:
            errors = view.half_sweep(got, Z, coefficients, row_variance, entry_variance, KEY, workers, roots=roots)
        np.testing.assert_allclose(got, expected, rtol=1e-7, atol=1e-10)
        residuals = np.where(mask, A - got @ Z.T, 0.0)
        np.testing.assert_allclose(errors, (weights * residuals**2 / entry_variance).sum(axis=1), rtol=1e-7, atol=1e-9)
        if form == "weighted":
            np.testing.assert_allclose(view.listed_residuals(got, Z), residuals[mask], rtol=1e-9, atol=1e-12)
        else:
            direct = view.squared_errors(got, Z)
            np.testing.assert_allclose(direct, (residuals**2).sum(axis=1), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("name", ["gl12", "gl22inf"])
def test_sparse_and_dense_data_agree(name, missing):
    rng = np.random.default_rng(1)
    A = np.where(rng.uniform(size=(50, 30)) < 0.1, rng.exponential(size=(50, 30)), 0.0)
    A[rng.uniform(size=A.shape) < missing / 2] = np.nan
    A[3], A[:, 4] = np.nan if missing else 0.0, np.nan if missing else 1.0
    coefficients = MODELS[name](1.0).coefficients((50, 3))
    W, Z = rng.exponential(size=(50, 3)), rng.exponential(size=(30, 3))
    dense, sparse = ObservedMatrix.from_data(A), ObservedMatrix.from_data(sp.csr_array(A))
    assert sparse.rows.form == "sparse"
    for view in ("rows", "columns"):
        expected, error = drawn(getattr(dense, view), W, Z, coefficients)
        got, error_got = drawn(getattr(sparse, view), W, Z, coefficients)
        np.testing.assert_allclose(got, expected, rtol=1e-9)
        np.testing.assert_allclose(error_got, error, rtol=1e-9, atol=1e-9)
        W, Z = Z, W


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("form", ["default", "only observed stored"])
def test_reference_agrees(model, form):
    A, mask, W, Z = problem()
    mask[1, :2] = True  # the reference divides by the precision, so every row needs an observed entry
    coefficients = MODELS[model](0.3).coefficients(W.shape)
    got, _ = drawn(view_of(A, mask, form), W, Z, coefficients)

    streams, expected = streams_of(KEY, len(W)), W.copy()

    def draw(b, p, kink, max_rate):
        return scalar_draws("two_piece", streams, b, p, kink if max_rate else 0.0, max_rate)

    for k in range(W.shape[1]):
        draw_component(A, mask, expected, Z.T, SIGMA2, model, 0.3, k, draw)
    np.testing.assert_allclose(got, expected, rtol=1e-8)


def test_rows_without_data_are_drawn_from_the_prior():
    A, mask, Z = np.zeros((20_000, 3)), np.zeros((20_000, 3), bool), np.ones((3, 2))
    for form in FORMS:
        W, error = drawn(view_of(A, mask, form), np.ones((20_000, 2)), Z, L1(2.0).coefficients((20_000, 2)))
        assert_follows(W[:, 0], stats.expon(scale=0.5).cdf)
        assert_follows(W[:, 1], stats.expon(scale=0.5).cdf)
        np.testing.assert_allclose(error, 0.0, atol=1e-9)


# --- The conditional of one entry. All rows are identical, so one half-sweep gives as many draws of the first entry,
# given the *old* values of the others, as there are rows. Their density is a slice of the joint density of one row.

ROWS = 6_000
ROW = np.array([2.0, 0.5, 1.5, 3.0, 0.2])
OTHERS = [0.6, 0.3]
MASKS = {
    "all observed": [1, 1, 1, 1, 1],
    "one missing": [1, 1, 0, 1, 1],
    "none observed": [0, 0, 0, 0, 0],
}
GIVEN = np.random.default_rng(2).uniform(0.5, 1.5, size=(5, 3))


def first_entries(prior, mask, old, form):
    """Return many draws of the first entry of a row."""
    A, W = np.tile(ROW, (ROWS, 1)), np.tile([old, *OTHERS], (ROWS, 1))
    view = view_of(A, np.tile(np.array(mask, bool), (ROWS, 1)), form)
    return drawn(view, W, GIVEN, prior.coefficients((1, 3)))[0][:, 0]


def first_entry_cdf(prior, mask):
    """Return the distribution function of the first entry, computed from the joint density on a grid."""
    data = ObservedMatrix.from_data(ROW[None], np.array(mask, bool)[None]) if any(mask) else None
    model = Model(data, 3, (prior, L1(1.0))) if data else None

    def log_density(w):
        row = np.array([[w, *OTHERS]])
        return log_joint(model, row, GIVEN, common(SIGMA2)) if model else prior.log_density(row)

    # The grid includes the kinks of L∞ and of Laplace.
    points = np.concatenate([np.linspace(0, max(OTHERS), 50), np.linspace(max(OTHERS), 10, 400)[1:]])
    if prior.is_real:
        points = np.concatenate([np.linspace(-10, 0, 400)[:-1], points])
    return grid_cdf(lambda grid: [log_density(w) for w in grid], points)


CONDITIONALS = {name: pair[0] for name, pair in pairs(1, 5, 3).items()}


@pytest.mark.filterwarnings("ignore:n_components=3 is larger")
@pytest.mark.parametrize("prior", CONDITIONALS.values(), ids=CONDITIONALS)
def test_one_entry_against_the_joint_density(prior):
    for mask in MASKS.values():
        cdf = first_entry_cdf(prior, mask)
        for form in ("missing listed", "observed listed"):
            # The old value is far from the draws, so that any dependence on it shows.
            assert_follows(first_entries(prior, mask, 3.0, form), cdf)


UNEQUAL = {
    "variances": ("both", False),
    "both": ("both", True),
    "known": ("known", True),
    "Student's t": (StudentT(3.0, "both"), True),
}


@pytest.mark.filterwarnings("ignore:n_components=3 is larger")
@pytest.mark.parametrize("case", UNEQUAL)
@pytest.mark.parametrize("name", ["gee", "gl12", "gl22inf"])
def test_one_entry_with_weights_against_the_joint_density(name, case):
    """Variances of rows times those of columns, in units of scaled columns; and known or drawn factors of entries."""
    noise, is_weighted = UNEQUAL[case]
    prior, row, column = CONDITIONALS[name], np.array([0.6]), np.array([0.3, 2.0, 0.8, 1.5, 0.1])
    if noise == "known":
        row, column = np.ones(1), np.ones(1)
    scale, seen = np.array([2.0, 0.5, 1.0, 3.0, 0.25]), np.array(MASKS["one missing"], bool)
    known, factor = np.array([0.2, 7.0, 1.0, 0.4, 2.5])[seen], np.array([3.0, 0.1, 0.5, 1.0, 4.0])[seen]
    data = ObservedMatrix.from_data((ROW * scale)[None], seen[None])
    model = Model(data, 3, (prior, L1(1.0)), noise, Units(scale), known if is_weighted else None)
    state = NoiseState(row, column, 1.0, 1.0, 1.0)
    if isinstance(noise, StudentT):
        state = state._replace(df=3.0, entry=factor)
    points = np.concatenate([np.linspace(0, max(OTHERS), 300), np.linspace(max(OTHERS), 10, 800)[1:]])
    cdf = grid_cdf(lambda grid: [log_joint(model, np.array([[w, *OTHERS]]), GIVEN, state) for w in grid], points)
    for form in FORMS[-1:] if is_weighted else ("missing listed", "observed listed"):
        W = np.tile([3.0, *OTHERS], (ROWS, 1))
        view = ScaledView(view_of(np.tile(ROW * scale, (ROWS, 1)), np.tile(seen, (ROWS, 1)), form), 1.0 / scale)
        roots, by_row = np.tile(model.roots(state)["W"], ROWS) if is_weighted else None, np.full(ROWS, row[0])
        view.half_sweep(W, GIVEN, prior.coefficients((1, 3)), by_row, column, KEY, Workers(), roots=roots)
        assert_follows(W[:, 0], cdf)


@pytest.mark.filterwarnings("ignore:n_components=3 is larger")
@pytest.mark.parametrize("old", [0.2, 0.8])
@pytest.mark.parametrize("prior", [LInf(2.0, rule="paper"), L2Squared(1.0) + LInf(1.0, rule="paper")], ids=str)
def test_paper_rule_differs_from_the_exact_conditional(prior, old):
    draws = first_entries(prior, MASKS["one missing"], old, "missing listed")
    pvalue = stats.kstest(draws, first_entry_cdf(prior, MASKS["one missing"])).pvalue
    assert pvalue < P_VALUE
