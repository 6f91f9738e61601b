"""Names of rows and columns as text for people."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd


def labels(names: pd.Index | None, positions: Any, kind: str) -> list[str]:
    """Return the names at some positions as text, or numbers where there are no names.

    Examples
    --------
    >>> labels(pd.Index(["a", "b"]), [1], "row"), labels(None, [1], "row")
    (['b'], ['row 1'])
    """
    if names is None:
        return [f"{kind} {position}" for position in np.asarray(positions).tolist()]
    chosen = names[np.asarray(positions, dtype=np.intp)]
    texts = (", ".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in chosen)
    return [" ".join(text.split()) for text in texts]


def shortened(text: str, width: int) -> str:
    """Return a text of at most `width` characters, cut in the middle: the ends of names tell them apart.

    Examples
    --------
    >>> shortened("short", 12), shortened("a very long name (2)", 12)
    ('short', 'a very…e (2)')
    """
    if len(text) <= width:
        return text
    end = (width - 1) // 2
    return f"{text[: width - 1 - end]}…{text[len(text) - end :]}"
