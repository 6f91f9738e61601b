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


def benchmarks() -> str:
    """Return the table of targets from the last full benchmark."""
    found = re.search(r"<!-- targets -->\n(.*?)<!-- /targets -->", benchmark_text(), re.DOTALL)
    assert found, "results.md has no table of targets"
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
        return f"and {lower(float(largest(method)))} on the table that is worst for it"

    worst = float(ours["worst ratio to the column mean"])
    forest = float(ours["to the one with trees"])
    neighbours = float(ours["to KNNImputer"])
    lines = [
        "| you want | use | measured |",
        "|---|---|---|",
        "| an interval for every filled entry, several imputations, or a factorisation with missing entries | bnmf | "
        f"90% intervals are off by {float(ours['90% interval off by']):.3f} on average |",
        "| parts of a complete nonnegative table, fast, as one answer | scikit-learn's NMF | an iteration takes "
        f"{ratio('complete 160 x 254, K = 20', 'scikit-learn cd')} of the time of a sweep of bnmf (160 x 254, K = 20), "
        "and by default there are at most 200, against 4 chains of 500 |",
        f"| gaps filled at once, errors matter less | KNNImputer | {seconds('KNNImputer')} a table, where bnmf takes "
        f"{seconds('NMFImputer, default')}; the median error of bnmf is {lower(neighbours)}, "
        f"{worst_case('KNNImputer')} |",
        "| gaps filled, columns linearly related, intervals matter less | IterativeImputer | "
        f"{seconds('IterativeImputer')} a table; the median error of bnmf is "
        f"{lower(float(ours['median ratio to IterativeImputer']))}, {worst_case('IterativeImputer')}. With "
        "`sample_posterior=True` and many refits it gives intervals too |",
        "| gaps filled, few columns, related nonlinearly | IterativeImputer with trees | the median error of bnmf is "
        f"{lower(forest)}, {worst_case('IterativeImputer, trees')} |",
        "| side information on rows and columns, or tensors | SMURFF | bnmf has neither; a sweep "
        f"of SMURFF takes {ratio('GDSC, K = 20', 'SMURFF')} times that of bnmf on GDSC, and "
        f"{ratio('20 million ratings, K = 20, 2 threads', 'SMURFF')} times on 20 million ratings (2 threads) |",
        "",
        f"On the table where bnmf does worst, its error is {worst:.2f} of that of the column mean.",
    ]
    return "\n".join(lines)


TABLES: dict[str, Callable[[], str]] = {"results": results, "benchmarks": benchmarks, "comparison": comparison}


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
