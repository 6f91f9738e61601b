"""Joint correctness of what is learned besides the factors: variances of rows and columns, and rates of priors."""

from functools import partial

import numpy as np
import pytest

from bnmf.data import latent
from bnmf.model import contaminated
from bnmf.model.units import Units
from bnmf.noise import ContaminatedNoise, GroupedNoise, StudentT
from bnmf.priors import L1, Gamma, L1Squared, L2Squared, Laplace, LInf, Normal
from tests.statistical import calibration
from tests.statistical.calibration import assert_returns_to_prior

Problem = partial(calibration.Problem, shape=(5, 4), n_components=2)
HYPER = Gamma(4.0, 3.0)
# A floor of the noise depends on the data, and is not part of a prior that chains could return to.
COLUMN, BOTH, GROSS = GroupedNoise(floor=0.0), GroupedNoise("both", floor=0.0), ContaminatedNoise(floor=0.0)
SCALED = Units(np.array([2.0, 0.5, 7.0, 0.1]))
PROBLEMS = {
    "columns": Problem(L1(1.0), COLUMN),
    "columns, all observed": Problem(L2Squared(1.0) + LInf(1.0), COLUMN, missing=0.0),
    "columns in other units": Problem(L2Squared(1.0), COLUMN, units=SCALED),
    "columns of given strength": Problem(L1(1.0), GroupedNoise("column", strength=0.7, floor=0.0)),
    "rows": Problem(L1(1.0), "row"),
    "rows, all observed": Problem(L2Squared(1.0), "row", missing=0.0),
    "rows, columns in other units": Problem(L1(1.0), "row", units=SCALED),
    "both": Problem(L1(1.0), BOTH),
    "both, columns in other units": Problem(L1Squared(1.0), BOTH, missing=0.0, units=SCALED),
    "rate of L1": Problem(L1(HYPER), "common"),
    "rate of L2Squared": Problem(L2Squared(HYPER), COLUMN),
    "rate of L1Squared": Problem(L1Squared(HYPER), "common"),
    "rate of LInf": Problem(LInf(HYPER), "common"),
    "rates of L1 by component": Problem(L1(HYPER, by="component"), "common"),
    "rates of L2Squared by component": Problem(L2Squared(HYPER, by="component"), COLUMN, units=SCALED),
    "two rates": Problem((L1(HYPER), L2Squared(Gamma(3.0, 5.0))), "common"),
    "rate of W alone": Problem((L1(Gamma(4.0, 30.0), by="component"), L2Squared(1.0)), "common"),
    "known precisions": Problem(L1(1.0), "known", has_known_precisions=True),
    "known precisions, learned variances": Problem(L2Squared(1.0) + LInf(1.0), BOTH, has_known_precisions=True),
    "Student's t": Problem(L1(1.0), StudentT(3.0, "common"), missing=0.0),
    "Student's t by column": Problem(L2Squared(1.0), StudentT(5.0), units=SCALED),
    "Student's t by both, learned": Problem(L1(HYPER), StudentT(None, "both")),
    "Student's t by row, known precisions": Problem(L1(1.0), StudentT(2.0, "row"), has_known_precisions=True),
    "a fixed component": Problem(L1(1.0), COLUMN, n_components=3, units=SCALED, n_fixed=(1, 0)),
    "fixed weights": Problem(L2Squared(1.0) + LInf(1.0), "common", n_components=3, n_fixed=(0, 1)),
    "fixed in both, rates by component": Problem(L1(HYPER, by="component"), "row", n_components=4, n_fixed=(1, 1)),
    "fixed, one rate": Problem(L2Squared(HYPER), "common", n_components=3, n_fixed=(1, 0), missing=0.0),
    "fixed, pairs": Problem(L1Squared(1.0), "common", n_components=3, n_fixed=(2, 0), missing=0.0),
    "precision of a normal": Problem(Normal(0.0, HYPER), COLUMN),
    "precisions of normals by component": Problem(
        (L1(HYPER, by="component"), Normal(0.0, HYPER, by="component")), COLUMN, units=SCALED, missing=0.0
    ),
    "rates of Laplace by component": Problem(Laplace(HYPER, by="component"), "common"),
    "fixed components of a normal": Problem(Normal(0.0, HYPER), "row", n_components=3, n_fixed=(1, 1)),
    "Student's t and Laplace": Problem((Laplace(HYPER), Normal(0.0, 1.0)), StudentT(4.0)),
    "rate of Z alone": Problem((L1(1.0), LInf(HYPER)), "row"),
    "limits, columns in other units": Problem(L2Squared(1.0), COLUMN, units=SCALED, is_coarse=True),
    "limits, rows": Problem(L1(1.0), "row", missing=0.0, is_coarse=True),
    "limits, rows, few observed": Problem(L1(1.0), "row", missing=0.7, is_coarse=True),
    "limits, both": Problem(L1Squared(1.0), BOTH, units=SCALED, is_coarse=True),
    "limits, known precisions": Problem(L1(1.0), "known", has_known_precisions=True, is_coarse=True),
    "limits, Student's t": Problem(L1(HYPER), StudentT(None, "both"), units=SCALED, is_coarse=True),
    "gross errors": Problem(L2Squared(1.0), GROSS, units=SCALED),
    "gross errors, few observed": Problem(L1(HYPER), GROSS, missing=0.7),
    "gross errors, all observed": Problem((L1(1.0), Normal(0.0, 1.0)), GROSS, missing=0.0),
    "limits, gross errors": Problem(L2Squared(1.0), GROSS, units=SCALED, is_coarse=True),
    "limits, gross errors, few observed": Problem(L1(HYPER), GROSS, missing=0.7, is_coarse=True),
    "limits, fixed in both": Problem(
        (L1(HYPER, by="component"), Normal(0.0, 1.0)), COLUMN, n_components=4, n_fixed=(1, 1), is_coarse=True
    ),
}


@pytest.fixture(autouse=True)
def _frequent_gross_errors_and_followers(monkeypatch):
    monkeypatch.setattr(contaminated, "SHARE_PRIOR", (1.0, 2.0))
    monkeypatch.setattr(latent, "MIN_FOLLOWING", 0.0)


# Of each kind one; the proofs have all of them.
SOME = (
    "columns", "columns in other units", "columns of given strength", "rows", "both, columns in other units",
    "rate of L2Squared", "rates of L1 by component", "rate of W alone", "known precisions", "Student's t",
    "Student's t by both, learned", "fixed in both, rates by component", "precisions of normals by component",
    "limits, Student's t", "limits, gross errors", "limits, fixed in both",
)  # fmt: skip


@pytest.mark.parametrize("name", SOME)
def test_sweeps_from_a_joint_draw_return_to_the_prior(name):
    assert_returns_to_prior(PROBLEMS[name], 600, seed=list(PROBLEMS).index(name))


@pytest.mark.proof
@pytest.mark.parametrize("name", PROBLEMS)
def test_sweeps_from_many_joint_draws_return_to_the_prior(name):
    assert_returns_to_prior(PROBLEMS[name], 6000, seed=list(PROBLEMS).index(name))
