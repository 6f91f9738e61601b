"""SHA-256 digests of arrays and of plain values."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from bnmf.utils.typing import Array


def of_bytes(content: bytes) -> str:
    """Return the digest of bytes."""
    return hashlib.sha256(content).hexdigest()


def of_arrays(*arrays: Array) -> str:
    """Return the digest of the shapes and contents of arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(repr(array.shape).encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def of_json(value: Any) -> str:
    """Return the digest of a value that JSON can hold; the order of keys does not matter."""
    return of_bytes(json.dumps(value, sort_keys=True).encode())
