"""Sentences on what a fit is worth: they follow the error of the predictions and the agreement of the chains."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from bnmf.cli import verdict


@pytest.mark.parametrize(
    ("error", "beginning", "usable"),
    [
        (0.05, "The predictions have converged: endless sampling would change one by about 0.05 of", True),
        (0.2, "The predictions are usable, but not exact", True),
        (0.4, "The predictions have not converged", False),
        (math.nan, "3 draws are too few", False),
    ],
)
def test_predictions(error, beginning, usable):
    sentence, is_usable = verdict.predictions(SimpleNamespace(prediction_error=lambda: error, n_draws=3, notes=()))
    assert sentence.startswith(beginning)
    assert is_usable == usable


@pytest.mark.parametrize(
    ("agrees", "sentence"),
    [
        ([[1, 1, 1], [1, 0, 1]], "2 of 3 components are found by both chains; the others"),
        ([[1, 1], [1, 1], [1, 1]], "All 2 components are found by all 3 chains."),
        ([[1, 1]], "One chain cannot tell"),
    ],
)
def test_components(agrees, sentence):
    agrees = np.array(agrees, bool)
    fit = SimpleNamespace(n_components=agrees.shape[1], n_chains=len(agrees), alignment=SimpleNamespace(agrees=agrees))
    assert verdict.components(fit).startswith(sentence)


def test_a_fit_that_has_not_converged_prints_the_command_that_goes_on(program, reports, table, tmp_path, monkeypatch):
    monkeypatch.setattr(verdict, "predictions", lambda posterior: ("Not yet.", False))
    short = ("--draws", "12", "--burn-in", "8", "--chains", "2", "-k", "2")
    result = program("fit", table, "--out", tmp_path / "a b", *short)
    assert f"Take more draws with: bnmf fit --resume --out '{tmp_path / 'a b'}' --draws auto" in result.stdout
