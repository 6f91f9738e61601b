"""Compilation: few variants of each kernel, cached on disk, recompiled when any kernel changes, and announced."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import bnmf
from bnmf.kernels import compile as compilation
from bnmf.kernels import linking
from bnmf.kernels.random import set_keys
from tests.kernels.compiled import compiled

# Samples with one or with every kind of data and prior. Prints a digest of the draws, the number of kernels loaded from
# the cache, the number compiled, and the kernels with several compiled variants for the same optional arguments.
USE = """
import sys
import numpy as np
import scipy.sparse as sp
from bnmf.data.observed import ObservedMatrix
from bnmf.model.model import Model
from bnmf.model.noise import StudentT
from bnmf.priors import L1, L1Squared, L2Squared, LInf
from bnmf.sampler.gibbs import sample
from bnmf.sampler.streams import Stream
from bnmf.utils import digests

draws = []

def use(X, prior, noise="common", precision=None, **options):
    model = Model(ObservedMatrix.from_data(X, **options), 2, prior, noise, entry_precision=precision)
    *_, state = sample(model, Stream(0), n_sweeps=500)
    draws.extend([state.W, state.Zt])

rng = np.random.default_rng(0)
X = rng.uniform(size=(9, 8))
use(X, "gl22inf")
if sys.argv[1] == "everything":
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
    use(X, "gee", StudentT(None, "both"))
    precision = np.asfortranarray(np.ones((71, 2), np.float32))[:, 0]
    precision.flags.writeable = False
    use(X, "gl22inf", "known", precision)

print("draws", digests.of_arrays(*draws))

def kernels(modules):
    found = (value for module in modules for value in vars(module).values())
    return {id(value): value for value in found if hasattr(value, "signatures") and hasattr(value, "stats")}.values()

modules = {name: module for name, module in sys.modules.items() if name.startswith("bnmf.")}
print("loaded", sum(sum(kernel.stats.cache_hits.values()) for kernel in kernels(modules.values())))
print("compiled", sum(sum(kernel.stats.cache_misses.values()) for kernel in kernels(modules.values())))
# Functions that only kernels call may have several variants: they are compiled into their callers.
called = kernels(module for name, module in modules.items() if not name.startswith("bnmf.kernels."))
print("called", *(kernel.__name__ for kernel in called))
for kernel in called:
    given = [tuple(str(kind) != "none" for kind in signature) for signature in kernel.signatures]
    if len(given) > len(set(given)):
        print("several", kernel.__name__, *kernel.signatures)
"""

FIT = """
import sys
import numpy as np
from bnmf import BayesianNMF

X = np.random.default_rng(0).exponential(size=(8, 6))
model = BayesianNMF(1, n_chains=2, burn_in=200, n_draws=100, random_state=0, progress=sys.argv[1] == "progress").fit(X)
print(*model.posterior_.W.shape)
"""

CACHE = """
import numba
from bnmf.kernels.random import set_keys

try:
    numba.njit(cache=True)(set_keys.py_func)
except RuntimeError:
    print("cannot cache")
"""

DISABLED = """
from bnmf.kernels.compile import inlined, kernel, linked

def double(x):
    return 2 * x

for decorate in (kernel, inlined, linked):
    assert decorate(double)(3) == 6
    assert not hasattr(decorate(double), "signatures")
"""


def run(program, *arguments, source=None, **environment):
    """Run a program in a new process, with warnings as errors unless it says otherwise."""
    environment = os.environ | {"PYTHONWARNINGS": "error"} | environment
    if source is not None:
        environment["PYTHONPATH"] = str(source)
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


def use(source, what):
    done = run(USE, what, source=source)
    return {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A copy of the package with a warm compilation cache, and the report of the process that compiled."""
    copy = tmp_path_factory.mktemp("copy") / "src"
    shutil.copytree(Path(bnmf.__file__).parent, copy / "bnmf", ignore=shutil.ignore_patterns("__pycache__"))
    return copy, use(copy, "everything")


def test_second_process_compiles_nothing_and_draws_the_same(first):
    source, compiled = first
    report = use(source, "everything")
    assert report["draws"] == compiled["draws"]
    assert report["compiled"] == ["0"]
    assert int(report["loaded"][0]) >= 5
    assert len(report["called"]) >= 5
    assert "several" not in report


def test_change_of_one_kernel_file_recompiles_all(first):
    source, _ = first
    changed = source / "bnmf" / "kernels" / "random.py"
    before = changed.read_text(encoding="utf-8")
    changed.write_text(before + "\n# changed\n", encoding="utf-8")
    report = use(source, "one kind")
    changed.write_text(before, encoding="utf-8")
    assert report["loaded"] == ["0"]
    assert int(report["compiled"][0]) >= 5


def test_names_private_to_numba():
    """If this fails, Numba has renamed what tells its cache that a kernel is out of date: see `_cache_file`."""
    assert set_keys._cache._cache_file._source_stamp == compilation.FINGERPRINT


def test_no_cache_if_numba_has_renamed_them(monkeypatch):
    """A cache that does not notice changes would be worse than none."""
    monkeypatch.setattr(compilation, "_cache_file", lambda compiled: getattr(compiled, "renamed", None))
    with pytest.warns(RuntimeWarning, match=f"does not know the disk cache of Numba {numba.__version__}"):
        assert not compilation._can_cache()
    monkeypatch.setattr(compilation, "CACHED", False)
    double = compilation.kernel(lambda x: 2.0 * x)
    assert double(1.5) == 3.0
    assert double.stats.cache_path is None


def half_of_cube(decorate):
    cube = decorate(lambda x: x**3)
    return decorate(lambda x: cube(x) / 2.0)


def test_linked_functions(monkeypatch):
    """They give kernels the same numbers whether or not Numba has the names by which they are linked."""
    assert linking.can_link()
    monkeypatch.setattr(linking, "PRIVATE_NAMES", (*linking.PRIVATE_NAMES, "_renamed"))
    assert not linking.can_link()
    usual = {name: option for name, option in compilation.LINKED_OPTIONS.items() if name != "pipeline_class"}
    assert len(usual) == len(compilation.LINKED_OPTIONS) - 1
    for options in (compilation.LINKED_OPTIONS, usual):
        monkeypatch.setattr(compilation, "LINKED_OPTIONS", options)
        for decorate in (compilation.linked, compilation.inlined):
            half = half_of_cube(decorate)
            assert half(3.0) == 13.5  # as a function of Python
            assert compiled(half)(3.0) == 13.5


def test_no_directory_for_the_cache(tmp_path):
    """A fit works without a directory that can be written to, with one warning that says what to set."""
    shutil.copytree(Path(bnmf.__file__).parent, tmp_path / "bnmf", ignore=shutil.ignore_patterns("__pycache__"))
    # Permissions do not stop a superuser, but nobody can make a directory in the place of a file or below it.
    file = tmp_path / "bnmf" / "kernels" / "__pycache__"
    file.touch()
    environment = dict.fromkeys(["NUMBA_CACHE_DIR", "HOME", "USERPROFILE", "XDG_CACHE_HOME"], str(file))
    assert run(CACHE, source=tmp_path, PYTHONWARNINGS="ignore", **environment).stdout == "cannot cache\n"
    done = run(FIT, "quiet", source=tmp_path, PYTHONWARNINGS="always::RuntimeWarning", **environment)
    assert done.stdout == "2 100 8 1\n"
    assert done.stderr.count("NUMBA_CACHE_DIR") == 1
    assert "RuntimeWarning: Numba found no directory for compiled kernels" in done.stderr
    assert "Compiling" not in done.stderr  # progress is off


def test_compilation_is_announced(tmp_path):
    """In the first process and not in the second one, which finds everything in the cache."""
    first, second = (run(FIT, "progress", NUMBA_CACHE_DIR=str(tmp_path)).stderr for _ in range(2))
    assert first.startswith("Compiling for this kind of data and prior (once per machine, 5 to 15 s) ...\nchain ")
    assert first.count("Compiling") == 1
    assert "Compiling" not in second
    assert "300/300 sweeps" in second


def test_announcement_is_made_once_and_without_a_cache_for_this_process_only(monkeypatch):
    monkeypatch.setattr(compilation, "CACHED", False)
    shown = []
    with compilation.announced(shown.append):
        for factor in (2.0, 3.0):
            numba.njit(lambda x, factor=factor: factor * x)(1.0)
    numba.njit(lambda x: 4.0 * x)(1.0)
    assert shown == ["Compiling for this kind of data and prior (once per process, 5 to 15 s) ..."]


def test_compiler_disabled():
    run(DISABLED, NUMBA_DISABLE_JIT="1")
