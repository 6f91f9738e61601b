"""Files that are replaced in one step, and room for them on disk."""

import errno
import os
import shutil
import threading
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

import pytest

from bnmf.utils import files
from bnmf.utils.files import replacing, write_bytes

Usage = namedtuple("Usage", "free")


def test_the_old_file_is_there_until_the_block_ends(tmp_path):
    path = tmp_path / "file.bin"
    path.write_bytes(b"old and longer")
    with replacing(str(path)) as temporary:
        temporary.write_bytes(b"new")
        assert temporary.parent == tmp_path  # a rename cannot cross file systems
        assert path.read_bytes() == b"old and longer"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file.bin"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, FileNotFoundError])
def test_an_error_keeps_the_old_file(tmp_path, error):
    path = tmp_path / "file.bin"
    path.write_bytes(b"old")

    def write_half():
        with replacing(path) as temporary:
            if error is not FileNotFoundError:  # which the rename raises if nothing was written
                temporary.write_bytes(b"half of the n")
                raise error

    with pytest.raises(error):
        write_half()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file.bin"]


def test_the_content_is_on_disk_before_the_rename(tmp_path, monkeypatch):
    events = []

    def fsync(descriptor):
        events.append(("fsync", os.fstat(descriptor).st_size))

    def replace(source, target):
        events.append(("replace", os.stat(source).st_size))

    monkeypatch.setattr(files.os, "fsync", fsync)
    monkeypatch.setattr(files.os, "replace", replace)
    write_bytes(tmp_path / "file.bin", b"12345")
    assert events[:2] == [("fsync", 5), ("replace", 5)]


def test_two_threads_at_once(tmp_path):
    """Both are inside their block at the same time, and write different temporary files."""
    path = tmp_path / "file.bin"
    barrier = threading.Barrier(2, timeout=10)

    def write(letter):
        for _ in range(20):
            with replacing(path) as temporary:
                temporary.write_bytes(letter * 1000)
                barrier.wait()
            assert path.read_bytes() in (b"a" * 1000, b"b" * 1000)
            barrier.wait()
        return temporary

    with ThreadPoolExecutor(2) as pool:
        assert len(set(pool.map(write, (b"a", b"b")))) == 2
    assert os.listdir(tmp_path) == ["file.bin"]


@pytest.mark.skipif(os.name != "posix", reason="needs the number of blocks of a file")
@pytest.mark.parametrize("has_help", [True, False])
def test_reserved_room_is_taken(tmp_path, monkeypatch, has_help):
    if not has_help:
        monkeypatch.delattr(os, "posix_fallocate", raising=False)
        monkeypatch.setattr(files, "BLOCK_BYTES", 100_000)
    path = tmp_path / "holes"
    with open(path, "wb") as file:
        file.write(b"begin")
        file.truncate(2**20)
    assert 512 * path.stat().st_blocks < 2**19
    files.reserve(path)
    assert 512 * path.stat().st_blocks >= 2**20
    assert path.read_bytes() == b"begin".ljust(2**20, b"\0")


def test_room_is_looked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(2048))
    with files.room_for("it", 2048, tmp_path):
        pass
    words = "the draws needs 3.0 kB, and 2.0 kB are free. Make room"
    with pytest.raises(OSError, match=words) as caught, files.room_for("the draws", 3072, tmp_path):
        raise AssertionError("this is not reached")
    assert caught.value.errno == errno.ENOSPC


@pytest.mark.parametrize("number", [*files.NO_ROOM, errno.EACCES])
def test_errors_of_a_full_disk_are_explained(tmp_path, number):
    words = "no room on disk: W.npy needs 1.0 kB, and .* are free. Make room" if number in files.NO_ROOM else "^.*$"
    error = OSError(number, os.strerror(number))
    with pytest.raises(OSError, match=words) as caught, files.room_for("W.npy", 1024, tmp_path):
        raise error
    assert caught.value.errno == number
    assert (caught.value is error) == (number == errno.EACCES)  # others are left alone
