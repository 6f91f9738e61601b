"""Files that are either the old version or the new one, never half of each, and room for them on disk."""

from __future__ import annotations

import errno
import io
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bnmf.utils.text import size
from bnmf.utils.typing import Array

NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT) if hasattr(errno, "EDQUOT") else (errno.ENOSPC, errno.EFBIG)
"""Errors of a system that has no room for a file, or does not give it."""
# Bytes that are written at a time where the system cannot reserve room.
BLOCK_BYTES = 2**24


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the name of a temporary file that takes the place of `path` when the block ends without an error."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_directory(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _sync_directory(directory: Path) -> None:
    """Bring a rename to the disk, where the system can."""
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except OSError:  # Windows does not open directories
        return
    try:
        os.fsync(descriptor)
    except OSError:  # nor do some network file systems bring them to the disk
        pass
    finally:
        os.close(descriptor)


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Replace the content of a file in one step."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def content_of(save: Callable[..., Any], /, *values: Any, **options: Any) -> bytes:
    """Return the bytes that a function writes to a file."""
    buffer = io.BytesIO()
    save(buffer, *values, **options)
    return buffer.getvalue()


def npz_bytes(arrays: Mapping[str, Array], *, compressed: bool = False) -> bytes:
    """Return the bytes of an .npz file."""
    return content_of(np.savez_compressed if compressed else np.savez, **arrays)


def require_room(directory: Path, needed: int, what: str) -> None:
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
def explain_full_disk(needed: int, what: str, directory: Path | None = None) -> Iterator[None]:
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
