"""``bnmf transform`` and ``bnmf report``: what a directory of a fit is good for later."""

import re
import shutil

import numpy as np
import pytest

from bnmf import Posterior
from bnmf.cli.directory import FitDirectory
from bnmf.posterior.verdict import Finding
from bnmf.tables import read_table

SHORT = ("--draws", "30", "--burn-in", "20", "--chains", "2", "-k", "2", "--jobs", "1")


@pytest.fixture
def fit(program, reports, table, tmp_path, tmp_path_factory):
    """Return the directory of a fit, which is made once and copied."""
    made = tmp_path_factory.getbasetemp() / "fit-of-transform"
    if not made.exists():
        program("fit", table, "--out", made, *SHORT)
    return shutil.copytree(made, tmp_path / "fit")


def weights(program, fit, text, tmp_path, *more):
    (tmp_path / "new.csv").write_text(text)
    program("transform", fit, tmp_path / "new.csv", "-o", tmp_path / "w.csv", *more)
    return read_table(tmp_path / "w.csv")


def test_fitted_rows_keep_their_weights(program, fit, table, tmp_path):
    found = weights(program, fit, table.read_text(), tmp_path)
    expected = read_table(fit / "W.csv")
    np.testing.assert_allclose(found.values[:, :2], expected.values, rtol=1e-5)
    assert found.row_names == expected.row_names
    assert found.column_names == ["component 0", "component 1", "component 0 sd", "component 1 sd"]
    posterior = Posterior.load(fit / "posterior.npz")
    agrees = posterior.alignment.agrees[:, 0]
    sd = posterior.align().W[agrees, :, :, 0].reshape(-1, 12).std(axis=0)
    np.testing.assert_allclose(found.values[:, 2], sd, rtol=1e-5)


def test_columns_are_matched_by_name(program, fit, tmp_path):
    ordered = weights(program, fit, "n,a,b,c,d,e\nx,1,2,,0.5,\n", tmp_path)
    other = weights(program, fit, "n,d,b,a\nx,0.5,2,1\n", tmp_path)
    triples = weights(program, fit, "x,d,0.5\nx,b,2\nx,a,1\n", tmp_path, "--triples")
    np.testing.assert_array_equal(ordered.values, other.values)
    np.testing.assert_array_equal(ordered.values, triples.values)
    assert other.row_names == triples.row_names == ["x"]
    wide = weights(program, fit, "n,d,b,a\nx,0.5,2,1\n", tmp_path, "--interval", "0.9").values[0]
    assert np.all((wide[2:4] < wide[:2]) & (wide[:2] < wide[4:6]))


def test_weights_go_to_standard_output_and_messages_elsewhere(program, fit, table):
    result, header = program("transform", fit, table), ",component 0,component 1,component 0 sd,component 1 sd"
    assert re.fullmatch(header + r"\n(p\d+(,[\d.e-]+){4}\n){12}", result.stdout)
    assert "12 rows" in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,x\n1,2,3\n", "the fit has no column 'x': leave out"),
        ("a,p,q,r,s,t,u,v\n1,2,3,4,5,6,7,8\n", "no columns 'p', 'q', 'r', 's', 't' and 2 others: leave out"),
        ("1,2,3\n4,5,6\n", "the fit has 5 columns, these rows have 3"),
        ("a,b,a\n1,2,3\n", "'a' occurs more than once"),
        ("a,b\n1,-2\n", "some entries are negative"),
    ],
)
def test_rows_that_do_not_fit(program, fit, tmp_path, text, message):
    (tmp_path / "new.csv").write_text(text)
    assert program.fails(message, "transform", fit, tmp_path / "new.csv", code=1).stdout == ""


def test_report_again(program, fit, reports):
    reports.clear()
    assert f"Report to open: {fit / 'report.html'}" in program("report", fit).stdout
    ((path, posterior, data, title, settings),) = reports
    assert (path, title, settings["components"]) == (fit / "report.html", "Fit of plants.csv", 2)
    assert data.shape == posterior.shape == (12, 5)


def test_the_report_is_a_page_with_the_names_of_the_table(program, table, tmp_path):
    program("fit", table, "--out", tmp_path / "fit", *SHORT)
    page = (tmp_path / "fit" / "report.html").read_text(encoding="utf-8")
    assert "Fit of plants.csv" in page
    assert "p11" in page
    assert "<th scope=row>burn-in</th><td>20</td>" in page
    assert "<td>None</td>" not in page
    results = FitDirectory(tmp_path / "fit")
    posterior = results.posterior()
    posterior.notes = (Finding("fit", "poor", "many are 5", "say so with bnmf.limits(X, capped=5)"),)
    assert "Many are 5. Say so with --capped 5." in results.report(posterior).read_text(encoding="utf-8")


def test_a_directory_without_a_finished_fit(program, fit):
    (fit / "posterior.npz").unlink()
    program.fails(f"is not finished: bnmf fit --resume --out {fit} continues it", "report", fit)
    (fit / "posterior.npz").write_bytes(b"PK\x03\x04")
    assert len(program("report", fit, code=1).stderr.splitlines()) == 1


def test_no_output_replaces_the_rows_or_the_fit(program, fit, table, tmp_path):
    for out in (table, fit / "posterior.npz"):
        before = out.read_bytes()
        program.fails("is an input, which would be replaced", "transform", fit, table, "-o", out)
        assert out.read_bytes() == before


def test_missing_entries_are_written_as_in_the_fit(program, table, tmp_path):
    coded = tmp_path / "coded.csv"
    coded.write_text(re.sub(r"\bNA\b", "-999", table.read_text()))
    assert "-999" in coded.read_text()
    program("fit", coded, "--missing", "-999", "--out", tmp_path / "of-coded", *SHORT)
    found = weights(program, tmp_path / "of-coded", coded.read_text(), tmp_path)
    np.testing.assert_allclose(found.values[:, :2], read_table(tmp_path / "of-coded" / "W.csv").values, rtol=1e-5)
    program("impute", coded, "--fit", tmp_path / "of-coded", "-o", tmp_path / "filled.csv")
    assert "-999" not in (tmp_path / "filled.csv").read_text()


def test_weights_are_csv(program, fit, table, tmp_path):
    result = program("transform", fit, table, "-o", tmp_path / "w.npy", code=2)
    assert "weights are written as CSV" in result.stderr
    assert not (tmp_path / "w.npy").exists()
