"""Scalar draws of the kernels, one row after the other."""

import numpy as np

from bnmf.kernels.compiled import Memory, testing

WIDTH = 8


def padded_length(length):
    """Return a length rounded up to whole vectors."""
    return -(-length // WIDTH) * WIDTH


def used_memory():
    """Return memory that was used before: it is full of NaN."""
    memory, given = Memory(), np.full((200, 40), np.nan)
    testing.set_factor(given, None, None, memory, *(np.empty((n, 40)) for n in (201, 201, 40)))
    return memory


def draws(draw, key, *arguments):
    """Return draw(..., stream) for each row of the arguments, from the stream of that row."""
    rows = np.broadcast_arrays(*arguments)
    return np.array([draw(*x, testing.stream_of(*key, row))[0] for row, x in enumerate(zip(*rows, strict=True))])
