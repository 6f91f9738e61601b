"""Units of columns: root mean squares, offsets, and the same bits for powers of two."""

import numpy as np
import pytest
from tests.storages import storages

from bnmf.data import ObservedMatrix
from bnmf.model.units import units_of


@pytest.mark.parametrize("storage", ["dense", "listed", "sparse"])
def test_scales_are_root_mean_squares(storage):
    data, X, _ = storages()[storage]
    units, same = units_of(data, "column", None)
    assert same is data
    sizes = np.sqrt(np.nanmean(X**2, axis=0))
    np.testing.assert_allclose(units.scale[sizes > 0.0], sizes[sizes > 0.0], rtol=1e-12)
    assert units.by_column
    units, _ = units_of(data, "matrix", None)
    np.testing.assert_allclose(units.scale, [np.sqrt(np.nanmean(X**2))], rtol=1e-12)
    np.testing.assert_array_equal(units_of(data, None, None)[0].scale, [1.0])


@pytest.mark.parametrize("storage", ["dense", "listed"])
@pytest.mark.parametrize(
    ("offset", "robust", "centre"),
    [("min", False, np.nanmin), ("mean", False, np.nanmean), ("mean", True, np.nanmedian)],
)
def test_offsets_are_minima_means_or_medians(storage, offset, robust, centre):
    data, X, _ = storages()[storage]
    units, shifted = units_of(data, "column", offset, robust=robust)
    np.testing.assert_allclose(units.offset, centre(X, axis=0), rtol=1e-12)
    for rows, block in shifted.blocks():
        np.testing.assert_array_equal(block, (X - units.offset)[rows])
    if not robust:
        expected = np.sqrt(np.nanmean((X - units.offset) ** 2, axis=0))
        np.testing.assert_allclose(units.scale, expected, rtol=1e-12)


def test_equal_entries_have_no_size_after_their_mean_was_subtracted():
    X = np.column_stack([np.full(7, 0.1), np.arange(7.0), np.full(7, np.nan)])
    units, _ = units_of(ObservedMatrix.from_data(X), "column", "mean")
    np.testing.assert_allclose(units.scale, [0.1, 2.0, 2.0], rtol=1e-12)
    np.testing.assert_allclose(units.offset, [0.1, 3.0, 0.0])


def test_columns_without_a_size_get_that_of_a_typical_one():
    X = np.array([[3.0, 0.0, np.nan], [4.0, 0.0, np.nan]])
    units, _ = units_of(ObservedMatrix.from_data(X), "column", None)
    np.testing.assert_allclose(units.scale, [np.sqrt(12.5)] * 3)
    np.testing.assert_array_equal(units_of(ObservedMatrix.from_data(np.zeros((2, 2))), "column", None)[0].scale, [1, 1])
    offset = units_of(ObservedMatrix.from_data(X), "column", "min")[0].offset
    np.testing.assert_array_equal(offset, [3.0, 0.0, 0.0])
    equal = ObservedMatrix.from_data(np.full((2, 1), 1e-300))  # too small to be a unit
    np.testing.assert_array_equal(units_of(equal, "column", "min")[0].scale, [1.0])


def test_columns_of_equal_entries_have_no_unit_of_larger_ones():
    X = np.column_stack(
        [[0.0, 200.0, 100.0], [1.0, 1.0, 1.0], [2020.0] * 3, [0.0] * 3, [1.0, 3.0, 2.0], [4.0, 8.0, 6.0]]
    )
    sizes = X.std(axis=0)[[0, 4, 5]]
    scale = units_of(ObservedMatrix.from_data(X), "column", "mean")[0].scale
    np.testing.assert_allclose(scale, [sizes[0], 1.0, sizes[2], sizes[2], sizes[1], sizes[2]])


def test_implicit_zeros_have_no_offset():
    for offset in ("min", "mean"):
        with pytest.raises(ValueError, match=f"offset='{offset}' needs dense data"):
            units_of(storages()["sparse"][0], "column", offset)


@pytest.mark.parametrize("scale", ["column", "matrix", None])
def test_columns_that_cannot_be_squared(scale):
    X = np.ones((4, 3))
    X[:, 1] = 1e-150
    with pytest.raises(ValueError, match=r"sizes above 1e-144, got 1e-150 in column 1: .* multiply X by a constant"):
        units_of(ObservedMatrix.from_data(X), scale, None)
    X[0, 1] = 1e-140  # the others of its column are as good as zero
    X[:, 2] = 0.0
    units_of(ObservedMatrix.from_data(X), scale, None)


def test_units_of_limited_columns_are_those_of_their_values():
    rng = np.random.default_rng(0)
    values = 3.0 + 2.0 * rng.normal(size=(2000, 5))
    caps = np.array([np.inf, 5.0, 3.0, 0.5, -20.0])  # none, some, half, most, all
    recorded = np.minimum(values, caps)
    limits = {"lower": recorded, "upper": np.where(recorded == caps, np.inf, recorded)}
    data = ObservedMatrix.from_data(recorded, **limits, negative=True)
    units, _ = units_of(data, "column", "mean")
    np.testing.assert_allclose(units.offset[:4], 3.0, atol=1.0)
    np.testing.assert_allclose(units.scale[:4], 2.0, rtol=0.3)
    assert 2.0 < units.scale[4] < 40.0  # nothing tells, but not zero: all are at the cap
    plain, _ = units_of(ObservedMatrix.from_data(recorded[:, :1], negative=True), "column", "mean")
    np.testing.assert_array_equal(units.scale[0], plain.scale[0])
    times_two, _ = units_of(
        ObservedMatrix.from_data(2.0 * recorded, **{n: 2.0 * x for n, x in limits.items()}, negative=True),
        "column",
        "mean",
    )
    np.testing.assert_array_equal(times_two.scale, 2.0 * units.scale)


def test_units_of_intervals_beside_columns_that_are_far_from_zero():
    """Cut points are then many of the first standard deviations away, which is no overflow."""
    rng = np.random.default_rng(0)
    latent = rng.normal(size=300)
    cuts = np.array([-np.inf, -2.0, 0.0, 1.8, np.inf])
    codes = np.searchsorted(cuts[1:-1], latent)
    X = np.column_stack([170.0 + latent, 175.0 + latent, np.full(300, np.nan)])
    lower, upper = (np.column_stack([X[:, :2], cuts[codes + side]]) for side in (0, 1))
    data = ObservedMatrix.from_data(X, lower=lower, upper=upper, negative=True)
    units, _ = units_of(data, "column", "mean")
    np.testing.assert_allclose(units.offset[2], 0.0, atol=0.15)
    np.testing.assert_allclose(units.scale[2], 1.0, rtol=0.15)
