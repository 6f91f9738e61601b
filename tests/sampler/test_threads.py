"""Threads over tiles of rows, and BLAS limited to one thread meanwhile."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from bnmf.kernels.compiled import ROWS_PER_TILE
from bnmf.sampler.threads import TILES_PER_CALL, Workers, single_threaded_blas


@pytest.mark.parametrize(
    "n_rows", [0, 1, ROWS_PER_TILE - 1, ROWS_PER_TILE, ROWS_PER_TILE + 1, 5 * ROWS_PER_TILE + 3, 200 * ROWS_PER_TILE]
)
def test_ranges_of_tiles_cover_every_row_once(n_rows):
    for n_threads in [1, 2, 3]:
        done = []
        with Workers(n_threads) as workers:
            workers.over_tiles(lambda first, last: done.append((first, last)), n_rows)
        tiles = [tile for first, last in sorted(done) for tile in range(first, last)]
        assert tiles == list(range(-(-n_rows // ROWS_PER_TILE)))
        limit = TILES_PER_CALL if n_threads == 1 else 1
        assert all(0 < last - first <= max(limit, len(tiles) == 1) for first, last in done)


def test_tiles_are_shared_between_threads():
    meeting = threading.Barrier(2, timeout=30)
    with Workers(2) as workers:
        workers.over_tiles(lambda first, last: meeting.wait(), 2 * ROWS_PER_TILE)  # hangs unless two run at once


@pytest.mark.parametrize("in_helper", [False, True])
def test_error_of_either_thread_is_raised(in_helper):
    caller, begun, meeting = threading.get_ident(), [], threading.Barrier(2, timeout=30)

    def fail(first, last):
        begun.append(first)
        meeting.wait()
        if (threading.get_ident() != caller) == in_helper:
            raise ZeroDivisionError
        threading.Event().wait(0.05)  # the other one goes on until it is seen

    with Workers(2) as workers:
        with pytest.raises(ZeroDivisionError):
            workers.over_tiles(fail, 2 * ROWS_PER_TILE)
        assert sorted(begun) == [0, 1]
        again = []
        workers.over_tiles(lambda first, last: again.append(first), 2 * ROWS_PER_TILE)  # still usable
        assert sorted(again) == [0, 1]


def test_caller_does_not_wait_for_a_helper_that_has_nothing():
    busy, blocked, done = threading.Event(), threading.Event(), []
    with Workers(2) as workers:
        workers._pool.submit(lambda: (busy.set(), blocked.wait(30)))  # the only helper is held elsewhere
        assert busy.wait(30)
        try:
            workers.over_tiles(lambda first, last: done.append(last), 2 * ROWS_PER_TILE)
            assert done == [1, 2]
        finally:
            blocked.set()


def blas_threads():
    np.ones((2, 2)) @ np.ones((2, 2))
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_blas_is_held_until_the_last_holder_leaves_or_fails():
    before = blas_threads()
    assert before
    with pytest.raises(ZeroDivisionError), single_threaded_blas():  # noqa: PT012
        assert set(blas_threads()) == {1}
        with single_threaded_blas():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
        raise ZeroDivisionError
    assert blas_threads() == before
