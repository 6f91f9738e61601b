"""Pieces of HTML: numbers, tables and data for the script, with everything that comes from the data escaped."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np

# Characters of a name that are shown; the whole name is in its title.
NAME_WIDTH = 60


class Column(NamedTuple):
    """A column of a table.

    Attributes
    ----------
    title : str
        Its heading.
    numeric : bool
        Whether it holds numbers, by which it is sorted.
    hint : str
        An explanation that is shown when the mouse rests on the heading.
    """

    title: str
    numeric: bool = False
    hint: str = ""


def number(value: float) -> str:
    """Return a number with three significant digits.

    Examples
    --------
    >>> number(1234.5), number(0.012345), number(3.0), number(float("nan")), number(1.5e9)
    ('1,234', '0.0123', '3', '–', '1.5e9')
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    if not -4 <= magnitude < 7:
        digits, exponent = f"{value:.2e}".split("e")
        return f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}".replace("-", "−")
    text = f"{value:,.{max(0, 2 - magnitude)}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", "−")


def percent(share: float) -> str:
    """Return a share in percent, with a digit after the point where it is small.

    Examples
    --------
    >>> percent(0.2041), percent(0.012), percent(0.0), percent(0.0001), percent(0.9999)
    ('20%', '1.2%', '0%', '<0.1%', '>99.9%')
    """
    if not math.isfinite(share):
        return "–"
    if 0 < share < 0.001:
        return "<0.1%"
    if 0.999 < share < 1:
        return ">99.9%"
    return f"{share:.0%}" if share == 0 or 0.1 <= share < 0.995 or share >= 1 else f"{share:.1%}"


def html_table(caption: str, columns: Sequence[Column], rows: Sequence[Sequence[Any]], *, search: bool = True) -> str:
    """Return a table that can be read without a script, and sorted and searched with it."""
    head = "".join(
        f'<th scope="col"{" class=num" if column.numeric else ""}{_title(column.hint)}>{escape(column.title)}</th>'
        for column in columns
    )
    body = "\n".join(
        "<tr>"
        + "".join(_cell(cell, column, i) for i, (cell, column) in enumerate(zip(row, columns, strict=True)))
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="table"{" data-search" if search else ""}><p class="caption">{escape(caption)}</p>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div></div>"
    )


def _cell(cell: Any, column: Column, position: int) -> str:
    if column.numeric:
        value, text = cell if isinstance(cell, tuple) else (cell, number(float(cell)))
        sortable = f"{float(value):.6g}" if math.isfinite(value) else ""
        return f'<td class=num data-v="{sortable}">{escape(text)}</td>'
    return f"<th scope=row>{name(cell)}</th>" if position == 0 else f"<td>{name(cell)}</td>"


def name(text: str, width: int = NAME_WIDTH) -> str:
    """Return a name as HTML; a long one is cut at its end, and whole in its title."""
    if len(text) <= width:
        return escape(text)
    return f'<span title="{escape(text)}">{escape(text[: width - 1])}…</span>'


def _title(hint: str) -> str:
    return f' title="{escape(hint)}"' if hint else ""


def json_script(identifier: str, data: Any) -> str:
    r"""Return a script element with data, in which no text can end the script.

    Examples
    --------
    >>> json_script("x", ["</script>"])
    '<script type="application/json" id="x">["\\u003c/script\\u003e"]</script>'
    """
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json" id="{identifier}">{text}</script>'


def rounded(values: Any) -> list[Any]:
    """Return an array as lists of numbers with four significant digits, None for what is not finite."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim > 1:
        return [rounded(part) for part in array]
    return [_short(value) if math.isfinite(value) else None for value in array.tolist()]


def _short(value: float) -> float | int:
    short = float(f"{value:.4g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
