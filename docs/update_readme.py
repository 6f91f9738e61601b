"""Update the generated tables of README.md and of pages in docs, between their marks. With --check, only verify them.

Run from the root of the repository: python -m docs.update_readme
"""

import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from benchmarks import pages

from bnmf.paper.methods import PAPER_MODELS, printed_prediction

ROOT = Path(__file__).parent.parent


def results() -> str:
    """Return the table of measured and printed errors on held-out entries of GDSC."""
    fits = pd.read_csv(ROOT / "docs" / "reproduction" / "tables" / "prediction.csv")
    theirs = printed_prediction().set_index(["unobserved", "k", "model"])["mse"]
    ours = (
        fits[fits["dataset"].str.startswith("GDSC")].groupby(["unobserved", "k", "model"])["mse"].agg(["mean", "count"])
    )
    ours = ours.loc[theirs.index]
    repeats = " or ".join(map(str, sorted(ours["count"].unique())))
    rows = []
    for unobserved, k in dict.fromkeys(key[:2] for key in theirs.index):
        cells = [f"{ours['mean'][unobserved, k, m]:.0f} ({theirs[unobserved, k, m]:.0f})" for m in PAPER_MODELS]
        rows.append([f"{unobserved:.0%}", str(k), *cells])
    return (
        "Mean squared error on held-out entries of GDSC drug responses, ours and (in parentheses) as printed; from "
        f"`bnmf reproduce all`, means of {repeats} repeats:\n\n"
        + pages.table(["unobserved", "K", "GEE", "GL1²", "GL2²", "GL2²,∞"], rows)
    )


def benchmark() -> str:
    """Return the results of the last full benchmark."""
    return (ROOT / "benchmarks" / "results" / "results.md").read_text(encoding="utf-8")


def of_benchmark(mark: str) -> str:
    """Return the part of the last full benchmark between two marks."""
    return benchmark().partition(f"<!-- {mark} -->")[2].partition(f"<!-- /{mark} -->")[0].strip()


def cells(text: str) -> list[list[str]]:
    """Return the cells of all tables of a page, row by row, without bold type."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines]


def comparison() -> str:
    """Return the table of when to use which library, with the numbers of the last comparisons."""
    methods, errors = (ROOT / "docs" / "defaults.md").read_text(encoding="utf-8").split("## Errors by table")
    header, _, *rows = cells(methods)
    of_method = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    of_tables, _, *by_table = cells(errors)
    bnmf = "NMFImputer, default"
    ours = of_method[bnmf]

    def seconds(method: str) -> str:
        return f"{float(of_method[method]['seconds']):.2g} s"

    def ratio(data: str, method: str) -> str:
        """Return the time of an iteration over that of bnmf."""
        (row,) = (row for row in cells(benchmark()) if row[:2] == [data, method])
        return row[3].split("x")[0]

    def higher_or_lower(ratio: float) -> str:
        return f"{1.0 - ratio:.0%} lower" if ratio < 1.0 else f"{ratio - 1.0:.0%} higher"

    def error(column: str, method: str) -> str:
        """Return by how much the error of bnmf is lower than that of a method, and higher on the worst table."""
        place, own = of_tables.index(method), of_tables.index(bnmf)
        largest = max(round(float(row[own]) / float(row[place]), 2) for row in by_table if row[place])
        median = higher_or_lower(float(ours[column]))
        return f"the error of bnmf is {median} in the median, and {higher_or_lower(largest)} on its worst table"

    trees = error("to the one with trees", "IterativeImputer, trees")
    smurff = [ratio(data, "SMURFF") for data in ("GDSC, K = 20", "20 million ratings, K = 20, 2 threads")]
    table = [
        [
            "intervals, multiple imputations, or a factorisation with missing entries",
            "bnmf",
            f"the coverage of 90% intervals differs from 90% by {100 * float(ours['90% interval off by']):.1f} points "
            "on average",
        ],
        [
            "one nonnegative factorisation of a complete table, fast",
            "scikit-learn's NMF",
            f"an iteration takes {ratio('complete 160 x 254, K = 20', 'scikit-learn cd')} times as long as a sweep of "
            "bnmf (160 x 254, K = 20), and the default is at most 200 iterations instead of 4 chains of 500 sweeps",
        ],
        [
            "a quick imputation",
            "KNNImputer",
            f"{seconds('KNNImputer')} per table instead of {seconds(bnmf)}; {error('to KNNImputer', 'KNNImputer')}",
        ],
        [
            "imputation of linearly related columns",
            "IterativeImputer",
            f"{seconds('IterativeImputer')} per table; "
            f"{error('median ratio to IterativeImputer', 'IterativeImputer')}. `sample_posterior=True` with many "
            "refits gives intervals too",
        ],
        ["imputation of a few columns with nonlinear relations", "IterativeImputer with trees", trees],
        [
            "side information on rows and columns, or tensors",
            "SMURFF",
            f"bnmf has neither; a sweep of SMURFF takes {smurff[0]} times that of bnmf on GDSC, and {smurff[1]} times "
            "on 20 million ratings (2 threads)",
        ],
    ]
    worst = float(ours["worst ratio to the column mean"])
    last = (
        f"On the table where bnmf does worst, its error is {worst:.2f} of that of the column mean. The sweeps of bnmf "
        "that are compared draw every entry once; one with the default moves takes "
        f"{ratio('GDSC, K = 20', 'default moves')} times as long on GDSC."
    )
    return f"{pages.table(['you need', 'use', 'measured'], table)}\n\n{last}"


# The page of each mark, and what stands there.
TABLES: dict[tuple[str, str], Callable[[], str]] = {
    ("README.md", "comparison"): comparison,
    ("docs/comparison.md", "comparison"): comparison,
    ("docs/benchmarks.md", "benchmarks"): lambda: of_benchmark("targets"),
    ("docs/benchmarks.md", "sweeps"): lambda: of_benchmark("sweeps"),
    ("docs/paper.md", "results"): results,
}


if __name__ == "__main__":
    for (name, mark), table in TABLES.items():
        page = (ROOT / name).read_text(encoding="utf-8")
        wanted = pages.replaced(page, mark, table())
        if "--check" not in sys.argv:
            (ROOT / name).write_text(wanted, encoding="utf-8")
        elif page != wanted:
            sys.exit(f"The tables in {name} are out of date: run python -m docs.update_readme")
