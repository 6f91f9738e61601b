"""Kinds of columns: values become limits of latent numbers, and predictions of these are valid values again."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from bnmf import BayesianNMF, NMFImputer, Posterior
from bnmf.columns import Categorical, Draws, Number, Ordered, kind_of, learn
from bnmf.imputer import ANY_TABLE
from tests.statistical.checks import P_VALUE

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N_DRAWS = 4000


def all_known(values):
    column = pd.Series(values)
    return column, column.notna().to_numpy()


def draws_of(means, deviation=0.7, df=None):
    """Return draws whose latent columns have given means, the same for each row and draw, plus a little."""
    rng, (n, m) = np.random.default_rng(0), np.shape(means)
    W = np.broadcast_to(np.asarray(means, float), (1, N_DRAWS, n, m)) + 0.1 * rng.standard_normal((1, N_DRAWS, n, m))
    Z = np.broadcast_to(np.eye(m), (1, N_DRAWS, m, m))
    noise = np.full((1, N_DRAWS, m), deviation**2)
    df = None if df is None else np.full((1, N_DRAWS), df)
    posterior = Posterior(W, Z, noise, np.ones((1, N_DRAWS)), n_observed=n, lower_bound=-np.inf, df=df)
    return Draws(posterior, np.arange(n), np.zeros(n, np.intp))


def assert_same_law(drawn, categories, probabilities):
    """Compare how often each category was drawn (S, n) with its probability (n, C)."""
    for row, expected in enumerate(probabilities):
        counts = np.array([np.sum(drawn[:, row] == category) for category in categories])
        assert stats.chisquare(counts, expected * len(drawn)).pvalue > P_VALUE


@pytest.mark.parametrize("df", [None, 4.0])
def test_ordered_categories_are_intervals_between_cut_points(df):
    categories = np.array(["low", "mid", "high"], object)
    column = Ordered.learn("c", categories, *all_known(["mid", "low", "mid", "high"] * 25))
    np.testing.assert_allclose(stats.norm.cdf(column.cuts), [0.25, 0.75], atol=0.01)
    draws = draws_of([[-1.0], [0.2], [1.5]], df=df)
    found, means = column.probabilities(draws), draws.at().means
    law = stats.norm if df is None else stats.t(df)
    below = np.stack([law.cdf((cut - means) / 0.7).mean(axis=0) for cut in column.cuts], axis=1)
    np.testing.assert_allclose(found, np.diff(np.pad(below, ((0, 0), (1, 1)), constant_values=(0, 1))), atol=1e-12)
    assert column.predict(draws).tolist() == ["low", "mid", "high"]
    assert_same_law(column.draw(draws, np.random.default_rng(1)), column.categories, found)
    low, high = column.ends(draws, 0.5)
    for at, (first, last) in enumerate(zip(low, high, strict=True)):
        first, last = (column.categories.tolist().index(end) for end in (first, last))
        total = np.concatenate([[0.0], np.cumsum(found[at])])
        assert total[first] <= 0.25 < total[first + 1]
        assert total[last] < 0.75 <= total[last + 1] + 1e-12


def test_categories_without_an_order_are_decided_one_after_the_other():
    column = Categorical.learn("c", *all_known(["b", "a", "c", "a", "a", "b"] * 20))
    assert column.categories.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(1.0 - stats.norm.cdf(column.cuts), [1 / 2, 2 / 3], atol=0.01)
    latent = column.encode(*all_known(["a", "b", "c", None]))
    first, second = column.cuts
    np.testing.assert_array_equal(latent.lower, [[first, np.nan], [-np.inf, second], [-np.inf] * 2, [np.nan] * 2])
    np.testing.assert_array_equal(latent.upper, [[np.inf, np.nan], [first, np.inf], column.cuts, [np.nan] * 2])
    draws = draws_of([[0.8, 0.0], [-0.5, 1.0], [-0.5, -1.5]])
    found = column.probabilities(draws)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    yes = stats.norm.sf((first - draws.at(0).means) / 0.7).mean(axis=0)
    np.testing.assert_allclose(found[:, 0], yes, atol=1e-12)
    assert column.predict(draws).tolist() == ["a", "b", "c"]
    assert_same_law(column.draw(draws, np.random.default_rng(1)), column.categories, found)


@pytest.mark.parametrize(("low", "high"), [(0.0, np.inf), (-np.inf, 1.0), (0.0, 1.0)])
def test_numbers_are_cut_at_their_bounds(low, high):
    column, draws = Number("x", low, high), draws_of([[-30.0], [-0.6], [0.4], [1.3], [30.0]])
    drawn, mean = column.draw(draws, np.random.default_rng(1)), column.predict(draws)
    assert drawn.min() >= low
    assert drawn.max() <= high
    np.testing.assert_array_less(np.abs(drawn.mean(axis=0) - mean), 6.0 * drawn.std(axis=0) / np.sqrt(N_DRAWS) + 1e-9)
    for end in column.ends(draws, 0.9):
        assert low <= end.min() <= end.max() <= high
    draws.posterior.lower_bound = 0.0  # of data that cannot be negative
    assert Number("x").draw(draws, np.random.default_rng(1)).min() == 0.0
    latent = column.encode(*all_known([0.0, 0.5, 1.0]))
    np.testing.assert_array_equal(latent.values[:, 0], [0.0, 0.5, 1.0])
    np.testing.assert_array_equal(latent.upper[:, 0], [0.0 if low == 0.0 else np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(latent.lower[:, 0], [np.nan, np.nan, 1.0 if high == 1.0 else np.nan])


def test_whole_numbers():
    """Few values are ordered categories, which may take unseen ones in between; many are rounded numbers."""
    few = learn("few", *all_known([0, 1, 1, 2, 4] * 20), None)
    assert isinstance(few, Ordered)
    np.testing.assert_array_equal(few.categories, range(5))
    draws = draws_of([[-3.0], [0.1], [3.0]])
    np.testing.assert_array_equal(few.predict(draws), np.rint(few.draw(draws, np.random.default_rng(0)).mean(axis=0)))
    beyond = few.encode(*all_known([9, -4]))
    np.testing.assert_array_equal(beyond.lower[:, 0], [few.cuts[-1], -np.inf])
    many = learn("many", *all_known(range(100)), None)
    assert many == Number("many", 0.0, np.inf, is_whole=True)
    assert set(np.mod(many.draw(draws, np.random.default_rng(0)).ravel(), 1)) == {0.0}
    assert many.encode(*all_known([0, 3])).upper[0, 0] == 0.5
    assert learn("any", *all_known([-1, 0, 1]), None).low == -np.inf
    np.testing.assert_array_equal(learn("far", *all_known([0, 10**9] * 20), None).categories, [0, 10**9])
    assert len(learn("stars", *all_known([2, 3, 4] * 20), (1, 5)).categories) == 5


@pytest.mark.parametrize("column", [["a", "b", "b", "c"] * 6, [True, False, True] * 6, [3, 1, 2, 2] * 10])
def test_any_latent_number_between_the_limits_is_the_value(column):
    """What is encoded comes back, from the whole of its interval."""
    values, known = all_known(column)
    for kind in (None, "categorical"):
        learned = learn("x", values, known, kind)
        latent = learned.encode(values, known)
        for toward in (1e-9, 0.5, 1.0 - 1e-9):
            low, high = np.maximum(latent.lower, -9.0), np.minimum(latent.upper, 9.0)
            inside = np.where(np.isnan(low), 9.0, low + toward * (high - low))
            draws = draws_of(inside, deviation=1e-150)
            draws.posterior.W, draws.chosen = np.broadcast_to(inside, draws.posterior.W.shape), slice(1)
            np.testing.assert_array_equal(learned.draw(draws, np.random.default_rng(0))[0].tolist(), values)


def test_kinds_of_dtypes():
    expected = {
        "whole": [pd.Series([1], dtype="Int8"), pd.Series([1, 2], dtype=object), pd.Series([1], dtype="uint16")],
        "number": [pd.Series([1.5]), pd.Series([1.5, 2], dtype=object), pd.Series([1], dtype="Float32")],
        "binary": [pd.Series([True]), pd.Series([True], dtype="boolean"), pd.Series([True, False], dtype=object)],
        "categorical": [pd.Series(["1"]), pd.Series(["a", 1]), pd.Series(["a"], dtype="category")],
        "ordered": [pd.Series(pd.Categorical(["a"], ordered=True))],
    }
    for kind, columns in expected.items():
        assert [kind_of(column) for column in columns] == [kind] * len(columns)


# --- whole tables


def simulated(n=300, seed=0):
    """Return a table of all kinds, made by two latent factors, and the same with a fifth missing."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((n, 2))

    def noisy(weights, scale=0.4):
        return z @ weights + scale * rng.standard_normal(n)

    complete = pd.DataFrame(
        {
            "colour": np.array(["red", "green", "blue"])[
                np.argmax(np.column_stack([noisy([1.0, 0.0]), noisy([0.0, 1.0]), noisy([-0.5, -0.5])]), axis=1)
            ],
            "x": noisy([1.0, 0.0]),
            "y": noisy([1.0, -1.0]).astype(np.float32),
            "share": np.clip(50.0 + 40.0 * noisy([0.0, 1.0]), 0.0, 100.0),
            "children": pd.array(np.maximum(0, np.rint(1.0 + noisy([1.0, 0.0]))).astype(int), dtype="Int64"),
            "income": pd.array((20_000 + 5_000 * noisy([0.3, 1.0])).astype(int), dtype="Int64"),
            "member": pd.array(noisy([1.0, 0.0]) > 0, dtype="boolean"),
            "grade": pd.Categorical(np.array(list("DCBA"))[np.digitize(noisy([0.0, 1.0]), [-1, 0, 1])], ordered=True),
        },
        index=[f"row {i}" for i in range(n)],
    )
    table = complete.copy()
    for column in table.columns:
        table.loc[rng.random(n) < 0.2, column] = None
    return complete, table.assign(id=[f"p{i}" for i in range(n)], date=pd.date_range("2024-01-01", periods=n))


SETTINGS = {**ANY_TABLE, "n_chains": 2, "burn_in": 100, "n_draws": 100, "calibrate": False, "random_state": 0}


@pytest.fixture(scope="module")
def fitted():
    complete, table = simulated()
    imputer = NMFImputer(BayesianNMF(6, **SETTINGS), kinds={"share": (0, 100)}, ignore=["id", "date"])
    with warnings.catch_warnings(action="ignore"):
        return imputer.fit(table), complete, table


def test_a_table_keeps_its_dtypes_and_what_was_observed(fitted):
    imputer, _, table = fitted
    filled, (low, high) = imputer.transform(table), imputer.interval(table)
    copies = imputer.multiple_imputations(table, 2, random_state=0)
    for frame in (filled, low, high, *copies):
        pd.testing.assert_series_equal(frame.dtypes, table.dtypes)
        pd.testing.assert_index_equal(frame.index, table.index)
        pd.testing.assert_frame_equal(frame.where(table.notna()), table.where(table.notna()))
        pd.testing.assert_frame_equal(frame[["id", "date"]], table[["id", "date"]])
        rest = frame.drop(columns="colour") if frame is low or frame is high else frame
        assert rest.notna().all(axis=None)
        assert frame["share"].between(0, 100).all()
        assert (frame["children"] >= 0).all()
    assert not copies[0].equals(copies[1])
    assert list(imputer.get_feature_names_out()) == list(table.columns)


def test_rows_alone_and_new_rows(fitted):
    imputer, _, table = fitted
    filled = imputer.transform(table)
    pd.testing.assert_frame_equal(imputer.transform(table.iloc[[5]]), filled.iloc[[5]])
    new = table.iloc[:2].copy()
    new["grade"] = pd.Categorical([None, "B"], categories=["B"], ordered=True)
    new["x"] = [7.0, np.nan]
    new["colour"] = ["pink", None]
    with pytest.warns(UserWarning, match="column 'colour' has values that were not there in fit, such as 'pink'"):
        result = imputer.transform(new)
    assert result.notna().all(axis=None)
    assert result["colour"].iloc[0] == "pink"
    assert result["colour"].iloc[1] in ("red", "green", "blue")
    assert result["grade"].dtype == table["grade"].dtype
    empty = table.iloc[[0]].copy()
    empty[empty.columns[:8]] = None
    empty = empty.astype(table.dtypes)
    assert imputer.transform(empty).notna().all(axis=None)
    bad, good = (imputer.transform(empty.assign(grade=pd.Categorical([g], dtype=table["grade"].dtype))) for g in "DA")
    assert good["share"].iloc[0] > bad["share"].iloc[0] + 20.0


def test_hidden_entries_are_predicted_with_calibrated_probabilities(fitted):
    """Observed frequencies agree with probabilities, and predictions are far better than the margins."""
    imputer, complete, table = fitted
    filled, (low, high), found = imputer.transform(table), imputer.interval(table), imputer.probabilities(table)
    assert list(found) == ["colour", "member", "grade"]
    given, came = [], []
    for name, least in (("member", 0.70), ("grade", 0.5), ("colour", 0.6)):
        hidden = table[name].isna()
        assert np.mean((filled[name] == complete[name])[hidden]) > least
        probabilities = found[name][hidden]
        np.testing.assert_allclose(found[name].sum(axis=1), 1.0, rtol=1e-9)
        given.append(probabilities.to_numpy().ravel())
        came.append(
            (complete[name][hidden].astype(object).to_numpy()[:, None] == probabilities.columns.to_numpy()).ravel()
        )
        observed = found[name][~hidden]
        assert (observed.idxmax(axis=1) == table[name][~hidden].astype(object)).all()
        assert set(observed.to_numpy().ravel()) == {0.0, 1.0}
    given, came = np.concatenate(given), np.concatenate(came)
    for start in (0.0, 0.2, 0.4, 0.6, 0.8):
        at = (given >= start) & (given <= start + 0.2)
        p = given[at].mean()
        # Five standard errors of frequencies, and 0.05 for what the fit does not know.
        assert abs(came[at].mean() - p) < 5.0 * np.sqrt(p * (1 - p) / at.sum()) + 0.05
    for name in ("x", "share", "children", "income"):
        hidden = table[name].isna()
        error = (filled[name] - complete[name])[hidden].astype(float)
        assert np.sqrt(np.mean(error**2)) < 0.9 * complete[name].astype(float).std()
        inside = (low[name] <= complete[name]) & (complete[name] <= high[name])
        assert inside[hidden].mean() > 0.75


def quick(**settings):
    return NMFImputer(BayesianNMF(2, **{**SETTINGS, "burn_in": 10, "n_draws": 10}), **settings)


UGLY = {
    "constant": pd.Series([1, 1, 1, 1, None, 1], dtype="Int64"),
    "one category": ["a", None, "a", "a", "a", "a"],
    "like numbers": ["1", "2", None, "1", "2", "10"],
    "str and int": [1, "a", "a", None, 1, "a"],
    "objects": pd.Series([1, pd.NA, 3, None, 5, 7], dtype=object),
    "float32": pd.Series([1, np.nan, 3, 4, 5, 6], dtype="float32"),
    "int8": pd.Series([127, -128, None, 127, 126, 1], dtype="Int8"),
    "bool objects": [True, None, False, True, True, False],
    "nothing": [np.nan] * 6,
    "no text": pd.Series([None] * 6, dtype="str"),
}


@pytest.mark.parametrize("keep", [False, True])
def test_ugly_columns(keep):
    x = np.where(np.arange(6) < 5, np.random.default_rng(0).normal(size=6), np.nan)
    X = pd.DataFrame({"x": x, "t": ["u", "v"] * 3}, index=[3, 3, 1, 0, 9, 7])
    for name, column in UGLY.items():
        X[name] = pd.Series(column).to_numpy() if isinstance(column, list) else column.array
    empty = ["nothing", "no text"]
    imputer = quick(keep_empty_features=keep).fit(X)
    for frame in (imputer.transform(X), *imputer.multiple_imputations(X, 2, random_state=0), imputer.interval(X)[0]):
        assert frame.columns.tolist() == [name for name in X.columns if keep or name not in empty]
        pd.testing.assert_series_equal(frame.dtypes, X.dtypes[frame.columns])
        pd.testing.assert_index_equal(frame.index, X.index)
        for name in X.columns.drop(empty):
            known = X[name].notna().to_numpy()
            assert frame[name][known].map(type).tolist() == X[name][known].map(type).tolist()
    filled = imputer.transform(X).drop(columns=empty, errors="ignore")
    assert filled.notna().all(axis=None)
    for name in ("one category", "like numbers", "str and int", "bool objects"):
        assert set(filled[name]) == set(X[name].dropna())
    few = X[["x", "t", "constant"]]
    assert set(quick().fit_transform(few)["constant"]) == {1}
    assert imputer.transform(X.iloc[[1]]).shape == (1, frame.shape[1])


def test_equal_numbers_are_filled_by_the_same():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=12), "seven": 7.0, "zero": 0.0, "full": 100.0, "few": 7.0})
    X.iloc[:2, 1:] = np.nan
    X.loc[2:8, "few"] = np.nan
    imputer = quick(kinds={"full": (0, 100)}).fit(X)
    filled, (low, high) = imputer.transform(X), imputer.interval(X)
    assert set(filled["seven"]) == {7.0}
    assert set(filled["zero"]) == {0.0}
    assert (low["seven"][:2] < high["seven"][:2]).all()
    assert (filled["full"][:2] < 100.0).all()  # the bound stands for anything beyond it
    assert (filled["few"][:2] != 7.0).all()  # three tell little of the others
    assert (imputer.transform(X, upper={"seven": 6.0})["seven"][:2] < 6.0).all()


def test_names_of_latent_columns_are_different():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"s": ["u", "v", None] * 10, "s = u": rng.normal(size=30), "t = 1 (2)": 0.5})
    X["t"] = pd.Series([1, "1", "w"] * 10, dtype=object)
    imputer = quick().fit(X)
    names = ["s = u", "s = u (2)", "t = 1 (2)", "t = 1", "t = 1 (3)"]
    assert imputer.estimator_.feature_names_in_.tolist() == names
    assert imputer.transform(X[:4])["s"].notna().all()


def test_tables_of_one_row_and_of_equal_columns():
    X = pd.DataFrame([[1.0, "a", 2], [np.nan, None, 3]], columns=["x", "t", 7])
    filled = (
        NMFImputer(BayesianNMF(1, **SETTINGS)).fit(X.iloc[[0]].rename(columns=str)).transform(X.rename(columns=str))
    )
    assert filled.notna().all(axis=None)
    assert filled["t"].tolist() == ["a", "a"]
    twice = pd.DataFrame({name: ["u", "v", "w", "u"] * 10 for name in "abc"})
    hidden = twice.mask(np.arange(40)[:, None] % 5 == np.arange(3))
    assert (quick().set_params(estimator__burn_in=100).fit(hidden).transform(hidden) == twice).mean(axis=None) > 0.9


def test_indicator_limits_and_missing_numbers():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"dose": rng.gamma(2.0, size=30), "age": rng.integers(20, 60, 30), "ok": [True, False] * 15})
    X.loc[0, "dose"] = np.nan
    X.loc[1, "age"] = -999
    imputer = quick(missing_values=-999, add_indicator=True).fit(X, upper={"dose": 0.1})
    filled = imputer.transform(X, upper={"dose": 0.1})
    assert filled["dose"].iloc[0] < 0.1
    assert filled["age"].min() >= 0
    assert filled["age"].dtype == X["age"].dtype
    assert filled.columns[3:].tolist() == ["missingindicator_dose", "missingindicator_age"]
    assert filled["missingindicator_age"].tolist() == [False, True, *[False] * 28]
    with pytest.raises(ValueError, match="lower and upper are for columns of numbers, and 'ok' is not one"):
        imputer.transform(X, upper={"ok": 1.0})


WRONG = [
    ({"when": pd.date_range("2024", periods=4)}, {}, "'when' (of dtype datetime64"),
    ({"name": [f"n{i}" for i in range(4)] * 5}, {"kinds": {"nme": "number"}}, "kinds names a column that X does not"),
    ({"name": [f"n{i}" for i in range(20)]}, {}, "'name' (20 categories in 20 entries)"),
    ({"a": [1, 2]}, {"ignore": ["a"]}, "X has no observed entry outside of ignored columns"),
    ({"a": [1, 2]}, {"ignore": ["b"]}, "ignore names a column that X does not have: 'b'"),
    ({"a": [1, 2]}, {"kinds": {"a": "yesno"}}, "kinds['a'] must be 'number', 'nonnegative'"),
    ({"a": [1, 2, 3]}, {"kinds": {"a": "binary"}}, "two values in column 'a', whose kind is 'binary', got 3"),
    ({"a": ["lo", "hi"]}, {"kinds": {"a": "ordered"}}, "the order of words is not known"),
    (
        {"a": ["lo", "hi"]},
        {"kinds": {"a": ["lo", "mid"]}},
        "X has the value 'hi' in column 'a', which its kind does not l",
    ),
    ({"a": [1.0, 2.5]}, {"kinds": {"a": "whole"}}, "X must be a whole number in column 'a', got 2.5 in row 1"),
    ({"a": [1.0, -2.0]}, {"kinds": {"a": "nonnegative"}}, "between 0 and inf in column 'a', got -2 in row 1"),
    ({"a": [1.0, 2.0]}, {"kinds": {"a": (3, 1)}}, "must be a pair of numbers"),
    ({"a": [1.0, 2.0]}, {"kinds": {"a": (0, np.nan)}}, "the lower bound and a larger one, not NaN, got (0, nan)"),
    ({"a": [1.0, np.inf], "b": [1, 2]}, {}, "X must be finite in column 'a', got inf in row 1"),
    (
        {"a": [f"{x}.5" for x in range(12)], "b": [f"n{x}" for x in range(12)]},
        {},
        "'a' (numbers as text), 'b' (12 categories in 12 entries). Convert numbers with pd.to_numeric, or leave",
    ),
    ({"a": ["1", "2"]}, {"kinds": {"a": "number"}}, "X must have numbers in column 'a'"),
    ({"a": ["x", "y"]}, {"kinds": {"a": ["x", "x", "y"]}}, "kinds['a'] must name each category once, got 'x' twice"),
    ({"id": [2**60, 2**60 + 1] * 30}, {}, "'id' (whole numbers beyond 2**53, which are identifiers). Leave them"),
    ({"id": [-(2**60), 3]}, {"kinds": {"id": (-(2**62), 9)}}, "'id' (whole numbers beyond 2**53"),
    ({"a": [[1], [2]]}, {}, "not hashable. Leave it as it is with ignore=['a']"),
    ({"a": ["u", "u"]}, {}, "there is nothing to learn from"),
]


@pytest.mark.parametrize(("data", "settings", "message"), WRONG)
def test_errors(data, settings, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        quick(**settings).fit(pd.DataFrame(data))
    assert message in str(caught.value)


def test_bounds_and_numbers_of_any_type():
    large = np.array([2**60, 2**60 + 1, 2**60 + 2] * 10, np.uint64)
    X = pd.DataFrame({"share": np.linspace(0, 100, 30), "count": np.arange(30, dtype=np.uint64), "id": large})
    X.loc[3, "share"] = np.nan
    kinds = {"share": (np.int64(0), np.float32(100)), "id": "categorical"}
    filled = quick(kinds=kinds).fit_transform(X)
    assert 0 <= filled["share"][3] <= 100
    pd.testing.assert_frame_equal(filled[["count", "id"]], X[["count", "id"]])
    assert "none" not in quick().fit_transform(X[["share", "count"]].assign(none=pd.array([None] * 30, "Int64")))


def test_errors_of_other_containers_and_models():
    with pytest.raises(TypeError, match="kinds needs a DataFrame"):
        quick(kinds={"a": "whole"}).fit(np.ones((3, 2)))
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["u", "v", "u"]})
    with pytest.raises(TypeError, match="X must be a DataFrame"):
        quick().fit(X).transform(X.to_numpy())
    with pytest.raises(
        TypeError, match="X must have numbers in column 'a', whose kind is one of numbers, got datetime64"
    ):
        quick().fit(X).transform(X.assign(a=pd.date_range("2024", periods=3)))
    with pytest.raises(ValueError, match="estimator must take negative numbers"):
        NMFImputer(BayesianNMF()).fit(X)
    for twice in (X.iloc[:, [0, 0]], X.iloc[:, [1, 1, 0]]):
        for model in (quick(), BayesianNMF()):
            with pytest.raises(
                ValueError, match=r"X must have a different name for each column, got '[ab]' more than once"
            ):
                model.fit(twice)
    numbers = pd.DataFrame(np.eye(3), columns=list("abc"))
    assert quick().fit(numbers).probabilities(numbers) == {}
