"""``bnmf rank``: how many components a table needs."""

from __future__ import annotations

import warnings
from typing import Annotated

from bnmf.cli import options
from bnmf.cli.outcome import WrongUse, command
from bnmf.cli.screen import Screen, check_values


def numbers_to_try(text: str | None, shape: tuple[int, int]) -> list[int]:
    """Return the numbers of components that are asked for, or some below the smaller side of a table."""
    if text is None:
        most = min(shape) - 1
        if most >= 20:
            return [2, 5, 10, 20]
        return sorted({max(round(max(most, 1) ** (part / 4)), 1) for part in range(5)})
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
    ks: Annotated[
        str | None,
        options.option("Numbers of components; 2,5,10,20, or smaller ones for few columns.", "K,K,..."),
    ] = None,
    *,
    reading: options.Reading,
    prior: options.Prior = "ard",
    noise: options.Noise = "auto",
    scale: options.Scale = "column",
    offset: options.Offset = "auto",
    folds: Annotated[int, options.option("Parts that are hidden in turn.", "N", min=2)] = 5,
    chains: options.Chains = 2,
    burn_in: options.BurnIn = 200,
    draws: Annotated[int, options.option("Draws of each chain.", "N", min=1)] = 100,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
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
    from bnmf.selection import select_rank

    screen = Screen()
    numbers_to_try(ks, (2, 2))  # before the table is read, as are the parameters
    model = options.model_parameters(prior, noise, scale, offset)
    estimator = BayesianNMF(**model, n_chains=chains, burn_in=burn_in, n_draws=draws)
    estimator.check_parameters()
    table = reading.table(data)
    screen.describe(table, data)
    check_values(table, data, negative=estimator.takes_negative)
    estimator.set_params(unstored=table.unstored)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of short fits, which are compared with each other only
        choice = select_rank(
            table.values,
            numbers_to_try(ks, table.shape),
            estimator=estimator,
            lower=table.lower,
            upper=table.upper,
            n_folds=folds,
            n_jobs=jobs or -1,
            random_state=seed,
            progress=True,
        )
    best = choice.table["log_density"].idxmax()
    # Columns of different units have no error in common; one unit for all may be asked for.
    has_unit, rows = scale != "column", []
    for k, row in zip(choice.table.index, choice.table.itertuples(), strict=True):
        below = "best" if k == best else f"{row.below_best:.4f} ± {row.below_best_se:.4f}"
        rows.append([str(k), f"{row.log_density:.4f}", below, *([f"{row.rmse:.4g}"] if has_unit else [])])
    screen.show(["K", "log density of hidden entries", "below the best", *(["RMSE"] if has_unit else [])], rows)
    screen.explain(choice.sentence, style="bold")
