"""``bnmf impute`` of a table with columns of several kinds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bnmf.cli.options import LIMITS
from bnmf.cli.outcome import WrongUse
from bnmf.cli.sampling import judge_predictions
from bnmf.cli.screen import Screen

if TYPE_CHECKING:
    from bnmf.cli.options import Reading

SETTINGS: dict[str, Any] = {"n_draws": "auto"}


def kinds_of(given: Sequence[str]) -> dict[str, Any]:
    """Return the kinds that COLUMN=KIND names: a word, bounds such as 0..100, or categories such as low<mid<high.

    Examples
    --------
    >>> kinds_of(["age=whole", "share=0..100", "size=S<M<L"])
    {'age': 'whole', 'share': (0.0, 100.0), 'size': ['S', 'M', 'L']}
    """
    found: dict[str, Any] = {}
    for text in given:
        column, sign, kind = text.partition("=")
        low, dots, high = kind.partition("..")
        if not (sign and column and kind):
            raise WrongUse(f"--kind is COLUMN=KIND, such as age=whole, got {text!r}")
        try:
            found[column] = kind.split("<") if "<" in kind else (float(low), float(high)) if dots else kind
        except ValueError:
            raise WrongUse(f"--kind takes bounds as numbers, such as share=0..100, got {text!r}") from None
    return found


def impute_mixed(
    data: Path,
    outputs: tuple[Path, list[Path], list[Path]],
    reading: Reading,
    kinds: dict[str, Any],
    ignore: Sequence[str],
    interval: float | None,
    screen: Screen,
    **parameters: Any,
) -> None:
    """Fill a text by the kinds of its columns, and write it, the ends of intervals and imputations."""
    import numpy as np
    from sklearn.exceptions import ConvergenceWarning

    from bnmf.estimator import BayesianNMF
    from bnmf.imputer import ANY_TABLE, NMFImputer
    from bnmf.mixed import unfillable
    from bnmf.tables.files import write_content
    from bnmf.tables.mixed import read_mixed

    if any(getattr(reading, name) for name in LIMITS):
        raise WrongUse(
            f"--{', --'.join(LIMITS)} are for tables of numbers: say --kind COLUMN=0..100, or <0.01 in a cell"
        )
    words = [column for column, kind in kinds.items() if kind == "categorical" or isinstance(kind, list)]
    text = read_mixed(data, words, **reading.of_text())
    X = text.frame
    unknown = [column for column in (*kinds, *ignore) if column not in X.columns]
    if unknown:
        raise WrongUse(f"{data}: there is no column {unknown[0]!r}")
    left = {name: "dates" for name in text.dates if name not in kinds}
    left |= unfillable(X, X.notna().to_numpy(), kinds, {*ignore, *left})
    limited = np.isfinite(text.lower) | np.isfinite(text.upper)
    missing = X.isna().to_numpy() & ~limited
    missing &= X.notna().any().to_numpy() & ~X.columns.isin([*ignore, *left])
    what = {name: "text" if X[name].dtype == "str" else "numbers" for name in X.columns}
    n_text = sum(kind == "text" for kind in what.values())
    screen.say(
        f"{data}: {X.shape[0]:,} rows x {X.shape[1]:,} columns, {n_text:,} of text; {missing.sum():,} entries to fill"
    )
    for name, reason in left.items():
        screen.say(f"  Not filled, and written back as it is: column {name!r} ({reason})")
    model = BayesianNMF(**ANY_TABLE, **{**parameters, **SETTINGS}, progress=True)
    imputer = NMFImputer(model, kinds=kinds, ignore=[*ignore, *left], keep_empty_features=True)
    limits = {"lower": text.lower, "upper": text.upper}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the verdict is shown
        imputer.fit(X, **limits)
    judge_predictions(imputer.estimator_.posterior_, screen, parameters["max_time"])
    out, ends, numbered = outputs
    write_content(out, text.render(imputer.transform(X, **limits), missing | limited))
    for path, end in zip(ends, imputer.interval(X, interval) if interval else (), strict=True):
        write_content(path, text.render(end, missing))
    seed = parameters["random_state"]
    for path, copy in zip(
        numbered, imputer.multiple_imputations(X, len(numbered), random_state=seed) if numbered else (), strict=True
    ):
        write_content(path, text.render(copy, missing))
    if str(out) != "-":
        screen.say(f"Filled {missing.sum():,} entries: {out}", style="bold")
