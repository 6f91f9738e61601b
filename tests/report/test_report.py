"""The report says what the fit holds, escapes every name, and stays small whatever the data."""

import json
import re
import tracemalloc
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from matplotlib import colormaps

from bnmf import BayesianNMF, NMFImputer
from bnmf.data.observed import ObservedMatrix
from bnmf.plots.look import COLOUR_MAP
from bnmf.posterior.base import Moments
from bnmf.posterior.calibration import Calibration
from bnmf.posterior.components import Components
from bnmf.posterior.verdict import Finding
from bnmf.report import section_components, section_convergence, section_data, section_imputed, write_report
from bnmf.report.charts import ends_of, heat_map, ticks
from bnmf.report.markup import number, of_all, percent
from bnmf.report.overview import Overview
from tests.report.fits import EVIL, fake, table_of, with_effects

VOID = {"meta", "link", "img", "br", "input"}


class Page(HTMLParser):
    """Text and elements of a page, and whether every element was closed."""

    def __init__(self, html):
        super().__init__()
        self.open, self.elements, self.texts, self.scripts = [], [], [], []
        self.feed(html)
        assert self.open == []
        self.text = " ".join(" ".join(self.texts).split())

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


def written(tmp_path, fit, X, **options):
    path = tmp_path / "report.html"
    write_report(fit, path, X, **options)
    return path.read_text(encoding="utf-8")


def overview_of(posterior, X, **options):
    return Overview(ObservedMatrix.from_data(X, **options), posterior)


def test_names_numbers_and_settings(tmp_path):
    posterior = fake()
    table = table_of(posterior)
    html = written(tmp_path, posterior, table, title=EVIL[0], settings={EVIL[1]: EVIL[0], "n_components": 3})
    assert html == written(tmp_path, fake(), table, title=EVIL[0], settings={EVIL[1]: EVIL[0], "n_components": 3})
    page = Page(html)
    for name in EVIL[:3]:
        assert name not in html
        assert name in page.text
    assert not any(key.startswith("on") for _, attributes in page.elements for key in attributes)
    assert len(page.scripts) == 4  # the script and the numbers of the heat maps
    for tag, attributes in page.elements:  # nothing is fetched
        for key in ("src", "href", "action"):
            assert not attributes.get(key, "#").startswith(("http", "//", "x")), tag
    n_missing = int(table.isna().sum().sum())
    for text in ("40 rows and 12 columns", f"The {n_missing} missing entries", "n_components", "scikit-learn"):
        assert text in page.text

    (matrix,) = (data for data in map(json.loads, page.scripts[:-1]) if data["kind"] == "matrix")
    shown = [[" ".join(name.split()) for name in names] for names in (table.index, table.columns)]
    rows, columns = (
        [names.index(name) for name in matrix[kind]] for names, kind in zip(shown, ("rows", "columns"), strict=True)
    )
    assert rows != sorted(rows)
    np.testing.assert_allclose(matrix["mean"], posterior.mean()[np.ix_(rows, columns)], rtol=1e-3)
    for name, ends in zip(("low", "high"), posterior.interval(0.9), strict=True):  # by other draws of the noise
        np.testing.assert_allclose(matrix[name], ends[np.ix_(rows, columns)], atol=0.4)
    shown = np.array(matrix["observed"], dtype=float)
    np.testing.assert_allclose(shown, table.to_numpy()[np.ix_(rows, columns)], rtol=1e-3)


def test_components_are_judged_by_the_verdict_alone(tmp_path):
    """Components that are as weak as noise are neither counted in the first sentence nor green."""
    strength = np.array([1.0, 1.0, 0.01])
    posterior = fake()
    posterior = replace(posterior, W=posterior.W * strength)
    active = posterior.active_components
    assert active.sum() == 2
    assert "2 of 3 components stand out" in posterior.verdict["components"].text
    html = written(tmp_path, posterior, table_of(posterior))
    assert "modelled by 3 components, of which 2 stand out from the noise." in Page(html).text
    badges = re.findall(r'<span class="badge (\w+)">([^<]*)</span>', html)
    words = "found by 2 of 2 chains"
    expected = [("good", words) if each else ("usable", f"{words}, as weak as noise") for each in active]
    assert badges == expected
    none = replace(posterior, W=posterior.W * 1e-3)
    assert "3 components, of which none stands out from" in Page(written(tmp_path, none, table_of(posterior))).text


def test_effects_are_no_components(tmp_path):
    posterior = with_effects(fake(n_components=5, scale=np.linspace(1, 3, 12)))
    assert posterior.effects == {0: "effect of the rows", 4: "offset of the columns"}
    assert "find 3 components" in posterior.verdict["components"].text
    assert posterior.n_active_components() == 3
    html = written(tmp_path, posterior, table_of(posterior))
    text = Page(html).text
    cards = re.findall(r"<h4>([^<]*) <", html)
    assert cards == ["Effect of the rows", "Component 1", "Component 2", "Component 3", "Offset of the columns"]
    assert len(re.findall('class="badge', html)) == 3
    assert "modelled by an effect of the rows, an offset of the columns and 3 components." in text
    assert "The first is an effect of the rows" in text
    assert "The last is an offset of the columns" in text
    assert "components 3 " in text
    assert "offset learned: effect of the rows and offset of the columns" in text
    assert not re.search(r"<td>row</td><td class=num data-v=\"4\">|<td>column</td><td class=num data-v=\"0\">", html)
    given = replace(posterior, W=posterior.W * np.linspace(1, 2, 40)[:, None], Z=posterior.Z * np.linspace(1, 2, 12))
    assert given.effects == {}  # known weights and profiles


def test_one_chain_and_few_draws_are_not_compared():
    for options, is_compared in (({}, True), ({"n_chains": 1}, False), ({"n_draws": 3}, False)):
        posterior = fake(**options)
        overview = overview_of(posterior, table_of(posterior))
        html, n_observed = section_convergence.section(overview), overview.data.n_observed
        assert ("fits best, and the others are compared with it" in Page(html).text) == is_compared
        assert ('class="found"' in html) == is_compared
        cards = section_components.section(overview, Components.of(posterior))
        assert ("found by" in cards) == is_compared
        assert ("Its first 10 sweeps" in html) == ("n_chains" in options)
        assert ("If chains with different starts agree" in " ".join(html.split())) == ("n_chains" not in options)
        assert f"(all {n_observed} entries)" in html


def test_traces_of_few_sweeps_are_drawn():
    posterior = fake(n_draws=4)
    posterior = replace(posterior, train_mse=posterior.train_mse[:, :5])
    html = section_convergence.section(overview_of(posterior, table_of(posterior)))
    assert [len(points.split()) for points in re.findall(r'polyline class="line \w+" points="([^"]*)"', html)] == [5, 5]


def test_a_complete_table_has_nothing_missing(tmp_path):
    posterior = fake()
    text = Page(written(tmp_path, posterior, table_of(posterior, 0.0))).text
    assert text.startswith("Components Skip")
    assert "All of its 480 entries were observed." in text
    assert not re.search("were missing|most missing|Missing share", text)
    text = Page(written(tmp_path, posterior, table_of(posterior))).text
    assert text.startswith("Components and missing entries Skip")
    assert len(re.findall("were missing|most missing|Missing share", text)) == 4


def test_ends_of_a_scale_say_whether_values_lie_beyond():
    values = np.array([-0.2, 0.3, 0.9])
    assert ends_of(values, (0.0, 0.8), percent) == ("≤ 0%", "≥ 80%")
    assert ends_of(values, (-0.2, 0.9), number) == ("−0.2", "0.9")


@pytest.mark.parametrize(("n", "shown"), [(20, 20), (21, 11), (120, 14)])
def test_numbers_of_components_have_room(n, shown):
    numbers = [str(k) for k in range(n)]
    picture = heat_map(np.ones((2, n)), (0.0, 1.0), ("", ""), ["a", "b"], numbers, "", "cividis", "")
    assert picture.count("name mid") == shown


def test_a_fitted_model_knows_its_data(tmp_path):
    X = table_of(fake(12, 5))
    model = BayesianNMF(1, n_chains=2, burn_in=5, n_draws=10, random_state=0, calibrate=False)
    model.fit(X)
    for fit in (model, NMFImputer(model).fit(X)):
        text = Page(written(tmp_path, fit, None)).text
        assert "12 rows and 5 columns" in text
        assert "random_state" in text or fit is not model


def test_names_that_are_no_text_and_long_values(tmp_path):
    posterior = fake()
    table = table_of(posterior)
    table.columns = ["half \ud800", *range(11)]
    table.index = [("a", i) for i in range(40)]
    long = f"the concentration{' of some substance' * 5}"
    html = written(tmp_path, posterior, table.rename(columns={3: long}), settings={"prior": "long " * 30})
    assert f"<th scope=row>{long}</th>" in html  # names are cut in figures alone
    page = Page(html)
    assert "half ?" in page.text
    assert "a, 17" in page.text
    assert "long " * 29 in page.text


@pytest.mark.parametrize(("n_scaled", "differ"), [(0, False), (1, True), (6, True)])
def test_columns_of_other_units_are_recognised(n_scaled, differ):
    X = table_of(fake(), names=False) * np.where(np.arange(12) < n_scaled, 1000.0, 1.0)
    assert overview_of(fake(), X).units_differ == differ


@pytest.mark.parametrize(
    ("options", "level", "headline", "word"),
    [
        ({}, "good", "The predictions can be used. The coverage of their intervals was not measured.", "good"),
        ({"apart": 0.025}, "usable", "The predictions can be used with care.", "with care"),
        ({"apart": 1.0}, "poor", "Do not rely on the predictions and their intervals.", "do not rely on it"),
        ({"n_draws": 3}, "unknown", "It is not known whether the predictions can be used.", "unknown"),
    ],
)
def test_banner_cards_and_table_show_the_verdict(options, level, headline, word):
    posterior = fake(**options)
    overview = overview_of(posterior, table_of(posterior))
    top = section_convergence.banner(posterior.verdict, 0.2)
    text = Page(top + section_convergence.section(overview)).text
    assert posterior.verdict["predictions"].level == level
    assert headline in text
    assert ("far better than the column mean" in text) == (level in ("good", "usable"))
    for finding in posterior.verdict:
        assert " ".join(finding.text.replace("`", " ").split()) in text
    assert f"{word} by Monte Carlo error" in text


def test_intervals_and_notes_that_fail_are_said_first(tmp_path):
    inside = np.arange(500) % 2 == 0
    calibration = Calibration(np.zeros(500, int), inside, np.full(500, 0.1), np.ones(500))
    posterior = replace(fake(), calibration=calibration)
    text = Page(written(tmp_path, posterior, table_of(posterior))).text
    assert "Do not rely on the predictions and their intervals." in text
    assert "Of 500 entries hidden for this purpose 50% are inside their 90% intervals" in text
    assert "50% is the coverage: of 500 entries hidden for this purpose 50% are inside their 90% intervals" in text

    as_promised = replace(calibration, inside=np.arange(500) % 10 > 0)
    verdict = replace(fake(), calibration=as_promised).verdict
    assert "The predictions and their intervals can be used." in section_convergence.banner(verdict, 0.2)

    noted = fake(notes=(Finding("fit", "poor", "one entry of column '<b>x</b>' is far too large"),))
    html = written(tmp_path, noted, table_of(noted))
    assert "One entry of column &#x27;&lt;b&gt;x&lt;/b&gt;&#x27; is far too large." in html
    assert "Do not rely on the predictions" in html  # a bad fit and a green banner would contradict each other
    assert html.index("is far too large.") < html.index('class="verdict ')
    assert "no entries were hidden in this fit" in Page(html).text


def test_columns_without_any_entry_are_no_imputed_values():
    posterior = fake()
    table = table_of(posterior)
    table.iloc[:, 5] = np.nan
    overview = overview_of(posterior, table, empty=True)
    imputed = section_imputed.imputed_entries(overview)
    assert 5 not in set(imputed["column"])
    assert len(imputed) == np.isnan(table.to_numpy()).sum() - 40
    text = Page(section_imputed.section(overview, imputed, Components.of(posterior))).text
    assert "Columns without any observed entry are left out here." in text
    assert "chosen at random" not in text


@pytest.mark.parametrize(
    ("posterior", "missing", "words"),
    [
        (fake(3, 2, 1), 0.0, "No entry was missing"),
        (fake(3, 2, 1, n_chains=1, n_draws=2), 0.3, "One chain was started"),
        (fake(5, 400, 2), 0.9, "300 of 400 are listed"),
        (fake(500, 4, 2, noise_variance=np.full((2, 30), 0.04)), 0.5, "noise common"),
        (fake(offset=np.linspace(-3, 3, 12), scale=np.logspace(-2, 3, 12)), 0.2, "offset minimum subtracted"),
        (fake(noise_factor=np.full((40, 12), 7.25), noise_variance=np.ones((2, 30))), 0.2, "noise known of each entry"),
    ],
)
def test_any_data_make_a_page(posterior, missing, words, tmp_path):
    table = np.array(table_of(posterior, missing, names=False))
    if missing:
        table[:, -1] = np.nan  # a column without any entry
        table[0] = 1.0
        table[0, -1] = np.nan
    page = Page(written(tmp_path, posterior, table))
    assert "nan" not in re.sub(r"[a-zA-Z]nan|nan[a-zA-Z]", "", page.text)
    assert words in page.text
    if words == "noise known of each entry":
        assert page.text.count("7.25") >= 12  # the standard deviation of every column


def test_settings_name_the_offset():
    for options, settings, words in (
        ({}, None, "offset none"),
        ({"offset": np.ones(12)}, None, "offset minimum subtracted"),
        ({"offset": np.ones(12), "signed": (True, True)}, {"offset": "mean"}, "offset mean subtracted"),
        ({"offset": np.ones(12), "signed": (True, True)}, {}, "offset subtracted"),
    ):
        assert words in Page(section_data.settings_section(fake(**options), settings)).text


def test_settings_name_the_noise():
    for options, words in (
        ({}, "noise of each column"),
        ({"row_noise": np.ones((2, 30, 40))}, "noise of each row and column"),
        ({"df": np.full((2, 30), 4.0)}, "Student's t, scale of each column"),
        ({"noise_factor": np.full((1, 12), 2.0)}, "of each column, times the known noise of each entry"),
        ({"outlier_share": np.full((2, 30, 12), 0.03)}, "of each column, and gross errors in 3.0% of the entries"),
        ({"outlier_share": np.full((2, 30, 12), 3e-4)}, "of each column, and gross errors in <0.1% of the entries"),
    ):
        assert words in Page(section_data.settings_section(fake(**options), None)).text


CONTAINERS = {
    "dense": lambda X: X,
    "far from zero": lambda X: X + 1e9,
    "few": lambda X: np.where(np.arange(X.size).reshape(X.shape) % 5 == 0, X, np.nan),
    "implicit zeros": lambda X: sp.csr_array(np.where(np.arange(X.size).reshape(X.shape) % 5 == 0, X, 0)),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_numbers_of_columns_and_missing_entries(container):
    posterior = fake()
    data = ObservedMatrix.from_data(CONTAINERS[container](table_of(posterior, names=False)))
    whole = np.concatenate([block for _, block in data.blocks()])
    overview = Overview(data, posterior)
    mean, sd = overview.moments
    np.testing.assert_allclose(mean, np.nanmean(whole, axis=0))
    np.testing.assert_allclose(sd, np.nanstd(whole, axis=0), rtol=1e-6)
    assert overview.n_missing == np.isnan(whole).sum()
    for limit in (10, 10**6):
        rows, columns = overview.missing(limit, np.random.default_rng(0))
        assert len(rows) == min(limit, overview.n_missing)
        assert len(set(zip(rows.tolist(), columns.tolist(), strict=True))) == len(rows)
        assert np.isnan(whole[rows, columns]).all()
    rows, columns, values = overview.observed()
    np.testing.assert_array_equal(values, whole[~np.isnan(whole)])


@pytest.mark.parametrize(("n_missing", "listed"), [(1, 1), (2, 2), (3, 3), (450, 400)])
def test_imputed_entries_are_sorted_and_listed_once(n_missing, listed):
    posterior = fake(40, 12)
    X = table_of(posterior, 0.0, names=False)
    X.flat[12 + np.random.default_rng(0).permutation(X.size - 12)[:n_missing]] = np.nan  # the first row is complete
    overview = overview_of(posterior, X)
    imputed = section_imputed.imputed_entries(overview)
    assert imputed["uncertainty"].is_monotonic_increasing
    np.testing.assert_allclose(imputed["mean"], posterior.mean()[imputed["row"], imputed["column"]])
    widths = (imputed["high"] - imputed["low"]) / (3.2897 * overview.spread(imputed["column"].to_numpy()))
    np.testing.assert_allclose(imputed["uncertainty"], widths, rtol=1e-4)
    html = section_imputed.section(overview, imputed, Components.of(posterior))
    found = re.findall(r"<th scope=row>(row \d+)</th><td>(column \d+)</td>", html)
    assert len(found) == len(set(found)) == listed
    assert (f"The {n_missing - listed} entries between" in html) == (n_missing > listed)


def test_a_large_sparse_matrix_takes_little_memory_and_space(tmp_path):
    shape = (12_000, 1_000)
    posterior = fake(*shape, n_chains=2, n_draws=4)
    rng = np.random.default_rng(0)
    at, to = rng.integers(shape[0], size=30_000), rng.integers(shape[1], size=30_000)
    matrix = sp.coo_array((rng.exponential(size=len(at)), (at, to)), shape=shape).tocsr()
    data = ObservedMatrix.from_data(matrix, unstored="missing")
    tracemalloc.start()
    html = written(tmp_path, posterior, data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.9 * 8 * shape[0] * shape[1]  # less than a dense matrix
    assert len(html) < 5_000_000
    text = Page(html).text
    assert f"10,000 of the {shape[0] * shape[1] - data.n_observed:,} missing entries" in text
    assert "From 2,000 rows chosen at random" in text
    assert "220 of 12,000 rows" in text


def test_one_entry_has_no_spread():
    posterior = fake()
    X = table_of(posterior, names=False)
    X[1:, 3] = np.nan
    (row,) = re.findall(r"<th scope=row>column 3</th>.*", section_data.data_section(overview_of(posterior, X)))
    assert Page(f"<tr>{row.removesuffix('</tr>')}</tr>").texts[-2] == "–"


def test_zeros_and_limits_are_explained():
    posterior = fake(30, 6)
    X = table_of(posterior, names=False)
    lower, upper = np.where(X < 0.5, 0.0, np.nan), np.where(X < 0.5, 0.5, np.nan)
    for data, words in (
        (ObservedMatrix.from_data(CONTAINERS["implicit zeros"](X)), "count as observed zeros"),
        (ObservedMatrix.from_data(X, lower=lower, upper=upper), f"Of {(X < 0.5).sum()} observed entries only limits"),
    ):
        assert words in Page(section_data.data_section(Overview(data, posterior))).text


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_errors(tmp_path):
    posterior, path = fake(), tmp_path / "r.html"
    X = table_of(posterior)
    quick = BayesianNMF(1, prior="normal", n_chains=1, burn_in=0, n_draws=2, random_state=0)
    words = NMFImputer(quick).fit(pd.DataFrame({"a": [1.0, 2.0, 3.0] * 4, "b": ["x", "y", "x"] * 4}))
    for fit, file, given, error, message in (
        (None, None, None, TypeError, "path must be .*got None"),
        (None, tmp_path, None, OSError, "path must be .*is a directory"),
        (None, tmp_path / "no" / "r.html", None, OSError, "path must be in a directory"),
        (object.__new__(Moments), path, X, TypeError, "must be a Posterior, got Moments"),
        (words, path, None, TypeError, "fit must have columns of numbers alone"),
        (X, path, X, TypeError, "fit must be a fitted BayesianNMF or NMFImputer, or a Posterior, got DataFrame"),
        (posterior, path, None, TypeError, "X must be given: the fitted data are not kept by Posterior"),
        (posterior, path, X[:3], ValueError, r"X must have the shape of the fitted data, \(40, 12\), got \(3, 12\)"),
    ):
        with pytest.raises(error, match=message):
            write_report(fit, file, given)
    assert list(tmp_path.iterdir()) == []


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def test_text_has_contrast_in_light_dark_and_print():
    css = files("bnmf.report").joinpath("report.css").read_text(encoding="utf-8")
    light, dark, printed = (dict(re.findall(r"--([\w-]+): (#\w{6});", block)) for block in css.split(":root {")[1:4])
    for theme in (light, dark, {**light, **printed}):
        for ink in ("ink", "soft", "accent", "good", "usable", "stop"):
            for ground in ("paper", "tint"):
                levels = sorted([luminance(theme[ink]), luminance(theme[ground])])
                assert (levels[1] + 0.05) / (levels[0] + 0.05) >= 4.5, (ink, ground)
        # What is missing is none of the values: some channel differs by a quarter.
        missing = [int(theme["missing"][i : i + 2], 16) / 255 for i in (1, 3, 5)]
        assert np.abs(colormaps[COLOUR_MAP](np.arange(256))[:, :3] - missing).max(axis=1).min() > 0.25


@pytest.mark.parametrize(
    ("value", "text"), [(-1.234567e6, "−1,234,567"), (0.0123, "0.0123"), (3.0, "3"), (np.nan, "–"), (1.5e9, "1.5e9")]
)
def test_number(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.2041, "20%"), (0.012, "1.2%"), (0.0, "0%"), (0.0001, "<0.1%"), (0.9999, ">99.9%"), (-2.486, "−249%")],
)
def test_percent(share, text):
    assert percent(share) == text


def test_parts_that_are_shown():
    assert of_all(3, 3, "row") == "all 3 rows"
    assert of_all(200, 3000, "column") == "200 of 3,000 columns (evenly spaced)"


def test_ticks_are_round():
    assert ticks(0.0, 9.7) == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert ticks(-0.12, 0.31) == [-0.1, 0.0, 0.1, 0.2, 0.3]
