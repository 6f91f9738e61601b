"""A fit of a table: what it needs, how it ends, and what a command says about it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bnmf.cli.outcome import Interrupted
from bnmf.cli.screen import Screen

if TYPE_CHECKING:
    from bnmf.estimator import BayesianNMF
    from bnmf.posterior import Posterior
    from bnmf.tables import Table


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


def fitted(model: BayesianNMF, table: Table, screen: Screen, how_to_resume: str = "") -> Posterior:
    """Return the posterior of a table, with its names."""
    from bnmf.inputs import Named

    X, limits = Named(table.values, table.row_index, table.column_index), {"lower": table.lower, "upper": table.upper}
    model.set_params(unstored=table.unstored)
    return fitted_by(lambda model: model.fit(X, **limits), model, screen, how_to_resume)


def fitted_by(
    fit: Callable[[BayesianNMF], BayesianNMF], model: BayesianNMF, screen: Screen, how_to_resume: str = ""
) -> Posterior:
    """Return the posterior of a model that a function fits, or raise an error that says how to resume."""
    from sklearn.exceptions import ConvergenceWarning

    from bnmf.sampler.run import Ending, InterruptedRunWarning
    from bnmf.utils.text import counted, duration

    begin = time.monotonic()
    interrupted = Interrupted(f"Interrupted. {how_to_resume}".strip())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the commands show the verdict
            warnings.simplefilter("ignore", InterruptedRunWarning)
            model = fit(model.set_params(progress=True))
    except KeyboardInterrupt:
        raise interrupted from None
    except TimeoutError:
        raise ValueError(f"--max-time was over before the first draw: allow more. {how_to_resume}".strip()) from None
    if model.ending_ == Ending.INTERRUPTED:
        raise interrupted
    posterior = model.posterior_
    endings = {"max_time": "; the time was up", "memory": "; more would not fit into memory"}
    drawn = f"{counted(posterior.n_chains, 'chain')} of {counted(posterior.n_draws, 'draw')}"
    screen.say(
        f"Sampled in {duration(time.monotonic() - begin)}: {drawn}, "
        f"K = {posterior.n_components}{endings.get(model.ending_, '')}."
    )
    return posterior


def judge_predictions(posterior: Posterior, screen: Screen, max_time: float | None) -> None:
    """Show what the predictions of a fit are worth."""
    from bnmf.posterior.verdict import WARNED

    screen.judge(posterior.verdict, f"Give it more time with: {longer(max_time)}", WARNED)


def longer(max_time: float | None) -> str:
    """Return the option that allows ten times as long."""
    return f"--max-time {10 * (max_time or 60.0):g}"
