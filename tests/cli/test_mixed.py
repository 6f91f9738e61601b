"""``bnmf impute`` of tables with words, whole numbers and limits: what was there stays, and the rest is valid."""

import csv
import gzip

import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.usefixtures("short")


@pytest.fixture
def people(tmp_path):
    rng, rows = np.random.default_rng(0), np.arange(60)
    size = rng.normal(size=60)
    frame = pd.DataFrame({"sex": np.array(["m", "f"])[rows % 2], "age": [f"{40 + 10 * x:.0f}" for x in size]})
    frame["size"] = np.array(["S", "M", "L"])[np.digitize(size, [-0.6, 0.6])]
    frame["share"] = [f"{x:.1f}".replace(".", ",") for x in np.clip(50 + 40 * size, 0, 100)]
    frame["lead"] = [f"{x:.2f}".replace(".", ",") for x in size**2 + 0.5]
    frame = frame.mask(rng.random((60, 5)) < 0.15)
    frame.loc[7, "lead"] = "<0,5"
    frame = frame.assign(when=[f"2024-01-{row % 28 + 1:02d}" for row in rows], note=[f"note {row}" for row in rows])
    frame.to_csv(tmp_path / "people.csv", sep=";", index=False)
    return tmp_path / "people.csv"


def cells_of(path):
    return list(csv.reader(path.read_text().splitlines(), delimiter=";"))


def test_a_text_of_several_kinds(program, people, tmp_path):
    source, out, cells = tmp_path / "people.csv.gz", tmp_path / "filled.csv", tmp_path / "cells.csv"
    source.write_bytes(gzip.compress(people.read_bytes()))
    options = ["--kind", "size=S<M<L", "--kind", "share=0..100", "--ignore", "sex", "--lower", "lead=0"]
    more = ["--interval", "0.8", "--imputations", "1", "--cells", cells]
    result = program("impute", source, "-o", out, *options, *more)
    assert "3 columns of words: size, when, note" in result.stdout
    assert "column 'when' (dates)" in result.stdout
    assert "column 'note' (60 categories in 60 entries)" in result.stdout
    before = cells_of(people)
    found = [cells_of(path) for path in (out, *(tmp_path / f"filled.{word}.csv" for word in ("lower", "upper", "1")))]
    for after in found:
        for old, new in zip(before, after, strict=True):
            assert old[0] == new[0]  # which was left out
            assert all(b if a[:1] in ("", "<") else a == b for a, b in zip(old[1:], new[1:], strict=True))
        for _, age, size, share, *_ in after[1:]:
            assert age.isdigit()
            assert size in ("S", "M", "L")
            assert 0.0 <= float(share.replace(",", ".")) <= 100.0
        assert 0.0 <= float(after[8][4].replace(",", ".")) <= 0.5
    listed = pd.read_csv(cells)
    expected = [
        (row, before[0][at], *(after[row][at].replace(",", ".") for after in found[:3]))
        for row in range(1, 61)
        for at in range(1, 5)
        if before[row][at][:1] in ("", "<")
    ]
    assert [tuple(map(str, row)) for row in listed.to_numpy().tolist()] == [tuple(map(str, row)) for row in expected]


def test_words_of_other_files(program, people, tmp_path):
    """A Parquet file with categories, truth values and dates: the same dtypes, and an Excel workbook by its name."""
    program("impute", people, "-o", tmp_path / "filled.csv")
    assert {row[0] for row in cells_of(tmp_path / "filled.csv")[1:]} == {"m", "f"}
    frame = pd.read_csv(people, sep=";", decimal=",", na_values="<0,5", parse_dates=["when"])
    frame = frame.assign(size=frame["size"].astype("category"), ok=pd.array([True, None, False] * 20, "boolean"))
    frame.to_parquet(tmp_path / "people.parquet")
    for out in ("filled.parquet", "filled.xlsx"):
        program("impute", tmp_path / "people.parquet", "-o", tmp_path / out, "--capped", "share=100")
    filled = pd.read_parquet(tmp_path / "filled.parquet")
    pd.testing.assert_series_equal(filled.dtypes, frame.dtypes)
    pd.testing.assert_frame_equal(filled.where(frame.notna()), frame)
    assert filled.notna().all(axis=None)
    assert (filled["age"] % 1 == 0).all()
    of_excel = pd.read_excel(tmp_path / "filled.xlsx")
    assert of_excel["ok"].tolist() == filled["ok"].tolist()
    assert of_excel["sex"].tolist() == filled["sex"].tolist()


def test_other_commands_name_what_to_do(program, reports, people, tmp_path):
    message = "columns 'size', 'when', 'note' hold text, such as 'M': leave them out with --ignore size"
    program.fails(message, "fit", people, "--out", tmp_path / "fit", code=1)
    ignore = [word for name in ("size", "when", "note") for word in ("--ignore", name)]
    options = ("-k", "1", "--chains", "1", "--burn-in", "5", "--draws", "5")
    result = program("fit", people, "--out", tmp_path / "fit", *ignore, *options)
    assert "60 rows (m, f, m, ...) x 3 columns (age, share, lead)" in result.stdout
    program.fails("hold text, such as", "impute", people, "--fit", tmp_path / "fit", "-o", tmp_path / "f.csv", code=1)
    result = program("impute", people, "--fit", tmp_path / "fit", "-o", tmp_path / "f.csv", *ignore)
    before, after = cells_of(people), cells_of(tmp_path / "f.csv")
    assert [[row[at] for at in (0, 2, 5, 6)] for row in before] == [[row[at] for at in (0, 2, 5, 6)] for row in after]
    assert all(cell and cell[0] != "<" for row in after for cell in (row[1], *row[3:5]))
