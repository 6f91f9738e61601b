"""Tables that can be written as Markdown and as HTML.

Examples
--------
>>> print(Grid(["K", "MSE"], [["10", Cell("3.1", verdict="within", note="printed 3.0")]]).markdown())
| K | MSE |
|---|---|
| 10 | 3.1 (printed 3.0) ✓ |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import NamedTuple

VERDICT_SIGNS = {"within": "✓", "close": "≈", "off": "✗", "": ""}
"""Sign of each verdict: colour alone is not accessible to everyone."""


class Cell(NamedTuple):
    """A number and a note, such as the printed number.

    Attributes
    ----------
    text : str
        The number.
    note : str
        What it is compared with.
    verdict : str
        A key of `VERDICT_SIGNS`.
    """

    text: str
    note: str = ""
    verdict: str = ""

    def markdown(self) -> str:
        """Return the cell as Markdown text."""
        parts = [_plain(self.text), f"({_plain(self.note)})" if self.note else "", VERDICT_SIGNS[self.verdict]]
        return " ".join(part for part in parts if part)

    def html(self) -> str:
        """Return the cell as an HTML element."""
        sign = f' <span class="sign">{VERDICT_SIGNS[self.verdict]}</span>' if self.verdict else ""
        note = f'<span class="note">{escape(self.note)}{sign}</span>' if self.note else sign
        kind = f' class="{self.verdict}"' if self.verdict else ""
        return f"<td{kind}>{escape(self.text)}{note}</td>"


@dataclass(frozen=True)
class Grid:
    """A table.

    Parameters
    ----------
    header : sequence of str
        Names of the columns.
    rows : sequence of sequence of str or Cell
        The cells.
    caption : str, default=""
        Caption of the table.
    n_labels : int, default=1
        Number of columns at the left that label the row.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    caption: str = ""
    n_labels: int = field(default=1)

    def markdown(self) -> str:
        """Return the table as Markdown."""
        lines = [f"**{_plain(self.caption)}**", ""] if self.caption else []
        lines += [_line([_plain(name) for name in self.header]), "|" + "---|" * len(self.header)]
        lines += [_line([_cell(cell).markdown() for cell in row]) for row in self.rows]
        return "\n".join(lines)

    def html(self) -> str:
        """Return the table as HTML."""
        # Outside the scrolling part, so that the caption wraps on a narrow screen.
        caption = f'<p class="caption">{escape(self.caption)}</p>' if self.caption else ""
        label = f' aria-label="{escape(self.caption)}"' if self.caption else ""
        kinds = [' class="label"'] * self.n_labels + [""] * (len(self.header) - self.n_labels)
        head = "".join(
            f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(self.header, kinds, strict=True)
        )
        body = []
        for row in self.rows:
            labels = "".join(f'<th scope="row">{escape(_cell(cell).text)}</th>' for cell in row[: self.n_labels])
            body.append(f"<tr>{labels}{''.join(_cell(cell).html() for cell in row[self.n_labels :])}</tr>")
        table = f"<table{label}><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
        return f'<div class="table">{caption}<div class="scroll" tabindex="0">{table}</div></div>'


def _cell(cell: str | Cell) -> Cell:
    return cell if isinstance(cell, Cell) else Cell(cell)


def _plain(text: str) -> str:
    """Escape characters that would end a Markdown cell or start markup."""
    for character in "\\|*_`":
        text = text.replace(character, "\\" + character)
    return text.replace("<", "&lt;").replace(">", "&gt;").replace("\n", " ")


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def number(value: float, digits: int = 2) -> str:
    """Format a number for a table: fixed decimals below 10⁵, powers of ten above, – for NaN.

    Parameters
    ----------
    value : float
        The number.
    digits : int, default=2
        Number of decimals.

    Returns
    -------
    str
        The formatted number.

    Examples
    --------
    >>> number(787.604), number(3e108), number(float("nan"))
    ('787.60', '3.0e+108', '–')
    """
    if value != value:
        return "–"
    return f"{value:.{digits}f}" if abs(value) < 1e5 else f"{value:.1e}"
