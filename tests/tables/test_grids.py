"""Delimited text: what is recognised, what is an error, and cells that are written back as they were."""

import math

import numpy as np
import pytest

from bnmf.tables.cells import Markers, written
from bnmf.tables.dialect import decoded, recognise, records
from bnmf.tables.grids import grid_bytes, read_grid
from bnmf.tables.table import Fills, TableError, repeated

nan = math.nan


def grid(text, *missing, **options):
    return read_grid(text, Markers(missing), **options)


@pytest.mark.parametrize(
    ("text", "delimiter", "decimal", "header", "row_names"),
    [
        ("a,b\n1,2\n3,4\n", ",", ".", True, False),
        ("1,2\n3,4\n", ",", ".", False, False),
        ("x,a,b\nr,1,2\ns,3,4\n", ",", ".", True, True),
        (",0,1\n0,1,2\n1,3,4\n", ",", ".", True, True),  # pandas with numbers as names
        ("Unnamed: 0,a\n0,1\n1,2\n", ",", ".", True, True),
        ("a\tb\nr\t1\t2\ns\t3\t4\n", "\t", ".", True, True),  # R: the corner is not there
        ("a;b\n1,5;2\n3;4,25\n", ";", ",", True, False),
        ("1,5;2,5\n3,5;4,5\n", ";", ",", False, False),
        ("a;b\n1.5;2\n3;4\n", ";", ".", True, False),
        ("a|b\n1|2\n", "|", ".", True, False),
        ("1 2 3\n4 5 6\n", " ", ".", False, False),
        ("  1.5   2\n 10.25  3\n", " ", ".", False, False),
        ('"x, y",b\n1,2\n', ",", ".", True, False),
        ("Smith; John,1,2\nMiller,3,4\n", ",", ".", False, True),
        ("a,b\n?,2\n3,4\n5,6\n", ",", ".", True, False),
        ("day,a\n2024-01-01,1\n2024-01-02,2\n", ",", ".", True, True),
        ("a\n1\n2\n", ",", ".", True, False),
        ('"x","y\t1"\n1,2\n', ",", ".", True, False),
    ],
)
def test_dialect_is_recognised(text, delimiter, decimal, header, row_names):
    found = recognise(text, Markers())
    assert (found.delimiter, found.decimal, found.header, found.row_names) == (delimiter, decimal, header, row_names)


def test_numbers_names_and_missing_entries():
    table = grid('name,height,"weight, kg"\nAnn,1.7,NA\n"Ben ""B""",,8e1\nCleo,#N/A,nan\n')
    assert table.row_names == ["Ann", 'Ben "B"', "Cleo"]
    assert table.column_names == ["height", "weight, kg"]
    np.testing.assert_array_equal(table.values, [[1.7, nan], [nan, 80.0], [nan, nan]])


def test_markers_are_words_or_any_way_to_write_a_number():
    table = grid("a,b\n0,1\n0.0,?\n-999,2\n", "0", "?", "-999")
    np.testing.assert_array_equal(table.values, [[nan, 1], [nan, nan], [nan, 2]])


def test_the_user_overrides_what_is_judged():
    years = "2001,2002\n1,2\n3,4\n"
    assert grid(years).shape == (3, 2)
    assert "--header" in grid(years).notes[0]
    assert grid(years, header=True).column_names == ["2001", "2002"]
    ids = "id,a\n1,5\n2,5\n3,6\n"
    assert "'id' only counts the rows" in grid(ids).notes[0]
    table = grid(ids, row_names=True)
    assert (table.row_names, table.column_names, table.notes) == (["1", "2", "3"], ["a"], [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("a,b\n", "a header and nothing below it"),
        ("a,b\n1,2\n3,oops\n4,5\n", r"line 3, column 'b': 'oops' is not a number \(if it means missing"),
        ("n,a,b\nx,1,2\ny,3,4\nz,5,6o\n", "row 'z' \\(line 4\\), column 'b': '6o' is not a number"),
        ("1,2\n3,oops\n5,6\n", "line 2, column 2: 'oops'"),
        ("a,b\n1,2\n3,4,5\n", "line 3 has 3 cells, but the lines above it have 2"),
        ("a,b,c,d\n1,2\n3,4\n", "the header has 4 cells, but line 2 has 2"),
        ("i,kind,a\n1,red,2\n2,blue,3\n", "column 'kind' holds text, such as 'red' in line 2: remove it"),
        ("i,p,q,a\n1,red,x,2\n2,blue,y,3\n", "column 'p', column 'q' hold text, such as 'red' in line 2: remove them"),
        ("n,a,b\nx,1,5%\ny,2,6%\n", "column 'b' holds text, such as '5%' .* no signs of units or thousands"),
        ("a,b\n1,1_000\n2,3\n4,5\n", "'1_000' is not a number"),
        ("a,b\n1,inf\n2,3\n", "line 2, column 'b': the number is infinite"),
        ("a;b\n1.234,5;2\n3,5;4\n", "'1.234,5' has a point, but other cells have decimal commas"),
        ("a,b\n1,#DIV/0!\n2,3\n4,5\n", "'#DIV/0!' is not a number"),
        ("a,b\nr,1,2\ns,3,x4\nt,5,6\n", "row 's' \\(line 3\\), column 'b': 'x4'"),
    ],
)
def test_errors_say_where(text, message):
    with pytest.raises(TableError, match=message):
        grid(text)


def test_line_numbers_count_line_breaks_in_quotes():
    assert [line for line, _ in records('a,"x\ny"\n\nb,2\n', ",")] == [1, 4]
    assert grid('n,a\n"x\ny",1\nz,2\n').row_names == ["x\ny", "z"]


def test_encodings():
    assert decoded("a,é\n".encode()) == "a,é\n"
    assert grid(decoded("a,é\n1,2\n".encode("utf-8-sig"))).column_names == ["a", "é"]
    assert grid(decoded("a\té\n1\t2\n".encode("utf-16"))).column_names == ["a", "é"]
    assert grid(decoded(b"a,b\r1,2\r3,4\r")).shape == (2, 2)
    with pytest.raises(TableError, match="byte 3 is not UTF-8 text"):
        decoded("a,é\n".encode("latin-1"))
    with pytest.raises(TableError, match="neither text"):
        decoded(b"a\0b")


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        (
            '\ufeffname;"a b";c\r\n"x;1"; 1,50;NA\r\ny;;2,0e0\r\n',
            '\ufeffname;"a b";c\r\n"x;1"; 1,50;0,25\r\ny;7;2,0e0\r\n',
        ),
        ("a\tb\nr\t1.000\t\ns\tnull\t0.10\n", "a\tb\nr\t1.000\t0.25\ns\t7\t0.10\n"),
        ('"a","b"\n"1",""\n"","2"\n', '"a","b"\n"1",0.25\n7,"2"\n'),
    ],
)
def test_observed_cells_are_written_back_as_they_were(text, filled):
    table = grid(text, keep_cells=True)
    rows, columns = table.to_fill()
    assert list(zip(rows, columns, strict=True)) == [(0, 1), (1, 0)]
    fills = Fills(rows, columns, np.array([0.25, 7.0]))
    assert table.render(fills).decode() == filled
    assert table.render(fills).decode() == filled  # rendering changes nothing


def test_written_numbers_are_short_and_exact_to_six_digits():
    for value in (0.0, -1.23456789, 123456.7, 9876543.2, 1e20, 1e-12):
        assert float(written(value)) == pytest.approx(value, rel=5e-6)
        assert len(written(value)) <= 12


def test_results_are_read_back():
    values = np.array([[0.5, nan], [1.25, 3e-9]])
    names, columns = ['a "b"', "c, d"], ["x\ny", " z"]
    table = grid(grid_bytes(values, names, columns).decode())
    np.testing.assert_array_equal(table.values, values)
    assert (table.row_names, table.column_names) == (names, columns)


def test_repeated_names():
    assert repeated(None) == []
    assert grid("n,a,a\nx,1,2\nx,3,4\n").column_names == ["a", "a"]
