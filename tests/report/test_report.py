"""The report says what the fit holds, escapes every name, and stays small whatever the data."""

import json
import re
import tracemalloc
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest
import scipy.sparse as sp

from bnmf.data.observed import ObservedMatrix
from bnmf.posterior.calibration import Calibration
from bnmf.posterior.moments import Moments
from bnmf.report import write_report
from bnmf.report.markup import json_script, number, rounded
from bnmf.report.overview import Overview
from bnmf.report.section_imputed import entries, imputed_entries
from tests.report.fits import EVIL, fake, observed, table_of

VOID = {"meta", "link", "img", "br", "input"}


class Page(HTMLParser):
    """Text and elements of a page, and whether every element was closed."""

    def __init__(self, html):
        super().__init__()
        self.open, self.elements, self.texts, self.scripts = [], [], [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif self.open and self.open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def written(tmp_path, posterior, data, **options):
    path = tmp_path / "report.html"
    write_report(path, posterior, data, **options)
    return path.read_text(encoding="utf-8")


def test_names_stay_names(tmp_path):
    posterior = fake()
    html = written(tmp_path, posterior, observed(table_of(posterior)), title=EVIL[0], settings={EVIL[1]: EVIL[0]})
    page = Page(html)
    for name in EVIL[:3]:
        assert name not in html
        assert name in page.text
    assert not any(key.startswith("on") for _, attributes in page.elements for key in attributes)
    assert sum(tag == "img" for tag, _ in page.elements) == 0
    assert sum(tag == "script" for tag, _ in page.elements) == 4  # the script and the numbers of the heat maps
    for tag, attributes in page.elements:  # nothing is fetched
        for key in ("src", "href", "action"):
            assert not attributes.get(key, "#").startswith(("http", "//", "x")), tag


def test_it_tells_what_went_in(tmp_path):
    posterior = fake()
    table = table_of(posterior)
    page = Page(written(tmp_path, posterior, observed(table), settings={"n_components": 3}))
    n_missing = int(table.isna().sum().sum())
    assert "40 rows and 12 columns" in page.text
    assert f"The {n_missing} entries that were missing" in page.text
    assert "n_components" in page.text
    assert "scikit-learn" in page.text


def test_names_that_are_no_text(tmp_path):
    posterior = fake()
    table = table_of(posterior)
    table.columns = ["half \ud800", *range(11)]
    table.index = [("a", i) for i in range(40)]
    page = Page(written(tmp_path, posterior, observed(table)))
    assert "half ?" in page.text
    assert "a, 17" in page.text


@pytest.mark.parametrize(("scale", "differ"), [(1.0, False), (1000.0, True)])
def test_columns_of_other_units_are_recognised(scale, differ):
    posterior = fake()
    half = table_of(posterior, names=False)
    one = half.copy()
    half[:, :6] *= scale
    one[:, 0] *= scale
    assert Overview.of(observed(half), posterior).units_differ == differ
    assert Overview.of(observed(one), posterior).units_differ == differ


def test_same_fit_same_file(tmp_path):
    posterior = fake()
    data = observed(table_of(posterior))
    assert written(tmp_path, posterior, data) == written(tmp_path, fake(), data)


def test_numbers_of_the_heat_map_are_those_of_the_posterior(tmp_path):
    posterior = fake()
    table = table_of(posterior)
    page = Page(written(tmp_path, posterior, observed(table)))
    (matrix,) = (data for data in map(json.loads, page.scripts[:-1]) if data["kind"] == "matrix")
    assert matrix["rows"][:2] != ["cell 0", "cell 1"]
    rows = [list(table.index).index(name) if name != "a & b < c d" else 3 for name in matrix["rows"]]
    columns = [list(table.columns).index(name) if name != "a & b < c d" else 3 for name in matrix["columns"]]
    np.testing.assert_allclose(matrix["mean"], posterior.mean()[np.ix_(rows, columns)], rtol=1e-3)
    np.testing.assert_allclose(matrix["sd"], posterior.std(noise=True)[np.ix_(rows, columns)], rtol=1e-3)
    np.testing.assert_allclose(
        np.array(matrix["observed"], dtype=float), table.to_numpy()[np.ix_(rows, columns)], rtol=1e-3
    )


@pytest.mark.parametrize(
    ("options", "level", "headline"),
    [
        ({}, "good", "The predictions and their intervals can be used."),
        ({"apart": 0.025}, "usable", "The predictions can be used with care."),
        ({"apart": 1.0}, "poor", "Do not rely on the predictions and their intervals yet: see below."),
        ({"n_draws": 3}, "unknown", "It cannot be told yet whether the predictions can be used."),
    ],
)
def test_cards_show_the_verdict(options, level, headline, tmp_path):
    posterior = fake(**options)
    text = Page(written(tmp_path, posterior, observed(table_of(posterior)))).text
    assert posterior.verdict["predictions"].level == level
    assert headline in text
    for finding in posterior.verdict:
        assert " ".join(finding.text.split()) in " ".join(text.split())


def test_intervals_that_fail_are_said_first(tmp_path):
    inside = np.arange(500) % 2 == 0
    calibration = Calibration(np.zeros(500, int), inside, np.full(500, 0.1), np.ones(500))
    posterior = replace(fake(), calibration=calibration)
    text = Page(written(tmp_path, posterior, observed(table_of(posterior)))).text
    assert "Do not rely on the predictions and their intervals yet" in text
    assert "Of 500 entries hidden for this purpose 50% are inside their 90% intervals" in text
    assert "50% of 500 values that were hidden for this purpose lie inside their 90% intervals" in text
    assert "no entries were hidden in this fit" in Page(written(tmp_path, fake(), observed(table_of(posterior)))).text


@pytest.mark.parametrize(
    ("posterior", "missing", "names"),
    [
        (fake(3, 2, 1), 0.0, False),
        (fake(3, 2, 1, n_chains=1, n_draws=2), 0.3, True),
        (fake(5, 400, 2), 0.9, True),
        (fake(500, 4, 2, noise_variance=np.full((2, 30), 0.04)), 0.5, False),
        (fake(offset=np.linspace(-3, 3, 12), scale=np.logspace(-2, 3, 12)), 0.2, True),
        (fake(row_noise=np.ones((2, 30, 40))), 0.2, True),
        (fake(df=np.full((2, 30), 4.0), noise_factor=np.full((40, 12), 2.0)), 0.2, True),
    ],
)
def test_any_data_make_a_page(posterior, missing, names, tmp_path):
    table = np.array(table_of(posterior, missing, names=False))
    table[:, -1] = np.nan  # a column without any entry
    table[0] = 1.0
    table[0, -1] = np.nan
    page = Page(written(tmp_path, posterior, observed(table)))
    assert "nan" not in re.sub(r"[a-zA-Z]nan|nan[a-zA-Z]", "", page.text)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"noise_factor": np.full((1, 12), 2.0)}, "of each column, times what is known of each entry"),
        ({"noise_factor": np.full((40, 12), 7.25), "noise_variance": np.ones((2, 30))}, "known of each entry"),
        ({"df": np.full((2, 30), 4.0)}, "Student's t, scale of each column"),
    ],
    ids=["ratios", "known", "Student's t"],
)
def test_noise_of_entries_is_named(tmp_path, options, words):
    posterior = fake(**options)
    page = Page(written(tmp_path, posterior, observed(table_of(posterior))))
    assert words in page.text
    assert ("7.25" in page.text) == (words == "known of each entry")  # the standard deviation of every column


def test_without_missing_entries(tmp_path):
    posterior = fake()
    page = Page(written(tmp_path, posterior, observed(table_of(posterior, 0.0))))
    assert "No entry was missing, so nothing was filled in." in page.text
    assert "The predictions and their intervals can be used." in page.text


CONTAINERS = {
    "dense": lambda X: ObservedMatrix.from_data(X),
    "few": lambda X: ObservedMatrix.from_data(np.where(np.arange(X.size).reshape(X.shape) % 5 == 0, X, np.nan)),
    "implicit zeros": lambda X: ObservedMatrix.from_data(
        sp.csr_array(np.where(np.arange(X.size).reshape(X.shape) % 5 == 0, X, 0))
    ),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_numbers_of_columns_and_missing_entries(container):
    posterior = fake()
    data = CONTAINERS[container](table_of(posterior, names=False))
    whole = np.concatenate([block for _, block in data.blocks()])
    overview = Overview.of(data, posterior)
    np.testing.assert_allclose(overview.column_mean, np.nanmean(whole, axis=0))
    np.testing.assert_allclose(overview.column_sd, np.nanstd(whole, axis=0), rtol=1e-6)
    assert overview.n_missing == np.isnan(whole).sum()
    for limit in (10, 10**6):
        rows, columns = overview.missing(limit, np.random.default_rng(0))
        assert len(rows) == min(limit, overview.n_missing)
        assert len(set(zip(rows.tolist(), columns.tolist(), strict=True))) == len(rows)
        assert np.isnan(whole[rows, columns]).all()
    rows, columns, values = overview.sample()
    np.testing.assert_array_equal(values, whole[~np.isnan(whole)])


def test_every_missing_entry_is_as_likely_to_be_sampled():
    posterior = fake(700, 12)
    overview = Overview.of(observed(table_of(posterior, names=False)), posterior)
    rows, columns = overview.data.missing_entries()
    counts = np.zeros(posterior.shape)
    for seed in range(300):
        counts[overview.missing(100, np.random.default_rng(seed))] += 1
    assert counts.sum() == 30_000
    assert counts[rows, columns].sum() == 30_000
    thirds = [part.sum() for part in np.array_split(counts[rows, columns], 3)]
    assert np.abs(np.array(thirds) - 10_000).max() < 5 * np.sqrt(10_000)


def test_imputed_entries_are_sorted_by_certainty():
    posterior = fake()
    overview = Overview.of(observed(table_of(posterior)), posterior)
    imputed = imputed_entries(overview)
    assert (np.diff(imputed.relative) >= 0).all()
    np.testing.assert_allclose(imputed.mean, posterior.mean()[imputed.rows, imputed.columns])
    np.testing.assert_allclose(imputed.relative, imputed.sd / overview.column_sd[imputed.columns])


@pytest.mark.parametrize(("n_missing", "listed"), [(1, 1), (2, 2), (3, 3), (400, 400), (450, 400)])
def test_surest_and_least_sure_entries_do_not_overlap(n_missing, listed):
    posterior = fake(40, 12)
    X = table_of(posterior, 0.0, names=False)
    X.flat[np.random.default_rng(0).permutation(X.size)[:n_missing]] = np.nan
    overview = Overview.of(ObservedMatrix.from_data(X), posterior)
    html = entries(overview, imputed_entries(overview), "")
    found = re.findall(r"<th scope=row>(row \d+)</th><td>(column \d+)</td>", html)
    assert len(found) == len(set(found)) == listed
    assert (f"The {n_missing - listed} entries between" in html) == (n_missing > listed)


@pytest.mark.parametrize("unstored", ["missing", "zero"])
def test_a_large_sparse_matrix_takes_little_memory_and_space(unstored, tmp_path):
    shape = (30_000, 1_000)
    posterior = fake(*shape, n_chains=2, n_draws=4)
    rng = np.random.default_rng(0)
    at, to = rng.integers(shape[0], size=60_000), rng.integers(shape[1], size=60_000)
    matrix = sp.coo_array((rng.exponential(size=len(at)), (at, to)), shape=shape).tocsr()
    data = ObservedMatrix.from_data(matrix, unstored=unstored)
    tracemalloc.start()
    html = written(tmp_path, posterior, data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * 8 * shape[0] * shape[1]  # far from a dense matrix
    assert len(html) < 5_000_000
    page = Page(html)
    if unstored == "missing":
        assert f"40,000 of the {shape[0] * shape[1] - data.n_observed:,} missing entries" in page.text
    else:
        assert "count as observed zeros" in page.text
    assert "From 2,000 rows chosen at random" in page.text
    assert "220 of 30,000 rows" in page.text


def test_what_it_takes(tmp_path):
    posterior = fake()
    data = observed(table_of(posterior))
    with pytest.raises(TypeError, match="posterior must be a Posterior, got Moments"):
        write_report(tmp_path / "r.html", object.__new__(Moments), data)
    with pytest.raises(TypeError, match="data must be an ObservedMatrix, got DataFrame"):
        write_report(tmp_path / "r.html", posterior, table_of(posterior))
    with pytest.raises(ValueError, match=r"data must have the shape of the fitted data, \(40, 12\), got \(3, 12\)"):
        write_report(tmp_path / "r.html", posterior, observed(table_of(posterior)[:3]))
    assert list(tmp_path.iterdir()) == []


def test_data_for_the_script():
    data = {"names": EVIL, "values": rounded(np.array([[1.23456, np.nan], [1e300, -3.0]]))}
    element = json_script("x", data)
    assert element.count("<") == 2
    assert json.loads(element[element.index(">") + 1 : -len("</script>")]) == data
    assert data["values"] == [[1.235, None], [1e300, -3]]
    assert number(-1234567.0) == "−1,234,567"


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def test_text_has_contrast_in_light_dark_and_print():
    css = files("bnmf.report").joinpath("report.css").read_text(encoding="utf-8")
    light, dark, printed = (dict(re.findall(r"--([\w-]+): (#\w{6})", block)) for block in css.split(":root {")[1:4])
    for theme in (light, dark, {**light, **printed}):
        for ink in ("ink", "soft", "accent", "good", "usable", "stop"):
            for ground in ("paper", "tint"):
                levels = sorted([luminance(theme[ink]), luminance(theme[ground])])
                assert (levels[1] + 0.05) / (levels[0] + 0.05) >= 4.5, (ink, ground)


def test_notes_come_first(tmp_path):
    posterior = fake(notes=("one entry of column '<b>x</b>' is far too large",))
    html = written(tmp_path, posterior, observed(table_of(posterior)))
    assert "One entry of column &#x27;&lt;b&gt;x&lt;/b&gt;&#x27; is far too large." in html
    assert html.index("is far too large.") < html.index('class="verdict ')
