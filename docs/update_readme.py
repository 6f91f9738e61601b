"""Update the generated tables in README.md, between their marks. With --check, only verify that they are current.

Run from the root of the repository: python docs/update_readme.py
"""

import re
import sys
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parent.parent
REPRODUCTION = ROOT / "docs" / "reproduction"
MODEL_LABELS = {"gee": "GEE", "gl12": "GL1²", "gl22": "GL2²", "gl22inf": "GL2²,∞"}


def results() -> str:
    """Return the table of measured and printed errors on held-out entries of GDSC."""
    sys.path.insert(0, str(ROOT / "src"))
    from bnmf.paper import printed

    fits = pd.read_csv(REPRODUCTION / "tables" / "prediction.csv")
    fits = fits[fits["dataset"].str.startswith("GDSC") & fits["model"].isin(MODEL_LABELS)]
    ours = fits.groupby(["unobserved", "k", "model"])["mse"].mean()
    theirs = printed.prediction().set_index(["unobserved", "k", "model"])["mse"]
    lines = [
        "Mean squared error on held-out entries of GDSC drug responses, ours and (in parentheses) as printed; from "
        f"`bnmf reproduce all --repeats {fits['repeat'].nunique()}`:",
        "",
        "| unobserved | K | " + " | ".join(MODEL_LABELS.values()) + " |",
        "|---|---|" + "---|" * len(MODEL_LABELS),
    ]
    for unobserved, k in dict.fromkeys(key[:2] for key in theirs.index):
        cells = [f"{ours[unobserved, k, model]:.0f} ({theirs[unobserved, k, model]:.0f})" for model in MODEL_LABELS]
        lines.append(f"| {unobserved:.0%} | {k} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def benchmarks() -> str:
    """Return the table of targets from the last full benchmark."""
    text = (ROOT / "benchmarks" / "results" / "results.md").read_text()
    found = re.search(r"<!-- targets -->\n(.*?)<!-- /targets -->", text, re.DOTALL)
    assert found, "results.md has no table of targets"
    return found.group(1).strip()


def with_tables(text: str) -> str:
    """Return the README with every table whose source exists."""
    for mark, table in (("results", results), ("benchmarks", benchmarks)):
        try:
            content = f"\n{table()}\n"
        except FileNotFoundError:
            continue
        pattern = rf"(<!-- {mark} -->\n).*?(<!-- /{mark} -->)"
        text = re.sub(pattern, lambda match, content=content: match[1] + content + match[2], text, flags=re.DOTALL)
    return text


if __name__ == "__main__":
    readme = ROOT / "README.md"
    wanted = with_tables(readme.read_text())
    if "--check" not in sys.argv:
        readme.write_text(wanted)
    elif readme.read_text() != wanted:
        sys.exit("The tables in README.md are out of date: run python docs/update_readme.py")
