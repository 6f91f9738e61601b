"""Update the generated tables of README.md and of pages in docs, between their marks. With --check, only verify them.

Run from the root of the repository: python docs/update_readme.py
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parent.parent
REPRODUCTION = ROOT / "docs" / "reproduction"
PAGES = ["README.md", "docs/benchmarks.md", "docs/comparison.md", "docs/paper.md"]
MODEL_LABELS = {"gee": "GEE", "gl12": "GL1²", "gl22": "GL2²", "gl22inf": "GL2²,∞"}


def results() -> str:
    """Return the table of measured and printed errors on held-out entries of GDSC."""
    sys.path.insert(0, str(ROOT / "src"))
    from bnmf.paper.methods import printed_prediction

    fits = pd.read_csv(REPRODUCTION / "tables" / "prediction.csv")
    fits = fits[fits["dataset"].str.startswith("GDSC") & fits["model"].isin(MODEL_LABELS)]
    ours = fits.groupby(["unobserved", "k", "model"])["mse"].mean()
    repeats = fits[fits["unobserved"] >= 0.6].groupby(["unobserved", "k", "model"])["repeat"].nunique()
    theirs = printed_prediction().set_index(["unobserved", "k", "model"])["mse"]
    lines = [
        "Mean squared error on held-out entries of GDSC drug responses, ours and (in parentheses) as printed; from "
        f"`bnmf reproduce all`, means of {' or '.join(map(str, sorted(repeats.unique())))} repeats:",
        "",
        "| unobserved | K | " + " | ".join(MODEL_LABELS.values()) + " |",
        "|---|---|" + "---|" * len(MODEL_LABELS),
    ]
    for unobserved, k in dict.fromkeys(key[:2] for key in theirs.index):
        cells = [f"{ours[unobserved, k, model]:.0f} ({theirs[unobserved, k, model]:.0f})" for model in MODEL_LABELS]
        lines.append(f"| {unobserved:.0%} | {k} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def benchmark_text() -> str:
    """Return the results of the last full benchmark."""
    return (ROOT / "benchmarks" / "results" / "results.md").read_text(encoding="utf-8")


def of_benchmark(mark: str) -> str:
    """Return the part of the last full benchmark between two marks."""
    found = re.search(rf"<!-- {mark} -->\n(.*?)<!-- /{mark} -->", benchmark_text(), re.DOTALL)
    if not found:
        raise FileNotFoundError(f"results.md has no {mark}")
    return found.group(1).strip()


def cells_of(text: str, *beginning: str) -> list[str]:
    """Return the cells of the only row of a Markdown table that begins with some cells."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    found = [row for row in rows if row[: len(beginning)] == list(beginning)]
    assert len(found) == 1, f"{len(found)} rows begin with {beginning}"
    return found[0]


def comparison() -> str:
    """Return the table of when to use which library, with the numbers of the last comparisons."""
    defaults = (ROOT / "docs" / "defaults.md").read_text(encoding="utf-8")
    heading = next(line for line in defaults.splitlines() if "median ratio" in line)
    columns = [cell.strip() for cell in heading.strip("|").split("|")]
    ours = dict(zip(columns, cells_of(defaults, "NMFImputer, default"), strict=True))

    def seconds(method: str) -> str:
        return f"{float(dict(zip(columns, cells_of(defaults, method), strict=True))['seconds']):.2g} s"

    def ratio(data: str, method: str) -> str:
        """Return the time of an iteration over that of bnmf."""
        return cells_of(benchmark_text(), data, method)[3].split("x")[0]

    def largest(method: str) -> str:
        """Return the largest error of bnmf over that of another method, over the tables of both."""
        by_table = defaults[defaults.index("## Errors by table") :]
        rows = [
            [cell.strip(" *") for cell in line.strip("|").split("|")]
            for line in by_table.splitlines()
            if line[:1] == "|"
        ]
        place, own = rows[0].index(method), rows[0].index("NMFImputer, default")
        return f"{max(float(row[own]) / float(row[place]) for row in rows[2:] if row[place]):.2f}"

    def lower(ratio: float) -> str:
        """Return a ratio of errors in words."""
        return f"{1.0 - ratio:.0%} lower" if ratio < 1.0 else f"{ratio - 1.0:.0%} higher"

    def worst_case(method: str) -> str:
        """Return by how much the error of bnmf is higher on the table that is worst for it."""
        return f"and {lower(float(largest(method)))} on its worst table"

    worst = float(ours["worst ratio to the column mean"])
    off_by = float(ours["90% interval off by"])
    knn, iterative, trees = (
        lower(float(ours[column]))
        for column in ("to KNNImputer", "median ratio to IterativeImputer", "to the one with trees")
    )
    sweep = ratio("complete 160 x 254, K = 20", "scikit-learn cd")
    smurff = [ratio(data, "SMURFF") for data in ("GDSC, K = 20", "20 million ratings, K = 20, 2 threads")]
    lines = [
        "| you need | use | measured |",
        "|---|---|---|",
        "| intervals, multiple imputations, or a factorisation with missing entries | bnmf | the coverage of 90% "
        f"intervals differs from 90% by {100 * off_by:.1f} points on average |",
        "| one nonnegative factorisation of a complete table, fast | scikit-learn's NMF | an iteration takes "
        f"{sweep} of the time of a sweep of bnmf (160 x 254, K = 20), and the default is at most 200 iterations "
        "instead of 4 chains of 500 sweeps |",
        f"| a quick imputation | KNNImputer | {seconds('KNNImputer')} per table instead of "
        f"{seconds('NMFImputer, default')}; the median error of bnmf is {knn}, {worst_case('KNNImputer')} |",
        f"| imputation of linearly related columns | IterativeImputer | {seconds('IterativeImputer')} per table; the "
        f"median error of bnmf is {iterative}, {worst_case('IterativeImputer')}. `sample_posterior=True` with many "
        "refits gives intervals too |",
        "| imputation of a few columns with nonlinear relations | IterativeImputer with trees | the median error of "
        f"bnmf is {trees}, {worst_case('IterativeImputer, trees')} |",
        "| side information on rows and columns, or tensors | SMURFF | bnmf has neither; a sweep of SMURFF takes "
        f"{smurff[0]} times that of bnmf on GDSC, and {smurff[1]} times on 20 million ratings (2 threads) |",
        "",
        f"On the table where bnmf does worst, its error is {worst:.2f} of that of the column mean.",
    ]
    return "\n".join(lines)


TABLES: dict[str, Callable[[], str]] = {
    "results": results,
    "benchmarks": lambda: of_benchmark("targets"),
    "sweeps": lambda: of_benchmark("sweeps"),
    "comparison": comparison,
}


def with_tables(text: str) -> str:
    """Return a page with every table that it has marks for and whose source exists."""
    for mark, table in TABLES.items():
        if f"<!-- {mark} -->" not in text:
            continue
        try:
            content = f"\n{table()}\n\n"
        except FileNotFoundError:
            continue
        pattern = rf"(<!-- {mark} -->\n).*?(<!-- /{mark} -->)"
        text = re.sub(pattern, lambda match, content=content: match[1] + content + match[2], text, flags=re.DOTALL)
    return text


if __name__ == "__main__":
    for page in (ROOT / name for name in PAGES):
        wanted = with_tables(page.read_text(encoding="utf-8"))
        if "--check" not in sys.argv:
            page.write_text(wanted, encoding="utf-8")
        elif page.read_text(encoding="utf-8") != wanted:
            sys.exit(f"The tables in {page.name} are out of date: run python docs/update_readme.py")
