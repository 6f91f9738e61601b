"""Virtual environment of the peers. Each is installed separately, so that a failure does not affect the others."""

import hashlib
import json
import os
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv-bench"
REQUIREMENTS = ROOT / "benchmarks" / "requirements.txt"
CONSTRAINTS = ROOT / "constraints.txt"
RECORD = ENVIRONMENT / "installed.json"
# What makes bnmf and OpenBLAS choose their code for a processor.
PROCESSORS = {"native": {}, "AVX2": {"BNMF_SIMD": "v3", "OPENBLAS_CORETYPE": "Zen"}}


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
    reason = _install("-e", str(ROOT))
    if reason:
        raise SystemExit(f"bnmf itself could not be installed into {ENVIRONMENT.name}: {reason}")
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
    wanted = ["bnmf", "numpy", "scipy", "scikit-learn", "arviz-stats", *peers]
    return {name: installed[name] for name in wanted if name in installed}


def variables(n_threads: int = 1, processor: str = "native") -> dict[str, str]:
    """Return the environment variables of a process whose thread pools all have n_threads."""
    pools = ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM", "NUMEXPR")
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
