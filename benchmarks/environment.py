"""The environment of the peers: made when missing, each peer installed by itself, so that one failure stays one."""

import hashlib
import json
import os
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".venv-bench"
REQUIREMENTS = ROOT / "benchmarks" / "requirements.txt"
CONSTRAINTS = ROOT / "constraints.txt"
RECORD = HOME / "installed.json"


def python() -> Path:
    """Return the interpreter of the environment."""
    return HOME / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def ensure(say: Callable[[str], None]) -> dict[str, str]:
    """Install what is missing, and return why each peer that did not install did not, by its name on PyPI."""
    key = _key()
    if RECORD.exists():
        record = json.loads(RECORD.read_text())
        if record["key"] == key:
            return record["failures"]
    say(f"making {HOME.name}: once, some minutes (cmfrec may be compiled)")
    venv.create(HOME, with_pip=True)
    reason = _install("-e", str(ROOT))
    if reason:
        raise SystemExit(f"bnmf itself did not install into {HOME.name}: {reason}")
    failures = {}
    for line in _lines():
        say(f"installing {line}")
        reason = _install(line)
        if reason:
            failures[line.split("==")[0]] = reason
            say(f"{line} did not install: {reason}")
    RECORD.write_text(json.dumps({"key": key, "failures": failures}, indent=1))
    return failures


def versions() -> dict[str, str]:
    """Return the versions that are installed there."""
    answer = subprocess.run(
        [python(), "-m", "pip", "list", "--format=json", "--disable-pip-version-check"],
        capture_output=True,
        text=True,
        check=True,
    )
    installed = {package["name"].lower(): package["version"] for package in json.loads(answer.stdout)}
    wanted = ["bnmf", "numpy", "scipy", "numba", "scikit-learn", "arviz-stats", *(s.split("==")[0] for s in _lines())]
    return {name: installed[name] for name in wanted if name in installed}


def thread_variables(n_threads: int) -> dict[str, str]:
    """Return the environment variables that hold every kind of thread pool to n_threads."""
    pools = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA", "VECLIB_MAXIMUM", "NUMEXPR")
    variables = {f"{pool}_NUM_THREADS": str(n_threads) for pool in pools}
    # A pool that spins while it has nothing to do would take the processor from the others.
    variables["OMP_WAIT_POLICY"] = "PASSIVE"
    eigen = "true" if n_threads > 1 else "false"
    variables["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={eigen} intra_op_parallelism_threads={n_threads}"
    variables["JAX_PLATFORMS"] = "cpu"
    return variables


def _lines() -> list[str]:
    return [line.strip() for line in REQUIREMENTS.read_text().splitlines() if "==" in line]


def _key() -> str:
    parts = [REQUIREMENTS.read_bytes(), (ROOT / "pyproject.toml").read_bytes(), sys.version.encode()]
    if CONSTRAINTS.exists():
        parts.append(CONSTRAINTS.read_bytes())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _install(*what: str) -> str | None:
    """Install with pip, and return the reason if that failed."""
    constraints = ["-c", str(CONSTRAINTS)] if CONSTRAINTS.exists() else []
    command = [python(), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *constraints, *what]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    errors = [line for line in done.stderr.splitlines() if line.strip().lower().startswith("error")]
    return (errors or done.stderr.strip().splitlines() or ["pip failed without a word"])[-1].strip()
