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


def python() -> Path:
    """Return the path of the environment's interpreter."""
    return ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def ensure(say: Callable[[str], None]) -> dict[str, str]:
    """Create the environment if it is missing or outdated, and return failed installs: reasons by name on PyPI."""
    key = _key()
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
    for line in _lines():
        say(f"installing {line}")
        reason = _install(line)
        if reason:
            failures[line.split("==")[0]] = reason
            say(f"{line} could not be installed: {reason}")
    RECORD.write_text(json.dumps({"key": key, "failures": failures}, indent=1))
    return failures


def versions() -> dict[str, str]:
    """Return the versions of the installed packages."""
    answer = subprocess.run(
        [python(), "-m", "pip", "list", "--format=json", "--disable-pip-version-check"],
        capture_output=True,
        text=True,
        check=True,
    )
    installed = {package["name"].lower(): package["version"] for package in json.loads(answer.stdout)}
    wanted = ["bnmf", "numpy", "scipy", "scikit-learn", "arviz-stats", *(s.split("==")[0] for s in _lines())]
    return {name: installed[name] for name in wanted if name in installed}


def thread_variables(n_threads: int) -> dict[str, str]:
    """Return the environment variables that limit all thread pools to n_threads."""
    pools = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA", "VECLIB_MAXIMUM", "NUMEXPR")
    variables = {f"{pool}_NUM_THREADS": str(n_threads) for pool in pools}
    # Idle threads that spin would slow down the other processes.
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
    """Install with pip, and return the reason if it failed."""
    constraints = ["-c", str(CONSTRAINTS)] if CONSTRAINTS.exists() else []
    command = [python(), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *constraints, *what]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    errors = [line for line in done.stderr.splitlines() if line.strip().lower().startswith("error")]
    return (errors or done.stderr.strip().splitlines() or ["pip failed without a message"])[-1].strip()
