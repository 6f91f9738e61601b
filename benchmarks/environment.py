"""Virtual environment of the peers. Each is installed separately, so that a failure does not affect the others."""

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tomllib
import venv
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv-bench"
REQUIREMENTS = ROOT / "benchmarks" / "requirements.txt"
CONSTRAINTS = ROOT / "constraints.txt"
RECORD = ENVIRONMENT / "installed.json"
# What makes bnmf, Numba in earlier versions of it, and OpenBLAS choose their code for a processor.
PROCESSORS = {
    "native": {},
    "AVX2": {
        "BNMF_SIMD": "v3",
        "NUMBA_CPU_NAME": "znver3",
        "NUMBA_CPU_FEATURES": "+avx2,+fma,+avx,+bmi,+bmi2,+popcnt,-avx512f",
        "OPENBLAS_CORETYPE": "Zen",
    },
}


def python() -> Path:
    """Return the path of the environment's interpreter."""
    return ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def ensure(say: Callable[[str], None]) -> dict[str, str]:
    """Create the environment if it is missing or outdated, and return failed installs: reasons by name on PyPI."""
    sources = (REQUIREMENTS, ROOT / "pyproject.toml", CONSTRAINTS)
    key = hashlib.sha256(b"\0".join([sys.version.encode(), *(path.read_bytes() for path in sources)])).hexdigest()
    if RECORD.exists():
        record = json.loads(RECORD.read_text())
        if record["key"] == key:
            return record["failures"]
    say(f"creating {ENVIRONMENT.name}: takes a few minutes, once")
    venv.create(ENVIRONMENT, with_pip=True)
    # bnmf itself is imported from its sources, with the kernels that are compiled there.
    reason = _install(*tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"])
    if reason:
        raise SystemExit(f"the dependencies of bnmf could not be installed into {ENVIRONMENT.name}: {reason}")
    packages = next(ENVIRONMENT.glob("[Ll]ib/**/site-packages"))
    (packages / "bnmf.pth").write_text(f"{ROOT / 'src'}\n")
    failures = {}
    for line in REQUIREMENTS.read_text().split():
        say(f"installing {line}")
        reason = _install(line)
        if reason:
            failures[line.split("==")[0]] = reason
            say(f"{line} could not be installed: {reason}")
    RECORD.write_text(json.dumps({"key": key, "failures": failures}, indent=1))
    return failures


def versions() -> dict[str, str]:
    """Return the versions of the installed packages."""
    answer = _pip("list", "--format=json")
    installed = {package["name"].lower(): package["version"] for package in json.loads(answer.stdout)}
    peers = [line.split("==")[0] for line in REQUIREMENTS.read_text().split()]
    wanted = ["numpy", "scipy", "scikit-learn", "arviz-stats", *peers]
    return {name: installed[name] for name in wanted if name in installed}


def source_of(commit: str, directory: Path) -> Path:
    """Return the folder with the package of an earlier commit, which is extracted into a directory on first use."""
    folder = directory / f"source-{commit}"
    if not folder.exists():
        archive = subprocess.run(["git", "archive", "--format=tar", commit, "src"], cwd=ROOT, capture_output=True)
        if archive.returncode:
            raise ValueError(f"commit {commit} is not in the history: a shallow clone has only the last ones")
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as content:
            content.extractall(folder, filter="data")
    return folder / "src"


def variables(n_threads: int = 1, processor: str = "native") -> dict[str, str]:
    """Return the environment variables of a process whose thread pools all have n_threads."""
    pools = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA", "VECLIB_MAXIMUM", "NUMEXPR")
    eigen = "true" if n_threads > 1 else "false"
    return {
        **os.environ,
        **{f"{pool}_NUM_THREADS": str(n_threads) for pool in pools},
        "OMP_WAIT_POLICY": "PASSIVE",  # idle threads that spin would slow down the other processes
        "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={eigen} intra_op_parallelism_threads={n_threads}",
        "JAX_PLATFORMS": "cpu",
        **PROCESSORS[processor],
    }


def _install(*what: str) -> str | None:
    """Install with pip, and return the reason if it failed."""
    done = _pip("install", "--quiet", "-c", str(CONSTRAINTS), *what)
    if done.returncode == 0:
        return None
    errors = [line for line in done.stderr.splitlines() if line.strip().lower().startswith("error")]
    return (errors or ["pip failed without a message"])[-1].strip()


def _pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [python(), "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, capture_output=True, text=True)
