"""The tables of the page, from finished results and from published ones."""

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from benchmarks.gdsc.methods import PROBABILITY, Baseline, Model
from benchmarks.gdsc.published import PUBLISHED
from benchmarks.gdsc.records import Record

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
    ours = summary(records, methods, n_folds)
    both = pd.concat([ours, published()]).sort_values("mse")
    lines = [
        f"Means over {n_folds} folds and, for the error, standard errors of them. Intervals have probability "
        f"{PROBABILITY:.0%}; K is what was chosen in the folds, or the number of rows of KNNImputer and of columns of "
        "IterativeImputer.",
        "",
        HEADER,
        *(_line(row) for _, row in both.iterrows()),
        "",
        *_firsts(ours, both),
    ]
    return "\n".join(lines)


def _line(row: "pd.Series[float]") -> str:
    digits = {"r2": 3, "log_density": 2, "log_probability": 3, "coverage": 3, "interval_score": 1, "seconds": 1}
    cells = ["" if np.isnan(row[name]) else f"{row[name]:.{n}f}" for name, n in digits.items()]
    error = f"{row['mse']:.1f} ± {row['mse_se']:.1f}"
    label = f"**{row['label']}**" if row["by"] == OURS else row["label"]
    return f"| {label} | {row['by']} | {row['choice']} | {error} | " + " | ".join(cells) + " |"


def _firsts(ours: pd.DataFrame, both: pd.DataFrame) -> list[str]:
    """Return who is first in each measure, in a sentence each."""
    best = [of.iloc[0] for _, of in both.groupby("by", sort=False)]
    error = "; ".join(_named(row, "mse", 1) for row in best)
    lines = [f"- Smallest mean squared error of each group: {error}."]
    for measure, title, digits in (("log_density", "log density", 2), ("log_probability", "log probability", 3)):
        ordered = ours.sort_values(measure, ascending=False)
        groups = [of.iloc[0] for _, of in ordered.groupby("by", sort=False)]
        lines.append(f"- Highest {title}: {'; '.join(_named(row, measure, digits) for row in groups)}.")
    groups = [of.iloc[0] for _, of in ours.sort_values("interval_score").groupby("by", sort=False)]
    lines.append(f"- Smallest interval score: {'; '.join(_named(row, 'interval_score', 1) for row in groups)}.")
    nearest = ours.iloc[(ours["coverage"] - PROBABILITY).abs().argsort().to_numpy()]
    groups = [of.iloc[0] for _, of in nearest.groupby("by", sort=False)]
    lines.append(f"- Coverage nearest to {PROBABILITY:.0%}: {'; '.join(_named(row, 'coverage', 3) for row in groups)}.")
    return lines


def _named(row: "pd.Series[float]", measure: str, digits: int) -> str:
    return f"{row['label']} with {row[measure]:.{digits}f} ({row['by']})"
