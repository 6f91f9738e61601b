"""The same draws whatever the kernels are compiled for: an older processor, or nothing, if the compiler is disabled."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

from bnmf.data.observed import ObservedMatrix
from bnmf.kernels.processor import Tile
from bnmf.kernels.systems import min_sharing
from bnmf.model import Model
from bnmf.model.noise import StudentT
from bnmf.priors import L1Squared, L2Squared, LInf
from bnmf.sampler.gibbs import sample
from bnmf.sampler.streams import Stream
from tests.kernels.half_sweeps import drawn, problem, view_of

ROOT = Path(__file__).resolve().parents[2]
AVX2 = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma,+bmi,+bmi2,+popcnt,+sse4.2,-avx512f"}
SSE2 = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}


def run(call, folder, **environment):
    """Call a function of this file in a process with other settings of Numba, and return the array that it returns."""
    result = folder / "result.npy"
    code = f"import numpy; from tests.kernels import test_targets; numpy.save({str(result)!r}, test_targets.{call})"
    # Warnings are errors, as in the tests themselves.
    command = [sys.executable, "-W", "error", "-c", code]
    settings = os.environ | environment | {"NUMBA_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return np.load(result)


def half_sweep_on(tile=None):
    """Return W after a half-sweep of rows that share their missing entries, rows that do not, and rows that cancel."""
    if tile is not None:
        from bnmf.kernels.processor import TILE

        assert tile == TILE  # the process plays the machine that is meant
    A, mask, W, Z = problem(rows=30, columns=21, K=17)
    mask[:9] = True
    Z[20, 3] = 1e9
    mask[:, 20] = False
    view = view_of(A, mask, "default")
    sharing, others = view.split(min_sharing(17))
    assert sharing is not None
    assert others is not None
    assert len(sharing[1]) >= 9
    prior = L1Squared(0.1) + L2Squared(0.5) + LInf(1.0)
    return drawn(view, W, Z, prior.coefficients(W.shape), n_passes=2)[0]


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="plays older processors of its kind")
@pytest.mark.parametrize(
    ("settings", "tile"),
    [(AVX2, Tile(4, 8, 12)), pytest.param(SSE2, Tile(2, 8, 4), marks=pytest.mark.proof)],
    ids=["AVX2", "SSE2"],
)
def test_older_processor_draws_the_same(settings, tile, tmp_path):
    if settings is AVX2 and not llvm.get_host_cpu_features().get("avx2"):
        pytest.skip("this processor is older than the one to play")
    got = run(f"half_sweep_on({tuple(tile)})", tmp_path, **settings)
    np.testing.assert_allclose(got, half_sweep_on(), rtol=1e-9, atol=1e-12)


def fit(prior, is_weighted):
    """Return the factors and the noise of a few sweeps for data with complete rows and missing entries."""
    rng = np.random.default_rng(2)
    A = rng.exponential(size=(8, 2)) @ rng.exponential(size=(2, 6))
    A[4:][rng.uniform(size=(4, 6)) < 0.3] = np.nan
    A[7, 1:] = np.nan  # a row that lists its observed entries
    model = Model(ObservedMatrix.from_data(A), 2, prior, StudentT(by="common") if is_weighted else "common")
    states = list(sample(model, Stream(3), n_sweeps=4))
    return np.array([[*state.W.ravel(), *state.Zt.ravel(), state.sigma2, state.squared_error] for state in states])


@pytest.mark.parametrize(("prior", "is_weighted"), [("gee", False), ("gl22inf", False), ("gl22inf", True)])
def test_draws_without_the_compiler_are_the_same(prior, is_weighted, tmp_path):
    got = run(f"fit({prior!r}, {is_weighted})", tmp_path, NUMBA_DISABLE_JIT="1")
    np.testing.assert_allclose(got, fit(prior, is_weighted), rtol=1e-9, atol=1e-12)
