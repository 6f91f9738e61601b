"""A page of results, written as self-contained HTML and as Markdown from the same sections.

Examples
--------
>>> print(Table(["K", "MSE"], [["10", Cell("3.1", "printed 3.0", "close")]]).markdown())
| K | MSE |
|---|---|
| 10 | 3.1 (printed 3.0) ✓ |
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template

VERDICT_SIGNS = {"close": "✓", "unclear": "?", "off": "✗", "": ""}
"""Sign of each verdict: colour alone is not accessible to everyone."""


@dataclass(frozen=True)
class Cell:
    """A number, a note such as the printed number, and a verdict, one of `VERDICT_SIGNS`."""

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
class Table:
    """A table whose first `n_labels` columns label the rows."""

    header: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    caption: str = ""
    n_labels: int = 1

    def markdown(self) -> str:
        """Return the table as Markdown."""
        rows = [self.header, *self.rows]
        lines = ["| " + " | ".join(_cell(cell).markdown() for cell in row) + " |" for row in rows]
        lines.insert(1, "|" + "---|" * len(self.header))
        return "\n".join([f"**{_plain(self.caption)}**", "", *lines] if self.caption else lines)

    def html(self) -> str:
        """Return the table as HTML."""
        # Outside the scrolling part, so that the caption wraps on a narrow screen.
        caption = f'<p class="caption">{escape(self.caption)}</p>' if self.caption else ""
        label = f' aria-label="{escape(self.caption)}"' if self.caption else ""
        kinds = [' class="label"'] * self.n_labels + [""] * (len(self.header) - self.n_labels)
        head = "".join(
            f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(self.header, kinds, strict=True)
        )
        body = "".join(
            "<tr>"
            + "".join(f'<th scope="row">{escape(_cell(cell).text)}</th>' for cell in row[: self.n_labels])
            + "".join(_cell(cell).html() for cell in row[self.n_labels :])
            + "</tr>"
            for row in self.rows
        )
        table = f"<table{label}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f'<div class="table">{caption}<div class="scroll" tabindex="0">{table}</div></div>'


@dataclass(frozen=True)
class Picture:
    """A figure that is saved as PNG and PDF, by its path without suffix relative to the page, and its caption."""

    name: str
    caption: str

    def html(self) -> str:
        """Return the figure as HTML."""
        name, caption = escape(self.name), escape(self.caption)
        return (
            f'<figure><a href="{name}.png"><img src="{name}.png" alt="{caption}" loading="lazy"></a>'
            f'<figcaption>{caption} <a href="{name}.pdf">PDF</a></figcaption></figure>'
        )

    def markdown(self) -> str:
        """Return the figure as Markdown."""
        caption = _plain(self.caption)
        return f"![{caption}]({self.name}.png)\n\n*{caption}* ([PDF]({self.name}.pdf))"


Part = str | Table | Picture
"""A paragraph, a table or a figure."""


@dataclass(frozen=True)
class Section:
    """A section of the page."""

    title: str
    parts: Sequence[Part]

    @property
    def anchor(self) -> str:
        """The HTML id of the section."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-") or "section"


def to_html(title: str, lead: str, sections: Sequence[Section]) -> str:
    """Return the page as one HTML document, `lead` being the paragraph below the title."""
    links = "".join(f'<a href="#{section.anchor}">{escape(section.title)}</a>' for section in sections)
    body = "\n".join(
        f'<section id="{section.anchor}"><h2>{escape(section.title)}</h2>{"".join(map(_html, section.parts))}</section>'
        for section in sections
    )
    template = files("bnmf.paper").joinpath("page.html").read_text(encoding="utf-8")
    return Template(template).substitute(title=escape(title), lead=escape(lead), links=links, body=body)


def to_markdown(title: str, lead: str, sections: Sequence[Section]) -> str:
    """Return the page as Markdown, `lead` being the paragraph below the title."""
    blocks = [f"# {_plain(title)}", _plain(lead)]
    for section in sections:
        blocks += [f"## {_plain(section.title)}", *map(_markdown, section.parts)]
    return "\n\n".join(blocks) + "\n"


def number(value: float, digits: int = 2) -> str:
    """Format a number for a table: fixed decimals below 10⁵, powers of ten above, – for NaN."""
    if value != value:
        return "–"
    return f"{value:.{digits}f}" if abs(value) < 1e5 else f"{value:.1e}"


def _html(part: Part) -> str:
    return f"<p>{escape(part)}</p>" if isinstance(part, str) else part.html()


def _markdown(part: Part) -> str:
    return _plain(part) if isinstance(part, str) else part.markdown()


def _cell(cell: str | Cell) -> Cell:
    return cell if isinstance(cell, Cell) else Cell(cell)


def _plain(text: str) -> str:
    """Escape characters that would start Markdown markup or end a cell of a table."""
    escaped = re.sub(r"([\\|*_`\[\]])", r"\\\1", text)
    return escaped.replace("<", "&lt;").replace(">", "&gt;").replace("\n", " ")
