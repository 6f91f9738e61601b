"""``bnmf impute``: fill the missing entries of a table."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bnmf.cli import options
from bnmf.cli.outcome import Debug, WrongUse, command, refuse_inputs
from bnmf.cli.sampling import check_values, fitted, read
from bnmf.cli.screen import Screen

if TYPE_CHECKING:
    from bnmf.posterior import Posterior
    from bnmf.tables import Table
    from bnmf.utils.typing import Floats, Indices

# Entries whose draws are in memory at a time.
N_ENTRIES_AT_ONCE = 20_000
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
    interval: Annotated[
        float | None,
        typer.Option(
            "--interval", metavar="P", help="Also write FILE.lower and FILE.upper: intervals of probability P."
        ),
    ] = None,
    triples: options.IsTriples = False,
    missing: options.Missing = None,
    unstored: options.UnstoredOption = None,
    header: options.Header = None,
    row_names: options.RowNames = None,
    lower: options.Lower = None,
    upper: options.Upper = None,
    capped: options.Capped = None,
    floored: options.Floored = None,
    components: options.Components = "auto",
    max_time: options.MaxTime = 60.0,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    debug: Debug = False,
) -> None:
    """Fill the missing entries of a table.

    Columns may have any units, and negative numbers. The output is of the same kind as the input, and what was observed
    is written back as it was, to the last digit. With --triples, the lines without a value are filled.

    \b
    Examples:
      bnmf impute survey.csv -o filled.csv
      bnmf impute survey.csv -o filled.csv --interval 0.9   # and filled.lower.csv, filled.upper.csv
      bnmf impute sensors.tsv -o filled.tsv --missing -999
      bnmf impute water.csv -o filled.csv --capped turbidity=100   # and <0.01 in a cell is a limit
      bnmf impute ratings.csv --triples -o filled.csv       # "ann,film," becomes "ann,film,3.7"
      cat survey.csv | bnmf impute - -o - > filled.csv
    """
    screen = Screen(to_stderr=str(out) == "-")
    if interval is not None and not 0 < interval < 1:
        raise WrongUse(f"--interval is a probability between 0 and 1, such as 0.9, got {interval:g}")
    if interval is not None and str(out) == "-":
        raise WrongUse("--interval writes two more files, so -o must name a file")
    reading = options.reading(triples, missing, unstored, header, row_names)
    limits = options.limits(lower=lower, upper=upper, capped=capped, floored=floored)
    refuse_inputs([out, *(_ends(out) if interval else ())], [data])
    table = read(data, limits, **reading, keep_cells=True)
    _check_output(out, table)
    screen.describe(table, data)
    rows, columns = _fillable(table, screen)
    posterior = None
    if len(rows):
        from bnmf.imputer import ANY_TABLE
        from bnmf.posterior.verdict import WARNED, Verdict

        check_values(table, data, negative=True)
        # Subtracting means would store every zero of a sparse table.
        settings = {} if table.has_implicit_zeros else ANY_TABLE
        model = fitted(
            table,
            screen,
            n_components=components,
            **settings,
            n_draws="auto",
            max_time=max_time,
            random_state=seed,
            n_jobs=jobs or -1,
        )
        posterior = model.posterior_
        screen.judge(Verdict(tuple(finding for finding in posterior.verdict if finding.purpose in WARNED)))
        if posterior.verdict["predictions"].level not in ("good", "usable"):
            screen.say(f"Give it more time with: --max-time {10 * max_time:g}")
    else:
        screen.say("There is nothing to fill: the output is the input.")
    for path, values in _tables(out, posterior, table, rows, columns, interval):
        _write(path, table, rows, columns, values)
    if str(out) != "-":
        also = f", and their {interval:.0%} intervals in {' and '.join(map(str, _ends(out)))}" if interval else ""
        entries = "1 entry" if len(rows) == 1 else f"{len(rows):,} entries"
        screen.say(f"Filled {entries}: {out}{also}", style="bold")


def _fillable(table: Table, screen: Screen) -> tuple[Indices, Indices]:
    """Return the entries to fill: not those of a column without any observed entry, whose numbers would be made up."""
    rows, columns = table.to_fill()
    known = table.counts()[1] + table.is_limited.sum(axis=0) > 0
    empty = [i for i in range(len(known)) if not known[i]]
    if empty:
        names = table.column_names or [str(number) for number in range(1, len(known) + 1)]
        listed = ", ".join(repr(names[i]) for i in empty[:N_LISTED_COLUMNS]) + ", ..." * (len(empty) > N_LISTED_COLUMNS)
        screen.say(f"  Not filled, because nothing in them is observed: columns {listed}")
    return rows[known[columns]], columns[known[columns]]


def _tables(
    out: Path, posterior: Posterior | None, table: Table, rows: Indices, columns: Indices, interval: float | None
) -> list[tuple[Path, Floats]]:
    """Return the files to write, with the numbers that fill each."""
    import numpy as np

    if posterior is None:
        return [(path, np.empty(0)) for path in (out, *(_ends(out) if interval else ()))]
    mean = posterior.mean(rows, columns)
    limited = np.flatnonzero(table.is_limited[rows, columns])
    between: tuple[Any, ...] = ()
    if table.lower is not None and table.upper is not None:
        at = rows[limited], columns[limited]
        sides = (table.lower[at], -np.inf), (table.upper[at], np.inf)
        between = *at, *(np.where(np.isnan(side), end, side) for side, end in sides)
        mean[limited] = posterior.mean_between(*between)
    found = [(out, mean)]
    if interval is not None:
        rng = np.random.default_rng(0)
        parts = [slice(start, start + N_ENTRIES_AT_ONCE) for start in range(0, len(rows), N_ENTRIES_AT_ONCE)]
        ends = [posterior.interval(interval, rows[part], columns[part], random_state=rng) for part in parts]
        lower, upper = (np.concatenate(end) for end in zip(*ends, strict=True))
        if between:
            lower[limited], upper[limited] = posterior.interval_between(interval, *between, random_state=rng)
        found += zip(_ends(out), (lower, upper), strict=True)
    return found


def _ends(out: Path) -> tuple[Path, Path]:
    """Return the names of the files with lower and upper ends: a.csv.gz has a.lower.csv.gz."""
    stem, dot, rest = out.name.partition(".")
    return out.with_name(f"{stem}.lower{dot}{rest}"), out.with_name(f"{stem}.upper{dot}{rest}")


def _check_output(out: Path, table: Table) -> None:
    """Raise an error if the output cannot be written, or has the name of another kind of file."""
    if str(out) == "-":
        return
    if not out.parent.is_dir():
        raise WrongUse(f"there is no directory {out.parent}")
    if not os.access(out.parent, os.W_OK):  # better now than after the fit
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(out))
    ending = Path(out.name.removesuffix(".gz")).suffix.lower()
    others = {".csv", ".tsv", ".npy", ".npz", ".mtx", ".parquet", ".pq"} - set(table.layout.endings)
    if ending in others:
        raise WrongUse(f"the output is of the kind of the input: name it {out.stem}{table.layout.endings[0]}")


def _write(path: Path, table: Table, rows: Indices, columns: Indices, values: Any) -> None:
    """Write the table with numbers in its missing entries, to a file or to standard output."""
    import gzip
    import sys

    from bnmf.tables.table import Fills
    from bnmf.utils.files import write_bytes

    content = table.render(Fills(rows, columns, values))
    if str(path) == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        write_bytes(path, gzip.compress(content, mtime=0) if path.name.endswith(".gz") else content)
