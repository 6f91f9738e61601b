"""Durations and sizes as text, at and around the limits between units, and names."""

import pandas as pd
import pytest

from bnmf.utils.text import duration, labels, printable, short_names, shortened, size


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (3599, "59 min 59 s"),
        (3599.6, "1 h 0 min"),
        (7199, "1 h 59 min"),
        (90 * 3600 + 59 * 60, "90 h 59 min"),
    ],
)
def test_duration(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 kB"),
        (1023 * 1024, "1023.0 kB"),
        (2.25 * 1024**2, "2.2 MB"),
        (1024**3, "1.0 GB"),
        (5000 * 1024**3, "5000.0 GB"),
        (-2048, "-2.0 kB"),
    ],
)
def test_size(n_bytes, text):
    assert size(n_bytes) == text


def test_names():
    assert labels(pd.Index(["a", "b"]), [1], "row") == ["b"]
    assert labels(None, [1], "row") == ["row 1"]
    assert [shortened(text, 12) for text in ("short", "a very long name (2)")] == ["short", "a very…e (2)"]
    assert short_names(["patient number 1 of 2", "patient number 2 of 2"], 12) == ["…1 of 2", "…2 of 2"]
    assert printable("red \x1b[31m, end\n") == "red \\x1b[31m, end\n"
