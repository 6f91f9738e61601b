"""Measurements that need a new process each time: peak memory and start-up."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from benchmarks.client import PeerError
from benchmarks.environment import ROOT, python, thread_variables


def run(*command: str, **variables: str) -> tuple[float, str]:
    """Run the environment's Python with arguments, and return the seconds and the last line it printed."""
    environment = {**os.environ, **thread_variables(1), **variables}
    began = time.perf_counter()
    done = subprocess.run([python(), *command], cwd=ROOT, env=environment, capture_output=True, text=True)
    seconds = time.perf_counter() - began
    if done.returncode:
        raise PeerError((done.stderr.strip().splitlines() or ["failed without a message"])[-1])
    return seconds, (done.stdout.strip().splitlines() or [""])[-1]


def memory(directory: Path, data: str, rank: int) -> dict[str, float]:
    """Return the peak memory above the baseline and the size of the input, in bytes."""
    return json.loads(run("-m", "benchmarks.peak_memory", str(directory), data, str(rank))[1])


def startup() -> dict[str, Any]:
    """Return the seconds of the import, the first fit and the whole process."""
    seconds, answer = run("-m", "benchmarks.startup")
    return {**json.loads(answer), "process": seconds}


def command_help() -> float:
    """Return the seconds of `bnmf --help`."""
    return run("-c", "import sys; sys.argv[1:] = ['--help']; from bnmf.cli import app; app()")[0]
