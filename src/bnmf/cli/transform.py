"""``bnmf transform``: weights of new rows in the components of a fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bnmf.cli import options
from bnmf.cli.directory import FitDirectory, component_names
from bnmf.cli.outcome import WrongUse, check_outputs, command
from bnmf.cli.screen import Screen
from bnmf.utils.text import counted

if TYPE_CHECKING:
    from bnmf.posterior import Posterior
    from bnmf.tables import Table
    from bnmf.utils.typing import Floats, Indices

N_SHOWN = 5


@command
def transform(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A directory of bnmf fit.")],
    rows: Annotated[Path, typer.Argument(metavar="NEW_ROWS", help="A table; - for standard input.")],
    out: Annotated[Path, options.option("CSV with the weights; - for standard output.", "FILE", "-o", "--out")] = Path(
        "-"
    ),
    interval: Annotated[
        float | None,
        options.option("Intervals of probability P in place of standard deviations.", "P"),
    ] = None,
    *,
    reading: options.Reading,
    seed: options.Seed = 0,
) -> None:
    """Weights of new rows in the components of a fit, with their uncertainty.

    Columns are matched by name: their order may differ, those that are not there are missing, and unknown ones are an
    error. Without names, all columns must be there in the same order. A row that was fitted keeps its weights. Missing
    entries of new rows are filled by bnmf impute --fit.

    \b
    Examples:
      bnmf transform ratings new_users.csv -o weights.csv
      bnmf transform ratings new_users.csv --interval 0.9 | head
    """
    import numpy as np

    from bnmf.tables.files import write_content
    from bnmf.tables.frames import grid_bytes

    screen = Screen(to_stderr=str(out) == "-")
    options.check_interval(interval)
    check_outputs([out], [rows, *directory.glob("*")])
    if out.suffix not in ("", ".csv", ".txt"):
        raise WrongUse(f"weights are written as CSV: give --out a name that ends in .csv, not {out.suffix}")
    fitted = FitDirectory(directory)
    posterior = fitted.posterior()
    table = reading.as_in(fitted.settings()).table(rows)
    screen.describe(table, rows)
    new, _ = rows_of_fit(posterior, table, str(rows), seed, screen)
    weights = new.factor_means()[0]
    spread = _spread(new, interval)
    names = component_names(posterior.n_components)
    columns = [*names, *(f"{name} {ending}" for ending in spread for name in names)]
    write_content(out, grid_bytes(np.hstack([weights, *spread.values()]), table.row_labels, columns))
    if str(out) != "-":
        screen.say(f"Weights of {len(weights):,} rows: {out}", style="bold")


def rows_of_fit(
    posterior: Posterior, table: Table, source: str, seed: int, screen: Screen
) -> tuple[Posterior, Indices]:
    """Return the posterior of new rows, and the column of the fit for each of theirs."""
    matched, order = _matched(table, posterior, source)
    absent = posterior.shape[1] - table.shape[1]
    if absent:
        screen.explain(
            f"  {absent:,} of the {posterior.shape[1]:,} columns of the fit are not there: they count as missing.",
            indent="    ",
        )
    if posterior.offset is None and posterior.lower_bound == 0 and (table.numbers() < 0).any():
        raise ValueError(f"{source}: some entries are negative, and the fit has no --offset min")
    limits: dict[str, Any] = {"lower": matched.lower, "upper": matched.upper}
    return posterior.posterior_of(matched.values, **limits, unstored=matched.unstored, random_state=seed), order


def _matched(table: Table, posterior: Posterior, source: str) -> tuple[Table, Indices]:
    """Return new rows with the columns of a fit, in its order, and the place of each column there."""
    import numpy as np
    import pandas as pd

    from bnmf.tables.table import repeated

    n_columns = posterior.shape[1]
    names = posterior.column_names
    fitted = [] if names is None or isinstance(names, pd.RangeIndex) else [str(name) for name in names]
    if not fitted or table.column_names is None or fitted == table.column_names:
        if table.shape[1] != n_columns:
            raise ValueError(f"{source}: the fit has {n_columns} columns, these rows have {table.shape[1]}")
        return table, np.arange(n_columns)
    twice = repeated(fitted) or repeated(table.column_names)
    if twice:
        raise ValueError(f"{source}: columns are matched by name, but {twice[0]!r} occurs more than once")
    order = pd.Index(fitted).get_indexer(pd.Index(table.column_names))
    unknown = [repr(name) for name, place in zip(table.column_names, order, strict=True) if place < 0]
    if unknown:
        listed = f"column{'s' if len(unknown) > 1 else ''} {', '.join(unknown[:N_SHOWN])}"
        if len(unknown) > N_SHOWN:
            listed += f" and {counted(len(unknown) - N_SHOWN, 'other')}"
        raise ValueError(f"{source}: the fit has no {listed}: leave out what is not of it with --ignore")
    values = np.full((table.shape[0], n_columns), np.nan)
    values[:, order] = table.dense().values
    wide, of = replace(table, values=values, column_names=fitted), table.limits
    return wide.with_limits(of.rows, order[of.columns], of.lower, of.upper), order


def _spread(new: Posterior, interval: float | None) -> dict[str, Floats]:
    """Return standard deviations or ends of intervals of the weights, over the chains that agree on a component."""
    import numpy as np

    draws, agrees = new.alignment.apply_W(new.W), new.alignment.agrees
    components = [draws[agrees[:, k], :, :, k].reshape(-1, draws.shape[2]) for k in range(draws.shape[3])]
    if interval is None:
        return {"sd": np.column_stack([own.std(axis=0) for own in components])}
    tails = {"lower": 0.5 * (1 - interval), "upper": 0.5 * (1 + interval)}
    return {
        name: np.column_stack([np.quantile(own, tail, axis=0) for own in components]) for name, tail in tails.items()
    }
