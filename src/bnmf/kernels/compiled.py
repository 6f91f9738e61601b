"""The compiled module for the level of this processor, and what is in it.

The same sources are compiled for each level of x86-64: `_v2` (SSE4), `_v3` (AVX2) and `_v4` (AVX-512), or once as
`_generic` on other machines (NEON). The highest that the processor supports is loaded. The environment variable
BNMF_SIMD takes a lower one: draws of two levels agree to rounding. The types of all that is here are in `compiled.pyi`.
"""

import os
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

LEVELS = ("v2", "v3", "v4")
FOLDER = Path(__file__).parent


def _load(level: str) -> ModuleType:
    """Return the module of a level."""
    try:
        return import_module(f"bnmf.kernels._{level}")
    except ModuleNotFoundError as error:
        raise ImportError(
            f"bnmf was installed without its compiled module _{level}. Install it again, with a C++ compiler on the "
            "machine or from a wheel: python -m pip install --force-reinstall --no-deps bnmf"
        ) from error


def _rebuild_if_changed() -> None:
    """Compile again, in an editable installation, if a source is newer than the module that was made of it."""
    rebuild = getattr(sys.modules["bnmf"].__loader__, "rebuild", None)
    modules = list(FOLDER.glob("_*.so"))
    sources = [file for pattern in ("*.hpp", "*.cpp", "CMakeLists.txt") for file in FOLDER.glob(pattern)]
    if rebuild is None or not modules or not sources:
        return
    if max(file.stat().st_mtime for file in sources) > min(file.stat().st_mtime for file in modules):
        try:
            rebuild()
        except Exception as error:
            raise ImportError(
                "a source of the kernels has changed, and they could not be compiled again: see above, or install bnmf "
                "again with python -m pip install --no-build-isolation -e ."
            ) from error
        for file in modules:
            file.touch()


def _chosen() -> ModuleType:
    """Return the module of the level that BNMF_SIMD names, or else the highest that there is for this processor."""
    wanted = os.environ.get("BNMF_SIMD", "")
    if wanted and wanted not in LEVELS:
        raise ImportError(f"the environment variable BNMF_SIMD must be v2, v3 or v4, got {wanted!r}")
    best = _load("processor").LEVEL
    supported = LEVELS[: LEVELS.index(best) + 1] if best in LEVELS else ()
    if wanted and wanted not in supported:
        raise ImportError(f"BNMF_SIMD is {wanted}, but this processor supports {best} at most")
    there = [level for level in reversed(supported) if any(FOLDER.glob(f"_{level}.*"))]
    return _load(wanted or next(iter(there), best))


_rebuild_if_changed()
_module = _chosen()
LEVEL = _module.__name__.rpartition("_")[2]


def __getattr__(name: str) -> Any:
    """Return what the compiled module has under a name; all names are in `compiled.pyi`."""
    return getattr(_module, name)
