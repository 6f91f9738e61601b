"""Predictions against einsum over all draws at once, in tiles of every size."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from tests.statistical.checks import assert_follows

from bnmf.model.noise import Law
from bnmf.model.student_t import StudentTLaw
from bnmf.posterior import predictions
from bnmf.posterior.predictions import (
    NoiseDraws,
    add_noise,
    entries,
    entry_mean,
    entry_quantiles,
    entry_std,
    log_likelihood,
    log_predictive_density,
    mean,
    quantiles,
    std,
    tiles,
)

S, M, N, K = 9, 7, 5, 3
ROWS, COLUMNS = np.array([6, 0, 3, 3, 6, 1, 2]), np.array([4, 0, 2, 2, 0, 3, 1])
PROBABILITIES = np.array([0.05, 0.5, 0.8])

rng = np.random.default_rng(0)
W, Z = rng.exponential(size=(S, M, K)), rng.exponential(size=(S, K, N))
VARIANCE = rng.uniform(0.5, 3.0, size=S)
NOISE = NoiseDraws(VARIANCE[:, None], np.ones((1, 1)))
VALUES = rng.exponential(3.0, size=len(ROWS))
PRODUCTS = np.einsum("smk,skn->smn", W, Z)
CHOSEN = PRODUCTS[:, ROWS, COLUMNS]


@pytest.fixture(params=[1, 150, 2**26])
def tile_bytes(request, monkeypatch):
    monkeypatch.setattr(predictions, "TILE_BYTES", request.param)
    return request.param


def test_tiles(tile_bytes):
    for length in [0, 1, 13]:
        for bytes_each in [0, 1, 40, 10**9]:
            found = list(tiles(length, bytes_each))
            assert [i for part in found for i in range(part.start, part.stop)] == list(range(length))
            sizes = [part.stop - part.start for part in found]
            assert all(size == 1 or size * bytes_each <= tile_bytes for size in sizes)
            if len(found) > 1:  # not smaller than necessary
                assert (sizes[0] + 1) * max(1, bytes_each) > tile_bytes
                assert len(set(sizes[:-1])) == 1


@pytest.mark.usefixtures("tile_bytes")
def test_quantiles_of_new_data_at_positions():
    found = entry_quantiles((W, Z, NOISE), ROWS, COLUMNS, PROBABILITIES, 0.0, -np.inf, np.random.default_rng(4))
    noise = np.random.default_rng(4)
    for part in tiles(len(ROWS), 16 * S):
        draws = CHOSEN[:, part]
        draws = draws + np.sqrt(VARIANCE)[:, None] * noise.standard_normal(draws.shape)
        expected = np.quantile(draws, PROBABILITIES, axis=0, method="weibull")
        np.testing.assert_allclose(found[:, part], expected, rtol=1e-12)


@pytest.mark.parametrize(("of_W", "of_Z"), [(2.0**900, 2.0**-700), (2.0**-700, 2.0**900), (2.0**-300, 2.0**-100)])
def test_quantiles_do_not_depend_on_units(of_W, of_Z):
    """Single precision is used only for numbers of size one: powers of two give the same bits."""
    noise = NoiseDraws(NOISE.column * (of_W * of_Z) ** 2, NOISE.row)
    plain = quantiles((W, Z, NOISE), PROBABILITIES, 0.0, 0.5, np.random.default_rng(4))
    found = quantiles((W * of_W, Z * of_Z, noise), PROBABILITIES, 0.0, 0.5 * of_W * of_Z, np.random.default_rng(4))
    np.testing.assert_array_equal(found, plain * of_W * of_Z)


def test_quantiles_of_noise_that_is_far_larger_than_the_signal():
    """Its size over that of the signal is no number of single precision."""
    noise = NoiseDraws(NOISE.column * 1e200, NOISE.row)
    found = quantiles((W, Z, noise), PROBABILITIES, 0.0, -np.inf, np.random.default_rng(4))
    expected = quantiles((0.0 * W, Z, NOISE), PROBABILITIES, 0.0, -np.inf, np.random.default_rng(4)) * 1e100
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_quantiles_of_a_signal_that_is_far_smaller_than_its_offset():
    found = quantiles((W, Z, NOISE), PROBABILITIES, 1e60, 0.0, np.random.default_rng(4))
    np.testing.assert_array_equal(found, np.full((3, M, N), 1e60))


def test_quantiles_without_noise_are_not_cut():
    found = quantiles((W, Z, None), PROBABILITIES, 0.0, 1e3, np.random.default_rng(0))
    assert found.max() < 1e3
    none = NoiseDraws(np.zeros((S, 1)), np.ones((1, 1)))
    cut = quantiles((W, Z, none), PROBABILITIES, 0.0, 1e3, np.random.default_rng(0))
    np.testing.assert_array_equal(cut, np.full((3, M, N), 1e3))


def test_quantiles_cover_a_new_draw_as_often_as_they_say():
    """Of 9 draws, the k-th smallest is the quantile of probability k / 10."""
    draws = np.array([3.0, 1.0, 9.0, 7.0, 5.0, 8.0, 2.0, 6.0, 4.0])[:, None, None]
    Z = np.tile([1.0, 10.0], (S, 1, 1))
    found = quantiles((draws, Z, None), np.array([0.1, 0.5, 0.9, 0.25]), 0.0, 0.0, np.random.default_rng(0))
    np.testing.assert_allclose(found[:, 0], [[1.0, 10.0], [5.0, 50.0], [9.0, 90.0], [2.5, 25.0]], rtol=1e-12)


@pytest.mark.usefixtures("tile_bytes")
def test_moments():
    np.testing.assert_allclose(entries(W, Z, ROWS, COLUMNS), CHOSEN, rtol=1e-12)
    np.testing.assert_allclose(entry_mean(W, Z, ROWS, COLUMNS), CHOSEN.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(entry_std((W, Z, None), ROWS, COLUMNS), CHOSEN.std(axis=0), rtol=1e-10)
    np.testing.assert_allclose(mean(W, Z), PRODUCTS.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(std((W, Z, None)), PRODUCTS.std(axis=0), rtol=1e-12)


def smoothing():
    """Return the bandwidths of Silverman's rule for the draws of the chosen entries."""
    lower, upper = np.percentile(CHOSEN, [25, 75], axis=0)
    return 0.9 * np.minimum(np.std(CHOSEN, axis=0), (upper - lower) / 1.34) / S**0.2


# --- variances by column and by row

KINDS = ["common", "column", "row", "both", "known", "known by column", "t", "t by both, known"]


def noise_of(kind):
    """Return draws of the noise, and the variance (squared scale of Student's t) of every entry (S, rows, columns).

    Those of Student's t have degrees of freedom of their own in each draw, all above 2.
    """
    rng = np.random.default_rng(5)
    column = rng.uniform(0.2, 3.0, size=(S, N if "column" in kind or "both" in kind else 1))
    row = rng.uniform(0.2, 3.0, size=(S, M)) if "row" in kind or "both" in kind else np.ones((1, 1))
    df = rng.uniform(2.5, 9.0, size=S) if kind.startswith("t") else None
    factor = rng.uniform(0.3, 2.0, size=(1 if kind == "known by column" else M, N)) if "known" in kind else None
    variance = np.empty((S, M, N))
    for s, i, j in np.ndindex(S, M, N):
        variance[s, i, j] = column[s, j % column.shape[1]] * row[s % len(row), i % row.shape[1]]
        if factor is not None:
            variance[s, i, j] *= factor[i % len(factor), j] ** 2
    return NoiseDraws(column, row, Law() if df is None else StudentTLaw(df), factor), variance


def df_of(noise):
    """Return the degrees of freedom of Student's t, None for normal noise."""
    return getattr(noise.law, "df", None)


def law_of(noise, draws=slice(None)):
    """Return the distribution of noise of scale 1, with the draws along its first axis, at paired positions."""
    df = df_of(noise)
    return stats.norm() if df is None else stats.t(df[draws, None])


def test_noise_of_some_draws():
    for kind in KINDS:
        noise, variance = noise_of(kind)
        draws = np.array([8, 0, 3, 3])
        chosen = noise.choose(draws)
        found = np.broadcast_to(chosen.at(ROWS, COLUMNS), (4, len(ROWS)))
        np.testing.assert_allclose(found, variance[draws][:, ROWS, COLUMNS], rtol=1e-14)
        squares = np.random.default_rng(0).exponential(size=(4, 3))
        np.testing.assert_allclose(
            chosen.law.log_density(squares), law_of(noise, draws).logpdf(np.sqrt(squares)), rtol=1e-12
        )


def test_variance_of_student_t_is_infinite_up_to_two_degrees_of_freedom():
    noise = NoiseDraws(np.ones((4, 1)), np.ones((1, 1)), StudentTLaw(np.array([0.5, 2.0, 2.0 + 1e-9, 3.0])))
    assert noise.law.variance[:2].tolist() == [[np.inf], [np.inf]]
    np.testing.assert_allclose(noise.law.variance[2:, 0], [2e9, 3.0], rtol=1e-6)
    assert np.isinf(std((np.ones((4, 1, 1)), np.ones((4, 1, 1)), noise))).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_noise_of_scale_one_follows_its_distribution(dtype):
    """Each draw has its own degrees of freedom, along the first axis whatever the others are."""
    df = np.array([2.5, 30.0])
    found = StudentTLaw(df).draw((2, 5, 1000), np.random.default_rng(0), dtype)
    assert found.dtype == dtype
    for draw in range(2):
        assert_follows(found[draw].ravel().astype(float), stats.t(df[draw]).cdf)


def test_new_data_follow_their_distribution():
    """At one entry, many times: the law of its noise around each draw of its mean."""
    for kind in KINDS:
        noise, variance = noise_of(kind)
        rows, columns = np.full(2000, 3), np.full(2000, 2)
        found = add_noise(np.zeros((S, 2000)), noise, rows, columns, -np.inf, np.random.default_rng(6))
        for draw in range(S):
            law = stats.norm() if df_of(noise) is None else stats.t(df_of(noise)[draw])
            assert_follows(found[draw] / np.sqrt(variance[draw, 3, 2]), law.cdf)


@pytest.mark.usefixtures("tile_bytes")
def test_std_with_noise_of_every_kind():
    for kind in KINDS:
        noise, variance = noise_of(kind)
        df = df_of(noise)
        excess = 1.0 if df is None else (df / (df - 2.0))[:, None, None]
        expected = np.sqrt(PRODUCTS.var(axis=0) + (excess * variance).mean(axis=0))
        np.testing.assert_allclose(std((W, Z, noise)), expected, rtol=1e-12)
        found = entry_std((W, Z, noise), ROWS, COLUMNS)
        np.testing.assert_allclose(found, expected[ROWS, COLUMNS], rtol=1e-12)


def test_quantiles_with_noise_of_every_kind(tile_bytes):
    """The lower bound applies to what the offset has been added to."""
    for kind in KINDS:
        for offset in [0.0, np.arange(N) - 2.0]:
            noise, variance = noise_of(kind)
            found = quantiles((W, Z, noise), PROBABILITIES, offset, 0.5, np.random.default_rng(4))
            without = quantiles((W, Z, None), PROBABILITIES, offset, 0.5, np.random.default_rng(4))
            expected = np.quantile(PRODUCTS + offset, PROBABILITIES, axis=0, method="weibull")
            np.testing.assert_allclose(without, expected, rtol=1e-5, atol=1e-6)
            assert found.min() == 0.5  # to the last digit
            rows_each = max(1, min(16, tile_bytes // (4 * S * N)))
            starts = range(0, M, rows_each)
            for start, normals in zip(starts, np.random.default_rng(4).spawn(len(starts)), strict=True):
                part = slice(start, start + rows_each)
                draws = PRODUCTS[:, part] + offset
                if df_of(noise) is None:
                    new = normals.standard_normal((S, 1, N), dtype=np.float32)
                else:
                    new = normals.standard_t(df_of(noise)[:, None, None], size=(S, 1, N))
                draws = np.maximum(draws + np.sqrt(variance[:, part]) * new, 0.5)
                expected = np.quantile(draws, PROBABILITIES, axis=0, method="weibull")
                np.testing.assert_allclose(found[:, part], expected, rtol=2e-5)


@pytest.mark.usefixtures("tile_bytes")
def test_log_likelihood_with_noise_of_every_kind():
    for kind in KINDS:
        noise, variance = noise_of(kind)
        sd = np.sqrt(variance[:, ROWS, COLUMNS])
        expected = law_of(noise).logpdf((VALUES - CHOSEN) / sd) - np.log(sd)
        np.testing.assert_allclose(log_likelihood((W, Z, noise), ROWS, COLUMNS, VALUES), expected, rtol=1e-10)
        sd = np.sqrt(variance[:, ROWS, COLUMNS] + smoothing() ** 2)
        expected = law_of(noise).logpdf((VALUES - CHOSEN) / sd) - np.log(sd)
        found = log_predictive_density((W, Z, noise), ROWS, COLUMNS, VALUES)
        np.testing.assert_allclose(found, np.log(np.exp(expected).mean(axis=0)), rtol=1e-10)


@pytest.mark.usefixtures("tile_bytes")
def test_no_entries():
    none = np.zeros(0, np.intp)
    assert entries(W, Z, none, none).shape == (S, 0)
    assert entry_mean(W, Z, none, none).shape == (0,)
    assert entry_std((W, Z, None), none, none).shape == (0,)
    assert log_predictive_density((W, Z, NOISE), none, none, np.zeros(0)).shape == (0,)


def test_log_predictive_density_far_away():
    """Densities below the smallest floating-point number have a logarithm."""
    found = log_predictive_density((W, Z, NOISE), ROWS, COLUMNS, np.full(len(ROWS), 1e3))
    terms = stats.norm.logpdf(1e3, CHOSEN, np.sqrt(VARIANCE[:, None] + smoothing() ** 2))
    largest = terms.max(axis=0)
    assert (largest < -800).all()
    np.testing.assert_allclose(found, largest + np.log(np.exp(terms - largest).mean(axis=0)), rtol=1e-12)


def test_smoothing_mends_the_density_between_few_draws_with_little_noise():
    """Draws of a normal mean, and noise of a thousandth of its deviation: without smoothing there are only peaks."""
    rng = np.random.default_rng(0)
    draws, values = rng.normal(size=(400, 1, 1)), np.linspace(-2.0, 2.0, 41)
    noise = NoiseDraws(np.full((400, 1), 1e-6), np.ones((1, 1)))
    at = np.zeros(41, np.intp)
    found = log_predictive_density((draws, np.ones((400, 1, 1)), noise), at, at, values)
    # The error of a kernel estimate from 400 draws; the values share their draws.
    np.testing.assert_allclose(found, stats.norm.logpdf(values), atol=0.8)
    raw = log_likelihood((draws, np.ones((400, 1, 1)), noise), at, at, values)
    assert logsumexp(raw, axis=0).mean() - np.log(400) < -5


def test_smoothing_changes_little_where_the_noise_is_not_small():
    rng = np.random.default_rng(0)
    draws, values = rng.normal(size=(800, 1, 1)), np.linspace(-3.0, 3.0, 41)
    noise, at = NoiseDraws(np.ones((800, 1)), np.ones((1, 1))), np.zeros(41, np.intp)
    smooth = log_predictive_density((draws, np.ones((800, 1, 1)), noise), at, at, values)
    raw = log_likelihood((draws, np.ones((800, 1, 1)), noise), at, at, values)
    np.testing.assert_allclose(smooth, np.log(np.exp(raw).mean(axis=0)), atol=0.1)


def test_draws_of_single_precision():
    half = W.astype(np.float32), Z.astype(np.float32)
    for found, expected in (
        (mean(*half), PRODUCTS.mean(axis=0)),
        (std((*half, None)), PRODUCTS.std(axis=0)),
        (entries(*half, ROWS, COLUMNS), CHOSEN),
        (entry_std((*half, None), ROWS, COLUMNS), CHOSEN.std(axis=0)),
    ):
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=1e-5)
