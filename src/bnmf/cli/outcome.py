"""How a command ends: exit codes, and one line for each error."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130
"""Exit codes; 0 is done."""

Debug = Annotated[bool, typer.Option("--debug", help="Show where an error came from.", show_default=False)]


class WrongUse(Exception):
    """The command was called with what it cannot take."""


def refuse_inputs(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Raise an error if an output is one of the inputs, by whatever name or link."""
    there = [path for path in inputs if path.exists()]
    for output in outputs:
        if output.exists() and any(output.samefile(path) for path in there):
            raise WrongUse(f"{output} is an input, which would be replaced: choose another name with -o")


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with what was kept and how to go on."""


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a function a command: errors become one line on standard error and an exit code."""

    @functools.wraps(function)
    def run(*args: Any, **options: Any) -> None:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *where: typer.echo(f"Note: {message}", err=True)
            try:
                function(*args, **options)
            except (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError):
                raise
            except KeyboardInterrupt as interrupt:
                if options["debug"]:
                    raise
                typer.echo(f"\n{interrupt if isinstance(interrupt, Interrupted) else 'Interrupted.'}", err=True)
                raise typer.Exit(INTERRUPTED) from None
            except Exception as error:
                if options["debug"]:
                    raise
                typer.echo(f"Error: {one_line(error)}", err=True)
                raise typer.Exit(WRONG_USE if isinstance(error, WrongUse) else FAILED) from None

    return run


def one_line(error: Exception) -> str:
    """Return what an error says in one line.

    Examples
    --------
    >>> one_line(PermissionError(13, "Permission denied", "out/.W.csv.41-7.tmp"))
    'out/W.csv: Permission denied'
    >>> one_line(KeyError("x"))
    "KeyError: 'x' (--debug shows where)"
    """
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        # A file is written beside its place and renamed; its name is what the user knows.
        name = re.sub(r"\.([^/]+)\.\d+-\d+\.tmp$", r"\1", str(error.filename))
        return f"{name}: {error.strerror}"
    if isinstance(error, MemoryError):
        return "there is not enough memory: take fewer draws or components"
    text = " ".join(str(error).split()) or type(error).__name__
    expected = (WrongUse, ValueError, TypeError, OSError, ImportError, FloatingPointError)
    return text if isinstance(error, expected) else f"{type(error).__name__}: {text} (--debug shows where)"
