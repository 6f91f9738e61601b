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
def room_for(what: str, needed: int, directory: Path) -> Iterator[None]:
    """Raise an error that says what to do if a disk has not the room for what the block writes."""
    try:
        if shutil.disk_usage(directory).free < needed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        free = size(shutil.disk_usage(directory).free)
        raise OSError(
            error.errno,
            f"no room on disk: {what} needs {size(needed)}, and {free} are free. Make room and call again to continue, "
            "or use another disk or fewer draws",
        ) from error
