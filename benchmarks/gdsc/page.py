"""The tables of the page, from finished results and from published ones."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.gdsc.methods import PROBABILITY, Baseline, Model
from benchmarks.gdsc.published import PUBLISHED

Record = dict[str, Any]
OURS, BASELINE, THEIRS = "bnmf", "baseline", "Brouwer and Lió"
MEASURES = ("mse", "r2", "log_density", "log_probability", "coverage", "interval_score", "seconds")
HEADER = (
    "| | by | K | mean squared error | R² | log density | log probability | coverage | interval score | seconds |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)


def summary(records: Sequence[Record], methods: dict[str, Model | Baseline], n_folds: int) -> pd.DataFrame:
    """Return one row for each method with results of all folds: means and standard errors over folds."""
    rows = {}
    for name in methods:
        of_method = pd.DataFrame([record for record in records if record["method"] == name])
        if len(of_method) < n_folds:
            continue
        measured = of_method[list(MEASURES)]
        rows[name] = {
            "label": methods[name].label,
            "by": OURS if isinstance(methods[name], Model) else BASELINE,
            "choice": _choices(of_method["choice"]),
            **measured.mean(),
            **_standard_errors(measured),
        }
        if getattr(methods[name], "below", None) is not None:  # those intervals end at the cap, and others do not
            rows[name]["interval_score"] = np.nan
    return pd.DataFrame.from_dict(rows, orient="index")


def published() -> pd.DataFrame:
    """Return the published results in the same form."""
    rows = {}
    for theirs in PUBLISHED:
        folds = pd.DataFrame({"mse": theirs.mse, "r2": theirs.r2})
        label = f"{theirs.name}: {theirs.factors}" if theirs.factors else theirs.name
        rows[f"{THEIRS} {theirs.name}"] = {
            "label": label, "by": THEIRS, "choice": "", **folds.mean(), **_standard_errors(folds)
        }  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index")


def _standard_errors(folds: pd.DataFrame) -> dict[str, float]:
    return {f"{name}_se": float(folds[name].std(ddof=1) / np.sqrt(len(folds))) for name in folds}


def _choices(choices: "pd.Series[str]") -> str:
    """Return what was chosen in the folds, in few words."""
    numbers = sorted({int(number) for number in re.findall(r"\d+", " ".join(choices))})
    return f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else "".join(map(str, numbers))


def tables(records: Sequence[Record], methods: dict[str, Model | Baseline], n_folds: int) -> str:
    """Return the text between the marks of the page."""
    both = pd.concat([summary(records, methods, n_folds), published()]).sort_values("mse")
    lines = [
        f"Means over {n_folds} folds and, for the error, standard errors of them. Intervals have probability "
        f"{PROBABILITY:.0%}; K is what was chosen in the folds, or the number of rows of KNNImputer and of columns of "
        "IterativeImputer.",
        "",
        HEADER,
        *(_line(row) for _, row in both.iterrows()),
        "",
        *_firsts(both),
    ]
    return "\n".join(lines)


def _line(row: "pd.Series[float]") -> str:
    digits = {"r2": 3, "log_density": 2, "log_probability": 3, "coverage": 3, "interval_score": 1, "seconds": 1}
    cells = ["" if np.isnan(row[name]) else f"{row[name]:.{n}f}" for name, n in digits.items()]
    error = f"{row['mse']:.1f} ± {row['mse_se']:.1f}"
    label = f"**{row['label']}**" if row["by"] == OURS else row["label"]
    return f"| {label} | {row['by']} | {row['choice']} | {error} | " + " | ".join(cells) + " |"


def _firsts(both: pd.DataFrame) -> list[str]:
    """Return who is first of each group in each measure, in a sentence each."""
    lines = []
    for title, measure, digits, distance in (
        ("Smallest mean squared error of each group", "mse", 1, both["mse"]),
        ("Highest log density", "log_density", 2, -both["log_density"]),
        ("Highest log probability", "log_probability", 3, -both["log_probability"]),
        ("Smallest interval score", "interval_score", 1, both["interval_score"]),
        (f"Coverage nearest to {PROBABILITY:.0%}", "coverage", 3, (both["coverage"] - PROBABILITY).abs()),
    ):
        ordered = both.loc[distance.dropna().sort_values().index]
        firsts = ordered.groupby("by", sort=False).head(1)
        best = [f"{row['label']} with {row[measure]:.{digits}f} ({row['by']})" for _, row in firsts.iterrows()]
        lines.append(f"- {title}: {'; '.join(best)}.")
    return lines
