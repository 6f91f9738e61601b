"""Replace the results of docs/proofs.md, and docs/proofs.png: ranks for GL2²,∞ under the exact and the printed rule.

Run from the root of the repository: python -m docs.make_proofs
"""

from pathlib import Path

import numpy as np
from benchmarks import pages
from matplotlib.figure import Figure
from scipy import stats
from tests.statistical.calibration import RANKED, Problem, ranks

from bnmf.priors import L2Squared, LInf
from bnmf.sampler.moves import PLAIN

HERE = Path(__file__).parent
REPLICATES, DRAWS, THINNING, SEED = 1500, 19, 10, 1
# Name of each rule in the plot.
RULES = {"exact": "exact rule", "paper": "rule printed in the paper"}


def main() -> None:
    """Run the calibration for both rules and write the page."""
    counts = {}
    for rule in RULES:
        problem = Problem(L2Squared(1.0) + LInf(1.0, rule=rule), missing=0.0, moves=PLAIN)
        found = ranks(problem, REPLICATES, DRAWS, SEED, THINNING)
        counts[rule] = [np.bincount(column, minlength=DRAWS + 1) for column in found.T]
    pvalues = {rule: [stats.chisquare(c).pvalue for c in counts[rule]] for rule in RULES}
    rows = zip(RANKED, *([f"{pvalue:.2g}" for pvalue in pvalues[rule]] for rule in RULES), strict=True)
    mean_rank = (counts["paper"][0] * np.arange(DRAWS + 1)).sum() / REPLICATES
    side = "small" if mean_rank > DRAWS / 2 else "large"
    verdict = f"Draws are too {side}: the mean rank of the true value is {mean_rank:.2f} instead of {DRAWS / 2}."
    draw_histograms([counts[rule][0] for rule in RULES], [pvalues[rule][0] for rule in RULES])
    pages.write(HERE / "proofs.md", pvalues=pages.table(["statistic", *RULES.values()], rows), verdict=verdict)


def draw_histograms(counts: list[np.ndarray], pvalues: list[float]) -> None:
    """Save the two histograms of ranks side by side."""
    expected = stats.binom(REPLICATES, 1 / (DRAWS + 1))
    figure = Figure(figsize=(8, 3), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, rule, count, pvalue in zip(axes, RULES, counts, pvalues, strict=True):
        axis.axhspan(expected.ppf(0.005), expected.ppf(0.995), color="0.88", zorder=0)
        axis.axhline(expected.mean(), color="0.5", linewidth=1)
        axis.bar(np.arange(DRAWS + 1), count, color="C0" if rule == "exact" else "C3", width=0.85)
        axis.set(title=f"{RULES[rule]}, p = {pvalue:.2g}", xlabel="rank of the true Σ max W", xticks=[0, 5, 10, 15])
    axes[0].set_ylabel(f"replicates (of {REPLICATES})")
    figure.savefig(HERE / "proofs.png", dpi=110)


if __name__ == "__main__":
    main()
