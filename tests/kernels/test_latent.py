"""Latent values of limited entries: their density, in every kind of storage, and the places where they are written."""

import numpy as np
import pytest
import scipy.sparse as sp

from bnmf.data import ObservedMatrix
from bnmf.data.latent import Filled
from bnmf.kernels.compiled import Given
from bnmf.model import Model
from bnmf.model.noise import NoiseState
from bnmf.model.units import Units
from bnmf.noise import StudentT
from bnmf.sampler.gibbs import with_latent_values
from bnmf.sampler.streams import Stream
from bnmf.sampler.threads import Workers
from tests.kernels.draws import WIDTH, lane_draws, streams_of
from tests.kernels.test_truncated_normal import HALF_LINES, INTERVALS, interval_cdf
from tests.statistical.checks import assert_follows, grid_cdf
from tests.statistical.joint import log_joint

INF = np.inf


def test_draws_within_intervals_side_by_side():
    cases = [case for case in INTERVALS + [(b, p, INF) for b, p in HALF_LINES] if case[1] > 0.0]
    each = 5_000
    n = len(cases) * each // WIDTH * WIDTH
    b, p, width = (np.tile(x, each)[:n] for x in np.array(cases).T)  # neighbours differ
    out = lane_draws("within", streams_of((9, 27), n), b, p, width)
    assert (out >= 0.0).all()
    assert (out <= width).all()
    for place, case in enumerate(cases):
        assert_follows(out[place :: len(cases)], interval_cdf(*case))


def storage(kind):
    """Return exact data and limits: dense, listed because few are observed, or sparse with zeros."""
    rng = np.random.default_rng(3)
    A = rng.exponential(size=(9, 6))
    lower, upper = np.full(A.shape, np.nan), np.full(A.shape, np.nan)
    if kind == "listed":
        A[rng.random(A.shape) < 0.7] = np.nan
    elif kind == "dense":
        A[rng.random(A.shape) < 0.2] = np.nan
        A[4, 1:] = np.nan  # a row that lists what was observed
    for place, (low, high) in {
        (0, 0): (0.7, INF), (1, 3): (-INF, 0.2), (4, 0): (1.0, 1.3), (8, 5): (30.0, INF), (2, 2): (-INF, -4.0),
    }.items():  # fmt: skip
        lower[place], upper[place] = low, high
    if kind != "sparse":
        return A, lower, upper
    A[rng.random(A.shape) < 0.8] = 0.0
    stored = (A > 0.0) | ~np.isnan(lower)
    rows, columns = np.nonzero(stored)
    matrix = sp.csr_array((A[stored], (rows, columns)), shape=A.shape)
    at = np.nonzero(~np.isnan(lower))
    return matrix, *(sp.csr_array((side[at], at), shape=A.shape) for side in (lower, upper))


def model_of(kind, noise="column", weights=False):
    """Return a model of limited data in units of its columns, factors and noise."""
    A, lower, upper = storage(kind)
    data = ObservedMatrix.from_data(A, lower=lower, upper=upper, negative=True)
    rng = np.random.default_rng(1)
    known = rng.exponential(size=data.n_observed) if weights else None
    units = Units(np.array([2.5, 3.0, 0.2, 5.0, 0.5, 11.0]))
    model = Model(data, 2, "gee", noise, units, known)
    W, Zt = rng.exponential(size=(9, 2)), rng.exponential(size=(6, 2))
    state = NoiseState(rng.exponential(size=9), rng.exponential(size=6))
    if isinstance(noise, StudentT):
        state = state._replace(df=3.0, entry=rng.exponential(size=data.n_observed))
    return model, W, Zt, state


CASES = {
    "dense": ("dense", "both", False),
    "listed": ("listed", "both", False),
    "sparse": ("sparse", "both", False),
    "known precisions": ("dense", "both", True),
    "Student's t": ("listed", StudentT(3.0, "both"), True),
}


@pytest.mark.parametrize("case", CASES)
def test_one_entry_against_the_joint_density(case):
    model, W, Zt, noise = model_of(*CASES[case])
    limits, stream, n = model.data.limits, Stream(7), 1500
    drawn = np.empty((n, len(limits.rows)))
    with Workers() as workers:
        for i in range(n):
            filled, _ = with_latent_values(model, W, Zt, noise, stream, i, workers)
            dense = ObservedMatrix(
                model.data.shape, model.data.n_observed, filled.rows.view, filled.columns.view
            ).dense_rows(np.arange(9))
            drawn[i] = dense[limits.rows, limits.columns]
    for place, (row, column) in enumerate(zip(limits.rows, limits.columns, strict=True)):
        low, high = limits.lower[place], limits.upper[place]
        assert (drawn[:, place] >= low).all()
        assert (drawn[:, place] <= high).all()
        points = np.linspace(drawn[:, place].min(), drawn[:, place].max(), 7)
        logs = [log_joint(with_value(model, row, column, x), W, Zt, noise) for x in points[[0, 3, 6]]]
        # The log density is a parabola, which three points tell.
        parabola = np.polyfit(points[[0, 3, 6]] - points[3], np.array(logs) - logs[1], 2)
        sd = 1.0 / np.sqrt(-2.0 * parabola[0])
        assert np.isfinite(sd)
        mean = points[3] - 0.5 * parabola[1] / parabola[0]
        start, stop = max(low, min(mean, high) - 40 * sd), min(high, max(mean, low) + 40 * sd)
        grid = np.linspace(start, stop, 200_001)
        assert_follows(drawn[:, place], grid_cdf(lambda x, p=parabola, c=points[3]: np.polyval(p, x - c), grid))


def with_value(model, row, column, x):
    """Return the model of data in which a limited entry is exact."""
    dense = model.data.dense_rows(np.arange(9))
    dense[row, column] = x
    data = ObservedMatrix.from_data(dense, negative=True)
    return Model(data, 2, "gee", model.noise, model.units, model.entry_precision)


@pytest.mark.parametrize("kind", ["dense", "listed", "sparse"])
def test_all_places_hold_the_same_values(kind):
    model, W, Zt, noise = model_of(kind)
    before = model.data.dense_rows(np.arange(9))
    with Workers() as workers:
        for sweep in (1, 2):  # the second one takes the place of the first
            filled, _ = with_latent_values(model, W, Zt, noise, Stream(0), sweep, workers)
            filled.columns.kernel_rows(2)  # with the sums of squares, as a half-sweep reads them
    args = model.data.shape, model.data.n_observed
    rows = ObservedMatrix(*args, filled.rows.view, filled.columns.view).dense_rows(np.arange(9))
    columns = ObservedMatrix(args[0][::-1], args[1], filled.columns.view, filled.rows.view).dense_rows(np.arange(6))
    np.testing.assert_array_equal(rows, columns.T)
    is_limited = np.zeros(before.shape, bool)
    is_limited[model.data.limits.rows, model.data.limits.columns] = True
    np.testing.assert_array_equal(rows[~is_limited], before[~is_limited])
    assert (rows[is_limited] != before[is_limited]).all()
    np.testing.assert_array_equal(model.data.dense_rows(np.arange(9)), before)  # which other chains read
    assert model.noise_model.updated_after == ("Z",)  # whose half-sweep needs sums over the new values
    expected = np.nansum((rows / model.units.scale) ** 2, axis=0)
    np.testing.assert_allclose(filled.columns.squares, 0.0 if kind == "listed" else expected, rtol=1e-12)
    with Workers() as workers:
        again = filled.rows.squared_errors(W, Zt, workers)
    expected = np.nansum((rows / model.units.scale - W @ Zt.T) ** 2, axis=1)
    np.testing.assert_allclose(again, expected, rtol=1e-10)


@pytest.mark.parametrize("kind", ["dense", "listed", "sparse"])
def test_draws_do_not_depend_on_how_rows_are_divided(kind):
    model, W, Zt, noise = model_of(kind)
    filled = [Filled(model.data.limits, model.data.rows, model.data.columns) for _ in range(2)]
    scaled, ids = model.rows, model.data.rows.ids
    given = Given(
        W=W, Z=Zt, entry_scale=scaled.entry_scale, row_scale=scaled.row_scale, row_variance=noise.row,
        column_variance=noise.column, ids=ids, key=(3, 4),
    )  # fmt: skip
    filled[0]._kernels[0].draw(given, 0, 9)
    for start, stop in ((5, 9), (0, 2), (2, 5)):
        filled[1]._kernels[0].draw(given, start, stop)
    first, second = (x.rows for x in filled)
    np.testing.assert_array_equal(first.values, second.values)
    np.testing.assert_array_equal(first.sums_of_squares(), second.sums_of_squares())
