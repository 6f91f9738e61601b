"""The command line: ``bnmf`` and ``python -m bnmf``.

Each command has its own module. Heavy libraries are imported inside the command that needs them, so that ``--help``
is fast.
"""

from typing import Annotated

import typer

from bnmf.cli import reproduce

# Plain help, because the boxes of rich take longer to import than everything else.
app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


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
    """Bayesian nonnegative matrix factorisation of matrices with missing entries."""


app.command("reproduce", short_help="Reproduce the experiments of the paper.")(reproduce.reproduce)
