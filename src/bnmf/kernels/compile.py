"""Compilation options shared by all kernels, the disk cache of compiled kernels, and what the user is told of it."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

import numba
import numpy as np
from numba.core import event
from numba.extending import is_jitted, register_jitable

from bnmf.kernels.linking import LinkedCompiler, can_link
from bnmf.utils import digests


def _fingerprint() -> str:
    """Return a digest of all kernel sources.

    Numba's disk cache checks only the file that defines a function. A kernel that inlines a function from another file
    would keep running the old version after that file changes.
    """
    sources = {file.name: file for file in files("bnmf.kernels").iterdir() if file.name.endswith(".py")}
    return digests.of_bytes(*(sources[name].read_bytes() for name in sorted(sources)))


def _cache_file(compiled):
    """Return the disk cache of a compiled function, or None: these attributes are private to Numba."""
    return getattr(getattr(compiled, "_cache", None), "_cache_file", None)


def _can_cache() -> bool:
    """Return whether compiled kernels can be kept on disk, and warn if not."""
    every_process = "every process compiles its kernels again, which takes 5 to 15 s"
    try:
        probe = numba.njit(cache=True)(_fingerprint)
    except RuntimeError as error:
        warnings.warn(
            f"Numba found no directory for compiled kernels: {every_process}. Set the environment variable "
            f"NUMBA_CACHE_DIR to a directory that can be written to. ({error})",
            RuntimeWarning,
            stacklevel=2,
        )
        return False
    if is_jitted(probe) and not hasattr(_cache_file(probe), "_source_stamp"):
        # Without the fingerprint in its place, the cache would not notice every change of the sources.
        warnings.warn(
            f"bnmf does not know the disk cache of Numba {numba.__version__}: {every_process}. Use a version of Numba "
            "that bnmf supports.",
            RuntimeWarning,
            stacklevel=2,
        )
        return False
    return True


FINGERPRINT = _fingerprint()
CACHED = _can_cache()


OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": False}
LINKED_OPTIONS = OPTIONS | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
if can_link():
    LINKED_OPTIONS["pipeline_class"] = LinkedCompiler


def kernel(function):
    """Compile `function` for Python, without the GIL, and cache it on disk; NUMBA_DISABLE_JIT=1 leaves it as it is.

    The compiler may not reorder operations, nor fuse them beyond what `add_product` asks for: the draws of a machine do
    not depend on how it divides the code into functions.
    """
    compiled = numba.njit(cache=CACHED, **OPTIONS)(function)
    if not is_jitted(compiled):  # words wrap around and 1 / 0 is infinite without a warning, as when compiled
        return np.errstate(all="ignore")(function)
    if CACHED:
        _cache_file(compiled)._source_stamp = FINGERPRINT
    return compiled


def linked(function):
    """Compile `function` as a part of the kernels that call it, and leave it to Python as it is."""
    return register_jitable(**LINKED_OPTIONS)(function)


def inlined(function):
    """Compile `function` as a part of its callers, without a call: for what runs once per entry."""
    return register_jitable(forceinline=True, **LINKED_OPTIONS)(function)


class _FirstCompilation(event.Listener):
    """Calls `show` when the first function is compiled; loading one from the disk cache does not count."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show: Callable[[str], None] | None = show

    def on_start(self, event: Any) -> None:
        show, self._show = self._show, None
        if show is not None:
            where = "machine" if CACHED else "process"
            show(f"Compiling for this kind of data and prior (once per {where}, 5 to 15 s) ...")

    def on_end(self, event: Any) -> None:
        pass


@contextmanager
def announced(show: Callable[[str], None]) -> Iterator[None]:
    """Call `show` with a line of text if a kernel has to be compiled in this context."""
    with event.install_listener("numba:compile", _FirstCompilation(show)):
        yield
