"""Where the published files live: addresses, how each is recognised, and the directory that keeps them."""

import hashlib
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Check = Callable[[bytes], str | None]
"""Looks at the content of a file and says what is wrong with it, or None."""


class DatasetError(OSError):
    """A file of a data set could not be had, or is not the file it should be.

    The message names the address, the file and the place where it can be put by hand.
    """


def sha256(digest: str) -> Check:
    """Accept the content with this SHA-256.

    Examples
    --------
    >>> check = sha256("2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824")
    >>> check(b"hello") is None
    True
    >>> print(check(b"hell"))
    its SHA-256 is 0ebdc3317b75839f643387d783535adc360ca01f33c75f7c1e7373adcd675c0b, not 2cf24dba...
    """

    def check(content: bytes) -> str | None:
        found = hashlib.sha256(content).hexdigest()
        return None if found == digest else f"its SHA-256 is {found}, not {digest}"

    return check


def git_blob(digest: str) -> Check:
    r"""Accept the content that git stores under this identity, the SHA-1 of a short header and the content.

    Examples
    --------
    >>> git_blob("ce013625030ba8dba906f756967f9e9ca394464a")(b"hello\n") is None
    True
    """

    def check(content: bytes) -> str | None:
        found = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
        return None if found == digest else f"its git blob identity is {found}, not {digest}"

    return check


def lines(pattern: str, *, at_least: int) -> Check:
    r"""Accept text of at least so many lines which all match; for files of which no hash is known.

    Examples
    --------
    >>> lines(r"\d+", at_least=2)(b"10564\n6453\n") is None
    True
    >>> print(lines(r"\d+", at_least=2)(b"<html>\n</html>\n"))
    its line 1 is '<html>', which does not match \d+
    """

    def check(content: bytes) -> str | None:
        rows = content.decode("utf-8", errors="replace").splitlines()
        for number, row in enumerate(rows, start=1):
            if not re.fullmatch(pattern, row):
                return f"its line {number} is {row[:60]!r}, which does not match {pattern}"
        return None if len(rows) >= at_least else f"it has {len(rows)} lines, not at least {at_least}"

    return check


@dataclass(frozen=True)
class RemoteFile:
    """A file, the public address it comes from, and how to recognise it.

    Parameters
    ----------
    path : str
        Where it lies below the data directory.
    url : str
        Its address.
    check : callable
        Takes the content and returns what is wrong with it, or None.
    """

    path: str
    url: str
    check: Check


_BROUWER = "https://raw.githubusercontent.com/ThomasBrouwer/BMF_Priors/15b20537eefd36347ed84617882eeea1c453e162/data"

# The files with `lines` are pinned by the commit in their address, but no hash of them could be confirmed, so
# they are recognised by their form. They only name rows and columns, or pick rows; no value comes from them.
FILES: dict[str, RemoteFile] = {
    file.path: file
    for file in (
        RemoteFile(
            "gdsc/ic50.txt",
            f"{_BROUWER}/drug_sensitivity/GDSC/processed_all/ic50.txt",
            sha256("4af989ab5b1ae963df637d9a6d9e7335a092e790e67acc45876f7bbc7e1f2a08"),
        ),
        RemoteFile(
            "gdsc/cell_lines.txt",
            f"{_BROUWER}/drug_sensitivity/GDSC/processed_all/cell_lines.txt",
            lines(r"[^\t]+(\t[^\t]*){4}", at_least=707),
        ),
        RemoteFile(
            "gdsc/drugs.txt",
            f"{_BROUWER}/drug_sensitivity/GDSC/processed_all/drugs.txt",
            lines(r"[^\t]+\t[^\t]+", at_least=139),
        ),
        RemoteFile(
            "methylation/matched_methylation_geneBody",
            f"{_BROUWER}/methylation/matched_methylation_geneBody",
            git_blob("4cca9aeab63c04c94282e56296c7fef54618d791"),
        ),
        RemoteFile(
            "methylation/genes.txt",
            f"{_BROUWER}/methylation/intogen-BRCA-drivers-data.geneid",
            lines(r"\s*[\w.-]*\s*", at_least=160),
        ),
        RemoteFile(
            "movielens/ml-100k.zip",
            "https://files.grouplens.org/datasets/movielens/ml-100k.zip",
            sha256("50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229"),
        ),
    )
}


def data_directory(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Return the directory that keeps the data.

    Parameters
    ----------
    data_home : path-like, optional
        A directory of your own. Without it the environment variable ``BNMF_DATA`` is taken, and without that
        the user's cache directory.

    Returns
    -------
    pathlib.Path
        The directory, which need not exist yet.

    Examples
    --------
    >>> data_directory("my-data").name
    'my-data'
    """
    chosen = data_home if data_home is not None else os.environ.get("BNMF_DATA")
    return Path(chosen).expanduser() if chosen else Path(_pooch().os_cache("bnmf"))


def obtain(name: str, home: Path, *, download: bool = True) -> Path:
    """Return the path of a file that is there and is the right one, downloading it if needed.

    Parameters
    ----------
    name : str
        One of the keys of `FILES`.
    home : pathlib.Path
        The data directory.
    download : bool, default=True
        Whether a file that is not there may be downloaded.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    DatasetError
        If it cannot be had, or what is there or comes is not that file. What is there already is never
        overwritten or deleted, and a wrong download is never kept.

    Examples
    --------
    >>> obtain("gdsc/ic50.txt", Path("nowhere"), download=False)
    Traceback (most recent call last):
        ...
    bnmf.datasets.store.DatasetError: gdsc/ic50.txt is not in nowhere and download_if_missing is False...
    """
    file = FILES[name]
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
        raise _error(f"{target} is not the file it should be: {wrong}. Remove it or replace it", file, target)
    return target


def _download(file: RemoteFile, target: Path) -> None:
    """Download next to the target, look at it, and only then let it take the name of the target."""
    # Streaming would leave the connection open after an error, and the files are small enough for memory.
    fetch = _pooch().HTTPDownloader(chunk_size=1 << 16, stream=False)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # In the same directory, so that the last step is one rename: nobody ever sees half a file.
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".download-") as directory:
            arrived = Path(directory) / target.name
            fetch(file.url, str(arrived), None)
            wrong = file.check(arrived.read_bytes())
            if wrong is None:
                arrived.replace(target)
    except OSError as error:  # what the network library raises is an OSError too
        raise _error(f"{file.path} could not be downloaded ({error})", file, target) from error
    if wrong is not None:
        raise _error(f"what was downloaded as {file.path} is another file or cut short: {wrong}", file, target)


def _error(problem: str, file: RemoteFile, target: Path) -> DatasetError:
    """Say what happened and what a person can do about it."""
    return DatasetError(
        f"{problem}.\n"
        f"The file {file.url.rsplit('/', 1)[-1]} is at the address {file.url}\n"
        f"To use it without this download, save it as {target}"
    )


def _pooch() -> Any:
    """Import pooch only when something must be downloaded or the cache directory is asked for."""
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            "downloading data needs the package pooch: pip install 'bnmf[data]'. Without it, give data_home "
            "(or the environment variable BNMF_DATA) the directory that has the files."
        ) from error
    return pooch
