"""``bnmf check``: whether bnmf is the right tool for a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from bnmf.cli import options
from bnmf.cli.outcome import WrongUse, command
from bnmf.cli.screen import Screen, check_values, in_options

if TYPE_CHECKING:
    from bnmf.checking import TableCheck

# Columns that --by-column shows.
N_WORST = 10
NAME_WIDTH = 40


@command
def check(
    data: options.Data,
    by_column: Annotated[
        bool, options.option("Show the columns that bnmf predicts worst, too.", None, "--by-column")
    ] = False,
    repeats: Annotated[int, options.option("How often a tenth is hidden.", "N", min=1, max=10)] = 3,
    *,
    reading: options.Reading,
    components: options.Components = "auto",
    max_time: options.MaxTime = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
) -> None:
    """Check whether bnmf is the right tool for a table.

    A tenth of the observed entries is hidden a few times and predicted from the rest: by bnmf, as bnmf impute would, by
    the mean of the column, and by KNNImputer and IterativeImputer of scikit-learn after scaling. All columns must be
    numbers: --ignore leaves those of text out, although bnmf impute fills them.

    \b
    Examples:
      bnmf check survey.csv
      bnmf check survey.csv --by-column   # where it is good and where not
      bnmf check survey.csv -k 3          # with fewer components
    """
    from bnmf.checking import check_table
    from bnmf.estimator import BayesianNMF
    from bnmf.imputer import ANY_TABLE

    screen = Screen()
    table = reading.table(data)
    screen.describe(table, data)
    check_values(table, data, negative=True)
    model = BayesianNMF(n_components=components, **ANY_TABLE, n_draws="auto", max_time=max_time, n_jobs=jobs or -1)
    if table.has_implicit_zeros:
        raise WrongUse(
            f"{data} is sparse, and bnmf check is for dense tables: if what is not stored is missing, use --unstored "
            "missing"
        )
    table = table.dense()
    X, limits = table.frame(), {"lower": table.lower, "upper": table.upper}
    X = X.set_axis(table.column_index, axis=1)
    found = check_table(X, estimator=model, **limits, n_repeats=repeats, random_state=seed, progress=True)
    _show(found, repeats, screen)
    if by_column:
        _show_columns(found, screen)
    screen.explain(" ".join(finding.text for finding in in_options(found.verdict)), style="bold")
    for note in found.notes:
        screen.explain(f"Note: {note}.")


def _show(found: TableCheck, n_repeats: int, screen: Screen) -> None:
    """Show errors, coverage and seconds of each method, and the range of errors of several repeats."""
    has_range, rows = n_repeats > 1, []
    for method, row in found.table.iterrows():
        errors = [f"{row.absolute_error:.3f}", f"{row.error:.3f}"]
        if has_range:
            errors.append(f"{row.lowest:.3f} to {row.highest:.3f}")
        inside = f"{row.coverage:.1%}" if row.coverage >= 0 else ""  # NaN without intervals
        rows.append([str(method), *errors, inside, f"{row.seconds:.1f}"])
    screen.show(["predicted by", "MAE", "RMSE", *(["range"] if has_range else []), "in 90% intervals", "seconds"], rows)
    screen.explain(
        f"MAE and RMSE are the mean absolute and the root mean squared error of {found.n_hidden:,} hidden entries, in "
        "standard deviations of their columns: the column mean has an RMSE of about 1."
        + (" The range is that of the RMSE in the repeats." if has_range else "")
    )


def _show_columns(found: TableCheck, screen: Screen) -> None:
    """Show the columns with the largest errors."""
    import numpy as np

    from bnmf.utils.text import labels, shortened

    counts, error, coverage = found.by_column.to_numpy(float).T
    hidden = np.flatnonzero(counts)
    chosen = hidden[np.argsort(-error[hidden], kind="stable")][:N_WORST]
    names = labels(found.by_column.index, chosen, "column")
    heading = "columns that bnmf predicts worst" if len(chosen) < len(hidden) else "bnmf by column"
    rows = [
        [shortened(name, NAME_WIDTH), f"{error[at]:.3f}", f"{counts[at] * coverage[at]:.0f} of {counts[at]:.0f}"]
        for name, at in zip(names, chosen, strict=True)
    ]
    screen.show([heading, "RMSE", "in 90% intervals"], rows)
