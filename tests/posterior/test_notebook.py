"""Fits, summaries and choices of K as HTML: complete, well formed, names escaped."""

from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from bnmf import Posterior
from bnmf.posterior.summary import SummaryTable
from bnmf.selection import RankChoice

EVIL = "<script>alert(1)</script>"


def parsed(html):
    return ElementTree.fromstring(f"<div>{html}</div>")


@pytest.fixture
def posterior():
    rng = np.random.default_rng(0)
    return Posterior(
        rng.random((3, 5, 4, 2)),
        rng.random((3, 5, 2, 6)),
        rng.random((3, 5)),
        rng.random((3, 9)),
        n_observed=20,
        row_names=pd.Index([EVIL, "b & c", "d", "e"]),
        column_names=pd.Index(range(6)),
    )


def test_posterior(posterior):
    html = posterior._repr_html_()
    text = "".join(parsed(html).itertext())
    assert EVIL not in html
    assert f"{EVIL[:12]}" in text  # cut in the middle
    assert "4 x 6, 83.3% observed" in text
    assert "3 chains of 5, after 4 sweeps of burn-in" in text
    assert "0, 1, 2, 3, …" in text
    assert "Predictions:" in text


def test_posterior_without_names_and_with_gaps(posterior):
    posterior.train_mse[1, 6:] = np.nan  # a chain that was interrupted
    plain = Posterior(posterior.W, posterior.Z, posterior.noise_variance, posterior.train_mse, n_observed=24)
    html = plain._repr_html_()
    assert "nan" not in html
    assert "rows</th>" not in html
    few = Posterior(posterior.W[:, :2], posterior.Z[:, :2], np.ones((3, 2)), posterior.train_mse, n_observed=24)
    assert "too few" in few._repr_html_()


def test_summary():
    table = SummaryTable({"mean": [1.0, 2.0], "r_hat": [1.01, np.nan]}, index=["noise", EVIL])
    table.verdict = f"Good {EVIL}."
    html = table._repr_html_()
    assert EVIL not in html
    assert table.rename_axis("name")._repr_html_() == html
    assert [len(row) for row in parsed(html).findall(".//tr")] == [3, 3, 3]


def test_choice_of_k():
    table = pd.DataFrame(
        {"log_density": [-2.0, -1.0, -1.1], "below_best": [1.0, 0.0, 0.1], "below_best_se": [0.2, 0.0, 0.1]},
        index=pd.Index([1, 2, 4], name="k"),
    )
    assert "K = 2 " in "".join(parsed(RankChoice(2, table)._repr_html_()).itertext())
