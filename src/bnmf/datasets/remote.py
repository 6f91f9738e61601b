"""The files of the published data sets: their addresses, their checks, and the local data directory."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bnmf.utils import digests
from bnmf.utils.files import replacing

Check = Callable[[bytes], str | None]
"""Checks the content of a file: returns a description of what is wrong with it, or None."""


class DatasetError(OSError):
    """A file of a data set is not available, or is not the expected file.

    The message states the address of the file and the path where it can be saved by hand.
    """


def sha256(digest: str) -> Check:
    """Return a check that accepts content with this SHA-256 digest."""

    def check(content: bytes) -> str | None:
        found = digests.of_bytes(content)
        return None if found == digest else f"its SHA-256 is {found}, not {digest}"

    return check


def lines(pattern: str, *, at_least: int) -> Check:
    """Return a check that accepts at least so many lines, which all match; for files without a known hash."""

    def check(content: bytes) -> str | None:
        rows = content.decode("utf-8", errors="replace").splitlines()
        for number, row in enumerate(rows, start=1):
            if not re.fullmatch(pattern, row):
                return f"its line {number} is {row[:60]!r}, which does not match {pattern}"
        return None if len(rows) >= at_least else f"it has {len(rows)} lines, not at least {at_least}"

    return check


@dataclass(frozen=True)
class RemoteFile:
    """A file by its path in the data directory, its public address, and the check of its content."""

    path: str
    url: str
    check: Check


_BROUWER = "https://raw.githubusercontent.com/ThomasBrouwer/BMF_Priors"
_GDSC = f"{_BROUWER}/15b20537eefd36347ed84617882eeea1c453e162/data/drug_sensitivity/GDSC/processed_all"
_METHYLATION = f"{_BROUWER}/55852aad3cf8875c6658f93538c96839d2ed0ef5/experiments/noise/methylation_gm/data"

# The files with a check by `lines` are pinned by the commit in their address. Their hashes could not be confirmed, so
# only their format is checked. They contain names of rows and columns, but no values.
REMOTE_FILES: dict[str, RemoteFile] = {
    file.path: file
    for file in (
        RemoteFile(
            "gdsc/ic50.txt",
            f"{_GDSC}/ic50.txt",
            sha256("4af989ab5b1ae963df637d9a6d9e7335a092e790e67acc45876f7bbc7e1f2a08"),
        ),
        RemoteFile("gdsc/cell_lines.txt", f"{_GDSC}/cell_lines.txt", lines(r"[^\t]+(\t[^\t]*){4}", at_least=707)),
        RemoteFile("gdsc/drugs.txt", f"{_GDSC}/drugs.txt", lines(r"[^\t]+\t[^\t]+", at_least=139)),
        RemoteFile(
            "methylation/R_0.txt",
            f"{_METHYLATION}/R_0.txt",
            sha256("06ad74125c8847d8d0db8a625a01facd31add16c951f982608dc5346dee787b5"),
        ),
        RemoteFile(
            "movielens/ml-100k.zip",
            "https://files.grouplens.org/datasets/movielens/ml-100k.zip",
            sha256("50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229"),
        ),
    )
}


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
    file = REMOTE_FILES[name]
    target = home / file.path
    if not target.exists():
        if not download:
            raise _error(f"{name} is not in {home} and download_if_missing is False", file, target)
        _download(file, target)
        return target
    try:
        wrong = file.check(target.read_bytes())
    except OSError as error:
        raise _error(f"{target} cannot be read ({error})", file, target) from error
    if wrong is not None:
        raise _error(f"{target} is not the expected file: {wrong}. Remove or replace it", file, target)
    return target


def _download(file: RemoteFile, target: Path) -> None:
    """Download a file, and move it to its place if its content is the expected one."""
    # Streaming would leave the connection open after an error, and the files are small enough for memory.
    fetch = _pooch().HTTPDownloader(chunk_size=1 << 16, stream=False)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as temporary:
            fetch(file.url, str(temporary), None)
            wrong = file.check(temporary.read_bytes())
            if wrong is not None:
                raise _error(f"the download of {file.path} is incomplete or another file: {wrong}", file, target)
    except DatasetError:
        raise
    except OSError as error:  # includes the errors of the network library
        raise _error(f"{file.path} could not be downloaded ({error})", file, target) from error


def _error(problem: str, file: RemoteFile, target: Path) -> DatasetError:
    """Return an error that states the problem and what the user can do."""
    return DatasetError(
        f"{problem}.\n"
        f"The file {file.url.rsplit('/', 1)[-1]} is at the address {file.url}\n"
        f"To provide it by hand, save it as {target}"
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
    return pooch
