"""Numbers at the end of the range of floating point: a fit ends, with finite factors or with an error that says why."""

import faulthandler
import re
import warnings

import numpy as np

from bnmf import BayesianNMF
from bnmf.priors import L1, L1Squared, L2Squared, LInf, TruncatedNormal

SECONDS = 120  # for all fits
PRIORS = ["gee", "gl12", "gl22", "glinf", "gl22inf"]
RATES = (1e-310, 1e-300, 1e300)


def matrix():
    X = np.random.default_rng(0).exponential(size=(6, 5))
    X[1, 2] = X[4, 0] = X[4, 1] = np.nan
    return X / np.nanmax(X)


def cases():
    """Return settings by name; `size` is the largest entry of the data."""
    noises = [("common", None), ("column", None), ("both", None), ("column", "column"), ("row", "matrix")]
    found = {
        f"data of {size}, {prior}, {noise}, {scale}": {"size": size, "prior": prior, "noise": noise, "scale": scale}
        for size in (1.7e308, 1e140, 1e-140, 1e-320)
        for noise, scale in noises
        for prior in PRIORS
    }
    for prior in PRIORS:
        for W0, Z0 in ((1e200, 1e200), (1e200, 1e-200), (1e308, 1.0), (1e-320, 1e-320)):
            init = np.full((6, 2), W0), np.full((2, 5), Z0)
            found[f"init of {W0} and {Z0}, {prior}"] = {"init": init, "prior": prior}
    priors = [LInf(rate) for rate in RATES] + [kind(rate) for kind in (L1, L1Squared, L2Squared) for rate in RATES]
    priors += [kind(1.0) + LInf(rate) for kind in (L1, L1Squared, L2Squared) for rate in RATES]
    normals = [TruncatedNormal(mean, precision) for mean in (1e300, -1e300) for precision in (1e-300, 1.0, 1e300)]
    for prior in (*priors, *normals, *(normal + LInf(1.0) for normal in normals)):
        found[str(prior)] = {"prior": prior}
    return found


def outcome(size=1.0, **settings):
    """Fit a small matrix; return "finite", "not finite", or the message of an error."""
    model = BayesianNMF(2, n_chains=1, burn_in=3, n_draws=3, random_state=0, progress=False, **settings)
    try:
        posterior = model.fit(matrix() * size).posterior_
    except (FloatingPointError, ValueError) as error:
        return str(error)
    return "finite" if np.isfinite(posterior.W).all() and np.isfinite(posterior.Z).all() else "not finite"


def test_a_fit_ends_with_finite_factors_or_a_clear_error():
    faulthandler.dump_traceback_later(SECONDS, exit=True)  # timeouts of a test runner do not end a compiled loop
    try:
        with warnings.catch_warnings(action="ignore"):  # of overflow, which NumPy reports on the way to the error
            outcomes = {name: outcome(**settings) for name, settings in cases().items()}
    finally:
        faulthandler.cancel_dump_traceback_later()
    advice = re.compile(r"[Dd]ivide the data by a number|divide X by a constant|multiply X")
    assert {name: end for name, end in outcomes.items() if end != "finite" and not advice.search(end)} == {}
    # Both ends occur.
    assert outcomes["data of 1e+140, gee, column, column"] == outcomes["data of 1e-140, gee, common, None"] == "finite"
    for name in ("data of 1.7e+308, gee, common, None", "TruncatedNormal(mean=1e+300, precision=1.0)"):
        assert outcomes[name] != "finite"
