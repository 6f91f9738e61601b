"""The published data: downloads and checks. The synthetic data: their properties."""

import hashlib
import io
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pooch
import pytest
from scipy import sparse

from bnmf import datasets
from bnmf.datasets import DatasetError, published

SHARED_DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_data = pytest.mark.skipif(
    not (SHARED_DATA / "gdsc").exists(), reason="needs ../shared/data next to the repository"
)

DRUGS = b"x\tX\ny1\tY 1\nz\tZ\n"


def movielens_zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("ml-100k/u.data", "2\t1\t5\t881250949\n1\t3\t2\t881250950\n1\t1\t4\t881250951\n")
        archive.writestr("ml-100k/u.user", "1|24|M|technician|85711\n2|53|F|other|94043\n")
        items = '1|Toy "Story" (1995)|01-Jan-1995||url|0|1\n2|unknown|||url|1|0\n3|Café (1996)|08-Mar-1996||url|0|1\n'
        archive.writestr("ml-100k/u.item", items.encode("latin-1"))
    return buffer.getvalue()


@pytest.fixture
def served(monkeypatch):
    """Serve small files in place of the published ones, through pooch, and return those that were asked for."""
    files = {
        "gdsc/ic50.txt": b"1.9\tnan\t100.0\n0.4\t7.5\t2.0\n",
        "gdsc/cell_lines.txt": b"a1\tA-1\t11\tlung\tlung_nsclc\nnan\tNA\t12\tblood\tleukemia\n",
        "gdsc/drugs.txt": DRUGS,
        "methylation/R_0.txt": b"1.8e+01 0.0e+00 3.0e+00\n1.6e+01 1.9e+01 7.0e+00\n",
        "movielens/ml-100k.zip": movielens_zip(),
    }
    assert files.keys() == published.REGISTRY.keys() == published.URLS.keys()
    hashes = {name: hash and hashlib.sha256(files[name]).hexdigest() for name, hash in published.REGISTRY.items()}
    monkeypatch.setattr(published, "REGISTRY", hashes)
    names = {url: name for name, url in published.URLS.items()}
    served = SimpleNamespace(files=files, requests=[])

    def download(url, output, pooch):
        served.requests.append(names[url])
        if names[url] not in files:
            raise OSError("404 Not Found")
        Path(output).write_bytes(files[names[url]])

    monkeypatch.setattr(pooch.core, "choose_downloader", lambda url, progressbar: download)
    return served


def files_below(directory: Path) -> list[str]:
    return sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())


def test_gdsc_is_downloaded_with_names_and_prepared(served, tmp_path):
    fetched = datasets.fetch_gdsc_ic50(data_home=tmp_path)
    expected = pd.DataFrame([[1.0, np.nan, 100.0], [0.0, 7.0, 2.0]], index=["A-1", "NA"], columns=["X", "Y 1", "Z"])
    pd.testing.assert_frame_equal(fetched.data, expected, check_names=False)
    facts = {"normalised_name": "a1", "cosmic_id": "11", "cancer_type": "lung", "tissue": "lung_nsclc"}
    assert fetched.row_info.loc["A-1"].to_dict() == facts
    assert fetched.row_info.loc["NA", "normalised_name"] == "nan"
    assert list(fetched.column_info["normalised_name"]) == ["x", "y1", "z"]
    assert fetched.source == published.URLS["gdsc/ic50.txt"]
    assert files_below(tmp_path) == ["gdsc/cell_lines.txt", "gdsc/drugs.txt", "gdsc/ic50.txt"]
    again = datasets.fetch_gdsc_ic50(data_home=tmp_path, prepared=False, download_if_missing=False)
    np.testing.assert_array_equal(again.data.to_numpy(), [[1.9, np.nan, 100.0], [0.4, 7.5, 2.0]])
    assert len(served.requests) == 3  # not downloaded again


def test_gdsc_without_the_lists_of_names_is_numbered(served, tmp_path):
    del served.files["gdsc/cell_lines.txt"], served.files["gdsc/drugs.txt"]
    fetched = datasets.fetch_gdsc_ic50(data_home=tmp_path)
    assert list(fetched.data.index) == [0, 1]
    assert list(fetched.data.columns) == [0, 1, 2]
    assert fetched.row_info.shape == (2, 0)
    assert files_below(tmp_path) == ["gdsc/ic50.txt"]


@pytest.mark.parametrize("content", [DRUGS + b"w\tW\n", b"<html>\nnot\na list\n"])
def test_a_wrong_list_of_names_is_an_error(served, tmp_path, content):
    served.files["gdsc/drugs.txt"] = content
    with pytest.raises(DatasetError, match=r"drugs.txt has \d names for 3 rows or columns") as error:
        datasets.fetch_gdsc_ic50(data_home=tmp_path)
    assert_says_what_to_do(error, "gdsc/drugs.txt", tmp_path)


def test_methylation_is_downloaded_and_numbered(served, tmp_path):
    fetched = datasets.fetch_gene_body_methylation(data_home=tmp_path)
    pd.testing.assert_frame_equal(fetched.data, pd.DataFrame([[18.0, 0.0, 3.0], [16.0, 19.0, 7.0]]))


def test_movielens_is_sparse_with_names(served, tmp_path):
    fetched = datasets.fetch_movielens_100k(data_home=tmp_path)
    np.testing.assert_array_equal(fetched.data.toarray(), [[4, 0, 2], [5, 0, 0]])
    assert fetched.data.nnz == 3
    assert list(fetched.column_info["title"]) == ['Toy "Story" (1995)', "unknown", "Café (1996)"]
    assert fetched.row_info.loc[2, "occupation"] == "other"


FETCHERS = [
    (datasets.fetch_gdsc_ic50, "gdsc/ic50.txt"),
    (datasets.fetch_gene_body_methylation, "methylation/R_0.txt"),
    (datasets.fetch_movielens_100k, "movielens/ml-100k.zip"),
]


def assert_says_what_to_do(error: pytest.ExceptionInfo[DatasetError], name: str, home: Path) -> None:
    """The message must state the address, the name of the file, and where to save it by hand."""
    message = str(error.value)
    assert published.URLS[name] in message
    assert f"The file {name.rsplit('/')[-1]} is at" in message
    assert f"save it as {home / name}" in message
    assert isinstance(error.value, OSError)


@pytest.mark.parametrize(
    ("fetch", "name", "fault"),
    [(*FETCHERS[0], "wrong"), (*FETCHERS[0], "empty"), (*FETCHERS[1], "absent"), (*FETCHERS[2], "wrong")],
)
def test_a_bad_download_is_a_clear_error_and_leaves_no_file(served, tmp_path, fetch, name, fault):
    content = served.files.pop(name)
    if fault != "absent":
        served.files[name] = content[:-2] + b"9\n" if fault == "wrong" else b""
    with pytest.raises(DatasetError, match="404 Not Found" if fault == "absent" else "hash") as error:
        fetch(data_home=tmp_path)
    assert_says_what_to_do(error, name, tmp_path)
    assert served.requests.count(name) == 1
    assert files_below(tmp_path) == []
    served.files[name] = content
    assert fetch(data_home=tmp_path).data.shape == ((2, 3))


@pytest.mark.parametrize(("fetch", "name"), FETCHERS)
def test_nothing_is_downloaded_if_not_allowed_and_no_file_is_replaced(served, tmp_path, fetch, name):
    with pytest.raises(DatasetError, match="download_if_missing is False") as error:
        fetch(data_home=tmp_path, download_if_missing=False)
    assert_says_what_to_do(error, name, tmp_path)
    own = tmp_path / name
    own.parent.mkdir()
    own.write_bytes(b"my own numbers")
    with pytest.raises(DatasetError, match=r"is not the expected file: its SHA-256 is") as error:
        fetch(data_home=tmp_path)
    assert_says_what_to_do(error, name, tmp_path)
    assert own.read_bytes() == b"my own numbers"
    with pytest.raises(DatasetError) as error:
        fetch(data_home=own)  # where no directory can be created
    assert_says_what_to_do(error, name, own)
    assert served.requests == []


def test_data_directory_is_the_argument_the_variable_or_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("BNMF_DATA", str(tmp_path / "variable"))
    assert datasets.data_directory(tmp_path / "argument") == tmp_path / "argument"
    assert datasets.data_directory() == tmp_path / "variable"
    monkeypatch.delenv("BNMF_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert "bnmf" in datasets.data_directory().parts


def test_without_pooch_only_downloads_fail(served, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"pip install 'bnmf\[data\]'"):
        datasets.fetch_gdsc_ic50(data_home=tmp_path)
    for name in ("gdsc/ic50.txt", "gdsc/cell_lines.txt", "gdsc/drugs.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(served.files[name])
    assert datasets.fetch_gdsc_ic50(data_home=tmp_path).data.shape == (2, 3)


@needs_data
def test_methylation_is_the_matrix_of_the_paper():
    values = datasets.fetch_gene_body_methylation(data_home=SHARED_DATA, download_if_missing=False).data.to_numpy()
    assert values.shape == (160, 254)
    assert set(np.unique(values)) == set(range(20))
    assert np.linalg.matrix_rank(values) == 160
    assert values.var() == pytest.approx(21.30, abs=0.005)


@pytest.fixture(scope="module")
def gdsc():
    return datasets.fetch_gdsc_ic50(data_home=SHARED_DATA, download_if_missing=False)


@needs_data
def test_gdsc_is_the_matrix_of_the_paper(gdsc):
    assert gdsc.data.shape == (707, 139)
    observed = gdsc.data.notna().to_numpy()
    assert observed.mean() == pytest.approx(0.8065, abs=1e-4)
    values = gdsc.data.to_numpy()[observed]
    assert set(np.unique(values)) <= set(range(101))
    assert np.linalg.matrix_rank(gdsc.data.fillna(0).to_numpy()) == 139
    raw = datasets.fetch_gdsc_ic50(data_home=SHARED_DATA, prepared=False, download_if_missing=False).data
    np.testing.assert_array_equal(np.loadtxt(SHARED_DATA / "gdsc" / "ic50.txt"), raw.to_numpy())
    assert "AKT inhibitor VIII" in gdsc.data.columns
    assert gdsc.row_info.loc["22RV1", "cosmic_id"] == "924100"


def marginal_statistics(data):
    """Marginal statistics of a matrix of drug responses."""
    observed = ~np.isnan(data)
    values = data[observed]
    within = np.nanvar(data, axis=0) * observed.sum(axis=0)
    return {
        "observed": observed.mean(),
        "standard deviation": values.std() / 100,
        "standard deviation within a drug": np.sqrt(within.sum() / observed.sum()) / 100,
        "zeros": (values == 0).mean(),
        "at the cap": (values == 100).mean(),
        "drugs observed, lower quarter": np.quantile(observed.mean(axis=0), 0.25),
        "cell lines less than two thirds observed": (observed.mean(axis=1) < 2 / 3).mean(),
        "cell line means, lower tenth": np.quantile(np.nanmean(data, axis=1), 0.1) / 100,
        "cell line means, upper tenth": np.quantile(np.nanmean(data, axis=1), 0.9) / 100,
    }


@needs_data
@pytest.mark.parametrize("seed", range(3))
def test_drug_response_resembles_gdsc(gdsc, seed):
    real = marginal_statistics(gdsc.data.to_numpy())
    made = marginal_statistics(datasets.make_drug_response(random_state=seed).data)
    for name in real:
        assert made[name] == pytest.approx(real[name], abs=0.04), name


def test_drug_response_is_capped_whole_numbers_without_empty_rows_or_columns():
    for shape in [(707, 139), (40, 25), (5, 3), (1, 1)]:
        made = datasets.make_drug_response(*shape, random_state=1)
        assert made.data.shape == made.complete.shape == shape
        assert made.observed.any(axis=0).all()
        assert made.observed.any(axis=1).all()
        np.testing.assert_array_equal(made.data[made.observed], made.complete[made.observed])
        assert np.isnan(made.data[~made.observed]).all()
        np.testing.assert_array_equal(made.complete, np.clip(np.floor(made.complete), 0, 100))
        np.testing.assert_array_equal(made.complete == 100, made.log_response >= np.log(100) - 1e-9)


def test_low_rank_is_its_mean_plus_noise():
    made = datasets.make_low_rank(300, 200, 4, noise=0.5, missing=0.3, negative=True, random_state=0)
    assert (~made.observed).sum() == 18_000
    np.testing.assert_array_equal(made.observed, ~np.isnan(made.data))
    np.testing.assert_allclose(made.mean, made.W @ made.Z)
    assert min(made.W.min(), made.Z.min()) >= 0
    noise = (made.data - made.mean)[made.observed]
    assert noise.std() == pytest.approx(0.5, rel=0.02)
    assert noise.mean() == pytest.approx(0, abs=0.01)
    assert np.linalg.matrix_rank(made.mean) == 4
    assert np.nanmin(made.data) < 0.0
    assert np.nanmin(datasets.make_low_rank(random_state=0).data) == 0.0


def test_ratings_are_on_the_scale_and_near_their_mean():
    made = datasets.make_ratings(2000, 1000, 60_000, random_state=0)
    assert isinstance(made.data, sparse.csr_array)
    made.data.check_format(full_check=True)
    assert made.data.nnz == 60_000
    assert made.data.has_canonical_format
    np.testing.assert_array_equal(np.unique(made.data.data), np.arange(1.0, 5.01))
    assert made.data.data.mean() == pytest.approx(3.5, abs=0.15)
    assert made.data.data.std() == pytest.approx(1.1, abs=0.1)
    entries = made.data.tocoo()
    truth = np.einsum("pk,kp->p", made.W[entries.row], made.Z[:, entries.col])
    assert np.corrcoef(truth, entries.data)[0, 1] > 0.5
    for counts in (np.diff(made.data.indptr), np.bincount(made.data.indices, minlength=1000)):  # long tails
        assert counts.mean() > 1.4 * np.median(counts)
        assert counts.max() > 8 * np.median(counts)
    for shape in ((20, 30, 300), (1, 2, 1)):  # half of the matrix
        assert datasets.make_ratings(*shape, random_state=0).data.nnz == shape[2]


@pytest.mark.parametrize("make", [datasets.make_low_rank, datasets.make_drug_response, datasets.make_ratings])
def test_the_seed_determines_the_data(make):
    shape = (30, 20, 200) if make is datasets.make_ratings else (30, 20)
    made = [make(*shape, random_state=seed).data for seed in (3, 3, np.random.default_rng(3), 4)]
    first, *same, other = (each.toarray() if sparse.issparse(each) else each for each in made)
    for each in same:
        np.testing.assert_array_equal(each, first)
    assert not np.array_equal(other, first, equal_nan=True)


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        ("low_rank", {"n_rows": 0}, "n_rows must be at least 1, got 0"),
        ("low_rank", {"n_components": 2.5}, "n_components must be a whole number, got 2.5"),
        ("low_rank", {"noise": -1}, "noise must be at least 0 and below inf, got -1"),
        ("low_rank", {"missing": 1.0}, "missing must be at least 0 and below 1, got 1.0"),
        ("drug_response", {"n_columns": -1}, "n_columns must be at least 1, got -1"),
        ("ratings", {"n_users": 20, "n_items": 30, "n_ratings": 301}, r"half of n_users \* n_items, 300, got 301"),
    ],
)
def test_invalid_arguments_raise_an_error(make, arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        getattr(datasets, f"make_{make}")(**arguments)
