"""NumPyro's NUTS on the same GEE model: exponential factors, inverse-gamma noise variance, observed entries only."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, init_to_value

from benchmarks.peers.measures import timed, worst_ess
from benchmarks.peers.ours import Chain, model_of

# λ of the exponential priors, as in prior="gee".
RATE = 0.1


class Nuts:
    """Time per effective sample of the worst prediction.

    In favour of NUTS, the chain starts from a state of our sampler after its burn-in, and neither compilation nor
    warm-up is timed.
    """

    def __init__(self, X: Any, rank: int, n_threads: int, warmup: int, draws: int) -> None:
        observed = jnp.asarray(~np.isnan(X))
        filled = jnp.asarray(np.nan_to_num(X))
        rows, columns = X.shape

        def model() -> None:
            W = numpyro.sample("W", dist.Exponential(RATE).expand((rows, rank)).to_event(2))
            Z = numpyro.sample("Z", dist.Exponential(RATE).expand((rank, columns)).to_event(2))
            sigma2 = numpyro.sample("sigma2", dist.InverseGamma(1.0, 1.0))
            with numpyro.handlers.mask(mask=observed):
                numpyro.sample("A", dist.Normal(W @ Z, jnp.sqrt(sigma2)), obs=filled)

        chain = Chain(model_of(X, rank), 0, n_threads)
        chain.sweep(200)
        values = {"W": jnp.asarray(chain.state.W), "Z": jnp.asarray(chain.state.Z), "sigma2": chain.state.sigma2}
        kernel = NUTS(model, init_strategy=init_to_value(values=values))
        self.mcmc = MCMC(kernel, num_warmup=warmup, num_samples=draws, progress_bar=False)
        self.mcmc.warmup(jax.random.PRNGKey(0))
        self._continue()  # compiles the sampling code

    def _continue(self) -> None:
        self.mcmc.post_warmup_state = self.mcmc.last_state
        self.mcmc.run(self.mcmc.post_warmup_state.rng_key, extra_fields=("num_steps",))
        jax.block_until_ready(self.mcmc.get_samples())

    def measure(self, n: int) -> dict[str, float]:
        seconds = timed(self._continue)
        draws = self.mcmc.get_samples()
        W, Z = (np.asarray(draws[name], dtype=np.float64) for name in "WZ")
        if len(W) != n:
            raise ValueError(f"expected n = {len(W)}, the number of draws of the set-up, got {n}")
        ess = worst_ess((W @ Z).reshape(n, -1))
        steps = float(np.mean(self.mcmc.get_extra_fields()["num_steps"]))
        noise = float(np.mean(draws["sigma2"]))
        return {"seconds": seconds / ess, "worst ESS": ess, "draws": n, "noise variance": noise, "leapfrogs": steps}
