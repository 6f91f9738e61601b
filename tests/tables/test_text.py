"""Delimited text: what is recognised, what is an error, and cells that are written back as they were."""

import math
import time

import numpy as np
import pytest

from bnmf.tables.frames import grid_bytes
from bnmf.tables.grid import read_grid
from bnmf.tables.table import Fills, TableError
from bnmf.tables.text import Dialect, ReadOptions, decoded, judged, recognise, records, written

nan = math.nan


def grid(text, *missing, **options):
    table = read_grid(text, ReadOptions(missing, **options))
    if "words" not in options:
        table.refuse_words()
    return table


@pytest.mark.parametrize(
    ("text", "delimiter", "decimal", "header", "row_names"),
    [
        ("a,b\n1,2\n3,4\n", ",", ".", True, False),
        ("x,a,b\nr,1,2\ns,3,4\n", ",", ".", True, True),
        (",0,1\n0,1,2\n1,3,4\n", ",", ".", True, True),  # pandas with numbers as names
        ("Unnamed: 0,a\n0,1\n1,2\n", ",", ".", True, True),
        ("a\tb\nr\t1\t2\ns\t3\t4\n", "\t", ".", True, True),  # R: the corner is not there
        ("1,5;2,5\n3,5;4,5\n", ";", ",", False, False),
        ("a;b\n1.5;2\n3;4\n", ";", ".", True, False),
        ("a|b\n1|2\n", "|", ".", True, False),
        ("  1.5   2\n 10.25  3\n", " ", ".", False, False),
        ('"x, y",b\n1,2\n', ",", ".", True, False),
        ("Smith; John,1,2\nMiller,3,4\n", ",", ".", False, True),
        ("a,b\n?,2\n3,4\n5,6\n", ",", ".", True, False),
        ("day,a\n2024-01-01,1\n2024-01-02,2\n", ",", ".", True, True),
        ("a\n1\n2\n", ",", ".", True, False),
        ('"x","y\t1"\n1,2\n', ",", ".", True, False),
        ("id,1990,1991\n7,5,6\n2,5,9\n", ",", ".", True, False),  # a word above numbers
        ("12%,3,4\n5,6,7\n8,9,9\n", ",", ".", False, False),
        ("1,2,3\n4,5,6\n7,8,9\n", ",", ".", False, False),  # every line counts
        ("3,4,5\n9,5,6\n7,1,9\n", ",", ".", False, False),
        ("5,1\n6,7\n7,2\n", ",", ".", False, False),
    ],
)
def test_dialect_is_recognised(text, delimiter, decimal, header, row_names):
    found = recognise(text, ReadOptions())
    found = judged(list(records(text, found)), found, ReadOptions())
    assert (found.delimiter, found.decimal, found.header, found.row_names) == (delimiter, decimal, header, row_names)


def test_cells_with_signs_are_limits():
    table = grid("site;lead;iron\na;<0,5;\nb;1;≥ 1\nc; <= 3e0 ;2\nd;4;5,5\n")
    np.testing.assert_array_equal(table.values, [[nan, nan], [1, nan], [nan, 2], [4, 5.5]])
    np.testing.assert_array_equal(table.lower, [[-np.inf, nan], [nan, 1], [-np.inf, nan], [nan, nan]])
    np.testing.assert_array_equal(table.upper, [[0.5, nan], [nan, np.inf], [3, nan], [nan, nan]])


def test_minus_signs_of_typeset_tables():
    np.testing.assert_array_equal(
        grid("a,b\n\u22120.05,1e\u22122\n-999,<\u22121\n", "\u2212999").values, [[-0.05, 0.01], [nan] * 2]
    )
    table = grid("a;b\n\u22121,5;2\n3;<\u22120,5\n")
    np.testing.assert_array_equal(table.values, [[-1.5, 2], [3, nan]])
    np.testing.assert_array_equal(table.upper, [[nan, nan], [nan, -0.5]])
    with pytest.raises(TableError, match=r"use --missing '\u2212'"):
        grid("a,b\n1,2\n3,\u2212\n4,5\n")


def test_numbers_names_and_missing_entries():
    assert [line for line, _ in records('a,"x\ny"\n\nb,2\n', Dialect())] == [1, 4]
    assert grid('n,a\n"x\ny",1\nz,2\n').row_names == ["x\ny", "z"]
    table = grid('name,height,"weight, kg"\nAnn,1.7,NA\n"Ben ""B""",,8e1\nCleo,#N/A,nan\n')
    assert table.row_names == ["Ann", 'Ben "B"', "Cleo"]
    assert table.column_names == ["height", "weight, kg"]
    np.testing.assert_array_equal(table.values, [[1.7, nan], [nan, 80.0], [nan, nan]])


def test_markers_are_words_or_any_way_to_write_a_number():
    table = grid("a,b\n0,1\n0.0,?\n-999,2\n-inf,3\n", "0", "?", "-999", "-inf")
    np.testing.assert_array_equal(table.values, [[nan, 1], [nan, nan], [nan, 2], [nan, 3]])
    table = grid("a;b\n1,5;2\n1,50;?\n2,5; 9\n", "1,5", "?")
    np.testing.assert_array_equal(table.values, [[nan, 2], [nan, nan], [2.5, 9]])
    table = grid("a:b\n1:2,5\n3:4,5\n", delimiter=":")  # which is given
    np.testing.assert_array_equal(table.values, [[1, 2.5], [3, 4.5]])
    assert "text with ':', decimal commas" in table.layout.description


COUNTED = "id,a\n1,5\n2,5\n3,6\n4,6\n"
NUMBERED = "Sample_ID,a\n1001,5\n1007,5\n1003,6\n1004,6\n"
LATE = "id,a\n" + "".join(f"{row},{row % 7}\n" for row in range(250)) + "7,7\n"
SEX = "sex,age\nm,31\nf,4\nm,5\nf,6\n"
GENES = "gene,a\n" + "".join(f"g{row % 101},{row % 7}\n" for row in range(202))


@pytest.mark.parametrize(
    ("text", "options", "row_names", "column_names", "note"),
    [
        (
            "place,1990,1991\nFr,2,3\nEs,4,5\n",
            {},
            "Fr Es",
            "1990 1991",
            "the first line holds years, and is taken as c",
        ),
        ("1990,1995,2000\n1,2,5\n3,4,6\n", {}, None, "1990 1995 2000", "the first line holds years, and is"),
        ("p;0;1;2\na;1,5;2;7\nb;3;4;6\n", {}, "a b", "0 1 2", "the first line only counts, and is"),
        ("place,1990,1991\nFr,2,3\nEs,4,5\n", {"header": False}, "place Fr Es", None, None),
        ("9,2\n1,2\n3,4\n", {}, None, None, "the first line is all numbers, and is taken as data: --header takes it"),
        (COUNTED, {}, "1 2 3 4", "a", "column 'id' only counts the rows, and is taken as row names: --no-row-names"),
        (COUNTED, {"row_names": False}, None, "id a", None),
        ("1990,5\n1991,5\n1995,6\n1999,6\n", {}, "1990 1991 1995 1999", None, "the first column holds years, and is"),
        ("a,b\n1,5\n2,5\n3,6\n", {}, None, "a b", None),  # so few may count by chance
        (NUMBERED, {}, "1001 1007 1003 1004", "a", "column 'Sample_ID' holds identifiers, and is taken as row names"),
        (NUMBERED.replace("Sample_ID", "valid"), {}, None, "valid a", None),
        (NUMBERED + "1001,7\n", {}, None, "Sample_ID a", None),
        (LATE, {}, None, "id a", None),  # it does not count to the end
        (SEX, {}, "m f m f", "age", None),
        (
            SEX,
            {"words": []},
            None,
            "sex age",
            "words recur in column 'sex', so it is data: --row-names takes it as names",
        ),
        ("id,age\nu,31\nv,4\n", {"words": ["id"]}, None, "id age", None),
        (GENES, {"words": []}, " ".join(f"g{row % 101}" for row in range(202)), "a", None),  # so many are names
    ],
)
def test_names_are_told_from_data(text, options, row_names, column_names, note):
    table = grid(text, **options)
    assert table.row_names == (row_names and row_names.split())
    assert table.column_names == (column_names and column_names.split())
    assert table.shape[0] == text.count("\n") - (column_names is not None)
    assert any(found.startswith(note) for found in table.notes) if note else table.notes == []


def test_a_quote_that_is_never_closed_is_named_soon():
    """In linear time: 40,000 lines took minutes."""
    lines = [f"{row},{row % 7},{row % 5}" for row in range(40_000)]
    for line, size in ((30_001, 40_000), (4, 400)):
        broken = [*lines[: line - 1], '"' + lines[line - 1], *lines[line:size]]
        begin = time.process_time()
        with pytest.raises(TableError, match=rf"line {line}: its quote is never closed"):
            grid("\n".join(broken))
        assert time.process_time() - begin < 5.0
    with pytest.raises(TableError, match="line 3 has 4 cells"):
        grid('a,b\n1,2\n"3,4\n5,"6,7,8,9"\n1,2\n')
    assert grid('pipe,a\n5" wide,1\n6" wide,2\n').row_names == ['5" wide', '6" wide']


def test_comments_are_skipped_and_written_back():
    text = '# from "somewhere\n#\nname,a,b\nx,1,\n# half time\n#y,2,3\n'
    table = grid(text)
    assert (table.row_names, table.column_names) == (["x", "#y"], ["a", "b"])
    assert table.notes == ["lines that begin with # are comments"]
    assert table.render(Fills(*table.to_fill(), np.array([0.5]))).decode() == text.replace("x,1,", "x,1,0.5")
    np.testing.assert_array_equal(grid("name,0\n# one more\n1,5\n").values, [[1, 5]])
    assert grid("c0,c1\n# one\nu,3,0\n,4,1\nu,5,2\n", words=[]).row_names == ["u", "", "u"]  # which the header lacks
    with pytest.raises(TableError, match="line 4, column 'b': 'oops'"):
        grid("# one\na,b\n1,2\n3,oops\n4,5\n")
    for text in ("#N/A,1\n2,3\n5,6\n", "#NA,1\n2,3\n5,6\n", "2,3\n#N/A,1\n5,6\n"):
        assert np.isnan(grid(text).values).sum() == 1
        assert grid(text).shape == (3, 2)


@pytest.mark.parametrize(
    "text",
    [
        "#1.2\n2\t3\nName\tDescription\ts1\ts2\ts3\ng1\tna\t1\t\t3\ng2\tx y\t4\t5\t6\n",
        "#1.3\n2\t3\t1\t1\nid\tkind\ts1\ts2\ts3\nbatch\tna\tA\tB\tA\ng1\tna\t1\t\t3\ng2\tx y\t4\t5\t6\n",
    ],
)
def test_gct(text):
    table = grid(text)
    assert (table.row_names, table.column_names) == (["g1", "g2"], ["s1", "s2", "s3"])
    np.testing.assert_array_equal(table.values, [[1, nan, 3], [4, 5, 6]])
    assert table.render(Fills(*table.to_fill(), np.array([2.0]))).decode() == text.replace("1\t\t3", "1\t2\t3")
    assert table.layout.endings == (".gct",)
    with pytest.raises(TableError, match="line 2 says 7 rows x 3 columns, but there are 2 x 3"):
        grid(text.replace("\n2\t3", "\n7\t3"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("<!DOCTYPE html>\n<p>Not found, sorry</p>\n", "this is HTML, XML or JSON, not a table"),
        ('[{"a": 1, "b": 2}, {"a": 3}]', "this is HTML, XML or JSON, not a table"),
        ("a,b\n", "a header and nothing below it"),
        ("#1.2\n2\t3\n", "the file is empty"),
        ("a,b\n1,2\n3,oops\n4,5\n", r"line 3, column 'b': 'oops' is not a number \(if it means missing"),
        ("n,a,b\nx,1,2\ny,3,4\nz,5,6o\n", "row 'z' \\(line 4\\), column 'b': '6o' is not a number \\(correct it"),
        ('a,b\n1,2\n3,"1,234.5"\n4,5\n', r"'1,234.5' is not a number \(correct it; numbers have no signs of thousands"),
        ("a,b\n1,2\n3,1.2.3\n4,5\n", r"'1.2.3' is not a number \(correct it"),
        ("1,2\n3,oops\n5,6\n", "line 2, column 2: 'oops'"),
        ("a,b\n1,2\n3\n", "line 3 has 1 cell, but the lines above it have 2"),
        ("a,b\n1,2\n3,4,5\n", "line 3 has 3 cells, but the lines above it have 2"),
        ("a,b,c,d\n1,2\n3,4\n", "the header has 4 cells, but line 2 has 2"),
        (
            "i,a kind,a\n1,red,2\n2,blue,3\n",
            "'a kind' holds text, such as 'red': leave it out with --ignore 'a kind'",
        ),
        (
            "i,p,q,a\n1,red,x,2\n2,blue,y,3\n",
            "columns 'p', 'q' hold text, such as 'red': .*--ignore p --ignore q. Only bnmf",
        ),
        ("i,p,a\n1,2024-01-31,2\n2,2024-02-01,3\n", "column 'p' holds text, such as '2024-01-31'"),
        ("n,a,b\nx,1,5%\ny,2,6%\n", "column 'b' holds text, such as '5%'"),
        ("a,b\n1,1_000\n2,3\n4,5\n", "'1_000' is not a number"),
        *((f'a,b\n1,2\n3,4\n5,"{cell}"\n6,7\n', "is not a number") for cell in ("<x", "< ", "<1,0", "<inf", "<<1")),
        ("a,b\n1,inf\n2,3\n", "line 2, column 'b': the number is infinite"),
        ("a;b\n1.234,5;2\n3,5;4\n", "'1.234,5' is not a number"),  # points separate thousands
        ("a,b\n1,#DIV/0!\n2,3\n4,5\n", r"'#DIV/0!' is not a number \(if it means missing, use --missing '#DIV/0!'"),
        ("a,b\nr,1,2\ns,3,x4\nt,5,6\n", "row 's' \\(line 3\\), column 'b': 'x4'"),
    ],
)
def test_errors_say_where(text, message):
    with pytest.raises(TableError, match=message):
        grid(text)


def test_columns_of_words():
    text = "sex,age,code,when\nm,31,7,2024-01-31\nf,,<2,\n?,40,1,2024-02-01\nm,na,NA,2024-02-02\n"
    table = grid(text, "?", words=["code", "sex"])
    assert (table.row_names, table.column_names) == (None, ["sex", "age", "code", "when"])
    assert {at: column.fillna("-").tolist() for at, column in table.words.items()} == {
        0: ["m", "f", "-", "m"],
        2: ["7", "<2", "1", "-"],
        3: ["2024-01-31", "-", "2024-02-01", "2024-02-02"],
    }
    np.testing.assert_array_equal(table.values[:, 1], [31, nan, 40, nan])
    assert np.isnan(table.values[:, [0, 2, 3]]).all()
    assert [part.tolist() for part in table.counts()] == [[4, 2, 3, 2], [3, 2, 3, 3]]
    filled = table.render(Fills(np.array([2, 1]), np.array([0, 1]), np.array(["f", 35.5], object))).decode()
    assert filled == text.replace("?,40", "f,40").replace("f,,", "f,35.5,")
    with pytest.raises(TableError, match=r"line 6.*, column 'age': 'oops' is not a number"):
        grid(text + "f,oops,1,\n", "?", words=[])


@pytest.mark.parametrize("cell", ["{}0%", "{}_000"])
def test_names_of_rows_have_no_gaps(cell):
    cells = [cell.format(at) for at in range(1, 9)]
    lines = [f"{'' if at == 2 else cell},{at}\n" for at, cell in enumerate(cells)]
    table = grid("a,b\n" + "".join(lines), words=[])
    assert (table.row_names, table.words[0].isna().sum()) == (None, 1)
    assert table.notes == ["column 'a' has empty cells, so it is data: --row-names takes it as names"]
    table = grid("".join(lines), words=[], header=False)
    assert table.notes[-1].startswith("the first column has empty cells, so it is data")
    assert len(grid("a,b\n" + "".join(lines)).row_names) == 8
    assert grid("a,b\n" + "".join(lines), words=[], row_names=True).row_names[:3] == [*cells[:2], ""]
    assert grid("b\n" + "".join(lines), words=[]).row_names[:3] == [*cells[:2], ""]  # which the header says


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_blank_lines_of_one_column_are_missing_entries(line_end):
    text = 'a\n1\n\n3\n""\n  \n6\n""\n\n\n'.replace("\n", line_end)
    table = grid(text)
    np.testing.assert_array_equal(table.values[:, 0], [1, nan, 3, nan, nan, 6, nan])
    rows, columns = table.to_fill()
    filled = table.render(Fills(rows, columns, np.array([2.0, 4.0, 5.0, 7.0]))).decode()
    assert filled.split() == ["a", *"1234567"]
    np.testing.assert_array_equal(grid("\n\n1\n\n3\n\n").values[:, 0], [1, nan, 3])
    np.testing.assert_array_equal(grid("a,b\n\n1,2\n\n3,\n\n").values, [[1, 2], [3, nan]])
    np.testing.assert_array_equal(grid("b\n\nx,1\n\ny,2\n\n").values, [[1], [2]])


def test_columns_left_out_are_written_back():
    text = "name,a,when,b\nx,1,2024-01-31,<2\ny,,soon,4\n"
    table = grid(text, words=[]).without(["when", "name"])
    assert (table.column_names, table.words) == (["a", "b"], {})
    assert (table.limits.columns.tolist(), table.upper[0, 1]) == ([1], 2)
    rows, columns = table.to_fill()
    filled = table.render(Fills(rows, columns, np.array([1.5, 3.0]))).decode()
    assert filled == text.replace("<2", "1.5").replace("y,,", "y,3,")
    with pytest.raises(TableError, match="there is no column 'nme'"):
        table.without(["nme"])
    with pytest.raises(TableError, match="limits are for columns of numbers, and 'when' holds words"):
        grid(text, words=[]).limited({"when": 1.0}, {}, {}, {})


def test_encodings():
    assert grid(decoded("a,é\n1,2\n".encode("utf-8-sig"))).column_names == ["a", "é"]
    table = grid(decoded("a\té\r\n1\t2\r\n".encode("utf-16")))
    assert table.column_names == ["a", "é"]
    assert table.render(Fills(*table.to_fill(), np.empty(0))) == "a\té\r\n1\t2\r\n".encode()
    table = grid(decoded(b"a,b\r1,2\r3,4\r"))
    assert table.shape == (2, 2)
    assert table.render(Fills(*table.to_fill(), np.empty(0))) == b"a,b\n1,2\n3,4\n"
    with pytest.raises(TableError, match="byte 3 is not UTF-8 text"):
        decoded("a,é\n".encode("latin-1"))
    with pytest.raises(TableError, match="neither text"):
        decoded(b"a\0b")


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        (
            '\ufeffname;"a b";c\r\n"x;1"; 1,50;NA\r\ny;;2,0e0\r\n',
            '\ufeffname;a b;c\r\n"x;1"; 1,50;0,25\r\ny;7;2,0e0\r\n',
        ),
        ("a\tb\nr\t1.000\t\ns\tnull\t0.10\n", "a\tb\nr\t1.000\t0.25\ns\t7\t0.10\n"),
        ('"a","b"\n"1",""\n"", "2"\n', "a,b\n1,0.25\n7,2\n"),
    ],
)
def test_observed_cells_are_written_back_as_they_were(text, filled):
    table = grid(text)
    rows, columns = table.to_fill()
    assert list(zip(rows, columns, strict=True)) == [(0, 1), (1, 0)]
    fills = Fills(rows, columns, np.array([0.25, 7.0]))
    assert table.render(fills).decode() == filled
    assert table.render(fills).decode() == filled  # rendering changes nothing


def test_written_numbers_are_short_and_exact_to_six_digits():
    for value in (0.0, -1.23456789, 123456.7, 9876543.2, 1e20, 1e-12):
        assert float(written(value)) == pytest.approx(value, rel=5e-6)
        assert len(written(value)) <= 12
    assert [written(value) for value in (2 / 3, 1234567.8, "red")] == ["0.666667", "1234568", "red"]


def test_results_are_read_back():
    values = np.array([[0.5, nan], [1.25, 3e-9]])
    names, columns = ['a "b"', "c, d"], ["x\ny", "z"]
    table = grid(grid_bytes(values, names, columns).decode())
    np.testing.assert_array_equal(table.values, values)
    assert (table.row_names, table.column_names) == (names, columns)
    assert grid("n,a,a\nx,1,2\nx,3,4\n").column_names == ["a", "a"]
