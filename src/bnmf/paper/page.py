"""A page of results, written as one HTML file and as Markdown from the same sections.

Examples
--------
>>> print(Table(["K", "MSE"], [["10", Cell("3.1", "printed 3.0", "close")]]).markdown())
| K | MSE |
|---|---|
| 10 | 3.1 (printed 3.0) ✓ |
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from bnmf.report import markup

VERDICTS = {"close": ("✓", "good-cell"), "unclear": ("?", "usable-cell"), "off": ("✗", "poor-cell"), "": ("", "")}
"""Sign of each verdict, because colour alone is not accessible to everyone, and its class in the style sheet."""


@dataclass(frozen=True)
class Cell:
    """A number, a note such as the printed number, and a verdict, one of `VERDICTS`."""

    text: str
    note: str = ""
    verdict: str = ""

    def markdown(self) -> str:
        """Return the cell as Markdown text."""
        parts = [_plain(self.text), f"({_plain(self.note)})" if self.note else "", VERDICTS[self.verdict][0]]
        return " ".join(part for part in parts if part)

    def html(self) -> tuple[float, markup.Html]:
        """Return the number that sorts the cell, and its markup."""
        sign, style = VERDICTS[self.verdict]
        found = re.search(r"[-+]?\d[\d.]*(e[-+]?\d+)?", self.text)
        note = f'<span class="note {style}">{escape(self.note)} {sign}</span>'
        return float(found[0]) if found else float("nan"), markup.Html(escape(self.text) + note)


Row = list[str | Cell]
"""A row of a table."""


@dataclass(frozen=True)
class Table:
    """A table whose first `n_labels` columns label the rows."""

    header: Sequence[str]
    rows: Sequence[Row]
    caption: str = ""
    n_labels: int = 1

    def markdown(self) -> str:
        """Return the table as Markdown."""
        lines = ["| " + " | ".join(_cell(cell).markdown() for cell in row) + " |" for row in [self.header, *self.rows]]
        lines.insert(1, "|" + "---|" * len(self.header))
        return "\n".join([f"**{_plain(self.caption)}**", "", *lines] if self.caption else lines)

    def html(self) -> str:
        """Return the table as HTML."""
        n = self.n_labels
        columns = [markup.Column(name, i >= n) for i, name in enumerate(self.header)]
        rows = [[*(_cell(x).text for x in row[:n]), *(_cell(x).html() for x in row[n:])] for row in self.rows]
        return markup.html_table(self.caption, columns, rows, search=False)


@dataclass(frozen=True)
class Picture:
    """A figure that is saved as PNG and PDF: its path without suffix, relative to `directory`, and its caption."""

    name: str
    caption: str
    directory: Path

    def markdown(self) -> str:
        """Return the figure as Markdown."""
        caption = _plain(self.caption)
        return f"![{caption}]({self.name}.png)\n\n*{caption}* ([PDF]({self.name}.pdf))"

    def html(self) -> str:
        """Return the figure as HTML that contains the picture."""
        content = base64.b64encode((self.directory / f"{self.name}.png").read_bytes()).decode("ascii")
        alt = escape(self.caption)
        return f'<figure><img src="data:image/png;base64,{content}" alt="{alt}"><figcaption>{alt}</figcaption></figure>'


Part = str | Table | Picture
"""A paragraph, a table or a figure."""
Sections = dict[str, list[Part]]
"""The parts of every section, by heading."""


def to_html(title: str, lead: str, sections: Sections) -> str:
    """Return the page as one HTML document, `lead` being the paragraph below the title."""
    bodies = {
        heading: "".join(f"<p>{escape(part)}</p>" if isinstance(part, str) else part.html() for part in parts)
        for heading, parts in sections.items()
    }
    return markup.page(title, "bnmf reproduce", lead, "", bodies, "Written by bnmf reproduce.")


def to_markdown(title: str, lead: str, sections: Sections) -> str:
    """Return the page as Markdown, `lead` being the paragraph below the title."""
    blocks = [f"# {_plain(title)}", _plain(lead)]
    for heading, parts in sections.items():
        blocks += [f"## {_plain(heading)}", *(_plain(x) if isinstance(x, str) else x.markdown() for x in parts)]
    return "\n\n".join(blocks) + "\n"


def number(value: float, digits: int = 2) -> str:
    """Format a number for a table: fixed decimals below 10⁵, powers of ten above, – for NaN."""
    if value != value:
        return "–"
    return f"{value:.{digits}f}" if abs(value) < 1e5 else f"{value:.1e}"


def _cell(cell: str | Cell) -> Cell:
    return cell if isinstance(cell, Cell) else Cell(cell)


def _plain(text: str) -> str:
    """Escape characters that would start Markdown markup or end a cell of a table."""
    escaped = re.sub(r"([\\|*_`\[\]])", r"\\\1", text)
    return escaped.replace("<", "&lt;").replace(">", "&gt;").replace("\n", " ")
