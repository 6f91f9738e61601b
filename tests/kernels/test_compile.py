"""Compilation: one variant of each kernel, cached on disk, recompiled when any kernel changes; and fast."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bnmf

# Samples with every kind of data and prior. Prints the number of kernels loaded from the cache, the number compiled,
# and the kernels with several compiled variants.
USE = """
import sys
import numpy as np
import scipy.sparse as sp
from bnmf.data.observed import ObservedMatrix
from bnmf.model.model import Model
from bnmf.priors import L1, L1Squared, L2Squared, LInf
from bnmf.sampler.gibbs import sample
from bnmf.sampler.streams import Stream

def use(X, prior, **options):
    data = ObservedMatrix.from_data(X, **options)
    *_, state = sample(Model(data, 2, prior), Stream(0), n_sweeps=2)
    return data

rng = np.random.default_rng(0)
X = rng.uniform(size=(9, 8))
use(X, "gl22inf")
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
# Kernels that are called from Python; functions that are inlined into them may have several variants.
called = {
    "sweep_rows", "sum_blocks", "squared_residuals", "rescale", "fill_within", "fill_log_mass", "key_of", "set_keys",
}
print("several", *(k.__name__ for k in kernels if k.__name__ in called and len(k.signatures) > 1))
"""


def use_in_new_process(source):
    environment = os.environ | {"PYTHONPATH": str(source)}
    command = [sys.executable, "-W", "error", "-c", USE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A copy of the package with a warm compilation cache."""
    copy = tmp_path_factory.mktemp("copy") / "src"
    shutil.copytree(Path(bnmf.__file__).parent, copy / "bnmf")
    use_in_new_process(copy)
    return copy


def test_second_process_compiles_nothing(source):
    report = use_in_new_process(source)
    assert report["compiled"] == ["0"]
    assert int(report["loaded"][0]) >= 5
    assert report["several"] == []


def test_change_of_one_kernel_file_recompiles_all(source):
    changed = source / "bnmf" / "kernels" / "random.py"
    before = changed.read_text(encoding="utf-8")
    changed.write_text(before + "\n# changed\n", encoding="utf-8")
    report = use_in_new_process(source)
    changed.write_text(before, encoding="utf-8")
    assert report["loaded"] == ["0"]
    assert int(report["compiled"][0]) >= 5
