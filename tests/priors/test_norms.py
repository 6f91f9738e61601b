"""Priors: their densities, sums, names and arguments."""

import json

import numpy as np
import pytest
from tests.statistical.prior_pairs import rates

from bnmf.priors import L1, L1Squared, L2Squared, Laplace, LInf, Normal, TruncatedNormal
from bnmf.priors.names import allows_negative, as_pair, as_prior, from_record, to_record

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
    (Normal([1.5, 0, -1], [4, 1, 2]), lambda w: 0.5 * ([4, 1, 2] * (w - [1.5, 0, -1]) ** 2).sum()),
    (Laplace(2.0), lambda w: 2.0 * abs(w).sum()),
    (Normal(1.0, MATRIX) + Laplace(1.5), lambda w: 0.5 * (MATRIX * (w - 1.0) ** 2).sum() + 1.5 * abs(w).sum()),
    # A term of nonnegative entries restricts the sum to them.
    (Normal(1.0, 2.0) + Laplace(0.4) + L1(0.3), lambda w: ((w - 1.0) ** 2).sum() + 0.7 * w.sum()),
]  # fmt: skip


@pytest.mark.parametrize(("prior", "penalty"), PENALTIES, ids=[str(prior).split(",")[0] for prior, _ in PENALTIES])
def test_log_density_is_the_penalty_in_norms(prior, penalty):
    first, other = W, W[:, ::-1] + 0.1
    if prior.is_real:
        first = first - 1.0
    else:
        assert prior.log_density(first - 1.0) == -np.inf
    got = prior.log_density(first) - prior.log_density(other)
    assert got == pytest.approx(penalty(other) - penalty(first), rel=1e-12)


def test_paper_rule_survives_a_sum():
    coefficients = (L2Squared(1.0) + LInf(1.0, rule="paper")).coefficients((2, 2))
    assert coefficients.paper_rule
    assert coefficients.absolute is None
    assert not (L2Squared(1.0) + LInf(1.0)).coefficients((2, 2)).paper_rule


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
    assert str(as_prior("exponential")) == str(as_prior("ard"))
    rates = {"gee": L1, "gl12": L1Squared, "gl22": L2Squared, "glinf": LInf}
    for name, kind in rates.items():
        assert [str(prior) for prior in as_pair(name)] == [str(kind(0.1))] * 2
    assert [str(prior) for prior in as_pair(("gl22inf", L2Squared(2.0)))] == [
        "L2Squared(rate=0.1) + LInf(rate=0.1)",
        "L2Squared(rate=2.0)",
    ]


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
        (lambda: L1(np.ones((3, 4))).coefficients((4, 3)), ValueError, r"shape \(3, 4\).*a matrix of 4 x 3"),
        (lambda: L1([1.0, 0.0]).coefficients((4, 2)), ValueError, "improper prior: .* gives some entries neither"),
        (lambda: L1(1.0).log_density(np.ones(3)), ValueError, r"two dimensions .* got shape \(3,\)"),
        (lambda: as_prior("l2"), ValueError, "prior must be a Prior or one of 'ard', .*'gl22inf', got 'l2'"),
        (lambda: as_prior(3), ValueError, "prior must be a Prior or one of .* got 3"),
        (lambda: as_pair(("gee", "gee", "gee")), ValueError, r"a pair \(for W, for Z\), got 3 of them"),
        (lambda: L1(1.0) + 1.0, TypeError, "unsupported operand"),
        (lambda: Normal(0.0, 0.0), ValueError, "precision of Normal must be positive"),
        (lambda: Normal([0.0, 1.0]), ValueError, "mean of Normal must be one number if its precision is learned"),
        (lambda: Normal(0.0, 1.0, by="component"), ValueError, "by='component' of Normal is for a learned precision"),
        (lambda: Laplace(-1.0), ValueError, "rate of Laplace must be finite and nonnegative"),
        (lambda: Laplace(0.0).coefficients((2, 2)), ValueError, "improper prior"),
        (lambda: (Normal() + Laplace(1.0)).coefficients((2, 2)), ValueError, "cannot be learned in a sum"),
    ],
)  # fmt: skip
def test_bad_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_record_gives_the_same_prior_after_json():
    for prior in [*(prior for prior, _ in PENALTIES), Laplace(), Normal(by="component")]:
        again = from_record(json.loads(json.dumps(to_record(prior))))
        assert str(again) == str(prior)
        assert type(again) is type(prior)
        assert to_record(again) == to_record(prior)
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


def test_kinds_of_priors():
    assert [allows_negative(prior) for prior in ("ard", "normal", ("ard", "normal"))] == [False, True, True]
    assert L1(MATRIX).is_by_entry
    assert (L1(1.0) + TruncatedNormal(0.0, MATRIX)).is_by_entry
    assert not (L1([1.0, 2.0, 3.0]) + LInf(1.0)).is_by_entry
