"""``bnmf transform``: weights of new rows in the components of a fit."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bnmf.cli import options
from bnmf.cli.directory import FitDirectory, component_names, names_of
from bnmf.cli.outcome import Debug, WrongUse, command, refuse_inputs
from bnmf.cli.sampling import read
from bnmf.cli.screen import Screen

if TYPE_CHECKING:
    from bnmf.posterior import Posterior
    from bnmf.tables import Table
    from bnmf.utils.typing import Floats

N_SHOWN = 5


@command
def transform(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A directory of bnmf fit.", show_default=False)],
    rows: Annotated[
        Path, typer.Argument(metavar="NEW_ROWS", help="A table; - for standard input.", show_default=False)
    ],
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="FILE", help="CSV with the weights; - for standard output.")
    ] = Path("-"),
    interval: Annotated[
        float | None,
        typer.Option("--interval", metavar="P", help="Intervals of probability P in place of standard deviations."),
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
    seed: options.Seed = 0,
    debug: Debug = False,
) -> None:
    """Weights of new rows in the components of a fit, with their uncertainty.

    Columns are matched by name: their order may differ, those that are not there are missing, and unknown ones are an
    error. Without names, all columns must be there in the same order. A row that was fitted keeps its weights.

    \b
    Examples:
      bnmf transform ratings new_users.csv -o weights.csv
      bnmf transform ratings new_users.csv --interval 0.9 | head
    """
    import numpy as np

    from bnmf.tables.grids import grid_bytes
    from bnmf.utils.files import write_bytes

    screen = Screen(to_stderr=str(out) == "-")
    if interval is not None and not 0 < interval < 1:
        raise WrongUse(f"--interval is a probability between 0 and 1, such as 0.9, got {interval:g}")
    refuse_inputs([out], [rows, *directory.glob("*")])
    posterior = FitDirectory(directory).posterior()
    reading = options.reading(triples, missing, unstored, header, row_names)
    limits = options.limits(lower=lower, upper=upper, capped=capped, floored=floored)
    given = read(rows, limits, **reading)
    screen.describe(given, rows)
    table = matched(given, posterior, str(rows))
    absent = posterior.shape[1] - given.shape[1]
    if absent:
        screen.say(
            f"  {absent:,} of the {posterior.shape[1]:,} columns of the fit are not there: they count as missing."
        )
    if posterior.offset is None and posterior.lower_bound == 0 and (table.numbers() < 0).any():
        raise ValueError(f"{rows}: some entries are negative, and the fit in {directory} has no --offset min")
    new = posterior.for_rows(table.values, **table.limits, unstored=table.unstored, random_state=seed)
    weights = new.factor_means()[0]
    spread, endings = _spread(new, interval)
    names = component_names(posterior.n_components)
    columns = [*names, *(f"{name} {ending}" for ending in endings for name in names)]
    content = grid_bytes(np.hstack([weights, *spread]), names_of(table.row_names, len(weights)), columns)
    if str(out) == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        write_bytes(out, content)
        screen.say(f"Weights of {len(weights):,} rows: {out}", style="bold")


def matched(table: Table, posterior: Posterior, source: str) -> Table:
    """Return new rows with the columns of a fit, in its order."""
    import numpy as np
    import scipy.sparse as sp

    from bnmf.tables.table import repeated

    n_columns = posterior.shape[1]
    fitted = None if posterior.column_names is None else [str(name) for name in posterior.column_names]
    if fitted is None or table.column_names is None or fitted == table.column_names:
        if table.shape[1] != n_columns:
            raise ValueError(f"{source}: the fit has {n_columns} columns, these rows have {table.shape[1]}")
        return table
    unknown = [name for name in table.column_names if name not in set(fitted)]
    if unknown:
        more = f" and {len(unknown) - N_SHOWN} more" if len(unknown) > N_SHOWN else ""
        raise ValueError(f"{source}: the fit has no column {', '.join(map(repr, unknown[:N_SHOWN]))}{more}")
    twice = repeated(fitted) or repeated(table.column_names)
    if twice:
        raise ValueError(f"{source}: columns are matched by name, but {twice[0]!r} occurs more than once")
    place = {name: number for number, name in enumerate(fitted)}
    order = np.array([place[name] for name in table.column_names])
    values = np.full((table.shape[0], n_columns), np.nan)
    dense = table.values
    if isinstance(dense, sp.csr_array):
        filler = 0.0 if table.unstored == "zero" else np.nan
        coo, dense = dense.tocoo(), np.full(table.shape, filler)
        dense[coo.row, coo.col] = coo.data
    values[:, order] = dense
    sides: dict[str, Any] = {}
    for name, side in table.limits.items():
        if side is not None:
            sides[name] = np.full(values.shape, np.nan)
            sides[name][:, order] = side
    return replace(table, values=values, column_names=fitted, **sides)


def _spread(new: Posterior, interval: float | None) -> tuple[list[Floats], list[str]]:
    """Return standard deviations or ends of intervals of the weights, over the chains that agree on a component."""
    import numpy as np

    draws, agrees = new.alignment.apply_W(new.W), new.alignment.agrees
    tails = [] if interval is None else [0.5 * (1 - interval), 0.5 * (1 + interval)]
    parts: list[list[Floats]] = []
    for k in range(draws.shape[3]):
        own = draws[agrees[:, k], :, :, k].reshape(-1, draws.shape[2])
        parts.append([own.std(axis=0)] if interval is None else list(np.quantile(own, tails, axis=0)))
    return [np.column_stack(part) for part in zip(*parts, strict=True)], ["sd"] if interval is None else [
        "lower",
        "upper",
    ]
