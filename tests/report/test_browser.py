"""The report in a real browser: no errors, no requests, and everything that its script and style do."""

import re
import shutil
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from bnmf.report import write_report
from tests.report.fits import EVIL, fake, table_of

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="module")
def browser():
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("needs Chromium (apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    posterior = fake()
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(posterior, path, table_of(posterior), title="Cells and drugs", settings={"seed": 0})
    return path


@pytest.fixture
def page(browser, report):
    """The open report; in the end there must have been no message, no error and no request but for the file."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    troubles = []
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("dialog", lambda dialog: troubles.append(dialog.message))
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(report.as_uri())
    yield page
    assert troubles == []
    assert [url for url in requests if not url.startswith("data:")] == [report.as_uri()]
    context.close()


def table(page, caption):
    return page.locator(".table", has=page.locator(".caption", has_text=caption))


def cells(box, column):
    return box.locator(f"tbody tr:visible > :nth-child({column})")


def test_sort(page):
    box = table(page, "Columns, those with the most missing")
    head = box.locator("thead th", has_text=re.compile("^mean"))
    for order, reverse in (("descending", True), ("ascending", False)):
        head.get_by_role("button").click()
        assert head.get_attribute("aria-sort") == order
        values = [float(cell.get_attribute("data-v")) for cell in cells(box, 4).all()]
        assert len(values) == 12
        assert values == sorted(values, reverse=reverse)
    names = box.locator("thead th").first
    names.get_by_role("button").click()
    assert head.get_attribute("aria-sort") is None
    drugs = [text for text in cells(box, 1).all_inner_texts() if text.startswith("drug")]
    assert drugs == [f"drug {i}" for i in range(4, 12)]  # 9 before 10


def test_search(page):
    box = table(page, "The most certain imputed values")
    total = cells(box, 1).count()
    field = box.get_by_role("searchbox")
    field.fill("drug CELL 1")  # all words, in any order
    found = box.locator("tbody tr:visible").all_inner_texts()
    assert 0 < len(found) < total
    assert all(word in text for text in found for word in ("cell", "drug", "1"))
    assert box.locator(".tools span").inner_text() == f"{len(found)} of {total} rows"
    field.fill("nothing has this name")
    assert cells(box, 1).count() == 0
    field.fill("")
    assert cells(box, 1).count() == total
    box = table(page, "largest rows and columns")
    box.get_by_role("searchbox").fill("<script>")
    assert set(cells(box, 1).all_inner_texts()) == {EVIL[0]}


def test_hostile_names_are_shown_and_not_run(page):
    assert page.evaluate("window.hacked") is None
    box = table(page, "Columns, those with the most missing")
    shown = cells(box, 1).all_inner_texts()
    for name in EVIL[:3]:
        assert name in shown
    for chart in page.locator("[data-heat]").all():  # also in the texts under the mouse
        chart.hover()
    assert page.evaluate("document.querySelectorAll('main b, main img').length") == 0
    assert page.evaluate("window.hacked") is None


def test_hover_and_arrow_keys_show_names_and_values(page):
    chart = page.locator("[data-heat=matrix]").first
    numbers = page.evaluate("JSON.parse(document.getElementById('matrix').textContent)")
    n_rows, n_columns = len(numbers["rows"]), len(numbers["columns"])
    chart.scroll_into_view_if_needed()
    box, image = chart.bounding_box(), chart.locator("image").bounding_box()
    row, column = 7, 5
    place = {
        "x": image["x"] - box["x"] + image["width"] * (column + 0.5) / n_columns,
        "y": image["y"] - box["y"] + image["height"] * (row + 0.5) / n_rows,
    }
    chart.hover(position=place)
    tip = page.locator("#tip")
    assert tip.is_visible()
    assert tip.locator("b").inner_text() == f"{numbers['rows'][row]} × {numbers['columns'][column]}"
    value = numbers["observed"][row][column]
    text = tip.inner_text()
    assert ("observed: " in text) if value is not None else ("missing, imputed" in text)
    assert f"{numbers['mean'][row][column]:.3g}" in text
    page.mouse.move(2, 2)
    assert not tip.is_visible()
    chart.focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    assert tip.locator("b").inner_text() == f"{numbers['rows'][1]} × {numbers['columns'][2]}"
    page.keyboard.press("Escape")
    assert not tip.is_visible()
    chart = page.locator("[data-heat=shares-column]")
    chart.focus()
    page.keyboard.press("ArrowUp")
    numbers = page.evaluate("JSON.parse(document.getElementById('shares-column').textContent)")
    text = page.locator("#tip").inner_text()
    assert text.startswith(numbers["rows"][0])
    share = float(f"{100 * numbers['values'][0][0]:.2g}")
    assert f"component {numbers['columns'][0]}: {share:g}% of the column’s predictions" in text


def test_dark_narrow_and_printed(page):
    def ground():
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    box = table(page, "Columns, those with the most missing")
    box.locator("xpath=self::*[not(@data-wide)]").wait_for()
    for width in (1280, 768, 360):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    box.locator("xpath=self::*[@data-wide]").wait_for()  # it says that there are more columns
    page.emulate_media(color_scheme="light")
    assert ground() == "rgb(255, 255, 255)"
    page.emulate_media(color_scheme="dark")
    assert max(map(int, re.findall(r"\d+", ground()))) < 60
    page.emulate_media(media="print", color_scheme="dark")
    assert ground() == "rgb(255, 255, 255)"
    assert not page.locator("nav").is_visible()
    assert page.locator(".tools").first.is_hidden()
    assert cells(table(page, "largest rows and columns"), 1).count() == 25


def test_charts_of_a_card_have_its_width(browser, tmp_path):
    posterior = fake()
    weak = replace(posterior, W=posterior.W * np.array([1.0, 1.0, 0.01]))  # its badge is wide
    write_report(weak, tmp_path / "report.html", table_of(weak))
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((tmp_path / "report.html").as_uri())
    widths = [card.locator("svg").first.bounding_box()["width"] for card in page.locator(".card").all()]
    assert len(widths) == 3
    assert min(widths) > 200
    page.close()


def test_first_screen_headings_and_labels(page):
    banner = page.locator(".banner")
    assert "The predictions can be used. The coverage of their intervals was not measured." in banner.inner_text()
    assert banner.bounding_box()["y"] < 900
    assert page.title() == "Cells and drugs"
    # Texts of a chart do not overprint each other.
    overlaps = page.evaluate("""[...document.querySelectorAll("svg.chart:not([data-heat])")].flatMap((chart) => {
      const boxes = [...chart.querySelectorAll("text")].map((text) => text.getBoundingClientRect());
      return boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) => a.left + 1 < b.right && b.left + 1 < a.right
        && a.top + 4 < b.bottom && b.top + 4 < a.bottom).map(() => chart.getAttribute("aria-label")));
    })""")
    assert overlaps == []
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4,h5')].map(h => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    assert page.evaluate("[...document.querySelectorAll('th')].every(th => th.scope)")
    assert page.evaluate("[...document.querySelectorAll('svg.chart')].every(s => s.getAttribute('aria-label'))")
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    for link in page.locator("nav a").all():
        assert page.locator(link.get_attribute("href")).count() == 1


def test_readable_without_a_script(browser, report):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert (
        "The predictions can be used. The coverage of their intervals was not measured."
        in page.locator(".banner").inner_text()
    )
    assert cells(table(page, "Columns, those with the most missing"), 1).count() == 12
    assert page.locator("image").first.bounding_box()["height"] > 100
    assert page.locator("#tip").is_hidden()
    context.close()
