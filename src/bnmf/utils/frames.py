"""Recognise what pandas made without loading it: workers of a cluster do without its 65 MB."""

from __future__ import annotations

from typing import Any


def is_pandas(X: Any, *kinds: str) -> bool:
    """Return whether X is one of some kinds of pandas objects, or of a class that is derived from them.

    Examples
    --------
    >>> import pandas as pd
    >>> is_pandas(pd.Series([1.0]), "DataFrame"), is_pandas(pd.Series([1.0]), "DataFrame", "Series")
    (False, True)
    """
    return any(base.__module__.split(".")[0] == "pandas" and base.__name__ in kinds for base in type(X).__mro__)
