"""Draws of the kernels from the streams of rows, one after the other or side by side."""

import numpy as np

from bnmf.kernels.compiled import Memory, testing

WIDTH = 8


def padded_length(length):
    """Return a length rounded up to whole vectors."""
    return -(-length // WIDTH) * WIDTH


def spoiled(memory):
    """Return memory that was used before: it is full of NaN."""
    assert testing.spoil(memory, 20_000)
    return memory


def used_memory():
    return spoiled(Memory())


def streams_of(key, n):
    """Return the streams of n rows, (n, 4)."""
    streams = np.empty((n, 4), np.uint64)
    testing.fill_streams(*key, streams)
    return streams


def scalar_draws(kind, streams, b, p, kink=0.0, rate=0.0):
    """Return a draw for each stream, which advances."""
    given, out = [np.full(len(streams), x, float) for x in (b, p, kink, rate)], np.empty(len(streams))
    testing.fill_scalar(kind, *given, streams, out)
    return out


def lane_draws(kind, streams, b, p, kink=0.0, rate=0.0, n_active=WIDTH):
    """Return a draw for each stream of the first lanes of every vector, drawn eight at a time."""
    given, out = [np.full(len(streams), x, float) for x in (b, p, kink, rate)], np.empty(len(streams))
    testing.fill_lanes(kind, *given, n_active, streams, out)
    return out
