"""R-hat and effective sample sizes, the table with a verdict, and what notebooks show."""

from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from bnmf import Posterior
from bnmf.posterior.summary import SummaryTable, diagnostics, rhat_and_ess
from bnmf.selection import RankChoice

rng = np.random.default_rng(0)
GOOD = rng.normal(size=(4, 200))
SHIFTED = GOOD + np.array([0.0, 0.0, 0.0, 2.0])[:, None]
EVIL = "<script>alert(1)</script>"


def test_of_many_the_worst_is_shown():
    many = np.stack([GOOD, SHIFTED, np.ones_like(GOOD)], axis=2)
    r_hat, ess = rhat_and_ess(many)
    table = diagnostics({"many": many, "good": GOOD, "short": GOOD[:, :3]})
    assert table.loc["many", "r_hat"] == r_hat[1] == r_hat.max() > 1.1
    assert table.loc["many", "ess"] == ess.min()
    assert np.isnan(table.loc["many", "sd"])
    assert (r_hat[2], ess[2]) == (1.0, 800.0)  # a constant has converged
    assert table.loc["good", "mean"] == pytest.approx(GOOD.mean())
    assert np.isnan(table.loc["short", "r_hat"])  # too few draws


# --- the table


def test_shown_with_its_verdict():
    """As its parts are."""
    table = SummaryTable({"mean": [1.23456789, 1e-7], "sd": [np.nan, 2.0]}, index=["noise variance", EVIL])
    table.verdict = f"No {EVIL}: double `burn_in`."
    lines = [line.split() for line in repr(table).splitlines()]
    assert lines[:2] == [["mean", "sd"], ["noise", "variance", "1.235"]]  # four digits, and nothing for NaN
    assert lines[2:] == [[EVIL, "1e-07", "2"], ["No", f"{EVIL}:", "double", "`burn_in`."]]
    assert repr(SummaryTable({"a": [1.0]})) == "   a\n0  1\n"  # without a verdict
    for part in (table.head(1), table.copy(), table[["mean"]], table.round(2)):
        assert repr(part).endswith(f"\nNo {EVIL}: double `burn_in`.")
    html = table.rename_axis("name")._repr_html_()
    assert html.endswith("alert(1)&lt;/script&gt;: double <code>burn_in</code>.</p>")
    assert EVIL not in html
    assert "nan" not in html.lower()
    assert "<td>1.235</td>" in html
    assert [len(row) for row in parsed(html).findall(".//tr")] == [3, 3, 3]


# --- HTML: complete, well formed, names escaped


def parsed(html):
    return ElementTree.fromstring(f"<div>{html}</div>")


def test_posterior():
    rng = np.random.default_rng(0)
    draws = rng.random((3, 5, 4, 2)), rng.random((3, 5, 2, 6)), rng.random((3, 5)), rng.random((3, 9))
    draws[3][1, 6:] = np.nan  # a chain that was interrupted
    html = Posterior(*draws, n_observed=20)._repr_html_()
    text = "".join(parsed(html).itertext())
    for words in ("4 x 6, 83.3% observed", "3 chains of 5, after 4 sweeps of burn-in", "Predictions:"):
        assert words in text
    assert "nan" not in html


def test_choice_of_k():
    table = pd.DataFrame(
        {"log_density": [-2.0, -1.0, -1.1], "below_best": [1.0, 0.0, 0.1], "below_best_se": [0.2, 0.0, 0.1]},
        index=pd.Index([1, 2, 4], name="k"),
    )
    assert "K = 2 " in "".join(parsed(RankChoice(2, table)._repr_html_()).itertext())
