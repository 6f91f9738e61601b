"""``bnmf demo``: what it shows is what the fit found."""

import re

import numpy as np

from bnmf import digits
from bnmf.cli import demo


def test_demo_shows_errors_a_verdict_and_where_to_look(program, reports, monkeypatch, tmp_path):
    everything, first = digits.hidden_digits, {}
    monkeypatch.setattr(digits, "hidden_digits", lambda: everything(120))
    monkeypatch.setattr(demo, "MAX_TIME", 1.0)
    score = digits.score
    monkeypatch.setattr(digits, "score", lambda *fit: first.setdefault("score", score(*fit)))
    result = program("demo", "--out", tmp_path / "demo")
    assert result.exit_code == 0, result.output
    assert "120 handwritten digits" in result.stdout
    found = first["score"]
    assert found.error < found.mean_error
    assert re.search(rf"bnmf +{found.error:.2f} +{found.coverage:.1%}", result.stdout)
    assert "Predictions: " in result.stdout
    assert (tmp_path / "demo" / "digits.png").read_bytes().startswith(b"\x89PNG")
    ((path, posterior, data, _, _),) = reports
    assert path == tmp_path / "demo" / "report.html"
    assert data.column_names[9] == posterior.column_names[9] == "pixel 2,2"
    assert f"Open {tmp_path / 'demo' / 'digits.png'} and {path}" in result.stdout


def test_hidden_pixels_are_not_seen():
    data = digits.hidden_digits(50)
    assert 0.45 < data.hidden.mean() < 0.55
    assert np.isnan(data.seen[data.hidden]).all()
    np.testing.assert_array_equal(data.seen[~data.hidden], data.pixels[~data.hidden])
    assert data.table().observed().n_observed == (~data.hidden).sum()
