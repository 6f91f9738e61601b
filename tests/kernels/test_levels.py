"""The levels of the processor: which one is loaded, and draws that agree to rounding between them."""

import os
import platform
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from bnmf.data.half_sweeps import min_sharing
from bnmf.data.observed import ObservedMatrix
from bnmf.kernels.compiled import LEVEL, LEVELS
from bnmf.model import Model
from bnmf.noise import StudentT
from bnmf.priors import L1Squared, L2Squared, LInf
from bnmf.sampler.gibbs import sample
from bnmf.sampler.streams import Stream
from tests.kernels.half_sweeps import drawn, problem, view_of

ROOT = Path(__file__).resolve().parents[2]
HIGHEST = import_module("bnmf.kernels._processor").LEVEL  # whatever BNMF_SIMD says
LOWER = LEVELS[: LEVELS.index(LEVEL)] if LEVEL in LEVELS else ()
only_x86 = pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="levels of x86-64")


def run(code, level):
    """Run code in a process that takes a level."""
    command = [sys.executable, "-W", "error", "-c", code]  # warnings are errors, as in the tests themselves
    environment = os.environ | {"BNMF_SIMD": level}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600)


def half_sweep():
    """Return W after a half-sweep of rows that share their missing entries, rows that do not, and rows that cancel."""
    A, mask, W, Z = problem(rows=30, columns=21, K=17)
    mask[:9] = True
    Z[20, 3] = 1e9
    mask[:, 20] = False
    view = view_of(A, mask, "default")
    assert 9 <= view.split(min_sharing(17)).n_sharing.sum() < 30
    prior = L1Squared(0.1) + L2Squared(0.5) + LInf(1.0)
    return drawn(view, W, Z, prior.coefficients(W.shape), n_passes=2)[0]


def fit(prior, is_weighted):
    """Return the factors and the noise of a few sweeps for data with complete rows and missing entries."""
    rng = np.random.default_rng(2)
    A = rng.exponential(size=(8, 2)) @ rng.exponential(size=(2, 6))
    A[4:][rng.uniform(size=(4, 6)) < 0.3] = np.nan
    A[7, 1:] = np.nan  # a row that lists its observed entries
    model = Model(ObservedMatrix.from_data(A), 2, prior, StudentT(by="common") if is_weighted else "common")
    states = list(sample(model, Stream(3), n_sweeps=4))
    return np.array([[*state.W.ravel(), *state.Zt.ravel(), state.sigma2, state.squared_error] for state in states])


def draws():
    """Return all numbers of a half-sweep and of fits."""
    fits = [fit(*case) for case in (("gee", False), ("gl22inf", False), ("gl22inf", True))]
    return np.concatenate([x.ravel() for x in (half_sweep(), *fits)])


@only_x86
@pytest.mark.parametrize("level", LOWER)
def test_a_lower_level_draws_the_same(level, tmp_path):
    result = tmp_path / "result.npy"
    done = run(
        f"import numpy, tests.conftest; from tests.kernels import test_levels; assert test_levels.LEVEL == {level!r}\n"
        f"numpy.save({str(result)!r}, test_levels.draws())",
        level,
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(result), draws(), rtol=1e-9, atol=1e-12)


def test_unknown_level_is_refused():
    done = run("import bnmf.kernels.compiled", "avx2")
    assert done.returncode == 1
    assert "BNMF_SIMD must be v2, v3 or v4, got 'avx2'" in done.stderr


@only_x86
@pytest.mark.skipif(HIGHEST == "v4", reason="this processor supports every level")
def test_level_that_the_processor_does_not_support_is_refused():
    done = run("import bnmf.kernels.compiled", "v4")
    assert done.returncode == 1
    assert f"this processor supports {HIGHEST} at most" in done.stderr
