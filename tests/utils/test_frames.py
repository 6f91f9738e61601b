"""Objects of pandas are recognised by their classes."""

import pandas as pd
import pytest

from bnmf.utils.frames import is_pandas


class Derived(pd.DataFrame):
    pass


class DataFrame:
    pass


@pytest.mark.parametrize(
    ("X", "expected"),
    [(pd.DataFrame([[1.0]]), True), (Derived([[1.0]]), True), (DataFrame(), False), (pd.Series([1.0]), False)],
)
def test_data_frames(X, expected):
    assert is_pandas(X, "DataFrame") == expected
