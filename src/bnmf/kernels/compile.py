"""Compilation options shared by all kernels, and the validity of their disk cache."""

from pathlib import Path

import numba

from bnmf.utils import digests


def _fingerprint() -> str:
    """Return a digest of all kernel sources.

    Numba's disk cache checks only the file that defines a function. A kernel that inlines a function from another file
    would keep running the old version after that file changes.
    """
    return digests.of_bytes(*(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))))


FINGERPRINT = _fingerprint()


def kernel(function, inline=False):
    """Compile `function` without the GIL and cache it on disk.

    Sums may be reordered and multiply-adds fused, so that loops vectorise. NaN and infinity keep their meaning.
    """
    compiled = numba.njit(
        cache=True,
        nogil=True,
        error_model="numpy",
        boundscheck=False,
        fastmath={"reassoc", "contract", "nsz"},
        forceinline=inline,
    )(function)
    compiled._cache._cache_file._source_stamp = FINGERPRINT  # type: ignore[attr-defined]
    return compiled


def inlined(function):
    """Compile `function` into its callers, for functions called once per entry, where call overhead matters."""
    return kernel(function, inline=True)
