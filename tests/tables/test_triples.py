"""Triples: names, missing pairs, errors, and lines without a value that are filled."""

import numpy as np
import pytest

from bnmf.tables.arrays import read_npz, table_bytes
from bnmf.tables.grid import read_triples
from bnmf.tables.table import Fills, TableError
from bnmf.tables.text import ReadOptions

TEXT = "user,film,stars,time\nann,Up,4.0,11\nben,Up,,12\nann,Heat,NA,13\nben,Jaws,2,14\n"


def test_names_in_order_of_appearance_and_unlisted_pairs():
    table = read_triples(TEXT, ReadOptions())
    assert (table.row_names, table.column_names) == (["ann", "ben"], ["Up", "Heat", "Jaws"])
    assert table.values.nnz == 2
    np.testing.assert_array_equal(table.values.toarray(), [[4, 0, 0], [0, 0, 2]])
    assert table.unstored == "missing"
    assert table.n_observed == table.observed().n_observed == 2
    assert [part.tolist() for part in table.counts()] == [[1, 1], [1, 0, 1]]
    assert table.notes == ["columns after the third are ignored"]
    zeros = read_triples(TEXT, ReadOptions(unstored="zero"))
    assert zeros.n_observed == zeros.observed().n_observed == 4
    assert [part.tolist() for part in zeros.counts()] == [[2, 2], [1, 1, 2]]
    assert np.isnan(zeros.values.toarray()).sum() == 2


def test_header_is_judged_by_the_value():
    for text in ("a\tx\t1\nb\ty\t2\n", "u\ti\tr\na\tx\t1\nb\ty\t2\n"):
        assert read_triples(text, ReadOptions()).shape == (2, 2)


def test_lines_without_a_value_are_filled_and_others_written_back():
    table = read_triples(TEXT, ReadOptions())
    rows, columns = table.to_fill()
    asked = [(table.row_names[i], table.column_names[j]) for i, j in zip(rows, columns, strict=True)]
    assert asked == [("ben", "Up"), ("ann", "Heat")]
    filled = table.render(Fills(rows, columns, np.array([3.5, 1.0]))).decode()
    assert filled == TEXT.replace("ben,Up,,", "ben,Up,3.5,").replace("ann,Heat,NA", "ann,Heat,1")
    part = table.without(["Heat"])  # which is written back
    assert (part.column_names, part.shape) == (["Up", "Jaws"], (2, 2))
    assert [side.tolist() for side in part.asked] == [[1], [0]]
    filled = part.render(Fills(*part.to_fill(), np.array([3.5]))).decode()
    assert filled == TEXT.replace("ben,Up,,", "ben,Up,3.5,")
    short = read_triples("u,i,r\na,x,1\nb,x\n", ReadOptions())  # a line may end after the names
    assert short.render(Fills(*short.to_fill(), np.array([2.5]))) == b"u,i,r\na,x,1\nb,x,2.5\n"


def test_limits():
    text = "u,i,r\na,x,<1\nb,x,2\na,y,>= 5\nb,y,\n"
    table = read_triples(text, ReadOptions())
    assert table.observed().n_observed == 3
    assert (table.limits.rows.tolist(), table.limits.columns.tolist()) == ([0, 0], [0, 1])
    assert (table.limits.lower.tolist(), table.limits.upper.tolist()) == ([-np.inf, 5], [1, np.inf])
    assert table.lower.shape == (2, 2)
    filled = table.render(Fills(*table.to_fill(), np.array([0.5, 6.0, 3.0]))).decode()
    assert filled == "u,i,r\na,x,0.5\nb,x,2\na,y,6\nb,y,3\n"
    more = table.limited({}, {}, {}, {"x": 2.0})
    assert more.limits.upper.tolist() == [1, np.inf, 2]
    with pytest.raises(TableError, match="--lower and --upper are for dense tables"):
        table.limited({"": 0.0}, {}, {}, {})
    kept = read_npz(table_bytes(more), ReadOptions(unstored="missing"))
    np.testing.assert_array_equal(kept.limits.upper, more.limits.upper)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "triples need three columns"),
        ("u,i,r\n", "a header and nothing below it"),
        ("u,i,r\na,x,1\nb,x,good\n", "line 3: 'good' is not a number"),
        ("u,i,r\na,x,1\n,x,2\n", "line 3 does not name a row and a column"),
        ("u,i,r\na,x,1\nb,x,2\na,x,3\n", "row 'a', column 'x' has values in lines 2 and 4"),
        ("u,i,r\na,x,1\nb,x,inf\n", "line 3: the number is infinite"),
    ],
)
def test_errors_say_where(text, message):
    with pytest.raises(TableError, match=message):
        read_triples(text, ReadOptions())
