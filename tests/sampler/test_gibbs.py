"""The sampler as a whole: reproducible, resumable, clear about bad input, robust to unusual but valid data."""

from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from tests.statistical.checks import assert_follows
from tests.statistical.prior_pairs import NAMES, pairs

from bnmf import limits
from bnmf.data import latent
from bnmf.data.observed import ObservedMatrix
from bnmf.kernels.compiled import ROWS_PER_TILE
from bnmf.model import Model
from bnmf.model.units import Units, units_of
from bnmf.noise import CommonNoise, StudentT
from bnmf.priors import L1, L1Squared, L2Squared, LInf
from bnmf.sampler import gibbs
from bnmf.sampler.gibbs import sample, start, step
from bnmf.sampler.moves import PLAIN
from bnmf.sampler.streams import Stream
from bnmf.sampler.threads import Workers


def some_data(M=12, N=9, missing=0.3, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.exponential(size=(M, 3)) @ rng.exponential(size=(3, N))
    A[rng.uniform(size=A.shape) < missing] = np.nan
    return A


def last_state(model, n_sweeps=5, seed=0, **options):
    *_, state = sample(model, Stream(seed), n_sweeps=n_sweeps, **options)
    return state


def assert_identical(a, b):
    np.testing.assert_array_equal(a.W, b.W)
    np.testing.assert_array_equal(a.Zt, b.Zt)
    for name in ("sigma2", "squared_error", "log_likelihood", "sweep"):
        assert getattr(a, name) == getattr(b, name), name


# --- one chain, however it is run


@pytest.mark.parametrize(("missing", "n_threads"), [(0.2, 1), (0.7, 2)])
def test_values_beyond_limits_follow_the_factors(missing, n_threads, monkeypatch):
    """A draw of factors that their values follow changes both, and neither the residuals nor what was observed."""
    monkeypatch.setattr(latent, "MIN_FOLLOWING", 0.0)
    A = some_data(M=ROWS_PER_TILE + 10, N=ROWS_PER_TILE + 5, missing=missing)
    lower, upper = limits(np.clip(A, 0.5, 2.0), capped=2.0, floored=0.5)
    data = ObservedMatrix.from_data(np.clip(A, 0.5, 2.0), lower=lower, upper=upper)
    assert data.rows.form == ("dense" if missing == 0.2 else "listed")
    model, stream = Model(data, 3, L1(1.0), "both"), Stream(0)
    with Workers(n_threads) as workers:
        state = start(model, stream, workers=workers)
        found = []
        for priors in (None, model.coefficients(())):
            W, Zt = state.W.copy(), state.Zt.copy()
            own, _ = gibbs.with_latent_values(model, W, Zt, state.noise, stream, 1, workers, priors)
            values = own.rows.view.dense_with_nan()
            np.testing.assert_array_equal(values, own.columns.view.dense_with_nan().T)
            found.append((W, Zt, values))
    (W, Zt, before), (new_W, new_Zt, after) = found
    assert (new_W != W).all()
    assert (new_Zt != Zt).all()
    exact = ~np.isnan(A) & (A > 0.5) & (A < 2.0)
    np.testing.assert_array_equal(after[exact], A[exact])
    assert (after[A >= 2.0] >= 2.0).all()
    assert (after[A <= 0.5] <= 0.5).all()
    limited = (A >= 2.0) | (A <= 0.5)
    np.testing.assert_allclose((after - new_W @ new_Zt.T)[limited], (before - W @ Zt.T)[limited], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(("number", "name"), list(enumerate(NAMES)))
def test_two_threads_draw_the_same_bits(number, name):
    """Every prior, and in turn every form of the data."""
    form = ("dense", "listed", "sparse")[number % 3]
    A = some_data(M=ROWS_PER_TILE + 10, N=ROWS_PER_TILE + 5, missing=0.7 if form == "listed" else 0.2)
    if form == "sparse":
        A = sp.csr_array(np.where(np.nan_to_num(A, nan=9.0) > 1.0, 0.0, A))
    data = ObservedMatrix.from_data(A)
    assert data.rows.form == form
    model = Model(data, 4, pairs(*data.shape, 4)[name])
    assert_identical(last_state(model, 2, n_threads=1), last_state(model, 2, n_threads=2))
    if form == "dense":
        weights = np.random.default_rng(0).uniform(size=data.n_observed)
        model = Model(data, 4, model.prior, ("known", StudentT(None, "both"))[number % 2], entry_precision=weights)
        one, two = (last_state(model, 3, n_threads=n_threads) for n_threads in (1, 2))
        assert_identical(one, two)
        np.testing.assert_array_equal(one.noise.entry, two.noise.entry)


@pytest.mark.parametrize("name", NAMES)
def test_chain_goes_on_as_if_it_had_never_stopped(name):
    """In the warm-up, in which variances are nearly equal, in the sweeps of larger noise, and after both."""
    A = some_data()
    model = Model(ObservedMatrix.from_data(A), 3, pairs(*A.shape, 3)[name], noise="column")
    whole = list(sample(model, Stream(3, chain=1), n_sweeps=10, n_warm_up=4))
    kept = [(state.W.copy(), state.Zt.copy()) for state in whole]
    for done in (3, 6, 9):
        rest = sample(model, Stream(3, chain=1), state=whole[done - 1], n_sweeps=10 - done, n_warm_up=4)
        for a, b in zip(whole[done:], rest, strict=True):
            assert_identical(a, b)
    for state, (W, Zt) in zip(whole, kept, strict=True):  # later sweeps have changed none of them
        np.testing.assert_array_equal(state.W, W)
        np.testing.assert_array_equal(state.Zt, Zt)


@pytest.mark.parametrize("noise", ["common", "column", "row", "both", "student-t", "contaminated"])
def test_noise_is_small_in_the_warm_up_and_only_there(noise, monkeypatch):
    A = some_data(missing=0.0)
    units = Units(np.full(9, 2.0))
    model, given = Model(ObservedMatrix.from_data(A), 3, noise=noise, units=units), []
    monkeypatch.setattr(gibbs, "step", lambda _, state, *others: given.append(state) or step(model, state, *others))
    *_, before, _ = sample(model, Stream(0), n_sweeps=10, n_warm_up=4)
    for state in given[:4]:
        law = model.noise_model
        variance = state.noise.column if law.has_columns or not law.has_rows else state.noise.row
        assert (variance <= 0.1001 * (A**2).mean() / 4.0).all()
    assert given[-1] is before


def test_no_column_has_much_less_noise_than_others_after_the_warm_up(monkeypatch):
    A = some_data(missing=0.0) * np.linspace(1.0, 3.0, 9)
    units, given = Units(np.linspace(2.0, 4.0, 9)), []
    model = Model(ObservedMatrix.from_data(A), 3, noise="contaminated", units=units)
    column = np.where(np.arange(9) < 3, 1e-6, 0.4) * model.variances
    noise = model.noise_model.start(model.data.shape)._replace(column=column)
    average = (3 * 1e-6 + 6 * 0.4) / 9
    expected = np.where(np.arange(9) < 3, 0.1 * average, 0.4) * model.variances
    np.testing.assert_allclose(gibbs._settling(model, noise).column, expected)
    monkeypatch.setattr(gibbs, "step", lambda _, state, *others: given.append(state) or step(model, state, *others))
    first = start(model, Stream(0))._replace(noise=noise)
    for sweep, is_settling in ((4, True), (7, True), (8, False)):
        next(sample(model, Stream(0), state=first._replace(sweep=sweep), n_sweeps=1, n_warm_up=4))
        assert np.array_equal(given[-1].noise.column, noise.column) != is_settling


def test_two_equal_columns_do_not_change_the_noise_of_others():
    """Its deviation is 0.7 to 0.9 of that of the data, and 0.4 to 0.5 if equal columns hold all components in place."""
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = np.column_stack([np.repeat(rng.standard_normal((150, 1)), 2, axis=1), rng.standard_normal((150, 10))])
        X[:, 2:][rng.random((150, 10)) < 0.15] = np.nan
        units, shifted = units_of(ObservedMatrix.from_data(X, negative=True), "column", "mean")
        model = Model(shifted, 12, ("ard", "normal"), "column", units)
        states = [*sample(model, Stream(seed), n_sweeps=400, n_warm_up=90)][300:]
        variance = np.mean([state.noise.column[2:] for state in states], axis=0)
        found.append(np.sqrt(variance / model.variances[2:]).mean())
    assert np.mean(found) > 0.62


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_chains_find_the_line_in_a_small_table(seed):
    """With large noise from the start, one or two of the four chains found nothing in 500 sweeps."""
    rows, rng = np.arange(28.0), np.random.default_rng(seed)
    X = np.column_stack([rows, 2.5 * rows]) + 0.5 * rng.standard_normal((28, 2))
    X[::4, 0] = np.nan
    units, shifted = units_of(ObservedMatrix.from_data(X, negative=True), "column", "mean")
    model = Model(shifted, 2, ("ard", "normal"), "contaminated", units)
    chains = [sample(model, Stream(seed, chain), n_sweeps=500, n_warm_up=90) for chain in range(4)]
    density = np.array([[state.log_likelihood for state in chain] for chain in chains])[:, 300:].mean(axis=1)
    assert (density > density.max() - 50.0).all()


def test_noise_that_is_not_changed_in_the_warm_up():
    """Columns that share a unit may have any noise, and known noise is as it was given; nor is it after the warm-up."""
    data = ObservedMatrix.from_data(some_data(missing=0.0))
    for model in (Model(data, 3, noise="column"), Model(data, 3, noise="known", entry_precision=np.ones(108))):
        assert gibbs._small(model, noise := model.noise_model.start((12, 9))) is noise
        assert gibbs._settling(model, noise) is noise


def test_sweeps_of_one_chain_use_different_streams():
    model = Model(ObservedMatrix.from_data(some_data()), 3, L1(1.0))
    state = start(model, Stream(0))
    after = [step(model, state._replace(sweep=sweep), Stream(0)).sigma2 for sweep in range(5)]
    assert len(set(after)) == 5


def test_start_from_given_factors():
    A = some_data(missing=0.0)
    model = Model(ObservedMatrix.from_data(A), 2)
    W0, Z0 = np.ones((12, 2), np.float32), np.full((2, 9), 2)
    state = start(model, Stream(0), init=(W0, Z0))
    np.testing.assert_array_equal(state.W, W0)
    np.testing.assert_array_equal(state.Z, Z0)
    assert state.squared_error == pytest.approx(((A - 4.0) ** 2).sum())
    assert state.sweep == 0
    W0[:] = 5.0
    assert (state.W == 1.0).all()
    Z0 = np.random.default_rng(0).exponential(size=(2, 9)) * 10.0 ** np.arange(-3, 6)  # in the units of the data
    data = ObservedMatrix.from_data(W0 @ Z0)
    units, _ = units_of(data, "column", None)
    state = start(Model(data, 2, noise="column", units=units), Stream(0), init=(W0, Z0))
    np.testing.assert_allclose(state.Z * units.scale, Z0)
    assert state.squared_error < 1e-20


def test_start_is_a_draw_from_the_priors():
    model = Model(ObservedMatrix.from_data(np.ones((4000, 2))), 2, (L1(2.0), L2Squared(3.0)))
    state = start(model, Stream(0))
    assert_follows(state.W.ravel(), stats.expon(scale=0.5).cdf)
    others = [start(Model(ObservedMatrix.from_data(np.ones((2, 2))), 2, L2Squared(4.0)), Stream(i)) for i in range(500)]
    assert_follows(np.ravel([state.Zt for state in others]), stats.halfnorm(scale=0.5).cdf)


# --- what it samples from


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_squared_error_of_a_state_is_that_of_its_factors(scale):
    W0, Z0 = np.random.default_rng(0).uniform(size=(2, 8, 2))
    A = scale**2 * W0 @ Z0.T  # rank two and no noise: the cheap form of the error has cancelled
    model = Model(ObservedMatrix.from_data(A), 2, L1(1 / scale), CommonNoise(1.0, 1e-12 * scale**4))
    for state in islice(sample(model, Stream(0), init=(scale * W0, scale * Z0.T)), 30):
        direct = ((A - state.W @ state.Z) ** 2).sum()
        assert state.squared_error == pytest.approx(direct, rel=1e-5)
    assert state.squared_error < 1e-8 * (A**2).sum()


@pytest.mark.parametrize(
    ("init", "message"),
    [
        ("zeros", "init must be 'random' or a pair"),
        (3, "init must be 'random' or a pair"),
        ((np.ones((3, 3)), np.ones((2, 4))), r"W0 of init must have shape \(3, 2\), got \(3, 3\)"),
        ((np.ones((3, 2)), np.ones((4, 2))), r"Z0 of init must have shape \(2, 4\), got \(4, 2\)"),
        ((-np.ones((3, 2)), np.ones((2, 4))), "W0 of init must be finite and nonnegative"),
        ((np.ones((3, 2)), np.full((2, 4), np.nan)), "Z0 of init must be finite and nonnegative"),
    ],
)
def test_wrong_starts(init, message):
    with pytest.raises(ValueError, match=message):
        start(Model(ObservedMatrix.from_data(np.ones((3, 4))), 2), Stream(0), init)


# --- unusual but valid data, under every prior


def with_(position, value, A=None):
    A = some_data(missing=0.1) if A is None else A
    A[position] = value
    return A


def unobserved(A):
    return with_((slice(None), 3), np.nan, with_(2, np.nan, A))


READ_ONLY = some_data()
READ_ONLY.flags.writeable = False
UNUSUAL = {
    "row and column unobserved": lambda: unobserved(some_data()),
    "row and column unobserved, few seen": lambda: unobserved(some_data(missing=0.7)),
    "row and column unobserved, sparse": lambda: sp.csr_array(unobserved(np.eye(12))),
    "one entry": lambda: with_((0, 0), 1.0, np.full((12, 9), np.nan)),
    "rows of zeros": lambda: with_((slice(2, 5)), 0.0),
    "all zeros": lambda: np.zeros((12, 9)),
    "constant": lambda: np.full((12, 9), 3.0),
    "constant and large": lambda: np.full((12, 9), 1e100),
    "1e-100": lambda: some_data() * 1e-100,
    "1e100": lambda: some_data() * 1e100,
    "1e-100 and 1e100": lambda: with_((0, 0), 1e100, some_data() * 1e-100),
    "1e100, sparse": lambda: sp.csr_array(with_((0, 1), np.nan, np.eye(12) * 1e100)),
    "one column": lambda: some_data(N=1),
    "one row": lambda: some_data(M=1),
    "booleans": lambda: some_data(missing=0.0) > 1,
    "read-only": lambda: READ_ONLY,
    "more components than columns": lambda: some_data(N=2),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:n_components=3 is larger")
@pytest.mark.parametrize(
    ("name", "kind"),
    [*((name, "row and column unobserved") for name in NAMES), *(("gl22inf", kind) for kind in list(UNUSUAL)[1:])],
)
def test_unusual_data_work(name, kind):
    data = ObservedMatrix.from_data(UNUSUAL[kind]())
    model = Model(data, 3, pairs(*data.shape, 3)[name])
    state = last_state(model, 15)
    for factor, prior in zip((state.W, state.Zt), model.priors, strict=True):
        assert np.isfinite(factor).all()
        assert prior.is_real or (factor >= 0).all()
    assert 0 < state.sigma2 < np.inf
    assert 0 <= state.squared_error < np.inf


@pytest.mark.parametrize("prior", [L1(0.1), LInf(0.1), L1Squared(0.1)], ids=str)
def test_unobserved_row_of_sparse_data_with_a_sharp_fit(prior):
    # Data of rank two and size 1e10: unless nothing is subtracted, sums over an unobserved row are rounding errors
    # times 1e16.
    W, Z = np.zeros((30, 2)), np.zeros((2, 20))
    W[:15, 0] = W[15:, 1] = Z[0, :5] = Z[1, 5:9] = 1e5
    A = sp.csr_array(unobserved(W @ Z))
    states = list(sample(Model(ObservedMatrix.from_data(A), 2, prior), Stream(0), init=(W, Z), n_sweeps=100))
    seen = np.array([[state.W[2], state.Zt[3]] for state in states])
    assert seen.max() < 1e3  # the prior's own scale is some 10


# --- the paper's numbers


# Mean of W in the last 20 sweeps, and the percentage of its entries below 0.1.
TABLE = {
    (10, "gee"): (8.1, 1.9), (10, "gl12"): (1.3, 10.3), (10, "gl22"): (2.4, 3.8), (10, "gl22inf"): (2.4, 4.5),
    (20, "gee"): (8.6, 1.5), (20, "gl12"): (0.8, 14.7), (20, "gl22"): (2.3, 4.1), (20, "gl22inf"): (2.2, 4.4),
}  # fmt: skip


@pytest.mark.parametrize(("K", "name"), [pytest.param(*at, marks=[pytest.mark.proof] * (at[0] > 10)) for at in TABLE])
def test_factors_of_gdsc_are_those_of_the_paper(K, name, gdsc):
    model = Model(ObservedMatrix.from_data(gdsc), K, name)
    last = np.array([state.W for state in islice(sample(model, Stream(1), moves=PLAIN), 480, 500)])
    mean, below = TABLE[K, name]
    assert last.mean() == pytest.approx(mean, rel=0.1)
    assert 100 * (last < 0.1).mean() == pytest.approx(below, abs=2.0)


# --- entries with precisions of their own


@pytest.mark.parametrize("noise", ["known", "common", "both", StudentT(by="row"), StudentT(None, "both")], ids=str)
@pytest.mark.parametrize("is_known", [False, True])
def test_log_likelihood_of_every_state(noise, is_known):
    """That of its own factors, variances and degrees of freedom: the factors of entries are integrated out."""
    A = some_data()
    seen, known = ~np.isnan(A), np.random.default_rng(1).uniform(0.2, 5.0, size=A.shape)
    data = ObservedMatrix.from_data(A)
    model = Model(data, 3, noise=noise, units=units_of(data, "column", None)[0],
                  entry_precision=known[seen] if is_known else None)  # fmt: skip
    dfs = set()
    for state in sample(model, Stream(0), n_sweeps=12, moves=PLAIN):
        variance = np.broadcast_to(state.noise.row, 12)[:, None] * np.broadcast_to(state.noise.column, 9)
        sd = np.sqrt(variance / known if is_known else variance)[seen]
        residuals = (A / model.units.scale - state.W @ state.Zt.T)[seen]
        law = stats.t(state.noise.df) if state.noise.df else stats.norm()
        expected = (law.logpdf(residuals / sd) - np.log(sd)).sum()
        assert state.log_likelihood == pytest.approx(expected, rel=1e-8)
        assert state.squared_error == pytest.approx((residuals**2).sum(), rel=1e-8)
        assert state.noise.entry.size == (seen.sum() if state.noise.df else 0)
        dfs.add(state.noise.df)
    assert (len(dfs) > 1) == (noise == StudentT(None, "both"))


@pytest.mark.parametrize(
    ("noise", "prior"),
    [("common", "gee"), ("column", "ard"), ("row", ("gl22inf", "normal")), ("column", "gl22inf"), ("row", "ard")],
)
def test_one_call_draws_what_two_half_sweeps_do(noise, prior, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(30, 12))
    X[rng.uniform(size=X.shape) < 0.3] = np.nan
    model = Model(ObservedMatrix.from_data(X), 3, prior, noise)
    together = list(sample(model, Stream(1), n_sweeps=4))
    monkeypatch.setattr(gibbs, "_runs_in_one_call", lambda *_: False)
    for one, two in zip(together, sample(model, Stream(1), n_sweeps=4), strict=True):
        np.testing.assert_array_equal(one.W, two.W)
        np.testing.assert_array_equal(one.Zt, two.Zt)
        np.testing.assert_array_equal(one.noise.column, two.noise.column)
        assert (one.squared_error, one.log_likelihood) == (two.squared_error, two.log_likelihood)
