"""Make docs/proofs.md and docs/proofs.png: ranks under the exact and under the paper's rule for GL2²,∞.

Run from the root of the repository: python -m docs.make_proofs
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy import stats
from tests.statistical.calibration import STATISTICS, Problem, ranks

from bnmf.priors import L2Squared, LInf

HERE = Path(__file__).parent
REPLICATES, DRAWS, THINNING, SEED = 1500, 19, 10, 1
RULES = ("exact", "paper")

PAGE = """# Proof that the sampler samples from the posterior, and that the paper's rule does not

Simulation-based calibration of the GL2²,∞ model, {replicates} replicates with M, N, K = 4, 3, 3 and λ = 1, everything
observed, an inverse-gamma prior (5, 5) for the noise variance, no rescaling move. Each replicate draws W, Z and σ²
from their priors and a matrix from those, then {draws} states of the sampler given that matrix, {thinning} sweeps
apart (their autocorrelation is 0.01 or less). If the sampler is right, the rank of the truth among the {draws} draws is
any of 0 to {draws} with equal chance.

The exact conditional of an entry has two pieces that meet at the largest other entry of its row. The rule that the
paper prints has one piece, chosen by whether the *old* value was the largest; it is here as
`LInf(rate, rule="paper")`.

p-values of uniform ranks (chi-square, {ranks} ranks):

| statistic | exact | paper_rule |
|---|---|---|
{table}

![Histograms of the ranks of the sum of row maxima under the two rules](proofs.png)

The grey band holds 99% of the counts of a right sampler. The ranks of the sum of row maxima of W are uniform under the
exact rule. Under the paper's rule they are not:
{verdict}

Made by `python -m docs.make_proofs` from the root of the repository. The same calibration for all models, and the test
that needs no thinning at all for every prior, sum of priors and shape of rates, run with `make proofs`.
"""


def main() -> None:
    """Run the calibration for both rules and write the page."""
    counts = {}
    for rule in RULES:
        problem = Problem(L2Squared(1.0) + LInf(1.0, rule=rule), missing=0.0, rescale=False)
        found = ranks(problem, REPLICATES, DRAWS, SEED, THINNING)
        counts[rule] = [np.bincount(column, minlength=DRAWS + 1) for column in found.T]
    pvalues = {rule: [stats.chisquare(c).pvalue for c in counts[rule]] for rule in RULES}
    rows = [
        f"| {name} | {exact:.2g} | {paper_rule:.2g} |"
        for name, exact, paper_rule in zip(STATISTICS, pvalues["exact"], pvalues["paper"], strict=True)
    ]
    of_max = counts["paper"][0]
    middle = np.arange(DRAWS + 1)
    mean_rank = (of_max * middle).sum() / REPLICATES
    side = "small" if mean_rank > DRAWS / 2 else "large"
    verdict = f"its draws are too {side} (mean rank of the truth {mean_rank:.2f}, where {DRAWS / 2} is right)."
    draw_histograms([counts[rule][0] for rule in RULES], [pvalues[rule][0] for rule in RULES])
    page = PAGE.format(
        replicates=REPLICATES, draws=DRAWS, thinning=THINNING, ranks=DRAWS + 1, table="\n".join(rows), verdict=verdict
    )
    (HERE / "proofs.md").write_text(page, encoding="utf-8")


def draw_histograms(counts: list[np.ndarray], pvalues: list[float]) -> None:
    """Save the two histograms of ranks side by side."""
    expected = stats.binom(REPLICATES, 1 / (DRAWS + 1))
    figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
    for axis, rule, count, pvalue in zip(axes, RULES, counts, pvalues, strict=True):
        axis.axhspan(expected.ppf(0.005), expected.ppf(0.995), color="0.88", zorder=0)
        axis.axhline(expected.mean(), color="0.5", linewidth=1)
        axis.bar(np.arange(DRAWS + 1), count, color="C0" if rule == "exact" else "C3", width=0.85)
        axis.set(title=f"{rule} rule, p = {pvalue:.2g}", xlabel="rank of the truth's Σ max W", xticks=[0, 5, 10, 15])
    axes[0].set_ylabel(f"replicates of {REPLICATES}")
    figure.savefig(HERE / "proofs.png", dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
