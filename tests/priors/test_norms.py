"""Priors: their coefficients, densities, sums, names and arguments."""

import json

import numpy as np
import pytest
from tests.statistical.prior_pairs import rates

from bnmf.priors import L1, L1Squared, L2Squared, LInf, TruncatedNormal
from bnmf.priors.names import MODELS, allows_negative, as_pair, as_prior, from_record, to_record

W = np.array([[0.3, 2.0, 0.7], [1.5, 0.0, 0.2]])
MATRIX = rates(2, 3)

# Every prior with its penalty written in norms, not in coefficients.
PENALTIES = [
    (L1(0.3), lambda w: 0.3 * w.sum()),
    (L1([1, 2, 3]), lambda w: (w * [1, 2, 3]).sum()),
    (L1(MATRIX), lambda w: (w * MATRIX).sum()),
    (L2Squared(0.3), lambda w: 0.15 * (w**2).sum()),
    (L2Squared(MATRIX), lambda w: 0.5 * (MATRIX * w**2).sum()),
    (L1Squared(0.3), lambda w: 0.15 * (w.sum(axis=1) ** 2).sum()),
    (LInf(0.3), lambda w: 0.3 * w.max(axis=1).sum()),
    (LInf(0.3, rule="paper"), lambda w: 0.3 * w.max(axis=1).sum()),
    (L2Squared(2.0) + LInf(0.3), lambda w: (w**2).sum() + 0.3 * w.max(axis=1).sum()),
    (L1Squared(2.0) + L2Squared(1.0), lambda w: (w.sum(axis=1) ** 2).sum() + 0.5 * (w**2).sum()),
    (L1Squared(2.0) + LInf(1.0) + L1(MATRIX),
     lambda w: (w.sum(axis=1) ** 2).sum() + w.max(axis=1).sum() + (w * MATRIX).sum()),
    (TruncatedNormal(-0.7, 3.0), lambda w: 1.5 * ((w + 0.7) ** 2).sum()),
    (TruncatedNormal([1, 2, 3], MATRIX), lambda w: 0.5 * (MATRIX * (w - [1, 2, 3]) ** 2).sum()),
    (TruncatedNormal(0.7, 3.0) + L1(0.4), lambda w: 1.5 * ((w - 0.7) ** 2).sum() + 0.4 * w.sum()),
]  # fmt: skip


@pytest.mark.parametrize(("prior", "penalty"), PENALTIES, ids=[str(prior).split(",")[0] for prior, _ in PENALTIES])
def test_log_density_is_the_penalty_in_norms(prior, penalty):
    other = W[:, ::-1] + 0.1
    got = prior.log_density(W) - prior.log_density(other)
    assert got == pytest.approx(penalty(other) - penalty(W), rel=1e-12)


def test_rows_and_order_of_terms_do_not_matter():
    a, b = L2Squared(2.0) + LInf(0.3), LInf(0.3) + L2Squared(2.0)
    assert a.log_density(W) == pytest.approx(b.log_density(W[::-1]))
    assert str(a) == "L2Squared(rate=2.0) + LInf(rate=0.3)"


@pytest.mark.parametrize(
    ("name", "linear", "quadratic", "pairwise", "max_rate"),
    [
        ("gee", 0.1, 0.0, 0.0, 0.0),
        ("gl12", 0.0, 0.1, 0.1, 0.0),
        ("gl22", 0.0, 0.1, 0.0, 0.0),
        ("glinf", 0.0, 0.0, 0.0, 0.1),
        ("gl22inf", 0.0, 0.1, 0.0, 0.1),
    ],
)
def test_coefficients_of_the_papers_models(name, linear, quadratic, pairwise, max_rate):
    c = as_prior(name).coefficients((5, 2))
    np.testing.assert_array_equal(c.linear, np.full((1, 2), linear))
    np.testing.assert_array_equal(c.quadratic, np.full((1, 2), quadratic))
    assert (c.pairwise, c.max_rate, c.paper_rule) == (pairwise, max_rate, False)


def test_paper_rule_survives_a_sum():
    assert (L2Squared(1.0) + LInf(1.0, rule="paper")).coefficients((2, 2)).paper_rule


def test_transposed_turns_matrices_only():
    prior = L1(MATRIX) + L2Squared([1, 2]) + LInf(1.0) + L1Squared(2.0) + TruncatedNormal(MATRIX, 0.25)
    turned = prior.transposed().coefficients((3, 2))
    np.testing.assert_allclose(turned.linear, 0.75 * MATRIX.T)
    np.testing.assert_array_equal(turned.quadratic, np.broadcast_to([3.25, 4.25], (1, 2)))
    assert (turned.pairwise, turned.max_rate) == (2.0, 1.0)
    assert L1(MATRIX).transposed().coefficients((3, 2)).linear.flags.c_contiguous


def test_rates_are_copied_and_frozen():
    given = np.ones(3)
    prior = L1(given)
    given[0] = 5.0
    assert prior.log_density(np.ones((1, 3))) == -3.0
    with pytest.raises(ValueError, match="read-only"):
        prior.rate[0] = 5.0


def test_names_of_distributions_learn_and_those_of_the_paper_do_not():
    for name in ("ard", "exponential", "half-normal", "normal", "laplace"):
        assert as_prior(name).terms[0].is_learned
        assert as_prior(name).terms[0].is_by_component
    for name in MODELS:
        assert not any(term.is_learned for term in as_prior(name).terms)
    assert str(as_prior("exponential")) == str(as_prior("ard"))


def test_pairs():
    assert [str(prior) for prior in as_pair(("gee", L2Squared(2.0)))] == ["L1(rate=0.1)", "L2Squared(rate=2.0)"]
    same = as_pair("gl12")
    assert str(same[0]) == str(same[1]) == "L1Squared(rate=0.1)"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: L1(-1.0), ValueError, "rate of L1 must be finite and nonnegative, got -1.0"),
        (lambda: L1(np.nan), ValueError, "rate of L1 must be finite"),
        (lambda: L2Squared([1.0, np.inf]), ValueError, "rate of L2Squared must be finite"),
        (lambda: L1("much"), TypeError, "rate of L1 must be a number or an array, got 'much'"),
        (lambda: L1(np.ones((2, 2, 2))), ValueError, "a number, a vector or a matrix, got 3 dimensions"),
        (lambda: L1Squared([1.0, 2.0]), ValueError, "rate of L1Squared must be one number, got shape .*joint density"),
        (lambda: LInf(np.ones((2, 2))), ValueError, "rate of LInf must be one number, got shape .*joint density"),
        (lambda: LInf(1.0, rule="printed"), ValueError, "rule of LInf must be 'exact' or 'paper', got 'printed'"),
        (lambda: TruncatedNormal(0.0, 0.0), ValueError, "precision of TruncatedNormal must be positive, got 0.0"),
        (lambda: TruncatedNormal(np.inf, 1.0), ValueError, "mean of TruncatedNormal must be finite"),
        (lambda: L1([1.0, 2.0]).coefficients((4, 3)), ValueError, r"shape \(2,\).*a vector of 3.*a matrix of 4 x 3"),
        (lambda: L1(np.ones((3, 4))).coefficients((4, 3)), ValueError, r"shape \(3, 4\).*a matrix of 4 x 3"),
        (lambda: L1(0.0).coefficients((4, 3)), ValueError, "improper prior: .* gives some entries neither"),
        (lambda: L1([1.0, 0.0]).coefficients((4, 2)), ValueError, "improper prior: .* gives some entries neither"),
        (lambda: L1(1.0).log_density(np.ones(3)), ValueError, r"two dimensions .* got shape \(3,\)"),
        (lambda: as_prior("l2"), ValueError, "prior must be a Prior or one of 'ard', .*'gl22inf', got 'l2'"),
        (lambda: as_prior(3), ValueError, "prior must be a Prior or one of .* got 3"),
        (lambda: as_pair(("gee", "gee", "gee")), ValueError, r"a pair \(for W, for Z\), got 3 of them"),
        (lambda: L1(1.0) + 1.0, TypeError, "unsupported operand"),
    ],
)  # fmt: skip
def test_bad_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_rate_of_zero_counts_for_nothing_in_a_sum():
    (L1(0.0) + L2Squared(1.0)).coefficients((2, 2))


def test_a_record_gives_the_same_prior_after_json():
    for prior in [prior for prior, _ in PENALTIES]:
        again = from_record(json.loads(json.dumps(to_record(prior))))
        assert str(again) == str(prior)
        assert type(again) is type(prior)
        assert again.log_density(W) == prior.log_density(W)
        assert again.coefficients(W.shape).paper_rule == prior.coefficients(W.shape).paper_rule
    record = [{"prior": "L2Squared", "rate": 0.1, "by": "factor"}, {"prior": "L1", "rate": [1.0, 2.0], "by": "factor"}]
    assert to_record(L2Squared(0.1) + L1([1, 2])) == record


@pytest.mark.parametrize(
    ("record", "error", "message"),
    [
        ([{"prior": "Cauchy", "rate": 1.0}], ValueError, "unknown prior .*; known are L1, "),
        ([{"prior": "L1", "rate": -1.0}], ValueError, "rate of L1 must be finite and nonnegative"),
        ([{"prior": "L1", "speed": 1.0}], TypeError, "speed"),
    ],
)
def test_bad_records(record, error, message):
    with pytest.raises(error, match=message):
        from_record(record)


def test_which_priors_allow_negative_predictions():
    assert [allows_negative(prior) for prior in ("ard", "normal", ("ard", "normal"))] == [False, True, True]


def test_is_by_entry():
    assert L1(MATRIX).is_by_entry
    assert (L1(1.0) + TruncatedNormal(0.0, MATRIX)).is_by_entry
    assert not (L1([1.0, 2.0, 3.0]) + LInf(1.0)).is_by_entry
