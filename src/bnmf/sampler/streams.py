"""Random streams: every part of every sweep of every chain has its own.

So a chain continues from any of its states exactly as if it had never stopped, and the draws do not depend on threads.
"""

from __future__ import annotations

import numpy as np

from bnmf.kernels.compiled import key_of
from bnmf.utils.typing import Key

# Parts of a sweep, each with its own stream.
N_PARTS = 14
(
    START, DRAW_W, DRAW_Z, NOISE, RESCALE, NOISE_FIRST, RATES, SHEAR, ENTRIES, LATENT, OUTLIERS, SHARES, FOLLOWED_W,
    FOLLOWED_Z,
) = range(N_PARTS)  # fmt: skip


class Stream:
    """The randomness of one chain: the same seed and number of the chain give the same."""

    def __init__(self, seed: int, chain: int = 0) -> None:
        self.chain = chain
        words = np.random.SeedSequence(seed).generate_state(2, np.uint64)
        self._seed_words = int(words[0]), int(words[1])
        self._philox = np.random.Philox(0)  # of any seed: `generator` sets its key
        self._generator = np.random.Generator(self._philox)
        self._start = self._philox.state
        self._key = self._start["state"]["key"]

    def key(self, sweep: int, part: int) -> Key:
        """Return the 128-bit key of one part of one sweep."""
        return key_of(*self._seed_words, self.chain, sweep, part)

    def generator(self, key: Key) -> np.random.Generator:
        """Return the NumPy generator of this stream, started from a key, which is valid until the next call."""
        self._key[0], self._key[1] = key
        self._philox.state = self._start  # creating a new generator would take four times as long
        return self._generator
