"""Scalar draws of the kernels, one row after the other."""

import numpy as np

from bnmf.kernels.compiled import testing

WIDTH = 8


def padded_length(length):
    """Return a length rounded up to whole vectors."""
    return -(-length // WIDTH) * WIDTH


def draws(draw, key, *arguments):
    """Return draw(..., stream) for each row of the arguments, from the stream of that row."""
    rows = np.broadcast_arrays(*arguments)
    return np.array([draw(*values, testing.stream_of(*key, row))[0] for row, values in enumerate(zip(*rows, strict=True))])
