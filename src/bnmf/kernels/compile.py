"""How every kernel is compiled, and when a compiled one is still good."""

import hashlib
from pathlib import Path

import numba


def _fingerprint() -> str:
    """Return a hash of all kernel sources.

    Numba's disk cache looks only at the file that a function stands in, so a kernel that inlines a changed
    function of another file would go on running the old one.
    """
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


FINGERPRINT = _fingerprint()


def kernel(function, inline=False):
    """Compile `function`, dropping the GIL and kept on disk for the next process.

    Sums may be reordered and multiply-adds fused, so that loops vectorise; NaN and infinity keep their meaning.
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
    """Compile `function` into its callers: for the few that are called for every entry, where a call is felt."""
    return kernel(function, inline=True)
