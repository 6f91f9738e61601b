"""The files of the published data sets: their addresses, their hashes, and the local data directory."""

import logging
import os
from pathlib import Path
from typing import Any

from bnmf.utils import digests


class DatasetError(OSError):
    """A file of a data set is not available, or is not the expected file.

    The message states the address of the file and the path where it can be saved by hand.
    """


_BROUWER = "https://raw.githubusercontent.com/ThomasBrouwer/BMF_Priors"
_GDSC = f"{_BROUWER}/15b20537eefd36347ed84617882eeea1c453e162/data/drug_sensitivity/GDSC/processed_all"
_METHYLATION = f"{_BROUWER}/55852aad3cf8875c6658f93538c96839d2ed0ef5/experiments/noise/methylation_gm/data"

_MOVIELENS = "https://files.grouplens.org/datasets/movielens"
# Address and SHA-256. Lists of names are pinned by the commit in their address; their hashes could not be confirmed.
_FILES = {
    "gdsc/ic50.txt": (_GDSC, "4af989ab5b1ae963df637d9a6d9e7335a092e790e67acc45876f7bbc7e1f2a08"),
    "gdsc/cell_lines.txt": (_GDSC, None),
    "gdsc/drugs.txt": (_GDSC, None),
    "methylation/R_0.txt": (_METHYLATION, "06ad74125c8847d8d0db8a625a01facd31add16c951f982608dc5346dee787b5"),
    "movielens/ml-100k.zip": (_MOVIELENS, "50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229"),
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

    Examples
    --------
    >>> data_directory("my-data").name
    'my-data'
    """
    chosen = data_home if data_home is not None else os.environ.get("BNMF_DATA")
    return Path(chosen).expanduser() if chosen else Path(_pooch().os_cache("bnmf"))


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
