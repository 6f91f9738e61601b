"""Threads over tiles of rows, while BLAS is limited to one thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

from bnmf.kernels.compiled import ROWS_PER_TILE, Memory
from bnmf.model.model import Model, Rates
from bnmf.priors.base import Coefficients

# Tiles per kernel call of a single thread: Ctrl-C is handled between calls.
TILES_PER_CALL = 64
# Most tiles of a side of data whose half-sweeps are one call: on larger data Python between them costs nothing.
MAX_SMALL_TILES = 8


class Workers:
    """Threads that share the rows of a half-sweep, the caller's included."""

    def __init__(self, n_threads: int = 1) -> None:
        self._n_helpers = n_threads - 1
        self._pool = ThreadPoolExecutor(self._n_helpers) if self._n_helpers else None
        self._local = threading.local()
        self._filled: tuple[Any, Any, Any] = None, None, None
        self._coefficients: tuple[Any, Any] = None, None

    def filled(self, model: Model) -> tuple[Any, Model]:
        """Return a copy of the data that holds the latent values of this chain, and its model, the same for a model."""
        if self._filled[0] is not model:
            filled = model.data.filled(model.noise_model.has_outliers)
            self._filled = model, filled, model.with_data(*filled.scaled(model.rows, model.columns))
        return self._filled[1:]

    def coefficients(self, model: Model, rates: Rates) -> tuple[Coefficients, Coefficients]:
        """Return the coefficients of the priors: a sweep begins with the rates that ended the one before."""
        if self._coefficients[0] is not rates or not rates:
            self._coefficients = rates, model.coefficients(rates)
        return self._coefficients[1]

    @property
    def memory(self) -> Memory:
        """Memory of the calling thread for the kernels; its content does not survive the next call of a kernel."""
        memory: Memory | None = getattr(self._local, "memory", None)
        if memory is None:
            memory = self._local.memory = Memory()
        return memory

    def may_draw_at_once(self, n_rows: int) -> bool:
        """Return whether one call may draw so many rows: there is one thread, and Ctrl-C is handled soon enough."""
        return self._pool is None and n_rows <= ROWS_PER_TILE * MAX_SMALL_TILES

    def over_tiles(self, work: Callable[[int, int], Any], n_rows: int) -> None:
        """Call work(first, last) for ranges of tiles that cover all rows: of one tile each, if there are helpers."""
        n_tiles = -(-n_rows // ROWS_PER_TILE)
        n_helpers = min(self._n_helpers, n_tiles - 1)
        if self._pool is None or n_helpers < 1:
            for first in range(0, n_tiles, TILES_PER_CALL):
                work(first, min(first + TILES_PER_CALL, n_tiles))
            return
        todo = deque(range(n_tiles))

        def take_tiles() -> None:
            while True:
                try:
                    tile = todo.popleft()
                except IndexError:
                    return
                work(tile, tile + 1)

        helpers = [self._pool.submit(take_tiles) for _ in range(n_helpers)]
        try:
            take_tiles()
        finally:
            todo.clear()  # after an error no further tile is started
            # A helper may take longer to wake up than the work takes: the caller does not wait for those.
            started = [helper for helper in helpers if not helper.cancel()]
            wait(started)
        for helper in started:
            helper.result()  # re-raises an error of the helper

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *args: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()


_lock = threading.Lock()
_users = 0
_limited: Any = None
_controller = cache(ThreadpoolController)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread: its own threads would compete with ours, and round differently."""
    # The setting is global to the process, so uses are counted: the first sets it and the last restores it.
    global _users, _limited
    with _lock:
        _users += 1
        if _users == 1:
            _limited = _controller().limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limited.restore_original_limits()
