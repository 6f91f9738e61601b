"""What several tests share: the real data, where it is there, and what Ctrl-C does."""

import signal
from pathlib import Path

import numpy as np
import pytest

GDSC = Path(__file__).resolve().parents[2] / "shared" / "data" / "gdsc" / "ic50.txt"

# A shell lets the commands that it runs in the background ignore Ctrl-C, which the tests send to themselves.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def gdsc() -> np.ndarray:
    """The GDSC matrix as the paper prepares it: whole numbers, NaN where missing."""
    if not GDSC.exists():
        pytest.skip("needs ../shared/data/gdsc/ic50.txt beside the repository")
    return np.trunc(np.loadtxt(GDSC, delimiter="\t"))
