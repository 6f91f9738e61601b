"""``bnmf rank``: how many components a table needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from bnmf.cli import options
from bnmf.cli.outcome import Debug, WrongUse, command
from bnmf.cli.sampling import check_values, read
from bnmf.cli.screen import Screen

if TYPE_CHECKING:
    from bnmf.selection import RankChoice


def _numbers(text: str) -> list[int]:
    try:
        ks = [int(part) for part in text.split(",")]
    except ValueError:
        ks = []
    if not ks or min(ks) < 1:
        raise WrongUse(f"--ks takes whole numbers from 1 on, such as 2,5,10, got {text!r}")
    return ks


@command
def rank(
    data: options.Data,
    ks: Annotated[str, typer.Option("--ks", metavar="K,K,...", help="Numbers of components to try.")] = "2,5,10,20",
    triples: options.IsTriples = False,
    missing: options.Missing = None,
    unstored: options.UnstoredOption = None,
    header: options.Header = None,
    row_names: options.RowNames = None,
    lower: options.Lower = None,
    upper: options.Upper = None,
    capped: options.Capped = None,
    floored: options.Floored = None,
    prior: options.PriorOption = options.PriorName.ard,
    noise: options.NoiseOption = options.NoiseName.column,
    scale: options.ScaleOption = options.ScaleName.column,
    offset: options.OffsetOption = options.OffsetName.none,
    folds: Annotated[int, typer.Option("--folds", min=2, metavar="N", help="Parts that are hidden in turn.")] = 5,
    chains: options.Chains = 2,
    burn_in: options.BurnIn = 200,
    draws: Annotated[int, typer.Option("--draws", min=1, metavar="N", help="Draws of each chain.")] = 100,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    debug: Debug = False,
) -> None:
    """Choose the number of components by how well hidden entries are predicted.

    The observed entries are hidden in turns and predicted from the rest, with each number of components. The smallest
    number that predicts as well as the best, within one standard error, is chosen.

    \b
    Examples:
      bnmf rank genes.csv
      bnmf rank genes.csv --ks 2,5,10,20 --prior gl22
    """
    from bnmf.estimator import BayesianNMF
    from bnmf.priors.names import allows_negative
    from bnmf.selection import select_rank

    numbers = _numbers(ks)
    screen = Screen()
    reading = options.reading(triples, missing, unstored, header, row_names)
    limits = options.limits(lower=lower, upper=upper, capped=capped, floored=floored)
    table = read(data, limits, **reading)
    screen.describe(table, data)
    check_values(table, data, negative=offset is not options.OffsetName.none or allows_negative(prior.value))
    estimator = BayesianNMF(
        prior=prior.value,
        noise=noise.value,
        scale=options.value_or_none(scale),
        offset=options.value_or_none(offset),
        unstored=table.unstored,
        n_chains=chains,
        burn_in=burn_in,
        n_draws=draws,
    )
    choice = select_rank(
        table.values, numbers, estimator=estimator, **table.limits, n_folds=folds, n_jobs=jobs or -1, random_state=seed,
        progress=True,
    )  # fmt: skip
    _show(choice, screen)


def _show(choice: RankChoice, screen: Screen) -> None:
    """Show the table and the choice in a sentence."""
    table = choice.table
    best = table["log_density"].idxmax()
    rows = [
        [str(k), f"{row.log_density:.4f}", _distance(k == best, row), f"{row.rmse:.4g}"]
        for k, row in zip(table.index, table.itertuples(), strict=True)
    ]
    screen.show(["K", "log density of hidden entries", "below the best", "RMSE"], rows)
    screen.say(choice.sentence, style="bold")


def _distance(is_best: bool, row: Any) -> str:
    return "best" if is_best else f"{row.below_best:.4f} ± {row.below_best_se:.4f}"
