"""``bnmf demo``: the main job, on data that every installation has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bnmf.cli import directory
from bnmf.cli.outcome import Debug, command
from bnmf.cli.sampling import fitted, with_names
from bnmf.cli.screen import Screen


@command
def demo(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Directory for the picture and the report.")] = Path(
        "demo"
    ),
    debug: Debug = False,
) -> None:
    """Hide a fifth of three tables, fill them again, and compare with the imputers of scikit-learn.

    \b
    Example:
      bnmf demo
    """
    from bnmf import demo as demonstration
    from bnmf.checking import check_table
    from bnmf.estimator import BayesianNMF
    from bnmf.imputer import ANY_TABLE

    screen = Screen()
    out.mkdir(parents=True, exist_ok=True)
    settings: Any = {**ANY_TABLE, "random_state": 0, "n_jobs": -1}
    checks, rows = {}, []
    for name, complete in demonstration.tables().items():
        n_rows, n_columns = complete.shape
        screen.say(f"{name}: {n_rows} rows x {n_columns} columns, a fifth of the entries is hidden and predicted")
        found = check_table(
            complete,
            estimator=BayesianNMF(**settings, burn_in=200),
            n_repeats=1,
            fraction=demonstration.HIDDEN_FRACTION,
            progress=True,
        )
        checks[name] = found
        errors = [f"{error:.2f}" for error in found.table["error"]]
        rows.append([name, *errors, f"{found.table['coverage'].iloc[0]:.0%}"])
    methods = [*next(iter(checks.values())).table.index]
    screen.show(["error of hidden entries", *methods, "in 90% intervals"], rows)
    screen.explain(
        "Errors are in standard deviations of the columns; scikit-learn's imputers work on scaled columns. bnmf also "
        "says how sure it is of each entry: the last column should be near 90%."
    )
    shown = demonstration.example(demonstration.tables()["breast cancer"])
    screen.say("\nThe hidden entries of breast cancer with their intervals, for the picture:")
    picture, report = out / "demo.png", out / "report.html"
    demonstration.draw(checks, shown, fitted(shown.table(), screen, **settings).posterior_, picture)
    table = demonstration.cultivars().table()
    screen.say("\nThe wines as sums of three nonnegative components, for the report:")
    model = fitted(table, screen, n_components=3, offset="min", random_state=0, n_jobs=-1)
    posterior = with_names(model.posterior_, table)
    screen.judge(posterior.verdict)
    screen.explain(
        f"For {demonstration.recognised(posterior):.0%} of the wines the largest component tells which of three "
        "cultivars they are from. The fit has not seen that."
    )
    directory.make_report(report, posterior, table.observed(), "Wines, a fifth of the entries hidden", None)
    screen.say(f"Open {picture} and {report}", style="bold")
