"""Variants of a worker process: an earlier version of bnmf, and an older processor that this one plays."""

import io
import platform
import subprocess
import tarfile
from pathlib import Path

from benchmarks.environment import ROOT

# The last commit whose kernels Numba compiled.
NUMBA = "5c6f095"
# The environment variables that make bnmf, Numba in earlier versions of it, and OpenBLAS choose code for a processor.
PROCESSORS = {
    "native": {},
    "AVX2": {
        "BNMF_SIMD": "v3",
        "NUMBA_CPU_NAME": "znver3",
        "NUMBA_CPU_FEATURES": "+avx2,+fma,+avx,+bmi,+bmi2,+popcnt,-avx512f",
        "OPENBLAS_CORETYPE": "Zen",
    },
}


class NotAvailable(Exception):
    """A version or a processor that this machine does not have."""


def variables(directory: Path, processor: str, commit: str | None) -> dict[str, str]:
    """Return the environment variables of a worker process; what Numba compiled is kept apart in `directory`."""
    if processor != "native" and platform.machine().lower() not in ("x86_64", "amd64"):
        raise NotAvailable(f"a processor of type {platform.machine()} cannot play {processor}")
    found = dict(PROCESSORS[processor])
    if commit:
        found["PYTHONPATH"] = str(source_of(commit, directory))
    if processor != "native" or commit:
        found["NUMBA_CACHE_DIR"] = str(directory / f"compiled-{processor}-{commit}")
    return found


def source_of(commit: str, directory: Path) -> Path:
    """Return the folder with the package of an earlier commit, which is extracted into `directory` on first use."""
    folder = directory / f"source-{commit}"
    if not folder.exists():
        done = subprocess.run(["git", "archive", "--format=tar", commit, "src"], cwd=ROOT, capture_output=True)
        if done.returncode:
            raise NotAvailable(f"commit {commit} is not in the history (a shallow clone has only the last ones)")
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            archive.extractall(folder, filter="data")
        # An editable installation would come before PYTHONPATH; Python runs this at its start.
        hooks = 'sys.meta_path[:] = [hook for hook in sys.meta_path if not hasattr(hook, "known_packages")]'
        (folder / "src" / "sitecustomize.py").write_text(f"import sys\n\n{hooks}\n", encoding="utf-8")
    return folder / "src"
