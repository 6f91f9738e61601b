"""``bnmf impute``: fill the missing entries of a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from bnmf.cli import options
from bnmf.cli.directory import FitDirectory
from bnmf.cli.outcome import WrongUse, check_outputs, command
from bnmf.cli.screen import Screen, check_values
from bnmf.cli.transform import rows_of_fit
from bnmf.utils.text import counted

if TYPE_CHECKING:
    import pandas as pd

    from bnmf.estimator import BayesianNMF
    from bnmf.posterior import Posterior
    from bnmf.tables import Table
    from bnmf.utils.typing import Floats, Indices

# The probability of the intervals that --cells lists.
CELLS_INTERVAL = 0.9
DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([T ].*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}( .*)?")


@command
def impute(
    data: options.Data,
    out: Annotated[Path, options.option("The filled table; - for standard output.", "FILE", "-o", "--out")],
    fit: Annotated[
        Path | None, options.option("Fill rows by a fit that bnmf fit made, in place of a new fit.", "DIR")
    ] = None,
    interval: Annotated[
        float | None,
        options.option("Also write FILE.lower and FILE.upper: intervals of probability P.", "P"),
    ] = None,
    cells: Annotated[
        Path | None,
        options.option("Also list what was filled: row, column, value, and interval (of 0.9 or P).", "FILE"),
    ] = None,
    imputations: Annotated[
        int, options.option("Also write FILE.1 to FILE.N: draws in place of means.", "N", min=0)
    ] = 0,
    kind: Annotated[
        options.Texts,
        options.several(
            "COLUMN=KIND",
            "Kind of a column: number, nonnegative, 0..100, whole, ordered, low<mid<high, binary or categorical.",
        ),
    ] = None,
    *,
    reading: options.Reading,
    components: options.Components = "auto",
    max_time: options.MaxTime = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
) -> None:
    """Fill the missing entries of a table.

    Columns may have any units, and negative numbers. What was observed is written back as it was, to the last digit.
    A cell such as >100 is filled with a number that keeps the limit; a number that --capped names is written back.
    The output is of the kind that its name says, or that of the input. With --triples, the lines without a value are
    filled. Text is filled as categories, and columns of dates and identifiers are written back as they are.

    \b
    Examples:
      bnmf impute survey.csv -o filled.csv
      bnmf impute survey.csv -o filled.csv --interval 0.9  # and two more files
      bnmf impute survey.csv -o filled.csv --cells cells.csv --imputations 20
      bnmf impute new.csv --fit survey -o filled.csv       # by a fit of bnmf fit
      bnmf impute sensors.tsv -o filled.parquet --missing -999
      bnmf impute water.csv -o filled.csv --capped turbidity=100
      bnmf impute people.csv -o filled.csv --kind 'size=S<M<L' --ignore name
      bnmf impute ratings.csv --triples -o filled.csv      # fills "ann,film,"
      cat survey.csv | bnmf impute - -o - > filled.csv
    """
    import numpy as np

    from bnmf.estimator import BayesianNMF
    from bnmf.imputer import ANY_TABLE
    from bnmf.tables import TableError
    from bnmf.tables.files import LISTS, ending, writer

    screen = Screen(to_stderr=str(out) == "-")
    options.check_interval(interval)
    prob = (interval or CELLS_INTERVAL) if interval or cells else None
    further = [*(["lower", "upper"] if interval else []), *map(str, range(1, imputations + 1))]
    if further and str(out) == "-":
        raise WrongUse("--interval and --imputations write more files, so -o must name a file")
    if cells and ending(cells) not in LISTS:
        raise WrongUse(f"--cells is a file of one of the kinds {', '.join(LISTS)}, got {cells}")
    outputs = {"": out} | {word: beside(out, word) for word in further}
    check_outputs([*outputs.values(), *([cells] if cells else [])], [data, *(fit.glob("*") if fit else ())])
    model = BayesianNMF(components, n_draws="auto", max_time=max_time, random_state=seed, n_jobs=jobs or -1)
    kinds = kinds_of(kind or ())
    if kinds and (fit or reading.triples):
        raise WrongUse(f"--kind does not go with {'--fit' if fit else '--triples'}: its columns are of numbers")
    words = [name for name, kind in kinds.items() if kind == "categorical" or isinstance(kind, list)]
    if fit is not None:
        reading = reading.as_in(FitDirectory(fit).settings())
    table = reading.table(data, words=None if fit else words)
    _check_kinds(table, kinds, data)
    screen.describe(table, data)
    if fit is None:
        check_values(table, data, negative=True)
    table = _without_the_unfillable(table, kinds, screen)
    try:
        output = writer(table, out, data)
    except TableError as error:
        raise WrongUse(str(error)) from None
    rows, columns = _fillable(table)
    limits = table.limits.at(rows, columns)
    found: dict[str, Any] = dict.fromkeys(["", "lower", "upper", *further], ())
    if not len(rows):
        screen.say("There is nothing to fill: the output is the input.")
    elif fit is not None:
        posterior, order = rows_of_fit(FitDirectory(fit).posterior(), table, str(data), seed, screen)
        found |= _numbers(posterior, rows, order[columns], limits, prob, imputations, seed)
    elif kinds or table.words:
        found |= _by_kinds(model.set_params(**ANY_TABLE), table, kinds, screen, (rows, columns), prob, imputations)
    else:
        # Subtracting means would store every zero of a sparse table.
        ratings = options.RATINGS | {"prior": "normal"}
        settings = {} if table.has_implicit_zeros else ratings if reading.triples else ANY_TABLE
        posterior = screen.fitted(table.fit, model.set_params(**settings))
        screen.judge_predictions(posterior.verdict, max_time)
        found |= _numbers(posterior, rows, columns, limits, prob, imputations, seed)
    for word, path in outputs.items():
        _write(path, output, rows, columns, found[word])
    if cells:
        _write_cells(cells, table, rows, columns, found)
    if str(out) != "-":
        n_limited = int((~np.isnan(limits[0])).sum())
        entries = counted(len(rows), "entry") + (f", {n_limited:,} of them within limits" if n_limited else "")
        screen.say(f"Filled {entries}: {out}", style="bold")
    if interval:
        screen.say(f"{interval:.0%} intervals: {outputs['lower']} and {outputs['upper']}")
    if imputations:
        last = f" to {outputs[str(imputations)]}" if imputations > 1 else ""
        screen.say(f"Multiple imputations: {outputs['1']}{last}")
    if cells:
        screen.say(f"What was filled, with {prob:.0%} intervals: {cells}")


# --- what is filled


def kinds_of(given: Sequence[str]) -> dict[str, Any]:
    """Return the kinds that COLUMN=KIND names: a word, bounds such as 0..100, or categories such as low<mid<high."""
    from bnmf.columns import KINDS

    found: dict[str, Any] = {}
    for text in given:
        column, _, kind = text.rpartition("=")
        low, dots, high = kind.partition("..")
        try:
            parsed: Any = kind.split("<") if "<" in kind else (float(low), float(high)) if dots else kind
        except ValueError:
            parsed = ""
        if isinstance(parsed, tuple) and not parsed[0] < parsed[1]:
            parsed = ""
        if not column or (isinstance(parsed, str) and parsed not in KINDS):
            raise WrongUse(
                f"--kind is COLUMN=KIND, and KIND is {', '.join(KINDS)}, bounds such as 0..100, or categories such as "
                f"low<mid<high, got {text!r}"
            )
        found[column] = parsed
    return found


def _check_kinds(table: Table, kinds: dict[str, Any], data: Path) -> None:
    """Raise an error if a column that has a kind is not there, or holds words that are not of this kind."""
    if kinds and table.is_sparse:
        raise WrongUse(f"{data} is sparse, and --kind is for dense tables")
    for name, kind in kinds.items():
        if name not in table.column_labels:
            hint = ", but row names: --no-row-names takes them as data" if name == table.corner else ""
            raise WrongUse(f"{data}: there is no column {name!r}{hint}")
        words = table.words.get(table.column_labels.index(name))
        has_order = getattr(getattr(words, "dtype", None), "ordered", False)
        if words is not None and not (has_order or kind in ("categorical", "binary") or isinstance(kind, list)):
            raise WrongUse(
                f"{data}: column {name!r} holds words: it is categorical, binary, or has all of them in their order: "
                f"--kind '{name}=low<mid<high'"
            )


def _without_the_unfillable(table: Table, kinds: dict[str, Any], screen: Screen) -> Table:
    """Return a table without its columns of dates, of identifiers, and of one word."""
    if not table.words:
        return table
    from bnmf.mixed import unfillable

    X, left = table.frame(), {}
    for name, column in ((table.column_labels[at], column) for at, column in table.words.items()):
        if name not in kinds and _holds_dates(column):
            left[name] = "dates"
        elif name not in kinds and column.nunique() == 1 and column.hasnans:  # a comment here and there
            left[name] = f"{column.dropna().iloc[0]!r}, or nothing"
    left |= unfillable(X, X.notna().to_numpy(), kinds, left)
    for name, reason in left.items():
        screen.explain(f"  Not filled, and written back as it is: column {name!r} ({reason})", indent="    ")
    return table.without([*left])


def _holds_dates(column: pd.Series) -> bool:
    """Return whether everything in a column that is not missing is a date."""
    seen = column.dropna()
    return column.dtype.kind == "M" or (len(seen) > 0 and all(DATE.fullmatch(str(cell)) for cell in seen))


def _fillable(table: Table) -> tuple[Indices, Indices]:
    """Return the entries to fill: not those of a column without any observed entry, whose values would be made up."""
    rows, columns = table.to_fill()
    known = table.counts()[1] > 0
    return rows[known[columns]], columns[known[columns]]


# --- by what


def _numbers(
    posterior: Posterior,
    rows: Indices,
    columns: Indices,
    limits: tuple[Floats, Floats],
    prob: float | None,
    n_copies: int,
    seed: int,
) -> dict[str, Floats]:
    """Return the values of entries of a fit by names of outputs; each copy is from one draw, with noise."""
    import numpy as np

    from bnmf.columns import Number, values_of_entries

    rng, n_draws, number = np.random.default_rng(seed), posterior.n_chains * posterior.n_draws, Number("")
    if n_copies > n_draws:
        raise WrongUse(f"--imputations is at most the number of draws, {n_draws:,}, got {n_copies}")

    def values(of_draws: Any, number: int, chosen: Any = slice(None)) -> Floats:
        return values_of_entries(posterior, rows, columns, limits, of_draws, number, chosen).astype(float)

    found = {"": values(number.predict, 1)[0]}
    if prob is not None:
        found["lower"], found["upper"] = values(lambda draws: number.ends(draws, prob), 2)
    if n_copies:
        chosen = rng.permutation(n_draws)[:n_copies]
        copies = values(lambda draws: number.draw(draws, rng), n_copies, chosen)
        found |= {str(at): copy for at, copy in enumerate(copies, start=1)}
    return found


def _by_kinds(
    model: BayesianNMF,
    table: Table,
    kinds: dict[str, Any],
    screen: Screen,
    at: Any,
    prob: float | None,
    n_copies: int,
) -> dict[str, Any]:
    """Fit a table by the kinds of its columns, and return the values of entries by names of outputs."""
    from bnmf.imputer import NMFImputer

    X = table.frame()
    for column in set(range(X.shape[1])) - set(table.limits.columns.tolist()) - table.words.keys():
        if not (X.iloc[:, column] % 1 > 0).any():  # numbers without limits that are all whole
            X.isetitem(column, X.iloc[:, column].astype("Int64").array)
    imputer = NMFImputer(kinds=kinds, keep_empty_features=True)
    limits: dict[str, Any] = {"lower": table.lower, "upper": table.upper}

    def fit(model: Any) -> Any:
        return imputer.set_params(estimator=model).fit(X, **limits).estimator_

    screen.judge_predictions(screen.fitted(fit, model).verdict, model.max_time)
    frames = {"": imputer.transform(X, **limits)}
    if prob is not None:  # categories have none
        frames["lower"], frames["upper"] = imputer.interval(X, prob, **limits)
    if n_copies:
        copies = imputer.multiple_imputations(X, n_copies, **limits, random_state=model.random_state)
        frames |= {str(number): copy for number, copy in enumerate(copies, start=1)}
    return {word: frame.astype(object).to_numpy()[at] for word, frame in frames.items()}


# --- files


def beside(out: Path, word: str) -> Path:
    """Return a name with a word before its ending."""
    stem, dot, rest = out.name.partition(".")
    return out.with_name(f"{stem}.{word}{dot}{rest}")


def _write(path: Path, table: Table, rows: Indices, columns: Indices, values: Any) -> None:
    """Write the table with values in some entries, except where there is none, to a file or to standard output."""
    import pandas as pd

    from bnmf.tables.files import write_content
    from bnmf.tables.table import Fills

    values = pd.Series(values, dtype=object).to_numpy()
    some = ~pd.isna(values)
    write_content(path, table.render(Fills(rows[some], columns[some], values[some])))


def _write_cells(path: Path, table: Table, rows: Indices, columns: Indices, found: dict[str, Any]) -> None:
    """Write a line for each entry that was filled."""
    import pandas as pd

    from bnmf.tables.files import list_bytes, write_content

    of_rows, of_columns = table.row_labels, table.column_labels
    cells = {"row": [of_rows[at] for at in rows], "column": [of_columns[at] for at in columns]}
    cells |= {"value": found[""], "lower": found["lower"], "upper": found["upper"]}
    write_content(path, list_bytes(path, pd.DataFrame(cells, dtype=object)))
