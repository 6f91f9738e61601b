"""``bnmf demo``: a fit to look at, on data that every installation has."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from bnmf.cli import directory, verdict
from bnmf.cli.outcome import Debug, command
from bnmf.cli.screen import Screen


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
    from bnmf.digits import draw_digits, hidden_digits, restore, score
    from bnmf.utils.text import duration

    screen = Screen()
    out.mkdir(parents=True, exist_ok=True)
    digits = hidden_digits()
    hidden = digits.hidden.mean()
    screen.say(f"{len(digits.pixels):,} handwritten digits of 8 x 8 pixels, values 0 to 16; {hidden:.0%} are hidden.")
    begin = time.monotonic()
    model = restore(digits)
    posterior = model.posterior_
    screen.say(
        f"Sampled in {duration(time.monotonic() - begin)}: {posterior.n_chains} chains of {posterior.n_draws} draws."
    )
    found = score(digits, model)
    screen.show(
        ["hidden pixels predicted by", "error (RMSE)", "in 90% intervals"],
        [
            ["their mean over all digits", f"{found.mean_error:.2f}", ""],
            ["bnmf", f"{found.error:.2f}", f"{found.coverage:.1%}"],
        ],
    )
    sentence, _ = verdict.predictions(posterior)
    screen.say(f"{sentence} {verdict.components(posterior)}", style="bold")
    screen.say(
        f"In words: from half of its pixels a digit is restored with {found.error / found.mean_error:.0%} of the error "
        "of a guess by the mean, and each restored pixel has an interval that says how sure it is. A digit is written "
        f"as a sum of {posterior.n_components} parts, which the model found by itself."
    )
    picture, report = out / "digits.png", out / "report.html"
    draw_digits(digits, model, picture)
    data = digits.observed()
    named = replace(posterior, row_names=data.row_names, column_names=data.column_names)
    directory.make_report(report, named, data, "Digits with half of the pixels hidden", None)
    screen.say(f"Open {picture} and {report}", style="bold")
