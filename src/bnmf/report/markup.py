"""Pieces of HTML: numbers, tables and pages, with everything that comes from the data escaped."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, NamedTuple

import numpy as np


class Html(str):
    """Markup, in which names are escaped already."""

    __slots__ = ()


class Column(NamedTuple):
    """A column of a table: its heading, whether it is sorted by number, and an explanation for the mouse."""

    title: str
    numeric: bool = False
    hint: str = ""


LOW = Column("from", True, "lower end of the 90% interval")
HIGH = Column("to", True, "upper end of the 90% interval")


def number(value: float) -> str:
    """Return a number with three significant digits."""
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
    """Return a share in percent, with a digit after the point where it is small."""
    if not math.isfinite(share):
        return "–"
    if 0 < share < 0.001:
        return "<0.1%"
    if 0.999 < share < 1:
        return ">99.9%"
    digits = 0 if share == 0 or 0.1 <= abs(share) < 0.995 or abs(share) >= 1 else 1
    return f"{share:.{digits}%}".replace("-", "−")


def of_all(shown: int, total: int, kind: str) -> str:
    """Return how many rows or columns are shown."""
    return f"all {total:,} {kind}s" if shown == total else f"{shown:,} of {total:,} {kind}s (evenly spaced)"


def html_table(caption: str, columns: Sequence[Column], rows: Sequence[Sequence[Any]], *, search: bool = True) -> str:
    """Return a table that can be read without a script, and sorted and searched with it."""
    # A cell is a text or `Html`, in a numeric column a number or a pair of a number and its text.
    head = "".join(
        f'<th scope="col"{" class=num" if column.numeric else ""}'
        + (f' title="{escape(column.hint)}"' if column.hint else "")
        + f">{escape(column.title)}</th>"
        for column in columns
    )
    body = "\n".join(
        f"<tr>{''.join(_cell(*pair, place) for place, pair in enumerate(zip(row, columns, strict=True)))}</tr>"
        for row in rows
    )
    return (
        f'<div class="table"{" data-search" if search else ""}><p class="caption">{escape(caption)}</p>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div></div>"
    )


def _cell(cell: Any, column: Column, place: int) -> str:
    if column.numeric:
        value, text = cell if isinstance(cell, tuple) else (cell, number(float(cell)))
        sortable = f"{float(value):.6g}" if math.isfinite(value) else ""
        return f'<td class=num data-v="{sortable}">{text if isinstance(text, Html) else escape(text)}</td>'
    shown = cell if isinstance(cell, Html) else escape(cell)
    return f"<td>{shown}</td>" if place else f"<th scope=row>{shown}</th>"


def json_script(identifier: str, data: Any) -> str:
    """Return a script element with data, in which no text can end the script."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="{identifier}">{text}</script>'


def rounded(values: Any) -> list[Any]:
    """Return an array as lists of numbers with four significant digits, None for what is not finite."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim > 1:
        return [rounded(part) for part in array]
    return [float(f"{value:.4g}") if math.isfinite(value) else None for value in array.tolist()]


def page(title: str, overline: str, lead: str, top: str, sections: Mapping[str, str], footer: str) -> str:
    """Return a page that is one file: `lead` is a text, `top` and the sections are markup."""
    anchors = {heading: f"section-{i}" for i, heading in enumerate(sections, 1)}
    here = files("bnmf.report")
    return Template(here.joinpath("report.html").read_text(encoding="utf-8")).substitute(
        title=escape(title),
        overline=escape(overline),
        lead=escape(lead),
        top=top,
        links="".join(f'<a href="#{anchors[heading]}">{escape(heading)}</a>' for heading in sections),
        sections="\n".join(
            f'<section id="{anchors[heading]}" aria-labelledby="{anchors[heading]}-h"><h2 id="{anchors[heading]}-h">'
            f"{escape(heading)}</h2>{body}</section>"
            for heading, body in sections.items()
        ),
        footer=escape(footer),
        style=here.joinpath("report.css").read_text(encoding="utf-8"),
        script=here.joinpath("report.js").read_text(encoding="utf-8"),
    )
