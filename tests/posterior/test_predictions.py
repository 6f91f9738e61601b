"""Predictions of a posterior against einsum over all draws at once, in tiles of every size."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from tests.statistical.checks import assert_follows

from bnmf import Posterior
from bnmf.model.student_t import StudentTLaw
from bnmf.posterior import predictions
from bnmf.posterior.predictions import NoiseDraws, quantiles, std, tiles

S, M, N, K = 9, 7, 5, 3
ROWS, COLUMNS = np.array([6, 0, 3, 3, 6, 1, 2]), np.array([4, 0, 2, 2, 0, 3, 1])
PROBABILITIES = np.array([0.05, 0.5, 0.8])

rng = np.random.default_rng(0)
W, Z = rng.exponential(size=(S, M, K)), rng.exponential(size=(S, K, N))
VARIANCE = rng.uniform(0.5, 3.0, size=S)
NOISE = NoiseDraws(VARIANCE[:, None], np.ones((1, 1)))
VALUES = rng.exponential(3.0, size=len(ROWS))
PRODUCTS = np.einsum("smk,skn->smn", W, Z)


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


# --- every kind of noise

KINDS = ["common", "column", "row", "both", "known", "known by column", "t", "t by both, known"]


def posterior_with(kind, **options):
    """Return a posterior of 3 chains, the variance of every entry (S, rows, columns), and the law of its scale.

    Degrees of freedom of Student's t differ between draws, and are all above 2.
    """
    rng = np.random.default_rng(5)
    column = rng.uniform(0.2, 3.0, size=(S, N) if "column" in kind or "both" in kind else S)
    row = rng.uniform(0.2, 3.0, size=(S, M)) if "row" in kind or "both" in kind else None
    df = rng.uniform(2.5, 9.0, size=S) if kind.startswith("t") else None
    factor = rng.uniform(0.3, 2.0, size=(1 if kind == "known by column" else M, N)) if "known" in kind else None
    of_draws = {"W": W, "Z": Z, "noise_variance": column, "row_noise": row, "df": df}
    of_draws = {name: found.reshape(3, 3, *found.shape[1:]) for name, found in of_draws.items() if found is not None}
    posterior = Posterior(**of_draws, train_mse=np.ones((3, 3)), n_observed=M * N, noise_factor=factor, **options)
    variance = np.ones((S, M, N)) * column.reshape(S, 1, -1)
    variance *= (1.0 if row is None else row[:, :, None]) * (1.0 if factor is None else factor**2)
    return posterior, variance, stats.norm() if df is None else stats.t(df[:, None])


@pytest.mark.usefixtures("tile_bytes")
@pytest.mark.parametrize("offset", [None, np.arange(N) - 2.0], ids=["", "offset"])
@pytest.mark.parametrize("kind", KINDS)
def test_moments_and_densities(kind, offset):
    posterior, variance, law = posterior_with(kind, offset=offset, lower_bound=-np.inf)
    added = np.zeros(N) if offset is None else offset
    at, means = (ROWS, COLUMNS), PRODUCTS + added
    chosen, chosen_variance, values = means[:, *at], variance[:, *at], VALUES + added[COLUMNS]
    np.testing.assert_allclose(posterior.mean(), means.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(posterior.mean(*at), chosen.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(posterior.mean_of_rows(slice(2, 5)), means.mean(axis=0)[2:5], rtol=1e-12)
    np.testing.assert_allclose(posterior.draws_of(*at, noise=False).reshape(S, -1), chosen, rtol=1e-12)
    of_noise = (law.var() * np.ones((S, 1)))[:, :, None] * variance
    for noise, expected in ((False, means.var(axis=0)), (True, means.var(axis=0) + of_noise.mean(axis=0))):
        np.testing.assert_allclose(posterior.std(noise=noise), np.sqrt(expected), rtol=1e-10)
        np.testing.assert_allclose(posterior.std(*at, noise=noise), np.sqrt(expected)[at], rtol=1e-10)
    expected = law.logpdf((values - chosen) / np.sqrt(chosen_variance)) - 0.5 * np.log(chosen_variance)
    np.testing.assert_allclose(posterior.log_likelihood(*at, values).reshape(S, -1), expected, rtol=1e-10)
    wider = chosen_variance + smoothing(chosen) ** 2
    expected = np.exp(law.logpdf((values - chosen) / np.sqrt(wider)) - 0.5 * np.log(wider)).mean(axis=0)
    np.testing.assert_allclose(posterior.log_predictive_density(*at, values), np.log(expected), rtol=1e-10)


@pytest.mark.parametrize("offset", [None, np.arange(N) - 2.0], ids=["", "offset"])
@pytest.mark.parametrize("kind", KINDS)
def test_new_data(tile_bytes, kind, offset):
    """The lower bound applies to what the offset has been added to; without noise nothing is cut."""
    posterior, variance, _ = posterior_with(kind, offset=offset, lower_bound=0.5)
    means, at = PRODUCTS + (0.0 if offset is None else offset), (ROWS, COLUMNS)

    def noise_of(rng, shape, dtype):
        if posterior.df is None:
            return rng.standard_normal(shape, dtype=dtype)
        return rng.standard_t(posterior.df.reshape(-1, *[1] * (len(shape) - 1)), size=shape)

    def quantiles_of(draws):
        return np.quantile(draws, PROBABILITIES, axis=0, method="weibull")

    rng, drawn = np.random.default_rng(4), np.empty((S, len(ROWS)))
    for part in tiles(len(ROWS), 16 * S):
        sd = np.sqrt(variance[:, ROWS[part], COLUMNS[part]])
        drawn[:, part] = means[:, ROWS[part], COLUMNS[part]] + sd * noise_of(rng, sd.shape, float)
    found = posterior.quantile(PROBABILITIES, *at, random_state=4)
    np.testing.assert_allclose(found, quantiles_of(np.maximum(drawn, 0.5)), rtol=1e-12)
    if tile_bytes > 150:  # one tile, as draws are
        found = posterior.draws_of(*at, random_state=4).reshape(S, -1)
        np.testing.assert_allclose(found, np.maximum(drawn, 0.5), rtol=1e-12)
    found = posterior.quantile(PROBABILITIES, random_state=4)
    assert found.min() == 0.5  # to the last digit
    without = posterior.quantile(PROBABILITIES, noise=False)
    np.testing.assert_allclose(without, quantiles_of(means), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(posterior.quantile(0.8, *at, noise=False), without[2][at], rtol=1e-5, atol=1e-6)
    rows_each = max(1, min(16, tile_bytes // (4 * S * N)))
    starts = range(0, M, rows_each)
    for start, rng in zip(starts, np.random.default_rng(4).spawn(len(starts)), strict=True):
        part = slice(start, start + rows_each)
        drawn = means[:, part] + np.sqrt(variance[:, part]) * noise_of(rng, (S, 1, N), np.float32)
        np.testing.assert_allclose(found[:, part], quantiles_of(np.maximum(drawn, 0.5)), rtol=2e-5)


def test_new_data_of_some_of_the_draws():
    """Those of multiple imputations: each has its own mean, variance and degrees of freedom."""
    posterior, _, _ = posterior_with("t by both, known", lower_bound=0.5)
    entries, chosen = posterior.entries(ROWS, COLUMNS, posterior.noise), np.array([8, 0, 3, 3])
    found = entries.choose(chosen).draw(np.random.default_rng(6))
    noise = np.random.default_rng(6).standard_t(posterior.df.reshape(S, 1)[chosen], size=found.shape)
    expected = np.maximum((entries.means[chosen] + entries.deviations[chosen] * noise), 0.5)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_noise_of_scale_one_follows_its_distribution(dtype):
    """Each draw has its own degrees of freedom, along the first axis whatever the others are."""
    df = np.array([2.5, 30.0])
    found = StudentTLaw(df).draw((2, 5, 1000), np.random.default_rng(0), dtype)
    assert found.dtype == dtype
    for draw in range(2):
        assert_follows(found[draw].ravel().astype(float), stats.t(df[draw]).cdf)


def test_variance_of_student_t_is_infinite_up_to_two_degrees_of_freedom():
    noise = NoiseDraws(np.ones((4, 1)), np.ones((1, 1)), StudentTLaw(np.array([0.5, 2.0, 2.0 + 1e-9, 3.0])))
    assert noise.law.variance[:2].tolist() == [[np.inf], [np.inf]]
    np.testing.assert_allclose(noise.law.variance[2:, 0], [2e9, 3.0], rtol=1e-6)
    assert np.isinf(std(np.ones((4, 1, 1)), np.ones((4, 1, 1)), noise)).all()


def test_no_entries_and_draws_of_single_precision():
    posterior, none = posterior_with("common")[0], np.zeros(0, np.intp)
    assert posterior.draws_of(none, none).shape == (3, 3, 0)
    for found in (posterior.mean(none, none), posterior.std(none, none), posterior.quantile(0.5, none, none)):
        assert found.shape == (0,)
    assert posterior.log_predictive_density(none, none, []).shape == (0,)
    half = replace(posterior, W=posterior.W.astype(np.float32), Z=posterior.Z.astype(np.float32))
    for name in ("mean", "std"):
        for at in ((), (ROWS, COLUMNS)):
            found, expected = (getattr(each, name)(*at) for each in (half, posterior))
            assert found.dtype == np.float64
            np.testing.assert_allclose(found, expected, rtol=1e-5)


# --- quantiles in single precision


@pytest.mark.parametrize(("of_W", "of_Z"), [(2.0**900, 2.0**-700), (2.0**-700, 2.0**900), (2.0**-300, 2.0**-100)])
def test_quantiles_do_not_depend_on_units(of_W, of_Z):
    """Single precision is used only for numbers of size one: powers of two give the same bits."""
    noise = NoiseDraws(NOISE.column * (of_W * of_Z) ** 2, NOISE.row)
    plain = quantiles(W, Z, NOISE, PROBABILITIES, 0.0, 0.5, np.random.default_rng(4))
    found = quantiles(W * of_W, Z * of_Z, noise, PROBABILITIES, 0.0, 0.5 * of_W * of_Z, np.random.default_rng(4))
    np.testing.assert_array_equal(found, plain * of_W * of_Z)


def test_quantiles_of_noise_that_is_far_larger_than_the_signal():
    """Its size over that of the signal is no number of single precision; nor is that of the offset below."""
    noise = NoiseDraws(NOISE.column * 1e200, NOISE.row)
    found = quantiles(W, Z, noise, PROBABILITIES, 0.0, -np.inf, np.random.default_rng(4))
    expected = quantiles(0.0 * W, Z, NOISE, PROBABILITIES, 0.0, -np.inf, np.random.default_rng(4)) * 1e100
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    found = quantiles(W, Z, NOISE, PROBABILITIES, 1e60, 0.0, np.random.default_rng(4))
    np.testing.assert_array_equal(found, np.full((3, M, N), 1e60))


def test_quantiles_cover_a_new_draw_as_often_as_they_say():
    """Of 9 draws, the k-th smallest is the quantile of probability k / 10."""
    draws = np.array([3.0, 1.0, 9.0, 7.0, 5.0, 8.0, 2.0, 6.0, 4.0])[:, None, None]
    Z = np.tile([1.0, 10.0], (S, 1, 1))
    found = quantiles(draws, Z, None, np.array([0.1, 0.5, 0.9, 0.25]), 0.0, 0.0, np.random.default_rng(0))
    np.testing.assert_allclose(found[:, 0], [[1.0, 10.0], [5.0, 50.0], [9.0, 90.0], [2.5, 25.0]], rtol=1e-12)


# --- smoothed densities


def smoothing(draws):
    """Return the bandwidths of Silverman's rule for draws (S, n)."""
    lower, upper = np.percentile(draws, [25, 75], axis=0)
    return 0.9 * np.minimum(np.std(draws, axis=0), (upper - lower) / 1.34) / len(draws) ** 0.2


def test_log_predictive_density_far_away():
    """Densities below the smallest floating-point number have a logarithm."""
    found = posterior_with("common")[0].log_predictive_density(ROWS, COLUMNS, np.full(len(ROWS), 1e3))
    means = PRODUCTS[:, ROWS, COLUMNS]
    variance = posterior_with("common")[1][:, ROWS, COLUMNS]
    terms = stats.norm.logpdf(1e3, means, np.sqrt(variance + smoothing(means) ** 2))
    assert (terms.max(axis=0) < -800).all()
    np.testing.assert_allclose(found, logsumexp(terms, axis=0) - np.log(S), rtol=1e-12)


def test_smoothing_mends_the_density_between_few_draws_with_little_noise():
    """Draws of a normal mean. With noise of a thousandth of its deviation there are only peaks without smoothing.

    It changes little where the noise is not small.
    """
    for variance, n_draws in ((1e-6, 400), (1.0, 800)):
        draws, values = np.random.default_rng(0).normal(size=(n_draws, 1, 1)), np.linspace(-2.0, 2.0, 41)
        posterior = Posterior(
            draws[None], np.ones((1, n_draws, 1, 1)), np.full((1, n_draws), variance), np.ones((1, 1)), n_observed=1
        )
        at = np.zeros(41, np.intp)
        found, terms = (of(at, at, values) for of in (posterior.log_predictive_density, posterior.log_likelihood))
        raw = logsumexp(terms[0], axis=0) - np.log(n_draws)
        if variance == 1.0:
            np.testing.assert_allclose(found, raw, atol=0.1)
        else:
            # The error of a kernel estimate from 400 draws; the values share their draws.
            np.testing.assert_allclose(found, stats.norm.logpdf(values), atol=0.8)
            assert raw.mean() < -5
