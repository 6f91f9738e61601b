"""How a command is called and how it ends: shared options, exit codes, and one line for each error."""

from __future__ import annotations

import errno
import functools
import inspect
import os
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperGroup

from bnmf.cli.screen import MAX_WIDTH, wrapped

FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130
"""Exit codes; 0 is done."""

PLAIN = {
    "greater than or equal to": "must be at least",
    "less than or equal to": "must be at most",
    "a valid integer.*": "must be a whole number",
    "a valid number.*": "must be a number",
}
"""What pydantic says of wrong values of options, after "Input should be", and what is said in its place."""

Debug = Annotated[bool, typer.Option("--debug", help="Show where an error came from.", show_default=False)]
"""The option that every command has."""


class WrongUse(Exception):
    """The command was called with what it cannot take."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with what was kept and how to resume."""


def check_outputs(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Raise an error if an output is an input, by whatever name or link, or there twice, or cannot be written."""
    there = [path for path in inputs if path.exists()]
    seen: set[Path] = set()
    for output in outputs:
        if str(output) == "-":
            continue
        if output in seen:
            raise WrongUse(f"{output} would be written twice: choose another name")
        seen.add(output)
        if output.is_dir():
            raise WrongUse(f"{output} is a directory, not a file: choose another name")
        if output.exists() and any(output.samefile(path) for path in there):
            raise WrongUse(f"{output} is an input, which would be replaced: choose another name with -o")
        if not output.parent.is_dir():
            raise WrongUse(f"there is no directory {output.parent}")
        if not os.access(output.parent, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(output))


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a function a command: errors become one line on standard error and an exit code."""
    # A parameter whose annotation is a dataclass becomes an option for each of its fields.
    parameters, groups = _expanded(function)

    @functools.wraps(function)
    def run(*, debug: bool, **options: Any) -> None:
        for name, group in groups.items():
            options[name] = group(**{field.name: options.pop(field.name) for field in fields(group)})
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *where: _complain(f"Note: {one_line(message)}")
            try:
                function(**options)
            except (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError):
                raise
            except KeyboardInterrupt as interrupt:
                if debug:
                    raise
                # In one line, so that the command that resumes it can be copied.
                typer.echo(f"\n{interrupt if isinstance(interrupt, Interrupted) else 'Interrupted.'}", err=True)
                raise typer.Exit(INTERRUPTED) from None
            except Exception as error:
                if debug:
                    raise
                _complain(f"Error: {one_line(error)}")
                raise typer.Exit(WRONG_USE if isinstance(error, WrongUse) else FAILED) from None

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


class Commands(TyperGroup):
    """The commands, with wrong values of options in the words and the lines of other errors."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            for pattern, words in PLAIN.items():
                error.message = re.sub(f"^Input should be {pattern}", words, error.message)
            text = _in_lines(f"Error: {error.format_message()}").removeprefix("Error: ")
            error.format_message = lambda: text  # type: ignore[method-assign]
            raise


def _complain(text: str) -> None:
    """Show a message on standard error."""
    typer.echo(_in_lines(text), err=True)


def _in_lines(text: str) -> str:
    """Return a message for standard error, in a terminal in lines that break no words."""
    return wrapped(text, min(shutil.get_terminal_size().columns, MAX_WIDTH)) if sys.stderr.isatty() else text


def _expanded(function: Callable[..., None]) -> tuple[list[inspect.Parameter], dict[str, Any]]:
    """Return the parameters of a command with the fields of dataclasses in their place, and the dataclasses."""
    hints = get_type_hints(function, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        members: tuple[Any, ...] = (parameter,)
        types = hints
        if is_dataclass(hints[name]):
            groups[name], members = hints[name], fields(hints[name])
            types = get_type_hints(hints[name], include_extras=True)
        parameters += [_keyword(each.name, each.default, types[each.name]) for each in members]
    return [*parameters, _keyword("debug", False, Debug)], groups


def _keyword(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def one_line(error: Exception | str) -> str:
    """Return the message of an error in one line, without signs that a terminal would obey."""
    from bnmf.utils.text import printable

    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        # A file is written beside its place and renamed; its name is what the user knows.
        name = re.sub(r"\.([^/]+)\.\d+-\d+\.tmp$", r"\1", str(error.filename))
        return printable(f"{name}: {error.strerror}")
    if isinstance(error, MemoryError) and not str(error):
        return "there is not enough memory: take fewer draws or components"
    text = printable(" ".join(str(error).split()) or type(error).__name__)
    expected = (str, Warning, WrongUse, ValueError, TypeError, OSError, ImportError, FloatingPointError, MemoryError)
    return text if isinstance(error, expected) else f"{type(error).__name__}: {text} (--debug shows where)"
