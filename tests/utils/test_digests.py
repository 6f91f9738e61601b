"""Digests against hashlib, and which changes of content they notice."""

import hashlib

import numpy as np
import pytest

from bnmf.utils.digests import of_arrays, of_bytes, of_json


def test_arrays_are_hashed_with_their_shapes():
    """Checkpoints on disk hold these digests, so they must not change."""
    assert of_bytes(b"abc") == hashlib.sha256(b"abc").hexdigest()
    a, b = np.arange(6.0).reshape(2, 3), np.arange(3, dtype=np.uint32)
    content = b"(2, 3)" + a.tobytes() + b"(3,)" + b.tobytes()
    assert of_arrays(a, b) == hashlib.sha256(content).hexdigest()
    for shape in ((), (0,), (0, 3), (3, 0)):
        assert of_arrays(np.zeros(shape)) == of_bytes(repr(shape).encode() + np.zeros(shape).tobytes())


def test_memory_order_does_not_matter():
    a = np.random.default_rng(0).random((4, 5))
    wide = np.repeat(a, 2, axis=1)
    for same in (np.asfortranarray(a), wide[:, ::2], a[::-1][::-1]):
        assert of_arrays(same) == of_arrays(a)


def test_arrays_with_other_content_differ():
    a = np.arange(6.0).reshape(2, 3)
    changed = a.copy()
    changed[1, 2] = np.nextafter(5.0, 6.0)
    others = [(a.T,), (a.reshape(3, 2),), (a.ravel(),), (changed,), (a, a), (a[:1], a[1:]), (a[1:], a[:1]), ()]
    found = [of_arrays(a)] + [of_arrays(*arrays) for arrays in others]
    assert len(set(found)) == len(found)


def test_json():
    assert of_json({"b": [1, 2.5], "a": None}) == hashlib.sha256(b'{"a": null, "b": [1, 2.5]}').hexdigest()
    assert of_json({"b": {"y": 1, "x": 2}, "a": 3}) == of_json({"a": 3, "b": {"x": 2, "y": 1}})
    values = [[1, 2], [2, 1], {"a": 1}, {"a": "1"}, {"a": True}, None, "", "a", 0, 0.0]
    assert len({of_json(value) for value in values}) == len(values)
    with pytest.raises(TypeError):
        of_json({"a": np.int64(1)})
