"""``bnmf reproduce``: run the experiments of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from bnmf.cli.outcome import Interrupted, command


@command
def reproduce(
    experiment: Annotated[
        Literal["convergence", "factors", "prediction", "noise", "all"],
        typer.Argument(metavar="EXPERIMENT", help="The experiment to run."),
    ] = "all",
    data_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory with the data. Without it the data are downloaded.",
            exists=True,
            file_okay=False,
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Directory for the page, figures, tables and finished fits.")
    ] = Path("reproduction"),
    quick: Annotated[bool, typer.Option("--quick", help="Small run of a few minutes: 2 repeats, fewer K.")] = False,
    repeats: Annotated[int, typer.Option(min=1, metavar="N", help="Number of repeats of every fit.")] = 10,
    jobs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Number of parallel processes; by default one per core.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Random seed.")] = 0,
) -> None:
    """Run the experiments of the paper and compare the results with its printed numbers.

    The results are written to OUT/index.html, and as Markdown to OUT/README.md. Finished fits are kept in OUT/fits: to
    continue an interrupted run, run the same command again.
    """
    import joblib

    from bnmf.paper import experiments
    from bnmf.paper import reproduce as paper

    chosen = experiments.EXPERIMENTS if experiment == "all" else (experiment,)
    settings = experiments.Settings(repeats=repeats, seed=seed)
    if quick:
        settings = experiments.quick(settings)
    datasets = paper.load_datasets(experiments.needed_datasets(chosen), data_dir)
    try:
        page = paper.reproduce(chosen, datasets, settings, out, n_jobs=jobs or joblib.cpu_count(), progress=True)
    except KeyboardInterrupt as interrupt:
        done = f"{interrupt} and kept in {out / paper.FITS_DIRECTORY}. " if str(interrupt) else ""
        raise Interrupted(f"Interrupted. {done}Run the same command again to continue.") from None
    typer.echo(f"Results: {page}")
