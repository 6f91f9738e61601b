"""``bnmf impute`` of a text with words, whole numbers and limits: every cell that was there stays, others are valid."""

import csv

import numpy as np
import pytest

from bnmf.cli import mixed
from bnmf.cli.mixed import kinds_of
from bnmf.cli.outcome import WrongUse
from bnmf.tables.mixed import read_mixed


@pytest.fixture(autouse=True)
def short_fits(monkeypatch, short):
    monkeypatch.setattr(mixed, "SETTINGS", short)


@pytest.fixture
def people(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["sex;age;size;share;lead;when;note"]
    for i in range(60):
        size = rng.normal()
        cells = [
            "mf"[i % 2],
            f"{40 + 10 * size:.0f}",
            "SML"[int(np.digitize(size, [-0.6, 0.6]))],
            f"{np.clip(50 + 40 * size, 0, 100):.1f}".replace(".", ","),
            "<0,5" if i == 7 else f"{size**2 + 0.5:.2f}".replace(".", ","),
            f"2024-01-{i % 28 + 1:02d}",
            f"note {i}",
        ]
        lines.append(";".join("" if rng.random() < 0.15 and j < 5 else cell for j, cell in enumerate(cells)))
    path = tmp_path / "people.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def cells_of(path):
    return list(csv.reader(path.read_text().splitlines(), delimiter=";"))


def test_a_text_of_several_kinds(program, people, tmp_path):
    out = tmp_path / "filled.csv"
    options = ["--kind", "size=S<M<L", "--kind", "share=0..100", "--ignore", "sex"]
    result = program("impute", people, "-o", out, *options, "--interval", "0.8", "--imputations", "1")
    assert result.exit_code == 0, result.output
    assert "column 'when' (dates)" in result.stdout
    assert "column 'note' (60 categories in 60 entries)" in result.stdout
    before = cells_of(people)
    for path in (out, *(tmp_path / f"filled.{word}.csv" for word in ("lower", "upper", "1"))):
        after = cells_of(path)
        for row, (old, new) in enumerate(zip(before, after, strict=True)):
            for column, (a, b) in enumerate(zip(old, new, strict=True)):
                if column == 0 or row == 0:
                    assert a == b
                elif a.startswith("<"):
                    assert b == a or (path == out and float(b.replace(",", ".")) < 0.5)
                else:
                    assert a in ("", b)
                    assert b != ""
        for _, age, size, share, *_ in after[1:]:
            assert age.isdigit()
            assert size in ("S", "M", "L")
            assert 0.0 <= float(share.replace(",", ".")) <= 100.0


def test_words_are_filled_without_being_asked_for(program, people, tmp_path):
    out = tmp_path / "filled.csv"
    result = program("impute", people, "-o", out)
    assert result.exit_code == 0, result.output
    assert {row[0] for row in cells_of(out)[1:]} == {"m", "f"}


def test_how_cells_are_read(people):
    text = read_mixed(people, ["age"])
    assert text.frame.dtypes.astype(str).tolist() == ["str", "str", "str", "float64", "float64", "str", "str"]
    assert read_mixed(people, []).frame["age"].dtype == "Int64"
    assert text.dates == ["when"]
    assert text.upper[7, 4] == 0.5
    assert np.isnan(text.upper).sum() == text.upper.size - 1
    assert text.render(text.frame, text.frame.isna().to_numpy()) == people.read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kind", "wrong=whole"], "there is no column 'wrong'"),
        (["--kind", "age"], "--kind is COLUMN=KIND"),
        (["--kind", "age=yes"], "must be 'number'"),
        (["--ignore", "sex", "--capped", "100"], "are for tables of numbers"),
        (["--ignore", "sex", "--triples"], "do not go with"),
    ],
)
def test_errors(program, people, tmp_path, options, message):
    result = program("impute", people, "-o", tmp_path / "out.csv", *options)
    assert result.exit_code != 0
    assert message in result.stderr
    assert not (tmp_path / "out.csv").exists()


def test_bounds_are_numbers():
    assert kinds_of(["a=b=c"]) == {"a": "b=c"}
    with pytest.raises(WrongUse, match="bounds as numbers"):
        kinds_of(["a=0..x"])
