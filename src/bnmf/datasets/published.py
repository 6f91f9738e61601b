"""Published data sets with the names of their rows and columns: their files, in a local directory or downloaded."""

import io
import logging
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils import Bunch

from bnmf.utils import digests


class DatasetError(OSError):
    """A file of a data set is not available, or is not the expected file.

    The message states the address of the file and the path where it can be saved by hand.
    """


_BROUWER = "https://raw.githubusercontent.com/ThomasBrouwer/BMF_Priors"
_GDSC_DATA = f"{_BROUWER}/15b20537eefd36347ed84617882eeea1c453e162/data/drug_sensitivity/GDSC/processed_all"
_METHYLATION_DATA = f"{_BROUWER}/55852aad3cf8875c6658f93538c96839d2ed0ef5/experiments/noise/methylation_gm/data"
_MOVIELENS_DATA = "https://files.grouplens.org/datasets/movielens"
# Address and SHA-256. Lists of names are pinned by the commit in their address; their hashes could not be confirmed.
_FILES = {
    "gdsc/ic50.txt": (_GDSC_DATA, "4af989ab5b1ae963df637d9a6d9e7335a092e790e67acc45876f7bbc7e1f2a08"),
    "gdsc/cell_lines.txt": (_GDSC_DATA, None),
    "gdsc/drugs.txt": (_GDSC_DATA, None),
    "methylation/R_0.txt": (_METHYLATION_DATA, "06ad74125c8847d8d0db8a625a01facd31add16c951f982608dc5346dee787b5"),
    "movielens/ml-100k.zip": (_MOVIELENS_DATA, "50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229"),
}
URLS = {name: f"{address}/{name.rpartition('/')[2]}" for name, (address, _) in _FILES.items()}
REGISTRY = {name: sha256 for name, (_, sha256) in _FILES.items()}


def data_directory(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Return the data directory.

    Parameters
    ----------
    data_home : path-like, optional
        The directory. Defaults to the environment variable ``BNMF_DATA`` if it is set, and to the user's cache
        directory otherwise.

    Returns
    -------
    pathlib.Path
        The directory, which may not exist yet.
    """
    chosen = data_home if data_home is not None else os.environ.get("BNMF_DATA")
    return Path(chosen).expanduser() if chosen else Path(_pooch().os_cache("bnmf"))


_GDSC = """Drug response of cancer cell lines (Genomics of Drug Sensitivity in Cancer, IC50).

Rows are cell lines and columns are drugs. An entry is the concentration that halves the growth, capped at 100 and, if
prepared, truncated to a whole number; NaN if it was not measured.
"""

_METHYLATION = """Gene body methylation of 160 breast cancer driver genes in 254 samples (TCGA).

Rows are genes and columns are samples; nothing is missing. The values are multiplied by 20 and truncated to whole
numbers, as published experiments use them. The file has no names of genes and samples, so both are numbered.
"""

_MOVIELENS = """MovieLens 100K: 100 000 ratings from 1 to 5 of 1682 films by 943 users (GroupLens, 1998).

`data` is sparse: an entry that is not stored is missing, not zero. The licence of GroupLens does not allow
redistribution and asks for a citation: Harper and Konstan, The MovieLens Datasets: History and Context, 2015.
"""


def fetch_gdsc_ic50(
    *,
    data_home: str | os.PathLike[str] | None = None,
    prepared: bool = True,
    download_if_missing: bool = True,
) -> Bunch:
    """Fetch the drug response (IC50) of 707 cancer cell lines to 139 drugs, of which about 80% is observed.

    Parameters
    ----------
    data_home : path-like, optional
        Directory of ``gdsc/ic50.txt``, ``gdsc/cell_lines.txt`` and ``gdsc/drugs.txt``; see :func:`data_directory`.
    prepared : bool, default=True
        Truncate to whole numbers, as published experiments do. False returns the values as measured (and capped).
    download_if_missing : bool, default=True
        Download missing files.

    Returns
    -------
    sklearn.utils.Bunch
        `data`, a DataFrame with NaN for missing entries; `row_info` (normalised name, COSMIC id, cancer type and
        tissue of each cell line); `column_info` (normalised name of each drug); `DESCR`; `source`.
        If the lists of names are not available, `row_info` and `column_info` have no columns and the rows and columns
        of `data` are numbered.

    Examples
    --------
    If a file is missing, the message states where it can be saved by hand:

    >>> fetch_gdsc_ic50(data_home="nowhere", download_if_missing=False)
    Traceback (most recent call last):
        ...
    bnmf.datasets.published.DatasetError: gdsc/ic50.txt is not in nowhere and download_if_missing is False...
    """
    home = data_directory(data_home)
    path = obtain("gdsc/ic50.txt", home, download=download_if_missing)
    data = pd.DataFrame(np.loadtxt(path, delimiter="\t", ndmin=2))
    fields = ["normalised_name", "name", "cosmic_id", "cancer_type", "tissue"]
    row_info = _names("gdsc/cell_lines.txt", fields, home, len(data), download_if_missing)
    column_info = _names("gdsc/drugs.txt", fields[:2], home, data.shape[1], download_if_missing)
    data.index, data.columns = row_info.index, column_info.index
    return Bunch(
        data=np.trunc(data) if prepared else data,
        row_info=row_info,
        column_info=column_info,
        DESCR=_GDSC,
        source=URLS["gdsc/ic50.txt"],
    )


def fetch_gene_body_methylation(
    *, data_home: str | os.PathLike[str] | None = None, download_if_missing: bool = True
) -> Bunch:
    """Fetch the gene body methylation of 160 breast cancer driver genes in 254 samples, without missing entries.

    Parameters
    ----------
    data_home : path-like, optional
        Directory of ``methylation/R_0.txt``; see :func:`data_directory`.
    download_if_missing : bool, default=True
        Download the file if it is missing.

    Returns
    -------
    sklearn.utils.Bunch
        `data`, a DataFrame of whole numbers from 0 to 19 (methylation times 20, truncated) with numbered rows and
        columns, because the file has no names; `DESCR`; `source`.
    """
    path = obtain("methylation/R_0.txt", data_directory(data_home), download=download_if_missing)
    return Bunch(data=pd.DataFrame(np.loadtxt(path, ndmin=2)), DESCR=_METHYLATION, source=URLS["methylation/R_0.txt"])


def fetch_movielens_100k(*, data_home: str | os.PathLike[str] | None = None, download_if_missing: bool = True) -> Bunch:
    """Fetch 100 000 ratings of 1682 films by 943 users; every user rated at least 20 films.

    Parameters
    ----------
    data_home : path-like, optional
        Directory of ``movielens/ml-100k.zip``; see :func:`data_directory`.
    download_if_missing : bool, default=True
        Download the file if it is missing.

    Returns
    -------
    sklearn.utils.Bunch
        `data`, a SciPy CSR array of users by films in which an entry that is not stored is *missing* (fit it with
        ``unstored="missing"``); `row_info` (age, gender and occupation of each user) and `column_info` (title and
        release date of each film), both indexed by the ids of MovieLens; `DESCR`; `source`.
    """
    path = obtain("movielens/ml-100k.zip", data_directory(data_home), download=download_if_missing)
    with zipfile.ZipFile(path) as archive:
        ratings = _table(archive, "u.data", "\t", ["user", "item", "rating", "time"])
        users = _table(archive, "u.user", "|", ["user", "age", "gender", "occupation"]).set_index("user")
        items = _table(archive, "u.item", "|", ["item", "title", "released"]).set_index("item")
    position = users.index.get_indexer(pd.Index(ratings["user"])), items.index.get_indexer(pd.Index(ratings["item"]))
    values = ratings["rating"].to_numpy(dtype=float)
    return Bunch(
        data=sparse.csr_array((values, position), shape=(len(users), len(items))),
        row_info=users,
        column_info=items,
        DESCR=_MOVIELENS,
        source=URLS["movielens/ml-100k.zip"],
    )


# --- files


def obtain(name: str, home: Path, *, download: bool = True) -> Path:
    """Return the path of a checked file in the data directory; a missing one is downloaded, none is overwritten."""
    target, expected = home / name, REGISTRY[name]
    if target.exists():
        found = digests.of_bytes(target.read_bytes())
        if expected not in (None, found):
            problem = f"{target} is not the expected file: its SHA-256 is {found}, not {expected}. Remove or replace it"
            raise dataset_error(problem, name, home)
        return target
    if not download:
        raise dataset_error(f"{name} is not in {home} and download_if_missing is False", name, home)
    try:
        return Path(_pooch().create(home, base_url="", registry=REGISTRY, urls=URLS).fetch(name))
    except (OSError, ValueError) as error:  # of the network library, and of pooch for a wrong hash
        raise dataset_error(f"{name} could not be downloaded ({error})", name, home) from error


def dataset_error(problem: str, name: str, home: Path) -> DatasetError:
    """Return an error that states the problem and what the user can do."""
    return DatasetError(
        f"{problem}.\n"
        f"The file {name.rpartition('/')[2]} is at the address {URLS[name]}\n"
        f"To provide it by hand, save it as {home / name}"
    )


def _pooch() -> Any:
    """Import pooch, which is needed only for downloads and for the location of the cache directory."""
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            "downloading data requires the package pooch: pip install 'bnmf[data]'. To use local files instead, set "
            "data_home (or the environment variable BNMF_DATA) to their directory."
        ) from error
    pooch.get_logger().setLevel(logging.WARNING)
    return pooch


def _names(name: str, fields: list[str], home: Path, length: int, download: bool) -> pd.DataFrame:
    """Read a list of names; number the rows or columns if it is not available, because the names are optional."""
    try:
        path = obtain(name, home, download=download)
    except DatasetError:
        return pd.DataFrame(index=pd.RangeIndex(length))
    # No default NA values: a name may well be "NA" or "nan".
    info = pd.read_csv(path, sep="\t", header=None, names=fields, dtype=str, keep_default_na=False, quoting=3)
    if len(info) != length or (info["name"] == "").any():
        problem = f"{path} has {len(info)} names for {length} rows or columns: remove or replace it"
        raise dataset_error(problem, name, home)
    return info.set_index("name")


def _table(archive: zipfile.ZipFile, name: str, separator: str, fields: list[str]) -> pd.DataFrame:
    """Read the first columns of a table in the MovieLens archive."""
    content = archive.read(f"ml-100k/{name}").decode("latin-1")  # the titles are not UTF-8
    return pd.read_csv(
        io.StringIO(content), sep=separator, header=None, names=fields, usecols=range(len(fields)), quoting=3
    )
