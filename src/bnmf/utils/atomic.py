"""Files that are either the old version or the new one, never half of each."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from bnmf.utils.typing import Array


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the name of a temporary file that takes the place of `path` when the block ends without an error.

    The temporary file lies in the directory of `path`, so that the last step is a rename, and its content reaches
    the disk before that. After an error it is removed, and `path` is as it was before.
    """
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


def npz_bytes(arrays: Mapping[str, Array], *, compressed: bool = False) -> bytes:
    """Return the bytes of an .npz file."""
    buffer = io.BytesIO()
    save = np.savez_compressed if compressed else np.savez
    save(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()
