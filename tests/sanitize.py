"""Run the tests of the kernels with sanitizers for addresses and undefined behaviour.

Run from the root of the repository: python -m tests.sanitize [arguments of pytest]. The kernels are compiled in a
temporary copy of the package, for the level of this processor, with GCC or Clang.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.mutations import compiled, copied

GROSS_ERRORS = "tests/model/test_contaminated.py::test_gross_errors_follow_their_conditional"
TESTS = ["tests/kernels", GROSS_ERRORS, "tests/data/test_views.py", "tests/sampler/test_gibbs.py"]


def main(arguments: list[str]) -> int:
    """Return the exit code of the tests."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copied(folder)
        compiled(folder, BNMF_SANITIZE="ON", CMAKE_CXX_FLAGS_FAST="-O0")  # optimising takes the compiler minutes
        compiler = os.environ.get("CXX", "c++")
        libraries = [
            subprocess.run([compiler, f"-print-file-name={library}.so"], capture_output=True, text=True, check=True)
            for library in ("libasan", "libubsan")
        ]
        environment = os.environ | {
            "PYTHONPATH": str(folder / "src"),
            "LD_PRELOAD": " ".join(done.stdout.strip() for done in libraries),  # Python itself is without it
            "ASAN_OPTIONS": "detect_leaks=0",  # Python keeps memory until its end
            "UBSAN_OPTIONS": "print_stacktrace=1",
        }
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(arguments or TESTS)]
        return subprocess.run(command, cwd=folder, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
