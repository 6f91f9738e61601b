"""``bnmf impute``: fill the missing entries of a table."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bnmf.cli import options
from bnmf.cli.directory import FitDirectory
from bnmf.cli.mixed import impute_mixed, kinds_of
from bnmf.cli.outcome import Debug, WrongUse, command, refuse_inputs
from bnmf.cli.sampling import check_values, fitted, judge_predictions
from bnmf.cli.screen import Screen
from bnmf.cli.transform import rows_of_fit

if TYPE_CHECKING:
    from bnmf.posterior import Posterior
    from bnmf.tables import Table
    from bnmf.utils.typing import Floats, Indices

# Draws that are in memory at a time, and the probability of the intervals that --cells lists.
N_DRAWS_AT_ONCE = 20_000_000
CELLS_INTERVAL = 0.9
N_LISTED_COLUMNS = 5


@command
def impute(
    data: options.Data,
    out: Annotated[
        Path,
        typer.Option(
            "-o", "--out", metavar="FILE", help="The filled table; - for standard output.", show_default=False
        ),
    ],
    fit: Annotated[
        Path | None,
        typer.Option("--fit", metavar="DIR", help="Fill rows by a fit that bnmf fit made, in place of a new fit."),
    ] = None,
    interval: Annotated[
        float | None,
        typer.Option(
            "--interval", metavar="P", help="Also write FILE.lower and FILE.upper: intervals of probability P."
        ),
    ] = None,
    cells: Annotated[
        Path | None,
        typer.Option(
            "--cells", metavar="FILE", help="Also list what was filled: row, column, value, and interval (of 0.9 or P)."
        ),
    ] = None,
    imputations: Annotated[
        int,
        typer.Option(
            "--imputations",
            min=0,
            metavar="N",
            help="Also write FILE.1 to FILE.N: draws in place of means.",
            show_default=False,
        ),
    ] = 0,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="COLUMN=KIND",
            help="Kind of a column of a text: number, nonnegative, 0..100, whole, ordered, low<mid<high, binary or "
            "categorical. May be repeated.",
            show_default=False,
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore",
            metavar="COLUMN",
            help="A column of a text that is no part of the model and is written back as it is. May be repeated.",
            show_default=False,
        ),
    ] = None,
    *,
    reading: options.Reading,
    components: options.Components = "auto",
    max_time: options.MaxTime = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    debug: Debug = False,
) -> None:
    """Fill the missing entries of a table.

    Columns may have any units, and negative numbers. What was observed is written back as it was, to the last digit.
    The output is of the kind that its name says, or that of the input. With --triples, the lines without a value are
    filled. Text is filled as categories, and columns of dates and identifiers are written back as they are.

    \b
    Examples:
      bnmf impute survey.csv -o filled.csv
      bnmf impute survey.csv -o filled.csv --interval 0.9   # and filled.lower.csv, filled.upper.csv
      bnmf impute survey.csv -o filled.csv --cells cells.csv --imputations 20
      bnmf impute new.csv --fit survey -o filled.csv        # new rows, by a fit of bnmf fit
      bnmf impute sensors.tsv -o filled.parquet --missing -999
      bnmf impute water.csv -o filled.csv --capped turbidity=100   # and <0.01 in a cell is a limit
      bnmf impute people.csv -o filled.csv --kind size=S<M<L --kind share=0..100 --ignore name
      bnmf impute ratings.csv --triples -o filled.csv       # "ann,film," becomes "ann,film,3.7"
      cat survey.csv | bnmf impute - -o - > filled.csv
    """
    import numpy as np

    from bnmf.tables.table import TextColumns

    screen = Screen(to_stderr=str(out) == "-")
    options.check_interval(interval)
    numbered = [beside(out, str(number)) for number in range(1, imputations + 1)]
    ends = [beside(out, "lower"), beside(out, "upper")] if interval else []
    if str(out) == "-" and (ends or numbered):
        raise WrongUse("--interval and --imputations write more files, so -o must name a file")
    outputs = [out, *ends, *numbered, *([cells] if cells else [])]
    if len(set(outputs)) < len(outputs):
        raise WrongUse(f"{cells} would be written twice: choose another name for --cells")
    refuse_inputs(outputs, [data, *(fit.glob("*") if fit else ())])
    for path in outputs:
        _check_writable(path)
    sampling: dict[str, Any] = {"max_time": max_time, "random_state": seed, "n_jobs": jobs or -1}
    kinds = kinds_of(kind or ())
    try:
        table = reading.table(data, keep_cells=True) if not (kinds or ignore) else None
    except TextColumns:
        if fit is not None or cells is not None or str(data) == "-" or data.suffix == ".gz":
            raise
        table = None
    if table is None:
        if fit is not None or cells is not None or reading.triples:
            raise WrongUse("--kind and --ignore do not go with --fit, --cells and --triples")
        files_to_write = out, ends, numbered
        impute_mixed(
            data, files_to_write, reading, kinds, ignore or (), interval, screen, n_components=components, **sampling
        )
        return
    output = _output(table, out, data, cells)
    screen.describe(table, data)
    rows, columns = _fillable(table, screen)
    if not len(rows):
        screen.say("There is nothing to fill: the output is the input.")
        predicted = Predictions(None, rows, columns, columns, table)
    elif fit is not None:
        posterior, order = rows_of_fit(FitDirectory(fit).posterior(), table, str(data), seed, screen)
        predicted = Predictions(posterior, rows, columns, order[columns], table)
    else:
        posterior = _fit(table, data, screen, components, sampling, triples=reading.triples)
        predicted = Predictions(posterior, rows, columns, columns, table)
    mean = predicted.mean()
    files = [(out, mean)]
    between = predicted.interval(interval or CELLS_INTERVAL) if interval or cells else ()
    files += zip(ends, between, strict=False)
    files += zip(numbered, predicted.draws(imputations, np.random.default_rng(seed)), strict=True)
    for path, values in files:
        _write(path, output, predicted, values)
    if cells:
        _write_cells(cells, table, predicted, mean, *between)
    if str(out) != "-":
        entries = "1 entry" if len(rows) == 1 else f"{len(rows):,} entries"
        screen.say(f"Filled {entries}: {out}", style="bold")
    if ends:
        screen.say(f"{interval:.0%} intervals: {ends[0]} and {ends[1]}")
    if numbered:
        screen.say(f"Multiple imputations: {numbered[0]}{f' to {numbered[-1]}' if imputations > 1 else ''}")
    if cells:
        screen.say(f"What was filled, with {interval or CELLS_INTERVAL:.0%} intervals: {cells}")


def _fit(
    table: Table, data: Path, screen: Screen, components: Any, sampling: dict[str, Any], *, triples: bool
) -> Posterior:
    """Return the posterior of a table, and say what its predictions are worth."""
    from bnmf.imputer import ANY_TABLE

    check_values(table, data, negative=True)
    # Subtracting means would store every zero of a sparse table.
    settings = {} if table.has_implicit_zeros else options.RATINGS | {"prior": "normal"} if triples else ANY_TABLE
    model = fitted(table, screen, n_components=components, n_draws="auto", **settings, **sampling)
    judge_predictions(model.posterior_, screen, sampling["max_time"])
    return model.posterior_


class Predictions:
    """What a posterior says about the entries to fill: `rows` and `columns` of the table, columns `at` of the fit."""

    def __init__(self, posterior: Posterior | None, rows: Indices, columns: Indices, at: Indices, table: Table) -> None:
        import numpy as np

        self.posterior, self.rows, self.columns, self.at = posterior, rows, columns, at
        none = np.full((2, len(rows)), np.nan)
        limits: Any = none if table.limits is None else table.limits.at(rows, columns)
        self.lower, self.upper = limits
        self.limited = np.flatnonzero(~np.isnan(self.lower))

    def _between(self) -> tuple[Any, ...]:
        some = self.limited
        return self.rows[some], self.at[some], self.lower[some], self.upper[some]

    def _parts(self) -> Iterator[slice]:
        """Yield parts of the entries whose draws fit into memory."""
        assert self.posterior is not None
        step = max(N_DRAWS_AT_ONCE // (self.posterior.n_chains * self.posterior.n_draws), 1)
        yield from (slice(start, start + step) for start in range(0, len(self.rows), step))

    def mean(self) -> Floats:
        """Return the posterior means, within limits where there are some."""
        import numpy as np

        if self.posterior is None:
            return np.empty(0)
        mean = self.posterior.mean(self.rows, self.at)
        if len(self.limited):
            mean[self.limited] = self.posterior.mean_between(*self._between())
        return mean

    def interval(self, prob: float) -> tuple[Floats, Floats]:
        """Return the ends of intervals."""
        import numpy as np

        if self.posterior is None:
            return np.empty(0), np.empty(0)
        rng = np.random.default_rng(0)
        ends = [self.posterior.interval(prob, self.rows[p], self.at[p], random_state=rng) for p in self._parts()]
        lower, upper = np.concatenate(ends, axis=1)
        if len(self.limited):
            found = self.posterior.interval_between(prob, *self._between(), random_state=rng)
            lower[self.limited], upper[self.limited] = found
        return lower, upper

    def draws(self, number: int, rng: Any) -> Floats:
        """Return draws (number, entries) with noise, each from one draw of the factors."""
        import numpy as np

        from bnmf.posterior import predictions

        if self.posterior is None or not number:
            return np.empty((number, len(self.rows)))
        W, Z, noise = self.posterior.flat
        if number > len(W):
            raise WrongUse(f"--imputations is at most the number of draws, {len(W):,}, got {number}")
        chosen = rng.permutation(len(W))[:number]
        drawn = np.hstack(
            [
                self.posterior.draws_of(self.rows[part], self.at[part], noise=True, random_state=rng).reshape(
                    len(W), -1
                )[chosen]
                for part in self._parts()
            ]
        )
        if len(self.limited):
            rows, at, low, high = self._between()
            offset = 0.0 if self.posterior.offset is None else self.posterior.offset[at]
            for copy, draw in zip(drawn, chosen, strict=True):  # of one draw, every quantile is its value
                one = W[[draw]], Z[[draw]], noise.choose([draw])
                found = predictions.quantiles_between(one, rows, at, np.array([0.5]), low - offset, high - offset, rng)
                lowest = np.clip(self.posterior.lower_bound, low, high)  # the data may not be negative
                copy[self.limited] = np.clip(found[0] + offset, lowest, high)
        return drawn


def _fillable(table: Table, screen: Screen) -> tuple[Indices, Indices]:
    """Return the entries to fill: not those of a column without any observed entry, whose numbers would be made up."""
    import numpy as np

    rows, columns = table.to_fill()
    known = table.counts()[1] > 0
    if table.limits is not None:
        known[table.limits.columns] = True
    empty = np.flatnonzero(~known).tolist()
    if empty:
        names = [repr(table.column_labels[i]) for i in empty]
        listed = ", ".join(names[:N_LISTED_COLUMNS]) + ", ..." * (len(names) > N_LISTED_COLUMNS)
        screen.say(f"  Not filled, because nothing in them is observed: columns {listed}")
    return rows[known[columns]], columns[known[columns]]


def beside(out: Path, word: str) -> Path:
    """Return a name with a word before its ending.

    Examples
    --------
    >>> beside(Path("a.csv.gz"), "lower").name, beside(Path("v1.2/b.tsv"), "1").name
    ('a.lower.csv.gz', 'b.1.tsv')
    """
    stem, dot, rest = out.name.partition(".")
    return out.with_name(f"{stem}.{word}{dot}{rest}")


def _check_writable(out: Path) -> None:
    """Raise an error if an output cannot be written: better now than after the fit."""
    if str(out) == "-":
        return
    if not out.parent.is_dir():
        raise WrongUse(f"there is no directory {out.parent}")
    if not os.access(out.parent, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(out))


def _output(table: Table, out: Path, data: Path, cells: Path | None) -> Table:
    """Return the table in the kind of file that the name of the output asks for."""
    from bnmf.tables import TableError
    from bnmf.tables.files import LISTS, ending, writer

    try:
        if cells is not None and ending(cells) not in LISTS:
            raise TableError(f"--cells is a file of one of the kinds {', '.join(LISTS)}, got {cells}")
        return writer(table, out, data)
    except TableError as error:
        raise WrongUse(str(error)) from None


def _write(path: Path, table: Table, predicted: Predictions, values: Floats) -> None:
    """Write the table with numbers in its missing entries, to a file or to standard output."""
    from bnmf.tables.files import write_content
    from bnmf.tables.table import Fills

    write_content(path, table.render(Fills(predicted.rows, predicted.columns, values)))


def _write_cells(path: Path, table: Table, predicted: Predictions, *values: Floats) -> None:
    """Write a line for each entry that was filled."""
    from bnmf.tables.files import list_bytes, write_content

    rows, columns = table.row_labels, table.column_labels
    names = [[rows[i], columns[j]] for i, j in zip(predicted.rows.tolist(), predicted.columns.tolist(), strict=True)]
    numbers = zip(*(part.tolist() for part in values), strict=True)
    cells = [[*pair, *each] for pair, each in zip(names, numbers, strict=True)]
    write_content(path, list_bytes(path, ["row", "column", "value", "lower", "upper"], cells))
