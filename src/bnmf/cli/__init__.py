"""The command line: ``bnmf`` and ``python -m bnmf``.

Each command has its own module. Heavy libraries are imported inside the command that needs them, so that ``--help``
is fast.
"""

from typing import Annotated

import typer

from bnmf.cli import check, demo, fit, impute, rank, reproduce, transform
from bnmf.cli.outcome import Commands

# Plain help, because the boxes of rich take longer to import than everything else.
app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"max_content_width": 110},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"bnmf {version('bnmf')}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Bayesian nonnegative matrix factorisation of tables with missing entries.

    \b
    Start with:
      bnmf demo                                 # see what it does
      bnmf impute survey.csv -o filled.csv      # fill the gaps of a table
      bnmf check survey.csv                     # how well are they filled?
      bnmf fit survey.csv --out survey          # components and a report
      bnmf fit --help                           # options of a command
    """


# In the order in which a newcomer needs them.
app.command("demo", short_help="See what it does, in less than half a minute.")(demo.demo)
app.command("fit", short_help="Factorise a table: predictions, components, and a report.")(fit.fit)
app.command("impute", short_help="Fill the missing entries of a table.")(impute.impute)
app.command("check", short_help="Check whether bnmf is the right tool for a table.")(check.check)
app.command("transform", short_help="Weights of new rows in the components of a fit.")(transform.transform)
app.command("report", short_help="Write the report of a fit again.")(fit.report)
app.command("rank", short_help="Choose the number of components.")(rank.rank)
app.command("reproduce", short_help="Reproduce the experiments of the paper.")(reproduce.reproduce)
