"""Implementations that bnmf is compared with."""

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.matrices import entries, is_complete
from benchmarks.peers.ours import Chain, effective, model_of, timed


class Reference:
    """Time per sweep of Algorithm 1 of the paper, as the NumPy reference implementation of the tests."""

    def __init__(self, X: Any, rank: int, n_threads: int) -> None:
        from tests.reference import reference_sample

        rng = np.random.default_rng(0)
        scale = np.sqrt(np.nanmean(X) / rank)
        W, Z = (scale * rng.exponential(size=shape) for shape in ((X.shape[0], rank), (rank, X.shape[1])))
        self.states = reference_sample(np.nan_to_num(X), ~np.isnan(X), W, Z, "gee", rng=rng)

    def measure(self, n: int) -> dict[str, float]:
        return {"seconds": timed(lambda: [next(self.states) for _ in range(n)]) / n}


class ScikitLearn:
    """Time per iteration of coordinate descent. Missing entries are replaced by zeros, as it does not support them."""

    def __init__(self, X: Any, rank: int, n_threads: int) -> None:
        self.X = sp.csr_matrix(X) if sp.issparse(X) else np.nan_to_num(X)
        self.rank = rank
        self._fit(1)  # imports are no part of an iteration

    def _fit(self, n: int) -> None:
        from sklearn.decomposition import NMF

        with warnings.catch_warnings(action="ignore"):
            NMF(self.rank, solver="cd", init="random", tol=0, max_iter=n, random_state=0).fit(self.X)

    def measure(self, n: int) -> dict[str, float]:
        # The difference of a long and a short fit, so that the set-up cancels.
        return {"seconds": (timed(lambda: self._fit(1 + n)) - timed(lambda: self._fit(1))) / n}


class Smurff:
    """Time per sweep of SMURFF's Bayesian probabilistic matrix factorisation, a Gibbs sampler in C++."""

    def __init__(self, X: Any, rank: int, n_threads: int) -> None:
        import smurff

        self.session = smurff.BPMFSession(
            X if is_complete(X) else entries(X),
            is_scarce=True,
            num_latent=rank,
            num_threads=n_threads,
            burnin=2,
            nsamples=10_000_000,  # more than are timed: the session is advanced one sweep at a time
            seed=1,
            verbose=0,
        )
        self.session.init()
        self.session.step()

    def measure(self, n: int) -> dict[str, float]:
        return {"seconds": timed(lambda: [self.session.step() for _ in range(n)]) / n}


class Nuts:
    """Time per effective sample of the worst prediction of NumPyro's NUTS on the same GEE model.

    In favour of NUTS, the chain starts from a state of our sampler after its burn-in, and neither compilation nor
    warm-up is timed.
    """

    def __init__(self, X: Any, rank: int, n_threads: int, warmup: int, draws: int) -> None:
        import jax
        import jax.numpy as jnp
        import numpyro
        import numpyro.distributions as dist
        from numpyro.infer import MCMC, NUTS, init_to_value

        observed, filled, (rows, columns) = jnp.asarray(~np.isnan(X)), jnp.asarray(np.nan_to_num(X)), X.shape
        rate = 0.1  # as in prior="gee"

        def model() -> None:
            W = numpyro.sample("W", dist.Exponential(rate).expand((rows, rank)).to_event(2))
            Z = numpyro.sample("Z", dist.Exponential(rate).expand((rank, columns)).to_event(2))
            sigma2 = numpyro.sample("sigma2", dist.InverseGamma(1.0, 1.0))
            with numpyro.handlers.mask(mask=observed):
                numpyro.sample("A", dist.Normal(W @ Z, jnp.sqrt(sigma2)), obs=filled)

        chain = Chain(model_of(X, rank), n_threads=n_threads)
        chain.sweep(200)
        values = {"W": jnp.asarray(chain.state.W), "Z": jnp.asarray(chain.state.Z), "sigma2": chain.state.sigma2}
        kernel = NUTS(model, init_strategy=init_to_value(values=values))
        self.mcmc = MCMC(kernel, num_warmup=warmup, num_samples=draws, progress_bar=False)
        self.mcmc.warmup(jax.random.PRNGKey(0))
        self._continue()  # compiles the sampling code

    def _continue(self) -> None:
        self.mcmc.post_warmup_state = self.mcmc.last_state
        self.mcmc.run(self.mcmc.post_warmup_state.rng_key, extra_fields=("num_steps",))
        self.mcmc.get_samples()["W"].block_until_ready()

    def measure(self, n: int) -> dict[str, float]:
        seconds = timed(self._continue)
        draws = self.mcmc.get_samples()
        W, Z = (np.asarray(draws[name], dtype=np.float64) for name in "WZ")
        if len(W) != n:
            raise ValueError(f"expected n = {len(W)}, the number of draws of the set-up, got {n}")
        steps = float(np.mean(self.mcmc.get_extra_fields()["num_steps"]))
        return {**effective(seconds, (W @ Z).reshape(n, -1), draws["sigma2"]), "leapfrogs": steps}
