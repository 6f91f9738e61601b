"""``bnmf demo``: what it shows is what was measured."""

import re

from bnmf import demo


def test_demo_compares_draws_and_reports(program, reports, monkeypatch, tmp_path):
    first = {name: table.iloc[:60, :8] for name, table in demo.tables().items()}
    monkeypatch.setattr(demo, "tables", lambda: first)
    out = tmp_path / "demo"
    result = program("demo", "--out", out)
    for name in first:
        numbers = re.search(rf"^{name} +([\d.]+) +([\d.]+) +[\d.]+ +[\d.]+ +(\d+)%$", result.stdout, re.MULTILINE)
        error, of_mean, coverage = map(float, numbers.groups())
        assert error < of_mean
        assert 70 < coverage <= 100
    assert "Predictions: good" in result.stdout
    assert (out / "demo.png").read_bytes().startswith(b"\x89PNG")
    ((path, posterior, data, _, _),) = reports
    assert path == out / "report.html"
    assert data.index[0] == posterior.row_names[0] == "cultivar 1, #1"
    share = int(re.search(r"for\s(\d+)%\sof\sthe\swines", result.stdout)[1])
    assert 75 < share <= 100
    assert f"Open {out / 'demo.png'} and {path}" in result.stdout
