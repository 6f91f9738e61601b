"""From a table and options to a fitted model, with what the screen says about it."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bnmf.cli.outcome import Interrupted, WrongUse
from bnmf.cli.screen import Screen

if TYPE_CHECKING:
    from bnmf.estimator import BayesianNMF
    from bnmf.posterior import Posterior
    from bnmf.tables import Table


def read(source: Path, limits: dict[str, dict[str, float]] | None = None, **options: Any) -> Table:
    """Read a table, with limits of its columns as `Table.limited` takes them, or say that there is none."""
    from bnmf.tables import read_table

    if str(source) != "-" and not source.exists():
        raise WrongUse(f"there is no file {source}")
    if source.is_dir():
        raise WrongUse(f"{source} is a directory, not a table")
    table = read_table(source, **options)
    return table if limits is None else table.limited(**limits)


def check_values(table: Table, source: Path | str, *, negative: bool) -> None:
    """Raise an error if a table has nothing to learn from, or negative numbers that the model does not take."""
    numbers = table.numbers()
    if table.n_observed == 0:
        raise ValueError(f"{source}: all entries are missing, so there is nothing to learn from")
    if not negative and (numbers < 0).any():
        raise ValueError(
            f"{source}: the lowest entry is {numbers.min():g}, and the model takes nonnegative numbers: use --offset "
            "min, which subtracts the minimum of each column first, or --prior normal"
        )


def fitted(table: Table, screen: Screen, how_to_go_on: str = "", **parameters: Any) -> BayesianNMF:
    """Return a fitted model."""
    from sklearn.exceptions import ConvergenceWarning

    from bnmf.estimator import BayesianNMF
    from bnmf.sampler.run import Ending, InterruptedRunWarning
    from bnmf.utils.text import duration

    begin = time.monotonic()
    model = BayesianNMF(unstored=table.unstored, progress=True, **parameters)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the commands show the verdict
            warnings.simplefilter("ignore", InterruptedRunWarning)
            model.fit(table.values, **table.limits)
    except KeyboardInterrupt:
        raise Interrupted(f"Interrupted. {how_to_go_on}".strip()) from None
    if model.ending_ == Ending.INTERRUPTED:
        raise Interrupted(f"Interrupted. {how_to_go_on}".strip())
    screen.say(f"Sampled in {duration(time.monotonic() - begin)}: {_length(model)}.")
    return model


def _length(model: BayesianNMF) -> str:
    posterior = model.posterior_
    length = f"{posterior.n_chains} chains of {posterior.n_draws} draws, K = {posterior.n_components}"
    endings = {"max_time": "; the time was up", "memory": "; more would not fit into memory"}
    return length + endings.get(model.ending_, "")


def with_names(posterior: Posterior, table: Table) -> Posterior:
    """Return a posterior that knows the names of the table."""
    from dataclasses import replace

    return replace(posterior, row_names=table.row_index, column_names=table.column_index)
