"""Write docs/proofs.md and docs/proofs.png: ranks under the exact rule and the rule printed in the paper, for GL2²,∞.

Run from the root of the repository: python -m docs.make_proofs
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy import stats
from tests.statistical.calibration import RANKED, Problem, ranks

from bnmf.priors import L2Squared, LInf
from bnmf.sampler.moves import PLAIN

HERE = Path(__file__).parent
REPLICATES, DRAWS, THINNING, SEED = 1500, 19, 10, 1
# Name of each rule in the plot.
RULES = {"exact": "exact rule", "paper": "rule printed in the paper"}

PAGE = """# The sampler samples from the posterior; with the rule printed in the paper it does not

Simulation-based calibration of the GL2²,∞ model with {replicates} replicates: M, N, K = 4, 3, 3 and λ = 1, all entries
observed, an inverse-gamma (5, 5) prior on the noise variance, and no rescaling move. Each replicate draws W, Z and σ²
from their priors and a matrix given these, then {draws} states of the sampler given the matrix, {thinning} sweeps apart
(their autocorrelation is at most 0.01). If the sampler is correct, the rank of the true value among the {draws} draws
is uniform on 0 to {draws}.

The exact conditional density of an entry has two pieces, which meet at the largest other entry of its row. The rule
printed in the paper has only one piece, chosen by whether the *old* value was the largest. It is available as
`LInf(rate, rule="paper")`.

p-values of a chi-square test for uniform ranks ({ranks} ranks):

| statistic | exact rule | rule printed in the paper |
|---|---|---|
{table}

![Histograms of the ranks of the sum of row maxima under the two rules](proofs.png)

The grey band contains 99% of the counts of a correct sampler. The ranks of the sum of row maxima of W are uniform under
the exact rule. Under the rule printed in the paper they are not:
{verdict}

To update this page, run `python -m docs.make_proofs` from the root of the repository. `make proofs` runs the same
calibration for all models, and a test that needs no thinning for every prior, sum of priors and shape of the rates.
"""


def main() -> None:
    """Run the calibration for both rules and write the page."""
    counts = {}
    for rule in RULES:
        problem = Problem(L2Squared(1.0) + LInf(1.0, rule=rule), missing=0.0, moves=PLAIN)
        found = ranks(problem, REPLICATES, DRAWS, SEED, THINNING)
        counts[rule] = [np.bincount(column, minlength=DRAWS + 1) for column in found.T]
    pvalues = {rule: [stats.chisquare(c).pvalue for c in counts[rule]] for rule in RULES}
    rows = [
        f"| {name} | {exact:.2g} | {paper:.2g} |"
        for name, exact, paper in zip(RANKED, pvalues["exact"], pvalues["paper"], strict=True)
    ]
    of_max = counts["paper"][0]
    mean_rank = (of_max * np.arange(DRAWS + 1)).sum() / REPLICATES
    side = "small" if mean_rank > DRAWS / 2 else "large"
    verdict = f"its draws are too {side} (the mean rank of the true value is {mean_rank:.2f} instead of {DRAWS / 2})."
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
        axis.set(title=f"{RULES[rule]}, p = {pvalue:.2g}", xlabel="rank of the true Σ max W", xticks=[0, 5, 10, 15])
    axes[0].set_ylabel(f"replicates (of {REPLICATES})")
    figure.savefig(HERE / "proofs.png", dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
