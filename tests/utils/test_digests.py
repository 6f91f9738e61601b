"""Digests against hashlib, and which changes of content they notice."""

import hashlib

import numpy as np
import pytest

from bnmf.utils.digests import of_arrays, of_bytes, of_json


def test_arrays_are_hashed_with_their_shapes():
    """Checkpoints on disk hold these digests, so they must not change."""
    a, b = np.arange(6.0).reshape(2, 3), np.arange(3, dtype=np.uint32)
    content = b"(2, 3)" + a.tobytes() + b"(3,)" + b.tobytes()
    assert of_arrays(a, b) == hashlib.sha256(content).hexdigest()
    for shape in ((), (0,), (0, 3), (3, 0)):
        assert of_arrays(np.zeros(shape)) == of_bytes(repr(shape).encode() + np.zeros(shape).tobytes())
    for same in (np.asfortranarray(a), np.repeat(a, 2, axis=1)[:, ::2], a[::-1][::-1]):
        assert of_arrays(same) == of_arrays(a)


def test_json():
    assert of_json({"b": [1, 2.5], "a": None}) == hashlib.sha256(b'{"a": null, "b": [1, 2.5]}').hexdigest()
    assert of_json({"b": {"y": 1, "x": 2}, "a": 3}) == of_json({"a": 3, "b": {"x": 2, "y": 1}})
    with pytest.raises(TypeError):
        of_json({"a": np.int64(1)})
