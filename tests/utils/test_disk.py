"""Room on disk: reserved in advance, and an error that says how much is missing."""

import errno
import os
import shutil
from collections import namedtuple

import pytest

from bnmf.utils import disk

Usage = namedtuple("Usage", "free")


def test_room_that_is_there(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1000))
    disk.require(tmp_path, 1000, "it")


def test_room_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(2048))
    with pytest.raises(
        OSError, match=r"the draws needs 3.0 kB, and 2.0 kB are free. Make room and call again"
    ) as caught:
        disk.require(tmp_path, 3072, "the draws")
    assert caught.value.errno == errno.ENOSPC


def holes(tmp_path, n_bytes):
    path = tmp_path / "holes"
    with open(path, "wb") as file:
        file.write(b"begin")
        file.truncate(n_bytes)
    return path


@pytest.mark.skipif(os.name != "posix", reason="needs the number of blocks of a file")
def test_reserved_room_is_taken(tmp_path):
    path = holes(tmp_path, 2**20)
    assert 512 * path.stat().st_blocks < 2**19
    disk.reserve(path)
    assert 512 * path.stat().st_blocks >= 2**20
    assert path.read_bytes() == b"begin".ljust(2**20, b"\0")


def test_reserving_without_help_of_the_system(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    monkeypatch.setattr(disk, "BLOCK_BYTES", 1000)
    path = holes(tmp_path, 4500)
    disk.reserve(path)
    assert path.read_bytes() == b"begin".ljust(4500, b"\0")


@pytest.mark.parametrize("number", disk.NO_ROOM)
def test_errors_of_a_full_disk_are_explained(tmp_path, number):
    with (
        pytest.raises(OSError, match=r"no room on disk: W.npy needs 1.0 MB, and .* are free. Make room") as caught,
        disk.explained(2**20, "W.npy", tmp_path),
    ):
        raise OSError(number, os.strerror(number))
    assert caught.value.errno == number


def test_other_errors_are_left_alone():
    error = PermissionError(errno.EACCES, "not yours")
    with pytest.raises(PermissionError) as caught, disk.explained(1, "W.npy"):
        raise error
    assert caught.value is error
