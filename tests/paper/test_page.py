"""Tables and the page: content, escaping, and no external resources."""

import re

from bnmf.paper.grid import Cell, Grid, number
from bnmf.paper.page import Picture, Section, to_html, to_markdown

MARKUP = '<script>alert("x")</script> & | *y*'
TABLE = Grid(["K", MARKUP], [["10", Cell(MARKUP, MARKUP, "off")], ["20", Cell("1.0", "printed 1.0", "within")]], MARKUP)


def test_html_is_escaped():
    page = to_html(MARKUP, MARKUP, [Section(MARKUP, [MARKUP, TABLE, Picture("figures/a", MARKUP)])])
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert 'alt="&lt;script&gt;alert(&quot;x' in page


def test_markdown_cells_are_escaped():
    lines = TABLE.markdown().splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {3}
    assert "<script" not in to_markdown(MARKUP, MARKUP, [Section(MARKUP, [MARKUP, TABLE])])


def test_verdicts_have_a_sign_and_a_colour():
    assert (
        '<td class="within">1.0<span class="note">printed 1.0 <span class="sign">✓</span></span></td>' in TABLE.html()
    )
    assert "1.0 (printed 1.0) ✓" in TABLE.markdown()


def test_page_loads_no_external_resources():
    page = to_html("title", "lead", [Section("One thing", ["text", TABLE, Picture("figures/a", "caption")])])
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', page)
    assert "url(" not in page
    assert "@import" not in page
    assert '<a href="#one-thing">' in page
    assert '<section id="one-thing">' in page
    assert 'name="viewport"' in page


def test_numbers():
    assert number(1.005e5) == "1.0e+05"
    assert number(12.3456, 1) == "12.3"
    assert number(float("inf")) == "inf"
