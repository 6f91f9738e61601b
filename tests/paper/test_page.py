"""The page: content, escaping, and no external resources."""

import re

from bnmf.paper.page import Cell, Picture, Section, Table, number, to_html, to_markdown

MARKUP = '<script>alert("x")</script> & | *y*'
TABLE = Table(["K", MARKUP], [["10", Cell(MARKUP, MARKUP, "off")], ["20", Cell("1.0", "printed 1.0", "close")]], MARKUP)


def test_html_is_escaped():
    page = to_html(MARKUP, MARKUP, [Section(MARKUP, [MARKUP, TABLE, Picture("figures/a", MARKUP)])])
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert 'alt="&lt;script&gt;alert(&quot;x' in page


def test_markdown_cells_are_escaped():
    rows = [line for line in TABLE.markdown().splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {3}
    assert "<script" not in to_markdown(MARKUP, MARKUP, [Section(MARKUP, [MARKUP, TABLE])])


def test_verdicts_have_a_sign_and_a_colour():
    assert '<td class="close">1.0<span class="note">printed 1.0 <span class="sign">✓</span></span></td>' in TABLE.html()
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
    assert number(float("nan")) == "–"
