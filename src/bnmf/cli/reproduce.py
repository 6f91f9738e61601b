"""The command line. Whatever is heavy is loaded inside the command that needs it."""

from __future__ import annotations

import math
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from bnmf.experiments.run import Progress

app = typer.Typer(
    help="Bayesian nonnegative matrix factorisation of matrices with holes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class Experiment(StrEnum):
    """What can be reproduced."""

    convergence = "convergence"
    factors = "factors"
    prediction = "prediction"
    noise = "noise"
    all = "all"


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"bnmf {version('bnmf')}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    """Bayesian nonnegative matrix factorisation of matrices with holes."""


@app.command()
def reproduce(
    experiment: Annotated[Experiment, typer.Argument(help="Which experiment of the paper.")] = Experiment.all,
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Directory with the data; without it they are downloaded.", exists=True, file_okay=False),
    ] = None,
    out: Annotated[Path, typer.Option(help="Directory for the page, figures, tables and finished fits.")] = Path(
        "reproduction"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="A first look in a few minutes: 2 repeats, fewer K.")] = False,
    repeats: Annotated[int, typer.Option(min=1, help="Repeats of every fit.")] = 10,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Fits at the same time; one for each core if not given.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all randomness.")] = 0,
) -> None:
    """Run the experiments of the paper and set the results beside the printed numbers.

    Every finished fit is kept in OUT/fits and never run again: an interrupted run goes on when the same command is
    given again. The page is OUT/index.html, and the same as text in OUT/README.md.
    """
    import joblib

    from bnmf.datasets import DatasetError
    from bnmf.experiments import data
    from bnmf.experiments.reproduce import EXPERIMENTS, FITS, needed_datasets
    from bnmf.experiments.reproduce import reproduce as run
    from bnmf.experiments.settings import Settings
    from bnmf.experiments.settings import quick as smaller

    experiments = EXPERIMENTS if experiment is Experiment.all else (experiment.value,)
    settings = Settings(repeats=repeats, seed=seed)
    if quick:
        settings = smaller(settings)
    try:
        datasets = data.load_datasets(needed_datasets(experiments, settings), data_dir)
    except (DatasetError, ImportError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    for dataset in datasets.values():
        if dataset.stand_in:
            typer.echo(f"{dataset.title}: the data directory has a stand-in only, and every table and figure says so.")
    shown = _display()
    try:
        with shown:
            page = run(experiments, datasets, settings, out, n_jobs=jobs or joblib.cpu_count(), report=shown.update)
    except KeyboardInterrupt:
        typer.echo(
            f"\nInterrupted: {shown.done} of {shown.total} fits are done and kept in {out / FITS}. "
            "The same command goes on from there.",
            err=True,
        )
        raise typer.Exit(130) from None
    typer.echo(f"The page is {page}")


def _display() -> Any:
    """Return a bar for a terminal, and a line now and then for a log."""
    return _Bar() if sys.stdout.isatty() else _Lines()


class _Lines:
    """Progress as lines of text, at most one in half a minute."""

    every = 30.0

    def __init__(self) -> None:
        self.done = self.total = 0
        self._next = -math.inf
        self._estimated = False

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def update(self, progress: Progress) -> None:
        """Take note of a finished fit, and say so if it is time."""
        first = self.total == 0
        self.done, self.total = progress.done, progress.total
        if first:
            typer.echo(f"{progress.total} fits, {progress.found} of them found finished")
            return
        # The first estimates are wild: kernels are being loaded.
        early = not self._estimated and progress.done - progress.found >= 20
        if early or progress.done == progress.total or time.monotonic() >= self._next:
            self._estimated = self._estimated or early
            self._next = time.monotonic() + self.every
            typer.echo(f"{progress.done} of {progress.total} fits, {_left(progress)}")


class _Bar:
    """Progress as a bar."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        self.done = self.total = 0
        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("fits, after"), TimeElapsedColumn())
        self._bar = RichProgress(*columns, TextColumn("{task.fields[left]}"))
        self._task = self._bar.add_task("fits", total=None, left="")

    def __enter__(self) -> _Bar:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def update(self, progress: Progress) -> None:
        """Take note of a finished fit."""
        self.done, self.total = progress.done, progress.total
        self._bar.update(self._task, completed=progress.done, total=progress.total, left=_left(progress))


def _left(progress: Progress) -> str:
    from bnmf.progress import duration

    if progress.done == progress.total:
        return "all done"
    return "" if math.isnan(progress.left) else f"about {duration(progress.left)} left"
