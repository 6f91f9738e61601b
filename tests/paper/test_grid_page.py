"""Tables and the page: right, escaped, and with nothing from elsewhere."""

import re

from bnmf.experiments.grid import Cell, Grid, number
from bnmf.experiments.page import Picture, Section, to_html, to_markdown

NASTY = '<script>alert("x")</script> & | *y*'
GRID = Grid(["K", NASTY], [["10", Cell(NASTY, NASTY, "off")], ["20", Cell("1.0", "printed 1.0", "within")]], NASTY)


def test_html_is_escaped():
    page = to_html(NASTY, NASTY, [Section(NASTY, [NASTY, GRID, Picture("figures/a", NASTY)])])
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert 'alt="&lt;script&gt;alert(&quot;x' in page


def test_markdown_cells_do_not_break_out():
    lines = GRID.markdown().splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {3}
    assert "<script" not in to_markdown(NASTY, NASTY, [Section(NASTY, [NASTY, GRID])])


def test_verdicts_are_told_by_sign_and_colour():
    assert '<td class="within">1.0<span class="note">printed 1.0 <span class="sign">✓</span></span></td>' in GRID.html()
    assert "1.0 (printed 1.0) ✓" in GRID.markdown()


def test_page_loads_nothing_from_elsewhere():
    page = to_html("title", "lead", [Section("One thing", ["text", GRID, Picture("figures/a", "caption")])])
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
