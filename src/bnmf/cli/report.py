"""``bnmf report``: write the report of a fit again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bnmf.cli.directory import FitDirectory
from bnmf.cli.outcome import command
from bnmf.cli.screen import Screen


@command
def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A directory of bnmf fit.", show_default=False)],
) -> None:
    """Write the report of a fit: DIR/report.html.

    bnmf fit writes it too; this command writes it again from the posterior and the data in DIR.

    \b
    Example:
      bnmf report ratings
    """
    screen = Screen()
    fit = FitDirectory(directory)
    posterior = fit.posterior()
    screen.say(f"{posterior.shape[0]:,} rows x {posterior.shape[1]:,} columns, K = {posterior.n_components}")
    screen.judge(posterior.verdict)
    screen.say(f"Report to open: {fit.report(posterior)}", style="bold")
