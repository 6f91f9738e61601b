"""A page of results as self-contained HTML and as Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from string import Template

from bnmf.paper.grid import Grid


@dataclass(frozen=True)
class Picture:
    """A figure that is saved as PNG and PDF.

    Parameters
    ----------
    name : str
        File name without suffix, relative to the page.
    caption : str
        Caption of the figure.
    """

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


@dataclass(frozen=True)
class Section:
    """A section of the page.

    Parameters
    ----------
    title : str
        Heading of the section.
    parts : sequence of str, Grid or Picture
        Paragraphs, tables and figures.
    """

    title: str
    parts: Sequence[str | Grid | Picture] = field(default_factory=tuple)

    @property
    def anchor(self) -> str:
        """The HTML id of the section."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-") or "section"


def to_html(title: str, lead: str, sections: Sequence[Section]) -> str:
    """Return the page as one HTML document.

    Parameters
    ----------
    title : str
        Title of the page.
    lead : str
        Paragraph below the title.
    sections : sequence of Section
        Sections of the page.

    Returns
    -------
    str
        HTML.
    """
    links = "".join(f'<a href="#{section.anchor}">{escape(section.title)}</a>' for section in sections)
    body = "\n".join(
        f'<section id="{section.anchor}"><h2>{escape(section.title)}</h2>{"".join(map(_html, section.parts))}</section>'
        for section in sections
    )
    return _PAGE.substitute(title=escape(title), lead=escape(lead), links=links, body=body)


def to_markdown(title: str, lead: str, sections: Sequence[Section]) -> str:
    """Return the page as Markdown.

    Parameters
    ----------
    title : str
        Title of the page.
    lead : str
        Paragraph below the title.
    sections : sequence of Section
        Sections of the page.

    Returns
    -------
    str
        Markdown.
    """
    blocks = [f"# {_plain(title)}", _plain(lead)]
    for section in sections:
        blocks += [f"## {_plain(section.title)}", *map(_markdown, section.parts)]
    return "\n\n".join(blocks) + "\n"


def _html(part: str | Grid | Picture) -> str:
    return f"<p>{escape(part)}</p>" if isinstance(part, str) else part.html()


def _markdown(part: str | Grid | Picture) -> str:
    return _plain(part) if isinstance(part, str) else part.markdown()


def _plain(text: str) -> str:
    """Escape characters that would start Markdown markup."""
    return re.sub(r"([\\*_`\[\]])", r"\\\1", text).replace("<", "&lt;")


_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
:root { color-scheme: light dark; --ink: #1d2733; --soft: #5b6875; --paper: #ffffff; --tint: #f4f6f8; --line: #dde3e9;
  --link: #0b63a5; --good: #e3f4e8; --near: #fdf3d3; --bad: #fbe3e0; --good-ink: #14612f; --near-ink: #6b4e00;
  --bad-ink: #8f1f14; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ee; --soft: #9daab7; --paper: #14191f; --tint: #1c232b;
  --line: #303a45; --link: #79b8ee; --good: #17331f; --near: #3a300f; --bad: #43201c; --good-ink: #8fd6a6;
  --near-ink: #e8c969; --bad-ink: #f2a59b; } figure img { background: #ffffff; } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.6 system-ui, -apple-system, "Segoe UI",
  Roboto, "Helvetica Neue", Arial, sans-serif; }
main, header, nav { max-width: 78rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 2.5rem; }
h1 { font-size: clamp(1.5rem, 4.5vw, 2.2rem); line-height: 1.2; margin: 0 0 .6rem; }
h2 { font-size: 1.35rem; margin: 2.6rem 0 .6rem; padding-top: .8rem; border-top: 1px solid var(--line); }
p { max-width: 46rem; margin: .7rem 0; }
header p { color: var(--soft); }
a { color: var(--link); }
nav { display: flex; flex-wrap: wrap; gap: .45rem; margin-top: 1rem; }
nav a { text-decoration: none; background: var(--tint); border: 1px solid var(--line); border-radius: 1rem;
  padding: .15rem .8rem; font-size: .9rem; }
.table { margin: 1.1rem 0; border: 1px solid var(--line); border-radius: .5rem; overflow: hidden; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
p.caption { max-width: none; margin: 0; font-size: .9rem; font-weight: 600; padding: .55rem .7rem;
  background: var(--tint); border-bottom: 1px solid var(--line); }
th, td { padding: .4rem .6rem; text-align: right; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { color: var(--soft); font-weight: 600; vertical-align: bottom; }
tbody th { text-align: left; font-weight: 600; }
thead th.label { text-align: left; }
tbody tr:last-child > * { border-bottom: 0; }
.note { display: block; font-size: .78rem; color: var(--soft); white-space: nowrap; }
.sign { font-weight: 700; }
td.within { background: var(--good); } td.within .note { color: var(--good-ink); }
td.close { background: var(--near); } td.close .note { color: var(--near-ink); }
td.off { background: var(--bad); } td.off .note { color: var(--bad-ink); }
figure { margin: 1.2rem 0; }
figure img { width: 100%; max-width: 62rem; height: auto; display: block; border: 1px solid var(--line);
  border-radius: .5rem; }
figcaption { font-size: .88rem; color: var(--soft); margin-top: .4rem; }
footer { height: 4rem; }
@media print { nav { display: none; } .scroll { overflow: visible; } }
</style>
</head>
<body>
<header><h1>$title</h1><p>$lead</p></header>
<nav aria-label="sections">$links</nav>
<main>
$body
</main>
<footer></footer>
</body>
</html>
""")
