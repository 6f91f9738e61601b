"""Files of every kind: recognised by their content, and the same table after writing and reading."""

import gzip
import io
import math
import sys
from decimal import Decimal
from functools import partial

import numpy as np
import openpyxl
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bnmf.tables import TableError, arrays, read_table
from bnmf.tables.arrays import read_market, read_npy, read_npz, table_bytes
from bnmf.tables.files import writer
from bnmf.tables.frames import read_parquet, read_workbook
from bnmf.tables.grid import read_grid
from bnmf.tables.table import Fills
from bnmf.tables.text import ReadOptions
from bnmf.utils.files import content_of, npz_bytes

nan = math.nan
VALUES = np.array([[0.1, nan, 3.0], [1 / 3, 5e-324, nan]])


npy, sparse_npz, market = (partial(content_of, save) for save in (np.save, sp.save_npz, scipy.io.mmwrite))


def npz(**arrays):
    return npz_bytes(arrays)


def parquet(frame):
    return content_of(frame.to_parquet)


def stored(matrix):
    """A sparse matrix that stores every entry, also zeros and NaN."""
    return sp.coo_array((matrix.ravel(), np.unravel_index(np.arange(matrix.size), matrix.shape)), shape=matrix.shape)


def dense(table):
    return table.values.toarray() if table.is_sparse else table.values


CONTENT = {
    "csv": b"0.1,,3.0\n0.3333333333333333,5e-324,NA\n",
    "npy": npy(VALUES),
    "npz": npz(X=VALUES),
    "sparse": sparse_npz(stored(VALUES).tocsr()),
    "coo": sparse_npz(stored(VALUES)),
    "dia": sparse_npz(sp.dia_array(stored(VALUES))),
    "mtx": market(stored(VALUES)),
    "dense mtx": market(VALUES),
    "parquet": parquet(pd.DataFrame(VALUES, columns=["a", "b", "c"])),
}


@pytest.mark.parametrize("kind", CONTENT)
def test_kind_is_recognised_by_its_content(kind, tmp_path, monkeypatch):
    path = tmp_path / "table.data"
    for content in (CONTENT[kind], gzip.compress(CONTENT[kind], mtime=0)):
        path.write_bytes(content)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        for source in (path, "-"):
            np.testing.assert_array_equal(dense(read_table(source)), VALUES)


def test_unstored_entries_and_zeros_that_mean_missing():
    matrix = sp.csr_array(np.array([[1.0, 0.0], [0.0, 2.0]]))
    content = sparse_npz(matrix)
    zeros, missing = (read_npz(content, ReadOptions(unstored=unstored)) for unstored in ("zero", "missing"))
    assert (zeros.observed().n_observed, missing.observed().n_observed) == (4, 2)
    assert read_npz(content, ReadOptions(["0"])).observed().n_observed == 2
    assert read_npy(npy(np.array([[1, 0], [0, 2]])), ReadOptions(["0"])).observed().n_observed == 2


def filled(table, *values):
    """Return the file of a table with values for the entries to fill, as the command line passes them."""
    return table.render(Fills(*table.to_fill(), np.array(values, object)))


def test_parquet_fills_keep_index_types_and_other_columns():
    frame = pd.DataFrame({"a": [1, 2], "b": np.array([0.5, nan], np.float32), "c": [True, False]}, index=["r", "s"])
    back = pd.read_parquet(io.BytesIO(filled(read_parquet(parquet(frame), ReadOptions()), 2.5)))
    pd.testing.assert_frame_equal(back, frame.assign(b=np.array([0.5, 2.5], np.float32)))


def test_array_fills_keep_the_precision():
    values, expected = np.array([[0.1, nan]], np.float32), np.array([[0.1, 2.0]], np.float32)
    back = np.load(io.BytesIO(filled(read_npy(npy(values), ReadOptions()), 2.0)))
    np.testing.assert_array_equal(back, expected, strict=True)
    back = np.load(io.BytesIO(filled(read_npz(npz(Y=values), ReadOptions()), 2.0)))["Y"]
    np.testing.assert_array_equal(back, expected, strict=True)
    whole = read_npy(npy(np.array([[0, 3]])), ReadOptions(["0"]))  # real where they are filled
    np.testing.assert_array_equal(np.load(io.BytesIO(filled(whole, 1.5))), [[1.5, 3]])


@pytest.mark.parametrize(("write", "read"), [(sparse_npz, read_npz), (market, read_market)])
def test_sparse_fills_are_stored_and_zeros_stay_unstored(write, read):
    matrix = sp.csr_array(np.array([[1.0, 0.0], [nan, 2.0]]))
    table = read(write(matrix), ReadOptions())
    back = read(filled(table, 0.25), ReadOptions())
    np.testing.assert_array_equal(back.values.toarray(), [[1, 0], [0.25, 2]])
    assert back.values.nnz == 3


def workbook(*sheets):
    book = openpyxl.Workbook()
    for sheet in [book.active, *(book.create_sheet() for _ in sheets[1:])]:
        for row in sheets[book.index(sheet)]:
            sheet.append(row)
    return content_of(book.save)


def test_workbooks_keep_what_is_not_filled(tmp_path):
    path = tmp_path / "t.xlsx"
    path.write_bytes(workbook([[], ["name", "a", "b"], ["x", 1.5, "=1+1"], ["y", None, "<3"], ["z", 2, "NA"]], [["b"]]))
    table = read_table(path)
    assert (table.row_names, table.column_names) == (["x", "y", "z"], ["a", "b"])
    assert np.isnan(table.values).tolist() == [[False, True], [True, True], [False, True]]  # no value of the formula
    assert table.upper[1, 1] == 3
    assert table.notes == ["only the first of 2 sheets is read, 'Sheet'"]
    fills = Fills(np.array([1, 2]), np.array([0, 1]), np.array([1 / 3, 7.0]))
    book = openpyxl.load_workbook(io.BytesIO(table.render(fills)))
    rows = [[cell.value for cell in row] for row in book.worksheets[0].iter_rows(min_row=2)]
    assert rows == [["name", "a", "b"], ["x", 1.5, "=1+1"], ["y", 0.333333, "<3"], ["z", 2, 7]]
    assert book.worksheets[1]["A1"].value == "b"


NAMED = pd.DataFrame({"id": ["r", "s"], "a": [0.5, None], "b": [1, 2]})


@pytest.mark.parametrize(
    ("frame", "names", "columns"),
    [
        (NAMED, ["r", "s"], ["a", "b"]),
        (NAMED.set_index("id"), ["r", "s"], ["a", "b"]),
        (NAMED[["a", "b"]], None, ["a", "b"]),
        (pd.DataFrame({"id": ["r", None], "a": [1.0, 2.0]}), ["r", ""], ["a"]),
        (pd.DataFrame({"a": [Decimal("0.5"), None], "b": [1.0, 2.0]}), None, ["a", "b"]),
        (pd.DataFrame({"a": [1.0, 2.0]}, pd.MultiIndex.from_tuples([("r", 1), ("s", 2)])), ["r, 1", "s, 2"], ["a"]),
        (pd.DataFrame([[1.0], [2.0]], ["r", "s"], pd.MultiIndex.from_tuples([("a", "x")])), ["r", "s"], ["a, x"]),
    ],
)
def test_names_and_numbers_of_every_kind_in_parquet_and_npz(frame, names, columns):
    table = read_parquet(parquet(frame), ReadOptions())
    assert (table.row_names, table.column_names) == (names, columns)
    expected = [[0.5, 1], [nan, 2]] if len(columns) == 2 else [[1], [2]]
    np.testing.assert_array_equal(table.values, expected)
    assert read_npz(table_bytes(table), ReadOptions()).row_names == names
    back = read_parquet(filled(table, *[7.0] * len(table.to_fill()[0])), ReadOptions())
    np.testing.assert_array_equal(back.values, np.nan_to_num(expected, nan=7.0))
    assert back.row_names == names


KINDS = {".csv": b"n,a,b\nx,0.1,\ny,3,4\n", ".xlsx": workbook([["n", "a", "b"], ["x", 0.1, None], ["y", 3, 4]])}
KINDS |= {".parquet": parquet(pd.DataFrame({"a": [0.1, 3], "b": [nan, 4]}, ["x", "y"]))}


@pytest.mark.parametrize("to", [".csv", ".tsv", ".xlsx", ".parquet", ".npz"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_name_of_the_output_says_its_kind(kind, to, tmp_path):
    source, out = tmp_path / f"t{kind}", tmp_path / f"out{to}"
    source.write_bytes(KINDS[kind])
    table = read_table(source)
    out.write_bytes(filled(writer(table, out, source), 2 / 3))
    found = read_table(out)
    np.testing.assert_allclose(found.values, [[0.1, 2 / 3], [3, 4]], rtol=1e-5)
    assert found.values[0, 0] == 0.1
    assert (found.row_names, found.column_names) == (["x", "y"], ["a", "b"])
    assert to in found.layout.endings


@pytest.mark.parametrize(
    ("content", "options", "out", "message"),
    [
        (KINDS[".csv"], {}, "f.npy", "this table is written as .csv, .txt, .dat, .tsv, .xlsx, .parquet, .pq, .npz$"),
        (CONTENT["sparse"], {}, "f.csv", "this table is written as .npz, .mtx$"),
        (b"a,x,1\nb,y,\n", {"triples": True}, "f.npz", "this table is written as .csv, .txt, .dat, .tsv$"),
    ],
)
def test_other_names_are_refused(content, options, out, message, tmp_path):
    (tmp_path / "t").write_bytes(content)
    table = read_table(tmp_path / "t", **options)
    with pytest.raises(TableError, match=message):
        writer(table, out, "t")
    assert writer(table, "f", "t") is writer(table, "f.data", "t.data") is table


MIXED = pd.DataFrame(
    {
        "sex": ["m", None, "f", "m", "f"],
        "age": pd.array([31, 40, None, 40, 9], dtype="Int64"),
        "size": pd.Categorical(["S", None, "L", "S", "S"], ["S", "M", "L"], ordered=True),
        "ok": pd.array([True, None, False, True, True], dtype="boolean"),
        "when": pd.to_datetime(["2024-01-31", None, "2024-02-01", "2024-02-02", "2024-02-03"]),
    }
)


@pytest.mark.parametrize("to", [".csv", ".xlsx", ".parquet"])
@pytest.mark.parametrize("kind", [".csv", ".xlsx", ".parquet"])
def test_words_are_read_filled_and_converted(kind, to, tmp_path):
    """Words, truth values and dates of every kind of file; columns that are left out are there again."""
    source, out = tmp_path / f"t{kind}", tmp_path / f"out{to}"
    cells = [list(MIXED.columns), *MIXED.astype(object).where(MIXED.notna(), None).to_numpy().tolist()]
    contents = {".csv": MIXED.to_csv(index=False).encode(), ".xlsx": workbook(cells), ".parquet": parquet(MIXED)}
    source.write_bytes(contents[kind])
    table = read_table(source, words=[], ignore=["when"])
    assert "words recur in column 'sex', so it is data: --row-names takes it as names" in table.notes
    assert table.column_names == ["sex", "age", "size", "ok"]
    assert list(table.words) == [0, 2, 3]
    rows, columns = table.to_fill()
    assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == [(1, 0), (1, 2), (1, 3), (2, 1)]
    truth = True if kind == ".parquet" else "True"
    fills = Fills(rows, columns, np.array(["f", "M", truth, 7], object))
    out.write_bytes(writer(table, out, source).render(fills))
    found = read_table(out, words=[])
    assert found.values[:, 1].tolist() == [31, 40, 7, 40, 9]
    assert found.words[0].tolist() == ["m", "f", "f", "m", "f"]
    assert found.words[2].tolist() == ["S", "M", "L", "S", "S"]
    assert list(map(str, found.words[3])) == ["True", "True", "False", "True", "True"]
    pd.testing.assert_series_equal(pd.to_datetime(found.words[4]), MIXED["when"], check_dtype=False, check_names=False)
    if kind == to == ".parquet":
        expected = MIXED.drop(columns="age").dtypes
        pd.testing.assert_series_equal(pd.read_parquet(out).drop(columns="age").dtypes, expected)
    for other in ("f.npz", "f.npy"):
        with pytest.raises(TableError, match=r"this table is written as (?!.*\.np)"):
            writer(table, other, source)


def test_decimal_commas_are_kept_in_other_text():
    table = read_grid("a\tb\n1,50\t\n2\t3,25\n", ReadOptions())
    assert filled(writer(table, "f.csv", "t.tsv"), 0.5) == b"a;b\n1,50;0,5\n2;3,25\n"


def test_compressed_files_have_a_limit(tmp_path, monkeypatch):
    zeros = np.zeros((1000, 100))
    contents = {
        "gzip": gzip.compress(b"0,0,0\n" * 110_000),
        "two members": gzip.compress(b"0,0,0\n" * 90_000) * 2,
        "npz": npz_bytes({"X": zeros}, compressed=True),
        "parquet": parquet(pd.DataFrame(zeros, columns=[f"c{i}" for i in range(100)])),
    }
    for kind, content in contents.items():
        (tmp_path / kind).write_bytes(content)
        assert read_table(tmp_path / kind).n_observed
    monkeypatch.setattr(arrays.memory, "available", lambda: 8 * 600_000)
    for kind in contents:
        with pytest.raises(TableError, match=r"uncompressed it takes more than 585.9 kB, an eighth of the free memory"):
            read_table(tmp_path / kind)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (workbook([]), "the first sheet is empty"),
        (b"\xd0\xcf\x11\xe0", "an Excel workbook of the old kind"),
        (npz(a=VALUES, b=VALUES), "must hold one matrix of numbers, this one holds a, b"),
        (npz(X=VALUES, row_names=np.array(["a"])), "row_names has 1 names, the matrix needs 2"),
        (npy(np.zeros(3)), r"this array has shape \(3,\)"),
        (npy(np.zeros((0, 3))), "the table is empty"),
        (npy(np.array([[1.0, np.inf]])), "row 1, column 2 is infinite"),
        (sparse_npz(sp.csr_array(np.array([[0, 0], [0, -np.inf]]))), "row 2, column 2 is infinite"),
        (npy(np.array([["a"]])), "this array has shape"),
        (npy(VALUES)[:-3], "cannot be read, or is damaged"),
        (npy(np.array([[print, len]], dtype=object)), "cannot be read"),  # pickled objects are not executed
        (CONTENT["parquet"][:50], "cannot be read, or is damaged"),
        (b"PK\x03\x04", "cannot be read, or is damaged"),
        (gzip.compress(b"a,b\n1,2\n", mtime=0)[:-9], "the compressed file is damaged"),
        (parquet(pd.DataFrame({"a": [1, 2], "kind": ["x", "y"]})), "column 'kind' holds text, such as 'x'"),
        (
            parquet(pd.DataFrame({"a": [1], "day": pd.to_datetime(["2024-01-31"])})),
            "column 'day' holds text, such as '2024",
        ),
    ],
)
def test_errors_name_the_file(content, message, tmp_path):
    path = tmp_path / "table.data"
    path.write_bytes(content)
    with pytest.raises(TableError, match=f"table.data: .*{message}"):
        read_table(path)


def test_empty_cells_of_one_column_are_missing_entries():
    table = read_workbook(workbook([[None], ["a"], [1], [None], [3]]), ReadOptions())
    np.testing.assert_array_equal(table.values, [[1.0], [nan], [3.0]])
    np.testing.assert_array_equal(read_workbook(filled(table, 2.0), ReadOptions()).values, [[1.0], [2.0], [3.0]])


def test_zeros_that_may_fill_up_diagonals():
    content = sparse_npz(sp.dia_array(np.diag([1.0, 0.0, 2.0])))
    with pytest.raises(TableError, match=r"X is of the sparse format 'dia' and stores zeros"):
        read_npz(content, ReadOptions(unstored="missing"))


@pytest.mark.parametrize(("kind", "module"), [(".parquet", "pyarrow"), (".xlsx", "openpyxl")])
def test_a_missing_library_is_named(kind, module, monkeypatch, tmp_path):
    path = tmp_path / "t"
    path.write_bytes(KINDS[kind])
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(TableError, match=rf"pip install 'bnmf\[{kind[1:]}\]'"):
        read_table(path)


# --- properties

PROPERTY = settings(max_examples=50, deadline=None, derandomize=True, database=None)

NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters="\0\r", exclude_categories=["Cs"]), min_size=1, max_size=8
)
NAMES = NAMES.map(str.strip).filter(lambda name: name and not name.isspace())
NOTHING = Fills(*(np.empty(0, int),) * 2, np.empty(0))
NUMBERS = st.one_of(st.just(nan), st.floats(allow_nan=False, allow_infinity=False))


@st.composite
def tables(draw):
    values = draw(hnp.arrays(float, hnp.array_shapes(min_dims=2, max_dims=2, max_side=5), elements=NUMBERS))
    rows, columns = ([f"{side} {draw(NAMES)}" for _ in range(n)] for side, n in zip("rc", values.shape, strict=True))
    return values, rows, columns


def quoted(text):
    return '"' + text.replace('"', '""') + '"'


@PROPERTY
@given(tables(), st.sampled_from([",", "\t", ";", "|"]))
def test_text_gives_back_the_same_table(table, delimiter):
    values, rows, columns = table
    decimal = "," if delimiter == ";" else "."
    lines = [delimiter.join(map(quoted, ["", *columns]))]
    for name, row in zip(rows, values.tolist(), strict=True):
        lines.append(delimiter.join([quoted(name), *("" if x != x else repr(x).replace(".", decimal) for x in row)]))
    found = read_grid("\n".join(lines) + "\n", ReadOptions())
    np.testing.assert_array_equal(found.values, values)
    assert (found.row_names, found.column_names) == (rows, columns)
    again = read_grid(found.render(NOTHING).decode(), ReadOptions())
    assert [cells for _, cells in again.layout.records()] == [cells for _, cells in found.layout.records()]


@PROPERTY
@given(tables())
def test_other_files_give_back_the_same_table(table):
    values, rows, columns = table
    columns = [f"{number} {name}" for number, name in enumerate(columns)]  # Parquet needs different names
    kinds = [
        (npy(values), read_npy),
        (npz(X=values, row_names=np.array(rows), column_names=np.array(columns)), read_npz),
        (sparse_npz(stored(values).tocsr()), read_npz),
        (market(stored(values)), read_market),
        (parquet(pd.DataFrame(values, index=rows, columns=columns)), read_parquet),
    ]
    for at, (content, read) in enumerate(kinds):
        for again in (content, read(content, ReadOptions()).render(NOTHING)):
            found = read(again, ReadOptions())
            np.testing.assert_array_equal(dense(found), values)
            assert (found.row_names, found.column_names) == ((rows, columns) if at in (1, 4) else (None, None))
        np.testing.assert_array_equal(dense(read_npz(table_bytes(found), ReadOptions())), values)
