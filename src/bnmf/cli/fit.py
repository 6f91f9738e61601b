"""``bnmf fit``: sample the posterior of a table and keep everything in a directory; ``bnmf report``: its report."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bnmf import __version__
from bnmf.cli import options
from bnmf.cli.directory import FitDirectory
from bnmf.cli.outcome import Interrupted, WrongUse, command
from bnmf.cli.screen import Screen, check_values, components_of, longer

if TYPE_CHECKING:
    from bnmf.estimator import BayesianNMF
    from bnmf.posterior import Posterior
    from bnmf.tables import Table

FIXED = ("components", "prior", "noise", "scale", "offset", "burn_in", "seed")
"""Settings that a fit keeps when it is resumed."""
CHANGEABLE = ("chains", "draws", "max_time")
"""Settings that may change when it is resumed."""


@command
def fit(
    context: typer.Context,
    out: Annotated[Path, options.option("Directory for the results.", "DIR")],
    data: Annotated[
        Path | None,
        typer.Argument(metavar="DATA", help="The table; - for standard input. Not needed with --resume."),
    ] = None,
    *,
    reading: options.Reading,
    components: options.Components = "auto",
    prior: options.Prior = "ard",
    noise: options.Noise = "auto",
    scale: options.Scale = "column",
    offset: options.Offset = "auto",
    chains: options.Chains = 4,
    burn_in: options.BurnIn = 300,
    draws: options.Draws = "auto",
    max_time: options.MaxTime = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    scheduler: Annotated[
        str | None,
        options.option(
            "Fit on a Dask cluster; DATA is then a directory of Parquet parts that all workers see.",
            "ADDRESS",
        ),
    ] = None,
    resume: Annotated[bool, options.option("Resume the fit in DIR, or take more draws.", None, "--resume")] = False,
) -> None:
    """Factorise a table: predictions, components, and a report.

    DATA is CSV or other delimited text, GCT, NumPy (.npy, .npz), sparse (.npz of SciPy, Matrix Market), Parquet, Excel
    (.xlsx) or AnnData (.h5ad), which is recognised by its content, also if compressed by gzip. Names are kept.

    \b
    Examples:
      bnmf fit ratings.csv --out ratings             # K is learned, too
      bnmf fit genes.tsv -k 20 --prior gl22 --out g  # a model of the paper
      bnmf fit counts.mtx --unstored missing --out c
      bnmf fit votes.csv --triples --out v           # lines of row, column, value
      bnmf fit cells.h5ad --layer counts --out cells
      bnmf fit --resume --out g --draws 1000         # resume, or take more draws
      bnmf fit parts --triples --scheduler tcp://10.0.0.1:8786 --out v   # Dask

    DIR then holds report.html, the factors W.csv and Z.csv, posterior.npz, settings.json and the data, and for AnnData
    fit.h5ad with the factors in obsm and varm. If the fit is
    cut off, by Ctrl-C or worse, --resume continues it and gives the draws of an uninterrupted run.
    """
    screen, directory = Screen(), FitDirectory(out)
    given = {name: context.params[name] for name in (*FIXED, *CHANGEABLE)}
    how = f"{context.find_root().info_name} fit --resume --out {shlex.quote(str(out))}"
    if scheduler is not None:
        how += f" --scheduler {scheduler}"
        ignored = [name for name, value in vars(reading).items() if name != "triples" and value is not None]
        if ignored:
            option = ignored[0].replace("_", "-")
            raise WrongUse(f"--{option} is for a table in a file, and cannot be combined with --scheduler")
    chosen: dict[str, Any] = {}
    if resume:
        settings = _changed(context, directory, given)
        screen.say(f"Resuming the fit of {settings['data']} in {out}.")
    elif data is None:
        raise WrongUse("name the table to fit: bnmf fit DATA --out DIR (only --resume needs none)")
    else:
        directory.check_unused()
        if reading.triples and scheduler is None:
            chosen = {name: value for name, value in options.RATINGS.items() if _is_default(context, name)}
        settings = {"bnmf": __version__, "data": str(data), "unstored": None, **given, **chosen}
    model = _model(settings, directory, jobs)  # which raises errors before the table is read
    if scheduler is not None:
        settings |= {"scheduler": scheduler} | ({} if resume else {"triples": reading.triples})
        posterior = _fit_parts(model, settings, directory, screen, how)
    else:
        if resume:
            table = directory.table()
            if data is not None and not _same(reading.as_in(settings).table(data), table):
                raise WrongUse(f"{directory.path} holds the fit of other data than {data}: leave out one of them")
            screen.describe(table, out / "data.npz")
            directory.write_settings(settings)
        else:
            table = reading.table(Path(settings["data"]))
            screen.describe(table, settings["data"])
            if chosen:
                words = " ".join(f"--{name} {value}" for name, value in chosen.items())
                screen.explain(f"  Settings for triples, where you did not give others: {words}", indent="    ")
            check_values(table, settings["data"], negative=model.takes_negative)
            if model.offset in ("min", "mean") and table.has_implicit_zeros:
                raise ValueError(
                    f"--offset {model.offset} would store every zero of a sparse table: leave it out, or use "
                    "--unstored missing"
                )
            directory.begin(table, settings | {"unstored": table.unstored, "reading": reading.of_missing})
        with _resumable(how):
            posterior = screen.fitted(table.fit, model)
    with _resumable(how):
        more = longer(settings["max_time"]) if settings["draws"] == "auto" else "--draws auto"
        screen.judge(posterior.verdict, f"Take more draws with: {how} {more}")
        directory.finish(posterior)
        if scheduler is None:
            screen.say(f"Report to open: {directory.report(posterior)}", style="bold")
    files = "W.csv, Z.csv, posterior.npz, " + ("data.npz, settings.json" if scheduler is None else "settings.json")
    screen.say(f"{'Also in' if scheduler is None else 'In'} {directory.path}: {files}")


@contextmanager
def _resumable(how: str) -> Iterator[None]:
    """Say how to resume a fit that is interrupted, by Ctrl-C or by a cluster that is lost, or runs out of time."""
    from bnmf.distributed import ClusterLost

    kept = f"What was drawn is kept; resume with: {how}"
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"Interrupted. {kept}") from None
    except (ClusterLost, TimeoutError) as error:
        raise ValueError(f"{error}. {kept}") from None


def _model(settings: dict[str, Any], directory: FitDirectory, jobs: int | None) -> BayesianNMF:
    """Return the model of a fit, or raise an error about its parameters."""
    from bnmf.estimator import BayesianNMF

    model = BayesianNMF(
        settings["components"],
        **options.model_parameters(*(settings[name] for name in ("prior", "noise", "scale", "offset"))),
        n_chains=settings["chains"],
        burn_in=settings["burn_in"],
        n_draws=settings["draws"],
        max_time=settings["max_time"],
        random_state=settings["seed"],
        n_jobs=jobs or -1,
        checkpoint=directory.checkpoint,
    )
    model.check_parameters()
    return model


def _changed(context: typer.Context, directory: FitDirectory, given: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the fit in a directory, with what may change replaced by what the user gave."""
    settings = directory.settings()
    for name in (*FIXED, *CHANGEABLE):
        if _is_default(context, name):
            continue
        if name in FIXED and given[name] != settings[name]:
            option = name.replace("_", "-")
            raise WrongUse(f"--{option} is {settings[name]} in {directory.path}: another value needs another --out")
        settings[name] = given[name]
    return settings


def _is_default(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "DEFAULT"


def _same(a: Table, b: Table) -> bool:
    from bnmf.data.identity import fingerprint

    names = (a.row_names, a.column_names) == (b.row_names, b.column_names)
    return names and fingerprint(a.observed()) == fingerprint(b.observed())


def _fit_parts(
    model: BayesianNMF, settings: dict[str, Any], directory: FitDirectory, screen: Screen, how: str
) -> Posterior:
    """Return the posterior of a directory of Parquet parts, which are not copied, on a Dask cluster."""
    from bnmf.distributed import read_blocks, read_triples
    from bnmf.distributed.cluster import connected

    parts = Path(settings["data"])
    if not parts.is_dir():
        raise WrongUse(
            f"--scheduler takes a directory of Parquet parts that all workers see, and {parts} is not a directory"
        )
    settings["unstored"] = "missing" if settings["triples"] else "zero"
    with connected(settings["scheduler"]) as n_threads:
        directory.write_settings(settings)
        screen.say(f"Connected to {settings['scheduler']}: {n_threads} threads.")
        X = read_triples(parts) if settings["triples"] else read_blocks(parts)
        model.set_params(unstored=settings["unstored"])
        with _resumable(how):
            return screen.fitted(lambda model: model.fit(X), model)


@command
def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A directory of bnmf fit.")],
) -> None:
    """Write the report of a fit: DIR/report.html.

    bnmf fit writes it too; this command writes it again from the posterior and the data in DIR.

    \b
    Example:
      bnmf report ratings
    """
    screen, results = Screen(), FitDirectory(directory)
    posterior = results.posterior()
    screen.say(f"{posterior.shape[0]:,} rows x {posterior.shape[1]:,} columns, {components_of(posterior)}")
    screen.judge(posterior.verdict)
    screen.say(f"Report to open: {results.report(posterior)}", style="bold")
