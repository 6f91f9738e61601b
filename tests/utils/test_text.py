"""Durations and sizes as text, at and around the limits between units, and names."""

import pandas as pd

from bnmf.utils.text import duration, labels, listed, printable, short_names, shortened, size


def test_durations_and_sizes():
    seconds = [0.01, 0.43, 2, 9.94, 9.96, 59.4, 59.6, 3599, 3599.6, 7199, 90 * 3600 + 59 * 60]
    expected = [
        "0 s",
        "0.4 s",
        "2 s",
        "9.9 s",
        "10 s",
        "59 s",
        "1 min 0 s",
        "59 min 59 s",
        "1 h 0 min",
        "1 h 59 min",
        "90 h 59 min",
    ]
    assert [duration(each) for each in seconds] == expected
    n_bytes = [0, 1023, 1536, 1023 * 1024, 2.25 * 1024**2, 1024**3, 5000 * 1024**3, -2048]
    expected = ["0 B", "1023 B", "1.5 kB", "1023.0 kB", "2.2 MB", "1.0 GB", "5000.0 GB", "-2.0 kB"]
    assert [size(each) for each in n_bytes] == expected


def test_names():
    assert [listed(names) for names in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
    assert labels(pd.Index(["a", "b"]), [1], "row") == ["b"]
    assert labels(None, [1], "row") == ["row 1"]
    assert [shortened(text, 12) for text in ("short", "a very long name (2)")] == ["short", "a very…e (2)"]
    assert short_names(["patient number 1 of 2", "patient number 2 of 2"], 12) == ["…1 of 2", "…2 of 2"]
    of_water = [f"measurement of {metal} in milligrams per litre" for metal in ("copper", "lead", "zinc")]
    assert short_names([*of_water, "pH"], 12) == ["…copper…", "…lead…", "…zinc…", "pH"]
    legs = ["length of the left front leg, mm", "length of the left hind leg, mm"]  # of which the middle would be cut
    assert short_names([*legs, "weight of the whole animal, g"], 12) == ["…front…", "…hind…", "weight…al, g"]
    assert printable("red \x1b[31m, end\n") == "red \\x1b[31m, end\n"
