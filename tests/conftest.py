"""What several tests share: the real data, calls before sweeps, what Ctrl-C does, and other draws for all tests."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from bnmf.sampler import gibbs
from bnmf.sampler.streams import Stream

GDSC = Path(__file__).resolve().parents[2] / "shared" / "data" / "gdsc" / "ic50.txt"

# A shell lets the commands that it runs in the background ignore Ctrl-C, which the tests send to themselves.
signal.signal(signal.SIGINT, signal.default_int_handler)

# With BNMF_TEST_SALT=1 (2, 3, ...) every chain has other random numbers. On another processor its draws differ too,
# after some sweeps, by rounding. Thresholds must hold for all of them.
if salt := int(os.environ.get("BNMF_TEST_SALT", "0")):
    plain = Stream.__init__

    def salted(self: Stream, seed: int, chain: int = 0) -> None:
        plain(self, seed, chain)
        self._seed_words = self._seed_words[0] ^ salt, self._seed_words[1]

    Stream.__init__ = salted  # type: ignore[method-assign]


@pytest.fixture
def before_each_sweep(monkeypatch):
    """Return a function that has another one called with the state of a chain before each of its sweeps."""

    def plan(call):
        step = gibbs.step

        def planned(model, state, *args):
            call(state)
            return step(model, state, *args)

        monkeypatch.setattr(gibbs, "step", planned)

    return plan


@pytest.fixture(scope="session")
def gdsc() -> np.ndarray:
    """The GDSC matrix as the paper prepares it: whole numbers, NaN where missing."""
    if not GDSC.exists():
        pytest.skip("needs ../shared/data/gdsc/ic50.txt beside the repository")
    return np.trunc(np.loadtxt(GDSC, delimiter="\t"))
