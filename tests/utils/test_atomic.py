"""Files that are replaced in one step: after an error the old one is still there, and nothing else."""

import io
import os
import threading

import numpy as np
import pytest

from bnmf.utils import atomic
from bnmf.utils.atomic import npz_bytes, replacing, write_bytes


def test_a_file_appears_when_the_block_ends(tmp_path):
    path = tmp_path / "file.bin"
    with replacing(path) as temporary:
        temporary.write_bytes(b"new")
        assert temporary != path
        assert temporary.parent == tmp_path  # a rename cannot cross file systems
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file.bin"]


def test_the_old_file_is_there_until_the_block_ends(tmp_path):
    path = tmp_path / "file.bin"
    path.write_bytes(b"old and longer")
    with replacing(str(path)) as temporary:
        temporary.write_bytes(b"new")
        assert path.read_bytes() == b"old and longer"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file.bin"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_keeps_the_old_file(tmp_path, error):
    path = tmp_path / "file.bin"
    path.write_bytes(b"old")

    def write_half():
        with replacing(path) as temporary:
            temporary.write_bytes(b"half of the n")
            raise error

    with pytest.raises(error):
        write_half()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file.bin"]


def test_an_error_before_anything_is_written(tmp_path):
    with pytest.raises(RuntimeError), replacing(tmp_path / "file.bin"):
        raise RuntimeError
    assert os.listdir(tmp_path) == []


def test_a_block_that_writes_nothing_keeps_the_old_file(tmp_path):
    path = tmp_path / "file.bin"
    path.write_bytes(b"old")
    with pytest.raises(FileNotFoundError), replacing(path):
        pass
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file.bin"]


def test_the_content_is_on_disk_before_the_rename(tmp_path, monkeypatch):
    events = []

    def fsync(descriptor):
        events.append(("fsync", os.fstat(descriptor).st_size))

    def replace(source, target):
        events.append(("replace", os.stat(source).st_size))

    monkeypatch.setattr(atomic.os, "fsync", fsync)
    monkeypatch.setattr(atomic.os, "replace", replace)
    write_bytes(tmp_path / "file.bin", b"12345")
    assert events[:2] == [("fsync", 5), ("replace", 5)]


def test_an_error_of_the_disk_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file.bin"
    path.write_bytes(b"old")

    def fail(descriptor):
        raise OSError("no space left on device")

    monkeypatch.setattr(atomic.os, "fsync", fail)
    with pytest.raises(OSError, match="no space left"):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file.bin"]


def test_two_threads_at_once(tmp_path):
    """Both are inside their block at the same time, and write different temporary files."""
    path = tmp_path / "file.bin"
    barrier = threading.Barrier(2, timeout=10)
    temporaries, errors = [], []

    def write(letter):
        try:
            for _ in range(20):
                with replacing(path) as temporary:
                    temporary.write_bytes(letter * 1000)
                    temporaries.append(temporary)
                    barrier.wait()
                assert path.read_bytes() in (b"a" * 1000, b"b" * 1000)
                barrier.wait()
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(set(temporaries)) == 2
    assert os.listdir(tmp_path) == ["file.bin"]


@pytest.mark.parametrize("compressed", [False, True])
def test_npz_bytes(compressed):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.array([1, 2], np.uint64), "zeros": np.zeros(10_000)}
    content = npz_bytes(arrays, compressed=compressed)
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        assert file.files == list(arrays)
        for name, array in arrays.items():
            np.testing.assert_array_equal(file[name], array)
            assert file[name].dtype == array.dtype
    assert (len(content) < 10_000) == compressed
