"""Room on disk: reserved before it is used, and a clear error where there is none."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bnmf.utils.text import size

NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT) if hasattr(errno, "EDQUOT") else (errno.ENOSPC, errno.EFBIG)
"""Errors of a system that has no room for a file, or does not give it."""
# Bytes that are written at a time where the system cannot reserve room.
BLOCK_BYTES = 2**24


def require(directory: Path, needed: int, what: str) -> None:
    """Raise an error if a disk has less room than is needed."""
    if shutil.disk_usage(directory).free < needed:
        raise _no_room(errno.ENOSPC, directory, needed, what)


def reserve(path: Path) -> None:
    """Take the room on disk of a file that has holes, so that a full disk cannot end a process that maps it."""
    with open(path, "rb+") as file:
        n_bytes = os.fstat(file.fileno()).st_size
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, n_bytes)
            return
        for begin in range(0, n_bytes, BLOCK_BYTES):  # macOS and Windows: holes are filled by writing what they hold
            file.seek(begin)
            block = file.read(BLOCK_BYTES)
            file.seek(begin)
            file.write(block)


@contextmanager
def explained(needed: int, what: str, directory: Path | None = None) -> Iterator[None]:
    """Turn the error of a full disk into one that says what was to be written and what to do."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise _no_room(error.errno, directory, needed, what) from error


def _no_room(number: int | None, directory: Path | None, needed: int, what: str) -> OSError:
    free = "" if directory is None else f", and {size(shutil.disk_usage(directory).free)} are free"
    return OSError(
        number,
        f"no room on disk: {what} needs {size(needed)}{free}. Make room and call again to continue, or use another "
        "disk or fewer draws",
    )
