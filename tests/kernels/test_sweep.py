"""The half-sweep: correct conditionals, and the same draws from every form of the data and from the reference."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from tests.reference import draw_component
from tests.statistical.checks import P_VALUE, assert_follows, grid_cdf
from tests.statistical.prior_pairs import NAMES, pairs

from bnmf.data.observed import ObservedMatrix
from bnmf.data.views import ScaledView, View
from bnmf.kernels.random import stream_of
from bnmf.kernels.truncated_normal import draw_positive, draw_two_piece
from bnmf.model.model import Model
from bnmf.model.noise import NoiseState, common
from bnmf.model.units import Units
from bnmf.priors import L1, L1Squared, L2Squared, LInf
from bnmf.priors.names import MODELS
from bnmf.sampler.gibbs import half_sweep
from bnmf.sampler.threads import Workers

KEY = np.uint64(21), np.uint64(4)
SIGMA2 = 0.7


def view_of(array, mask, form):
    """Return the rows of the data in one of the forms that the kernel accepts."""
    filled = np.where(mask, array, 0.0)
    lists_missing = np.full(len(array), form == "missing listed")
    if form == "default":
        lists_missing = 2 * mask.sum(axis=1) > mask.shape[1]
    rows, columns = np.nonzero(mask != lists_missing[:, None])
    indptr = np.searchsorted(rows, np.arange(len(array) + 1))
    matrix = None if form == "only observed stored" else filled
    squares = (filled**2).sum(axis=1)
    return View(matrix, indptr, columns.astype(np.uint32), filled[rows, columns], lists_missing, squares)


FORMS = ["default", "missing listed", "observed listed", "only observed stored"]


def problem(rows=40, columns=17, K=4, observed=0.6, seed=0):
    rng = np.random.default_rng(seed)
    W, Z = rng.exponential(size=(rows, K)), rng.exponential(size=(columns, K))
    A = W @ Z.T + rng.normal(size=(rows, columns))
    mask = rng.uniform(size=A.shape) < observed
    mask[0], mask[1] = True, False
    return A, mask, rng.exponential(size=(rows, K)), Z


def drawn(view, W, Z, coefficients, sigma2=SIGMA2):
    W = W.copy()
    errors = half_sweep(ScaledView(view), W, Z, coefficients, np.array([sigma2]), np.ones(1), KEY, Workers())
    return W, errors.sum()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", FORMS[1:])
def test_forms_agree(name, form):
    A, mask, W, Z = problem()
    coefficients = pairs(*A.shape, Z.shape[1])[name][0].coefficients(W.shape)
    expected, error = drawn(view_of(A, mask, "default"), W, Z, coefficients)
    got, error_got = drawn(view_of(A, mask, form), W, Z, coefficients)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(error_got, error, rtol=1e-9)
    np.testing.assert_allclose(error, (mask * (A - expected @ Z.T) ** 2).sum(), rtol=1e-9)


# Ranks around multiples of the vector width, lists longer than a chunk, and a factor that exceeds the cache.
@pytest.mark.parametrize("K", [1, 2, 6, 7, 8, 9, 15, 16, 17, 24, 31])
@pytest.mark.parametrize(("columns", "observed"), [(1, 0.5), (31, 0.5), (33, 0.9), (200, 0.6), (6000, 0.01)])
def test_every_rank_and_length(K, columns, observed):
    A, mask, W, Z = problem(rows=12, columns=columns, K=K, observed=observed)
    coefficients = (L1(0.5) + L1Squared(0.1)).coefficients(W.shape)
    expected = direct_half_sweep(A, mask, W, Z, coefficients)
    for form in FORMS:
        got, error = drawn(view_of(A, mask, form), W, Z, coefficients)
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(error, (mask * (A - expected @ Z.T) ** 2).sum(), rtol=1e-6, atol=1e-9)


def direct_half_sweep(A, mask, W, Z, c, variance=None):
    """Draw from the same streams, computing each conditional from scratch."""
    W = W.copy()
    variance = np.full(A.shape, SIGMA2) if variance is None else variance
    for row in range(len(W)):
        stream = stream_of(*KEY, np.uint64(row))
        z, a, v = Z[mask[row]], A[row, mask[row]], variance[row, mask[row]]
        for k in range(W.shape[1]):
            others = W[row].copy()
            others[k] = 0.0
            p = (z[:, k] / v) @ z[:, k] + c.quadratic[0, k]
            b = (z[:, k] / v) @ (a - z @ others) - c.linear[0, k] - c.pairwise * others.sum()
            W[row, k], stream = draw_positive(b, p, tuple(map(np.uint64, stream)))
    return W


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("by_row", "by_column"), [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("blocks", [False, True])
def test_variances_and_scales_of_rows_and_columns(form, by_row, by_column, blocks):
    """Unequal variances of rows and columns, and data in other units, against conditionals from scratch."""
    A, mask, W, Z = problem_with_blocks() if blocks else problem(rows=30, columns=45, K=5)
    rng = np.random.default_rng(3)
    row_variance = rng.uniform(0.2, 3.0, size=len(A)) if by_row else np.array([0.7])
    entry_variance = rng.uniform(0.2, 3.0, size=len(Z)) if by_column else np.array([1.3])
    row_scale, entry_scale = rng.uniform(0.5, 2.0, size=len(A)), rng.uniform(0.5, 2.0, size=len(Z))
    coefficients = (L1(0.5) + L1Squared(0.1)).coefficients(W.shape)
    variance = np.broadcast_to(row_variance[:, None] * entry_variance, A.shape)
    expected = direct_half_sweep(A, mask, W, Z, coefficients, variance)
    raw = view_of(A / np.outer(row_scale, entry_scale), mask, form)
    got = W.copy()
    view = ScaledView(raw, entry_scale, row_scale)
    errors = half_sweep(view, got, Z, coefficients, row_variance, entry_variance, KEY, Workers())
    np.testing.assert_allclose(got, expected, rtol=1e-7, atol=1e-10)
    residuals = np.where(mask, A - got @ Z.T, 0.0)
    np.testing.assert_allclose(errors, (residuals**2 / entry_variance).sum(axis=1), rtol=1e-7, atol=1e-9)
    direct = np.empty(len(A))
    view.squared_errors(got, Z, 0, len(A), direct)
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
    assert isinstance(sparse.rows.matrix, sp.csr_array)
    for view in ("rows", "columns"):
        expected, error = drawn(getattr(dense, view), W, Z, coefficients)
        got, error_got = drawn(getattr(sparse, view), W, Z, coefficients)
        np.testing.assert_allclose(got, expected, rtol=1e-9)
        np.testing.assert_allclose(error_got, error, rtol=1e-9)
        W, Z = Z, W


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("form", ["default", "only observed stored"])
def test_reference_agrees(model, form):
    A, mask, W, Z = problem()
    mask[1, :2] = True  # the reference divides by the precision, so every row needs an observed entry
    coefficients = MODELS[model](0.3).coefficients(W.shape)
    got, _ = drawn(view_of(A, mask, form), W, Z, coefficients)

    streams = [stream_of(*KEY, np.uint64(row)) for row in range(len(W))]

    def draw(b, p, kink, max_rate):
        new = np.empty(len(W))
        for row in range(len(W)):
            stream = tuple(map(np.uint64, streams[row]))
            kink_of_row = kink[row] if max_rate else 0.0
            new[row], streams[row] = draw_two_piece(b[row], p[row], kink_of_row, max_rate, stream)
        return new

    expected = W.copy()
    for k in range(W.shape[1]):
        draw_component(A, mask, expected, Z.T, SIGMA2, model, 0.3, k, draw)
    np.testing.assert_allclose(got, expected, rtol=1e-8)


@pytest.mark.parametrize("form", ["default", "missing listed"])
def test_component_concentrated_in_a_missing_column(form):
    A, mask, W, Z = problem(observed=0.9)
    Z[3, 2] = 1e9  # nearly all of component 2 is in column 3, which is missing in every row
    mask[:, 3] = False
    A[:, 3] = np.nan
    coefficients = L1(1.0).coefficients(W.shape)
    expected, error = drawn(view_of(A, mask, "only observed stored"), W, Z, coefficients)
    got, error_got = drawn(view_of(A, mask, form), W, Z, coefficients)
    np.testing.assert_allclose(got, expected, rtol=1e-7)
    np.testing.assert_allclose(error_got, error, rtol=1e-7)


def problem_with_blocks(rows=60, columns=40, K=11):
    """Return a problem in which batches of columns are missing in batches of rows, and a few entries individually."""
    A, _, W, Z = problem(rows, columns, K)
    rng = np.random.default_rng(1)
    batches = rng.uniform(size=(4, 5)) < 0.7
    mask = batches[rng.integers(4, size=rows)][:, rng.integers(5, size=columns)]
    mask[:7, :5] = rng.uniform(size=(7, 5)) < 0.5
    mask[7:12] = True
    return A, mask, W, Z


@pytest.mark.parametrize("name", ["gee", "gl12", "gl22inf"])
def test_blocks_of_missing_entries(name):
    A, mask, W, Z = problem_with_blocks()
    view = view_of(A, mask, "missing listed")
    assert view.lists.members.size > 0
    assert view.repeats.sum() > len(A) // 2
    coefficients = MODELS[name](1.0).coefficients(W.shape)
    expected, error = drawn(view_of(A, mask, "only observed stored"), W, Z, coefficients)
    got, error_got = drawn(view, W, Z, coefficients)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(error_got, error, rtol=1e-9)


def test_component_concentrated_in_a_block():
    A, mask, W, Z = problem_with_blocks()
    view = view_of(A, mask, "missing listed")
    Z[view.lists.members[:3], 2] = 1e9
    coefficients = L1(1.0).coefficients(W.shape)
    expected, _ = drawn(view_of(A, mask, "only observed stored"), W, Z, coefficients)
    got, _ = drawn(view, W, Z, coefficients)
    missing = ~mask[:, view.lists.members[0]]
    assert missing.sum() > 10
    np.testing.assert_allclose(got[missing], expected[missing], rtol=1e-7)
    np.testing.assert_allclose(
        got[~missing], expected[~missing], rtol=1e-4
    )  # these rows observe the 1e9, in either form


@pytest.mark.parametrize("name", ["gee", "gl12", "gl22inf"])
def test_draw_of_a_row_does_not_depend_on_rows_that_share_its_system(name):
    A, mask, W, Z = problem_with_blocks()
    view = view_of(A, mask, "missing listed").select(np.arange(len(A)))
    assert view.repeats.sum() > len(A) // 2
    coefficients = MODELS[name](1.0).coefficients(W.shape)
    together = W.copy()
    variances = np.ones(1), np.array([SIGMA2])
    half_sweep(ScaledView(view), together, Z, coefficients, *variances, KEY, Workers())
    for row in range(len(A)):
        alone, ids = W[[row]].copy(), np.array([row], np.uint64)
        one = ScaledView(view.select(np.array([row])))
        half_sweep(one, alone, Z, coefficients, *variances, KEY, Workers(), ids)
        np.testing.assert_allclose(alone[0], together[row], rtol=1e-11)


@pytest.mark.parametrize("which", ["linear", "quadratic"])
def test_matrix_rates_with_shared_systems(which):
    A, mask, W, Z = problem_with_blocks()
    rates = np.random.default_rng(5).uniform(0.5, 2.0, size=W.shape)
    coefficients = (L1(rates) if which == "linear" else L2Squared(rates)).coefficients(W.shape)
    expected, _ = drawn(view_of(A, mask, "only observed stored"), W, Z, coefficients)
    got, _ = drawn(view_of(A, mask, "missing listed"), W, Z, coefficients)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


def test_rows_without_data_are_drawn_from_the_prior():
    A, mask, Z = np.zeros((20_000, 3)), np.zeros((20_000, 3), bool), np.ones((3, 2))
    for form in FORMS:
        W, error = drawn(view_of(A, mask, form), np.ones((20_000, 2)), Z, L1(2.0).coefficients((20_000, 2)))
        assert_follows(W[:, 0], stats.expon(scale=0.5).cdf)
        assert_follows(W[:, 1], stats.expon(scale=0.5).cdf)
        assert error == pytest.approx(0.0, abs=1e-9)


# --- The conditional of one entry. All rows are identical, so one half-sweep gives as many draws of the first entry,
# given the *old* values of the others, as there are rows. Their density is a slice of the joint density of one row.

ROWS = 10_000
ROW = np.array([2.0, 0.5, 1.5, 3.0, 0.2])
OTHERS = [0.6, 0.3]
MASKS = {
    "all observed": [1, 1, 1, 1, 1],
    "one missing": [1, 1, 0, 1, 1],
    "one observed": [0, 1, 0, 0, 0],
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

    def log_joint(w):
        row = np.array([[w, *OTHERS]])
        return model.log_joint(row, GIVEN, common(SIGMA2)) if model else prior.log_density(row)

    # The grid includes the kink of L∞.
    points = np.concatenate([np.linspace(0, max(OTHERS), 100), np.linspace(max(OTHERS), 10, 800)[1:]])
    return grid_cdf(lambda grid: [log_joint(w) for w in grid], points)


CONDITIONALS = {name: pair[0] for name, pair in pairs(1, 5, 3).items()}


@pytest.mark.filterwarnings("ignore:n_components=3 is larger")
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("prior", CONDITIONALS.values(), ids=CONDITIONALS)
def test_one_entry_against_the_joint_density(prior, mask):
    cdf = first_entry_cdf(prior, mask)
    for form in ("missing listed", "observed listed"):
        # The old value is far from the draws, so that any dependence on it shows.
        assert_follows(first_entries(prior, mask, 3.0, form), cdf)


@pytest.mark.filterwarnings("ignore:n_components=3 is larger")
@pytest.mark.parametrize("mask", [MASKS["all observed"], MASKS["one missing"]], ids=["all observed", "one missing"])
@pytest.mark.parametrize("name", ["gee", "gl12", "gl22inf"])
def test_one_entry_under_unequal_variances_against_the_joint_density(name, mask):
    """The variance of an entry is that of its row times that of its column, in units of scaled columns."""
    prior, row, column = CONDITIONALS[name], np.array([0.6]), np.array([0.3, 2.0, 0.8, 1.5, 0.1])
    scale = np.array([2.0, 0.5, 1.0, 3.0, 0.25])
    data = ObservedMatrix.from_data((ROW * scale)[None], np.array(mask, bool)[None])
    model = Model(data, 3, (prior, L1(1.0)), "both", Units(scale))
    noise = NoiseState(row, column, 1.0, 1.0, 1.0)
    points = np.concatenate([np.linspace(0, max(OTHERS), 100), np.linspace(max(OTHERS), 10, 800)[1:]])
    cdf = grid_cdf(lambda grid: [model.log_joint(np.array([[w, *OTHERS]]), GIVEN, noise) for w in grid], points)
    A, masks = np.tile(ROW * scale, (ROWS, 1)), np.tile(np.array(mask, bool), (ROWS, 1))
    for form in ("missing listed", "observed listed"):
        W = np.tile([3.0, *OTHERS], (ROWS, 1))
        view = ScaledView(view_of(A, masks, form), 1.0 / scale)
        half_sweep(view, W, GIVEN, prior.coefficients((1, 3)), np.full(ROWS, row[0]), column, KEY, Workers())
        assert_follows(W[:, 0], cdf)


@pytest.mark.filterwarnings("ignore:n_components=3 is larger")
@pytest.mark.parametrize("old", [0.2, 0.8])
@pytest.mark.parametrize("prior", [LInf(2.0, rule="paper"), L2Squared(1.0) + LInf(1.0, rule="paper")], ids=str)
def test_paper_rule_differs_from_the_exact_conditional(prior, old):
    draws = first_entries(prior, MASKS["one missing"], old, "missing listed")
    pvalue = stats.kstest(draws, first_entry_cdf(prior, MASKS["one missing"])).pvalue
    assert pvalue < P_VALUE
