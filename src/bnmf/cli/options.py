"""Options that several commands have."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from bnmf.cli.outcome import WrongUse


class PriorName(StrEnum):
    """Priors by name."""

    ard = "ard"
    exponential = "exponential"
    half_normal = "half-normal"
    normal = "normal"
    laplace = "laplace"
    gee = "gee"
    gl12 = "gl12"
    gl22 = "gl22"
    glinf = "glinf"
    gl22inf = "gl22inf"


class NoiseName(StrEnum):
    """What has a noise variance of its own."""

    column = "column"
    row = "row"
    both = "both"
    common = "common"
    student_t = "student-t"


class ScaleName(StrEnum):
    """The unit of the model."""

    column = "column"
    matrix = "matrix"
    none = "none"


class OffsetName(StrEnum):
    """What is subtracted first."""

    min = "min"
    mean = "mean"
    none = "none"


class Unstored(StrEnum):
    """Meaning of what a sparse file does not store."""

    zero = "zero"
    missing = "missing"


def _number_or_auto(least: int) -> Any:
    def parse(text: str | int) -> int | str:
        if text == "auto":
            return "auto"
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise typer.BadParameter(f"{text!r} is neither 'auto' nor a whole number of at least {least}.")
        return number

    return parse


# --- what is read

Data = Annotated[Path, typer.Argument(metavar="DATA", help="The table; - for standard input.", show_default=False)]
IsTriples = Annotated[
    bool, typer.Option("--triples", help="A text with a row, a column and a value in each line.", show_default=False)
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        metavar="VALUE",
        help="Counts as missing too, as empty cells, NA, #N/A and nan do: 0, -999 or ?. May be repeated.",
        show_default=False,
    ),
]
UnstoredOption = Annotated[
    Unstored | None,
    typer.Option("--unstored", help="What sparse files do not store: zeros, or (with --triples) missing."),
]
Header = Annotated[
    bool | None, typer.Option("--header/--no-header", help="Whether the first line holds names; judged by default.")
]
RowNames = Annotated[
    bool | None,
    typer.Option("--row-names/--no-row-names", help="Whether the first column holds names; judged by default."),
]

_LIMIT = {"metavar": "[COLUMN=]VALUE", "show_default": False}
Lower = Annotated[
    list[str] | None,
    typer.Option("--lower", help="Missing entries of a column, or of all, are at least VALUE.", **_LIMIT),
]
Upper = Annotated[
    list[str] | None,
    typer.Option("--upper", help="Missing entries of a column, or of all, are at most VALUE.", **_LIMIT),
]
Capped = Annotated[
    list[str] | None,
    typer.Option("--capped", help="Entries from VALUE on were capped: they are that or larger.", **_LIMIT),
]
Floored = Annotated[
    list[str] | None,
    typer.Option("--floored", help="Entries up to VALUE were cut there: they are that or smaller.", **_LIMIT),
]


def limits(**given: list[str] | None) -> dict[str, dict[str, float]]:
    """Return limits by column, "" for all, as :meth:`bnmf.tables.Table.limited` takes them."""
    found: dict[str, dict[str, float]] = {}
    for name, texts in given.items():
        found[name] = {}
        for text in texts or ():
            column, _, value = text.rpartition("=")
            try:
                found[name][column] = float(value)
            except ValueError:
                raise WrongUse(f"--{name} is VALUE or COLUMN=VALUE, with a number for VALUE, got {text!r}") from None
    return found


# --- the model

Components = Annotated[
    Any,
    typer.Option(
        "-k",
        "--components",
        metavar="K|auto",
        parser=_number_or_auto(1),
        help="Number of components; auto takes up to 20, of which superfluous ones vanish.",
    ),
]
PriorOption = Annotated[
    PriorName,
    typer.Option(
        "--prior",
        help="ard (exponential), half-normal, normal and laplace learn a rate for each component; the last two allow "
        "negative numbers. The others are models of the paper.",
    ),
]
NoiseOption = Annotated[NoiseName, typer.Option("--noise", help="What has a noise variance of its own.")]
ScaleOption = Annotated[ScaleName, typer.Option("--scale", help="The unit of the model: the size of each column.")]
OffsetOption = Annotated[
    OffsetName,
    typer.Option(
        "--offset",
        help="min subtracts the minimum of each column, and so allows negative numbers; mean subtracts the mean, "
        "for --prior normal or laplace.",
    ),
]

# --- sampling

Chains = Annotated[int, typer.Option("--chains", min=1, metavar="N", help="Number of chains.")]
BurnIn = Annotated[int, typer.Option("--burn-in", min=0, metavar="N", help="Sweeps that each chain discards.")]
Draws = Annotated[
    Any,
    typer.Option(
        "--draws",
        metavar="N|auto",
        parser=_number_or_auto(1),
        help="Draws of each chain; auto goes on until predictions are good or --max-time is over.",
    ),
]
MaxTime = Annotated[
    float, typer.Option("--max-time", min=0.001, metavar="SECONDS", help="Time after which no more draws are taken.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, metavar="N", help="The same seed gives the same draws.")]
Jobs = Annotated[int | None, typer.Option("--jobs", min=1, metavar="N", help="Threads; by default one for each core.")]


def reading(
    triples: bool, missing: list[str] | None, unstored: Unstored | None, header: bool | None, row_names: bool | None
) -> dict[str, Any]:
    """Return the options of what is read, as :func:`bnmf.tables.read_table` takes them."""
    return {
        "triples": triples,
        "missing": missing or (),
        "unstored": None if unstored is None else unstored.value,
        "header": header,
        "row_names": row_names,
    }


def value_or_none(choice: StrEnum) -> str | None:
    """Return the value of a choice, None for "none"."""
    return None if choice.value == "none" else choice.value
