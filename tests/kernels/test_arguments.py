"""The border to compiled code: sizes, types and positions are checked before a pointer is taken."""

import numpy as np
import pytest

from bnmf.kernels import compiled
from bnmf.kernels.compiled import Data, Given, HalfSweep, Interwoven, Latent, Memory, Outliers, Rows
from bnmf.priors import L1

ONE = np.ones(1)

PRIOR = L1(1.0).coefficients((3, 2)).kernel_prior


def data(**changed):
    """Return three rows of four columns, two of which list their missing positions."""
    given = {
        "indptr": np.array([0, 1, 3, 4]), "indices": np.array([0, 1, 3, 2], np.uint32), "values": np.zeros(4),
        "lists_missing": np.array([1, 0, 1], np.uint8), "dense": np.ones((3, 4)), "n_columns": 4,
    }  # fmt: skip
    return Data(**given | changed)


def kernel_rows(**changed):
    given = {
        "data": data(), "indptr": np.array([0, 3]), "rows": np.array([0, 2, 1]), "n_sharing": np.array([2]),
        "repeats": np.zeros(3, np.uint8), "entry_scale": None, "row_scale": ONE, "squares": np.ones(3),
        "ids": np.arange(3, dtype=np.uint64),
    }  # fmt: skip
    return Rows(**given | changed)


def half_sweep(memory=None, **changed):
    """Return a half-sweep that is ready to draw."""
    given = {
        "rows": kernel_rows(), "W": np.ones((3, 2)), "Z": np.ones((4, 2)), "prior": PRIOR, "memory": memory or Memory(),
        "row_variance": ONE, "entry_variance": ONE, "key": (1, 2), "n_passes": 1, "drawn": (0, 2),
        "squared_error": np.empty(3),
    }  # fmt: skip
    return HalfSweep(**given | changed)


ENTRIES = {
    "n_columns": 4, "indptr": np.array([0, 1, 1, 2]), "columns": np.array([1, 3], np.uint32),
    "targets": [(np.zeros(3), np.array([2, -1]))],
}  # fmt: skip


def latent(**changed):
    return Latent(**ENTRIES | {"lower": np.zeros(2), "upper": np.ones(2)} | changed)


def interwoven(**changed):
    given = {"limit": np.full(2, np.nan), "above": np.ones(2, np.uint8), "errors": None, "places": None}
    return Interwoven(**ENTRIES | given | changed)


def outliers(**changed):
    given = {"values": np.zeros(2), "sums": np.zeros(8), "matrix": None, "transposed": None}
    return Outliers(**ENTRIES | given | changed)


def draw(kernel, rows=(0, 3), **changed):
    """Draw entries of a kernel."""
    given = {
        "W": np.ones((3, 2)), "Z": np.ones((4, 2)), "entry_scale": None, "row_scale": ONE, "row_variance": ONE,
        "column_variance": ONE, "ids": np.arange(3, dtype=np.uint64), "key": (3, 4),
    }  # fmt: skip
    kernel.draw(Given(**given | changed), *rows)


def draw_latent(sums=None, errors=None, **changed):
    draw(latent(sums=sums, errors=errors), **changed)


def draw_interwoven(**changed):
    draw(interwoven(), **{"prior": PRIOR, "drawn": (0, 2)} | changed)


def shear(W, Z):
    compiled.shear(W, Z, PRIOR, L1(1.0).coefficients(Z.shape).kernel_prior, (1, 2), Memory(), 0, 1)


def residuals(rows=(0, 3), out=3, n_components=2):
    given = np.ones((3, 2)), np.ones((4, n_components)), kernel_rows()
    compiled.squared_residuals(*given, *rows, np.empty(out))


def rate(drawn):
    compiled.draw_rate(
        np.ones((3, 2)), np.ones((3, 2)), PRIOR, PRIOR, drawn, (0, 2), False, 1, 1.0, 1.0, (1, 2), np.empty(1)
    )


def products(rows=0, columns=0, n_components=2, out=1, dtype=float):
    W, Z = np.ones((2, 3, 2), dtype), np.ones((2, n_components, 5))
    compiled.products_of_pairs(W, Z, np.array([rows]), np.array([columns]), np.empty((2, out)))


CASES = [
    (data, {"indptr": np.array([0, 1, 3, 5])}, "indptr must ascend"),
    (data, {"indptr": np.array([0, 3, 1, 4])}, "indptr must ascend"),
    (data, {"indptr": np.array([-1, 1, 3, 4])}, "indptr must ascend"),
    (data, {"indptr": np.array([0, 1, 4])}, "indptr must have 4 elements, got 3"),
    (data, {"indices": np.array([0, 1, 4, 2], np.uint32)}, "positions must be less than n_columns"),
    (data, {"values": np.zeros(3)}, "values must have 4 elements, got 3"),
    (data, {"dense": np.ones((3, 3))}, "dense must have 12 elements, got 9"),
    (data, {"dense": None}, "rows that list missing positions need a matrix"),
    (kernel_rows, {"repeats": np.zeros(2, np.uint8)}, "repeats must have 3 elements, got 2"),
    (kernel_rows, {"entry_scale": np.ones(3)}, "entry_scale must have 4 elements, got 3"),
    (kernel_rows, {"row_scale": np.ones(2)}, "row_scale must have 3 elements, got 2"),
    (half_sweep, {"W": np.ones((4, 2))}, "W must have as many rows as the data"),
    (half_sweep, {"Z": np.ones((4, 3))}, "W and Z must have the same components"),
    (half_sweep, {"Z": np.ones((3, 2))}, "Z must have as many rows as the data have columns"),
    (half_sweep, {"row_variance": np.ones(2)}, "row_variance must have 3 elements, got 2"),
    (half_sweep, {"n_passes": 0}, "n_passes must be at least 1"),
    (half_sweep, {"roots": np.ones(4)}, "entries with weights must be listed"),
    (half_sweep, {"prior": L1(1.0).coefficients((3, 3)).kernel_prior}, "the coefficients of a prior must have"),
    (latent, {"indptr": np.array([0, 3])}, "indptr must end"),
    (latent, {"columns": np.array([1, 4], np.uint32)}, "columns must be less than n_columns"),
    (latent, {"targets": [(np.zeros(2), np.array([2, -1]))]}, "places must be inside"),
    (latent, {"upper": np.ones(3)}, "upper must have 2 elements, got 3"),
    (outliers, {"sums": np.zeros(3)}, "sums must have 8 elements, got 3"),
    (outliers, {"matrix": np.zeros((3, 4))}, "dense rows list all columns"),
    (draw_latent, {"rows": (0, 4)}, "there are no such rows"),
    (draw_latent, {"Z": np.ones((4, 3))}, "W and Z must have the same components"),
    (draw_latent, {"Z": np.ones((3, 2))}, "W and Z must be factors of the data"),
    (draw_latent, {"weight": np.ones(3)}, "weight must have 2 elements, got 3"),
    (draw_latent, {"log_odds": np.ones(4), "factor": 2.0}, "gross errors need sums and errors"),
    (draw_interwoven, {"drawn": (0, 3)}, "there are no such components"),
    (shear, {"W": np.ones((3, 2)), "Z": np.ones((4, 3))}, "W and Z must have the same components"),
    (residuals, {"rows": (0, 4)}, "there are no such rows"),
    (residuals, {"out": 4}, "out must have 3 elements, got 4"),
    (residuals, {"n_components": 3}, "W and Z must have the same components"),
    (rate, {"drawn": (0, 3)}, "there are no such components"),
    (products, {"rows": 3}, "there are no such rows or columns"),
    (products, {"columns": -1}, "there are no such rows or columns"),
    (products, {"n_components": 3}, "W and Z must have the same draws and components"),
    (products, {"out": 2}, "out must have 2 elements, got 4"),
]


@pytest.mark.parametrize(("call", "changed", "message"), CASES, ids=lambda x: x if isinstance(x, str) else "")
def test_arguments_outside_of_the_data_are_refused(call, changed, message):
    with pytest.raises(ValueError, match=message):
        call(**changed)


@pytest.mark.parametrize(
    ("call", "changed"),
    [
        (data, {"values": np.zeros(4, np.int32)}),
        (data, {"dense": np.ones((4, 3)).T}),
        (latent, {"targets": [(np.zeros(3, np.float32), np.array([2, -1]))]}),  # a copy would be written to
        (draw_interwoven, {"drawn": None}),
        (products, {"dtype": int}),
    ],
)
def test_arguments_of_other_types_are_refused(call, changed):
    with pytest.raises(TypeError):
        call(**changed)


def test_a_factor_that_is_gone_is_noticed():
    memory = Memory()
    half = half_sweep(memory)
    half.draw(0, 1, Memory())
    with pytest.raises(ValueError, match="there are no such tiles"):
        half.draw(0, 2, Memory())
    half_sweep(memory)
    with pytest.raises(ValueError, match="the memory of the other factor has been used for something else"):
        half.draw(0, 1, Memory())
