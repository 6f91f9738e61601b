"""Durations, sizes and names as people write them, and prose as HTML."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def duration(seconds: float) -> str:
    """Return a duration with the two units that matter, or the digits."""
    whole = round(seconds)
    if whole < 60:
        return f"{round(seconds, 1 if seconds < 10 else None):g} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as 1 entry or 2 entries."""
    return f"{number:,} {noun if number == 1 else noun.removesuffix('y') + 'ies' if noun[-1] == 'y' else noun + 's'}"


def listed(texts: Sequence[str]) -> str:
    """Return texts as a sentence lists them, such as a, b and c."""
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last


def size(n_bytes: float) -> str:
    """Return a number of bytes with the unit that suits it."""
    for unit in ("B", "kB", "MB"):
        if abs(n_bytes) < 1024:
            return f"{n_bytes:.1f} {unit}" if unit != "B" else f"{n_bytes:.0f} B"
        n_bytes /= 1024
    return f"{n_bytes:.1f} GB"


def labels(names: pd.Index | None, positions: Any, kind: str) -> list[str]:
    """Return the names at some positions as text, or "row" and a number where there are no names, or only numbers."""
    if names is None:
        return [f"{kind} {position}" for position in positions]
    chosen = [names[int(position)] for position in positions]
    if type(names).__name__ == "RangeIndex":  # without loading pandas, which the command line does without for long
        return [f"{kind} {number}" for number in chosen]
    texts = (", ".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in chosen)
    return [" ".join(text.split()) for text in texts]


def shortened(text: str, width: int) -> str:
    """Return a text of at most `width` characters, cut in the middle: the ends of names tell them apart."""
    if len(text) <= width:
        return text
    end = (width - 1) // 2
    return f"{text[: width - 1 - end]}…{text[len(text) - end :]}"


def short_names(names: Sequence[str], width: int) -> list[str]:
    """Return names of at most `width` characters; long ones lose words that they share, and so stay apart."""
    short = _told_apart({name for name in names if len(name) > width}, width)
    return [short.get(name, name) for name in names]


def _told_apart(names: set[str], width: int) -> dict[str, str]:
    """Return short forms of names without the words that all begin with and, if these are too long, end with."""
    start = _shared(names)
    rest = {name: f"…{name[start:]}" if start else name for name in names}
    if max(map(len, rest.values()), default=0) > width and (end := _shared({name[start:][::-1] for name in names})):
        rest = {name: f"{text[:-end]}…" for name, text in rest.items()}
    short = {name: shortened(text, width) for name, text in rest.items()}
    for text in set(short.values()):
        alike = {name for name in names if short[name] == text}
        if 1 < len(alike) < len(names):
            short |= _told_apart(alike, width)
    return short


def _shared(names: set[str]) -> int:
    """Return the length of the words that several names begin with."""
    first, last = min(names, default=""), max(names, default="")
    n_shared = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    words = re.match(r".{3,}[\s_/:,.-]", first[:n_shared])
    return len(words[0]) if words else 0


def prose(text: str) -> str:
    """Return a text as HTML, with code between backquotes."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def printable(text: str) -> str:
    """Return a text whose control and formatting characters, which a terminal would obey, are shown as escapes."""
    if text.isprintable():
        return text
    return "".join(
        sign
        if sign in "\n\t" or unicodedata.category(sign) not in ("Cc", "Cf")
        else sign.encode("unicode_escape").decode()
        for sign in text
    )
