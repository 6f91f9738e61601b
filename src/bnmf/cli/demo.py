"""``bnmf demo``: the main job, on data that every installation has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bnmf.cli.outcome import command
from bnmf.cli.screen import Screen


@command
def demo(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Directory for the picture and the report.")] = Path(
        "demo"
    ),
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
    from bnmf.report import write_report

    screen = Screen()
    out.mkdir(parents=True, exist_ok=True)
    settings: Any = {**ANY_TABLE, "random_state": 0, "n_jobs": -1}
    tables, checks, rows = demonstration.tables(), {}, []
    for name, complete in tables.items():
        n_rows, n_columns = complete.shape
        screen.explain(f"{name}: {n_rows} rows x {n_columns} columns, a fifth of the entries is hidden and predicted")
        found = check_table(
            complete,
            estimator=BayesianNMF(**settings, burn_in=200),
            n_repeats=1,
            fraction=demonstration.HIDDEN_FRACTION,
            random_state=0,
            progress=True,
        )
        checks[name] = found
        errors = [f"{error:.2f}" for error in found.table["error"]]
        rows.append([name, *errors, f"{found.table['coverage'].iloc[0]:.0%}"])
    screen.show(["error", *found.table.index, "coverage"], rows)
    screen.explain(
        "Root mean squared errors of the hidden entries, in standard deviations of the columns; the imputers of "
        "scikit-learn work on scaled columns. Coverage is the share of hidden entries inside bnmf's 90% intervals."
    )
    shown = tables["breast cancer"]
    screen.say("\nThe hidden entries of breast cancer with their intervals, for the picture:")
    picture, report = out / "demo.png", out / "report.html"
    posterior = screen.fitted(lambda model: model.fit(demonstration.seen(shown)), BayesianNMF(**settings))
    demonstration.draw(checks, shown, posterior, picture)
    table = demonstration.seen(demonstration.cultivars())
    screen.say("\nThe wines as sums of three nonnegative components, for the report:")
    options: Any = {"n_components": 3, "offset": "min", "noise": "column", "n_draws": 400}
    options |= {"random_state": 0, "n_jobs": -1}
    posterior = screen.fitted(lambda model: model.fit(table), BayesianNMF(**options))
    screen.judge(posterior.verdict)
    screen.explain(
        f"The largest component of a wine tells its cultivar, which the fit has not seen, for "
        f"{demonstration.recognised(posterior):.0%} of the wines."
    )
    title = "Wines, a fifth of the entries hidden"
    write_report(posterior, report, table, title=title, settings=options)
    screen.say(f"Open {picture} and {report}", style="bold")
