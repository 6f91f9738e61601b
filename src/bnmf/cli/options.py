"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bnmf.cli.outcome import WrongUse

if TYPE_CHECKING:
    from bnmf.tables import Table

DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "blank": " ", "space": " ", "bar": "|"}


def _number_or_auto(text: str | int) -> int | str:
    if text == "auto":
        return "auto"
    if not str(text).isdecimal() or int(text) < 1:
        raise typer.BadParameter(f"{text!r} is neither 'auto' nor a whole number of at least 1.")
    return int(text)


def _priors() -> list[str]:
    from bnmf.priors.names import LEARNED, MODELS

    return [*LEARNED, *MODELS]


def _noises() -> list[str]:
    from bnmf.noise import Noise

    return [name for name, kind in Noise.by_name.items() if not kind.is_known]  # known noise is no option


def option(text: str, metavar: str | None = None, *names: str, **more: Any) -> Any:
    """Return an option, which has the name of its parameter unless it is a flag or has a short name too."""
    return typer.Option(*names, help=text, metavar=metavar, **more)


def several(metavar: str, text: str) -> Any:
    """Return an option that may be repeated."""
    return option(f"{text} May be repeated.", metavar)


def _named(names: Callable[[], list[str]], text: str) -> Any:
    """Return an option that takes one of some names, which are imported when the option is given."""

    def parse(given: str) -> str:
        if given not in names():
            raise typer.BadParameter(f"{given!r} is not one of {', '.join(map(repr, names()))}.")
        return given

    def complete(incomplete: str) -> list[str]:
        return [each for each in names() if each.startswith(incomplete)]

    return option(text, "NAME", parser=parse, autocompletion=complete)


# --- what is read

Data = Annotated[Path, typer.Argument(metavar="DATA", help="The table; - for standard input.")]
Texts = list[str] | None
LIMITS = ("lower", "upper", "capped", "floored")
LIMIT = "[COLUMN=]VALUE"


@dataclass
class Reading:
    """How a table is read, with an option for each field in commands that have a parameter of this class."""

    triples: Annotated[bool, option("A text with a row, a column and a value in each line.", None, "--triples")] = False
    missing: Annotated[
        Texts,
        several("VALUE", "Counts as missing too, as empty cells, NA, #N/A and nan do: 0, -999 or ?."),
    ] = None
    unstored: Annotated[
        Literal["zero", "missing"] | None,
        option("What sparse files do not store: zeros, or (with --triples) missing."),
    ] = None
    header: Annotated[bool | None, option("Whether the first line holds names; judged by default.")] = None
    row_names: Annotated[bool | None, option("Whether the first column holds names; judged by default.")] = None
    delimiter: Annotated[str | None, option("Between cells: a sign, or tab; judged by default.", "SIGN")] = None
    layer: Annotated[str | None, option("Layer of an AnnData file (.h5ad); by default its X.", "NAME")] = None
    ignore: Annotated[
        Texts, several("COLUMN", "A column that is no part of the model; impute writes it back as it is.")
    ] = None
    lower: Annotated[Texts, several(LIMIT, "Missing entries of a column, or of all, are at least VALUE.")] = None
    upper: Annotated[Texts, several(LIMIT, "Missing entries of a column, or of all, are at most VALUE.")] = None
    capped: Annotated[Texts, several(LIMIT, "Entries from VALUE on were capped: they are that or larger.")] = None
    floored: Annotated[Texts, several(LIMIT, "Entries up to VALUE were cut there: they are that or smaller.")] = None

    def table(self, source: Path, *, words: Collection[str] | None = None) -> Table:
        """Return a table with the limits of its columns, or raise an error if it cannot be read."""
        from bnmf.tables import read_table
        from bnmf.tables.table import OptionError

        limits = {name: self._limits(name) for name in LIMITS}
        delimiter = DELIMITERS.get(self.delimiter or "", self.delimiter)
        if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
            raise WrongUse(f"--delimiter is one sign, or one of {', '.join(DELIMITERS)}, got {self.delimiter!r}")
        if str(source) != "-" and not source.exists():
            raise WrongUse(f"there is no file {source}")
        if source.is_dir():
            raise WrongUse(f"{source} is a directory, not a table")
        options: dict[str, Any] = {name: value for name, value in vars(self).items() if name not in LIMITS}
        options |= {"delimiter": delimiter, "missing": self.missing or (), "ignore": self.ignore or ()}
        try:
            return read_table(source, **options, words=words).limited(**limits)
        except OptionError as error:
            raise WrongUse(str(error)) from None

    @property
    def of_missing(self) -> dict[str, Any]:
        """What was given of how missing entries are written, which later commands on a fit take for granted."""
        return {name: getattr(self, name) for name in ("missing", "unstored")}

    def as_in(self, settings: dict[str, Any]) -> Reading:
        """Return the options of a fit for missing entries where no other is given."""
        of_fit = settings.get("reading") or {}
        options: dict[str, Any] = {name: given or of_fit.get(name) for name, given in self.of_missing.items()}
        return replace(self, **options)

    def _limits(self, name: str) -> dict[str, float]:
        """Return limits by column, "" for all."""
        found = {}
        for text in getattr(self, name) or ():
            column, _, value = text.rpartition("=")
            try:
                found[column] = float(value)
            except ValueError:
                raise WrongUse(f"--{name} is VALUE or COLUMN=VALUE, with a number for VALUE, got {text!r}") from None
        return found


# --- the model

Components = Annotated[
    Any,
    option(
        "Number of components; auto takes up to 20, of which superfluous ones vanish.",
        "K|auto",
        "-k",
        "--components",
        parser=_number_or_auto,
    ),
]
Prior = Annotated[
    str,
    _named(
        _priors,
        "ard (exponential), half-normal, normal and laplace learn a rate for each component; the last two allow "
        "negative numbers. gee, gl12, gl22, glinf and gl22inf are models of the paper.",
    ),
]
Noise = Annotated[
    str,
    _named(
        _noises,
        "Whose noise variances differ: those of column, row or both; common is one for all. contaminated and student-t "
        "expect gross errors, and auto takes column, contaminated or student-t.",
    ),
]
Scale = Annotated[
    Literal["column", "matrix", "none"],
    option(
        "Unit to which priors refer: column takes the root mean square of each column, matrix that of all entries, and "
        "none the units of the table."
    ),
]
Offset = Annotated[
    Literal["auto", "learned", "both", "min", "mean", "none"],
    option(
        "learned learns an offset of each column, as auto does where --components is auto, and both an effect of "
        "each row too; min subtracts the minimum of each column, and so allows negative numbers; mean subtracts the "
        "mean, for --prior normal or laplace.",
    ),
]


def model_parameters(prior: str, noise: str, scale: str, offset: str) -> dict[str, Any]:
    """Return the parameters of BayesianNMF, in which no scale and no offset are None."""
    none = {"none": None}
    return {"prior": prior, "noise": noise, "scale": none.get(scale, scale), "offset": none.get(offset, offset)}


RATINGS: dict[str, Any] = {"noise": "both", "scale": "matrix", "offset": "both"}
"""Settings for triples, whose rows and columns are alike and share one unit, by ``python -m benchmarks.ratings``."""

# --- sampling

Chains = Annotated[int, option("Number of chains.", "N", min=1)]
BurnIn = Annotated[int, option("Sweeps that each chain discards.", "N", min=0)]
Draws = Annotated[
    Any,
    option(
        "Draws of each chain; auto continues until predictions are good or --max-time is over.",
        "N|auto",
        parser=_number_or_auto,
    ),
]
MaxTime = Annotated[
    float | None,
    option(
        "Time after which no more draws are taken; by default 60 s, but at least the first 100 draws.",
        "SECONDS",
        min=0.001,
    ),
]
Seed = Annotated[int, option("The same seed gives the same draws.", "N", min=0)]
Jobs = Annotated[int | None, option("Threads; by default one for each core.", "N", min=1)]


def check_interval(interval: float | None) -> None:
    """Raise an error unless the probability of an interval is between 0 and 1."""
    if interval is not None and not 0 < interval < 1:
        raise WrongUse(f"--interval is a probability between 0 and 1, such as 0.9, got {interval:g}")
