"""Published data sets, with the names of their rows and columns."""

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils import Bunch

from bnmf.datasets.remote import URLS, DatasetError, data_directory, dataset_error, obtain

_CELL_LINE_FIELDS = ["normalised_name", "name", "cosmic_id", "cancer_type", "tissue"]
_DRUG_FIELDS = ["normalised_name", "name"]

_GDSC = """Drug response of cancer cell lines (Genomics of Drug Sensitivity in Cancer, IC50).

Rows are cell lines and columns are drugs. An entry is the concentration that halves the growth, capped at 100, or NaN
if it was not measured. {prepared}{names}
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
        Directory of ``gdsc/ic50.txt``, ``gdsc/cell_lines.txt`` and ``gdsc/drugs.txt``; by default `data_directory`.
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
    >>> gdsc = fetch_gdsc_ic50()  # doctest: +SKIP
    >>> gdsc.data.shape  # doctest: +SKIP
    (707, 139)

    If a file is missing, the message states where it can be saved by hand:

    >>> fetch_gdsc_ic50(data_home="nowhere", download_if_missing=False)
    Traceback (most recent call last):
        ...
    bnmf.datasets.remote.DatasetError: gdsc/ic50.txt is not in nowhere and download_if_missing is False...
    """
    home = data_directory(data_home)
    path = obtain("gdsc/ic50.txt", home, download=download_if_missing)
    data = pd.DataFrame(np.loadtxt(path, delimiter="\t", ndmin=2))
    row_info = _names("gdsc/cell_lines.txt", _CELL_LINE_FIELDS, home, len(data), download_if_missing)
    column_info = _names("gdsc/drugs.txt", _DRUG_FIELDS, home, data.shape[1], download_if_missing)
    data.index, data.columns = row_info.index, column_info.index
    named = row_info.shape[1] > 0 and column_info.shape[1] > 0
    return Bunch(
        data=np.trunc(data) if prepared else data,
        row_info=row_info,
        column_info=column_info,
        DESCR=_GDSC.format(
            prepared="The values are truncated to whole numbers." if prepared else "The values are as measured.",
            names="" if named else " The lists of names were not available, so rows and columns are numbered.",
        ),
        source=URLS["gdsc/ic50.txt"],
    )


def fetch_gene_body_methylation(
    *, data_home: str | os.PathLike[str] | None = None, download_if_missing: bool = True
) -> Bunch:
    """Fetch the gene body methylation of 160 breast cancer driver genes in 254 samples, without missing entries.

    Parameters
    ----------
    data_home : path-like, optional
        Directory of ``methylation/R_0.txt``; by default `data_directory`.
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
        Directory of ``movielens/ml-100k.zip``; by default `data_directory`.
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
