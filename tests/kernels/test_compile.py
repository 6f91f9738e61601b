"""Compiled once: one variant of each kernel, kept on disk, thrown away when any kernel changes, and fast."""

import os
import shutil
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import bnmf
from bnmf.gibbs import Model, Stream, sample
from bnmf.observed import ObservedMatrix
from bnmf.reference import reference_sample
from bnmf.workers import single_threaded_blas

# Every kind of data and prior; prints how many kernels were loaded, how many compiled, and those with two variants.
USE = """
import sys
import time
began = time.perf_counter()
import numpy as np
import scipy.sparse as sp
from bnmf.gibbs import Model, Stream, sample
from bnmf.observed import ObservedMatrix
from bnmf.priors import L1, L1Squared, L2Squared, LInf

def use(X, prior, **options):
    data = ObservedMatrix.from_data(X, **options)
    *_, state = sample(Model(data, 2, prior), Stream(0), n_sweeps=2)
    return data

rng = np.random.default_rng(0)
X = rng.uniform(size=(9, 8))
use(X, "gl22inf")
print("seconds", time.perf_counter() - began)
X[2, 3] = np.nan
X.flags.writeable = False
use(np.asfortranarray(X), (L1(np.ones((9, 2))), L2Squared(np.ones((2, 8))) + LInf(1.0)))
use(X, (L1Squared(1.0) + L1(np.ones((9, 2))), L1Squared(1.0) + LInf(1.0)))
S = sp.csr_array(np.where(rng.uniform(size=(9, 8)) < 0.2, X, 0.0))
for array in (S.data, S.indices, S.indptr):
    array.flags.writeable = False
use(S, "gee")
use(S, "gl12", unstored="missing")
use(S.astype(np.float32), "glinf")

kernels = {
    id(value): value
    for name, module in sys.modules.items() if name.startswith("bnmf.")
    for value in vars(module).values() if hasattr(value, "signatures") and hasattr(value, "stats")
}.values()
print("loaded", sum(sum(kernel.stats.cache_hits.values()) for kernel in kernels))
print("compiled", sum(sum(kernel.stats.cache_misses.values()) for kernel in kernels))
# Those that Python calls; what is inlined into them may well serve two types.
called = {"sweep_rows", "rescale", "fill_within", "fill_log_mass", "squared_residuals", "key_of"}
print("several", *(k.__name__ for k in kernels if k.__name__ in called and len(k.signatures) > 1))
"""


def use_in_a_new_process(source):
    environment = os.environ | {"PYTHONPATH": str(source)}
    command = [sys.executable, "-W", "error", "-c", USE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A copy of the package whose kernels have been compiled and kept."""
    copy = tmp_path_factory.mktemp("copy") / "src"
    shutil.copytree(Path(bnmf.__file__).parent, copy / "bnmf")
    use_in_a_new_process(copy)
    return copy


def test_second_process_compiles_nothing(source):
    report = use_in_a_new_process(source)
    assert report["compiled"] == ["0"]
    assert int(report["loaded"][0]) >= 5
    assert report["several"] == []


def test_first_call_in_a_new_process_is_quick(source):
    # The best of three, because the machine may be busy with other tests.
    assert min(float(use_in_a_new_process(source)["seconds"][0]) for _ in range(3)) < 3.0


def test_change_in_one_kernel_file_compiles_all_again(source):
    changed = source / "bnmf" / "kernels" / "random.py"
    before = changed.read_text(encoding="utf-8")
    changed.write_text(before + "\n# changed\n", encoding="utf-8")
    report = use_in_a_new_process(source)
    changed.write_text(before, encoding="utf-8")
    assert report["loaded"] == ["0"]
    assert int(report["compiled"][0]) >= 5


def test_forty_times_faster_than_the_reference(gdsc):
    K, rng = 20, np.random.default_rng(0)
    W, Z = rng.exponential(size=(gdsc.shape[0], K)), rng.exponential(size=(K, gdsc.shape[1]))
    reference = reference_sample(gdsc, ~np.isnan(gdsc), W, Z, "gl22", rng=rng)
    compiled = sample(Model(ObservedMatrix.from_data(gdsc), K, "gl22"), Stream(0), init=(W, Z))
    next(compiled)
    ratios = []
    with single_threaded_blas():
        for _ in range(5):  # in turns, and by the processor's time: what else the machine does is not counted
            began = time.process_time()
            next(reference)
            middle = time.process_time()
            list(islice(compiled, 20))
            ratios.append((middle - began) / ((time.process_time() - middle) / 20))
    assert np.median(ratios) > 40.0, ratios
