"""``bnmf demo``: a fit to look at, on data that every installation has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bnmf.cli import directory
from bnmf.cli.outcome import Debug, command
from bnmf.cli.sampling import fitted, with_names
from bnmf.cli.screen import Screen

MAX_TIME = 30.0
"""Seconds of sampling: the whole takes less than a minute."""


@command
def demo(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Directory for the picture and the report.")] = Path(
        "demo"
    ),
    debug: Debug = False,
) -> None:
    """Hide half of the pixels of 1,797 handwritten digits and restore them, in less than a minute.

    \b
    Example:
      bnmf demo
    """
    from bnmf.digits import draw_digits, hidden_digits, score

    screen = Screen()
    out.mkdir(parents=True, exist_ok=True)
    digits = hidden_digits()
    hidden = digits.hidden.mean()
    screen.say(f"{len(digits.pixels):,} handwritten digits of 8 x 8 pixels, values 0 to 16; {hidden:.0%} are hidden.")
    table = digits.table()
    options: Any = {"n_draws": "auto", "burn_in": 150, "max_time": MAX_TIME, "random_state": 0, "n_jobs": -1}
    model = fitted(table, screen, **options)
    posterior = with_names(model.posterior_, table)
    found = score(digits, model)
    screen.show(
        ["hidden pixels predicted by", "error (RMSE)", "in 90% intervals"],
        [
            ["their mean over all digits", f"{found.mean_error:.2f}", ""],
            ["bnmf", f"{found.error:.2f}", f"{found.coverage:.1%}"],
        ],
    )
    screen.judge(posterior.verdict)
    screen.explain(
        f"In words: from half of its pixels a digit is restored with {found.error / found.mean_error:.0%} of the error "
        "of a guess by the mean, and each restored pixel has an interval that says how sure it is. A digit is written "
        f"as a sum of {posterior.n_components} parts, which the model found by itself."
    )
    picture, report = out / "digits.png", out / "report.html"
    draw_digits(digits, model, picture)
    directory.make_report(report, posterior, table.observed(), "Digits with half of the pixels hidden", None)
    screen.say(f"Open {picture} and {report}", style="bold")
