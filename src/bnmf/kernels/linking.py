"""Functions that only kernels call: linked into them as they are, so that the compiler goes over their code once.

Numba optimises every function along with all that it calls, and makes machine code of it, even if only other compiled
functions call it. Most functions of `kernels` are of this kind, up to eight calls deep: optimising them at every level
would take a third of the time of a first fit.
"""

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

# What Numba does not document. Without one of them, such functions are compiled in the usual way.
PRIVATE_NAMES = (
    "_ensure_finalized",
    "_finalize_dynamic_globals",
    "_finalize_final_module",
    "_finalized",
    "_optimize_final_module",
)


class _LinkedCodegen:
    """The code generator of a linked function, which has no machine code that needs an environment."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def set_env(self, env_name: str, env: Any) -> None:
        """Do nothing."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)


class _LinkedLibrary(JITCodeLibrary):
    """The code of a function and of all that it calls, to be linked into a kernel and optimised there."""

    @property
    def codegen(self) -> Any:
        return _LinkedCodegen(super().codegen)

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0  # what Numba returns if a function has no machine code


class LinkedCompiler(Compiler):
    """Numba's compiler, with a result that can be linked but not run."""

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *arguments: Any) -> None:
        super().__init__(typingctx, targetctx, _LinkedLibrary(targetctx.codegen(), "linked"), *arguments)


def can_link() -> bool:
    """Return whether this version of Numba has what `LinkedCompiler` needs."""
    return all(hasattr(JITCodeLibrary, name) for name in PRIVATE_NAMES)
