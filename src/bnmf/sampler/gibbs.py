"""The Gibbs sampler: state in, state out.

A sweep draws W given Z, Z given W, the noise variance, and the scale of each component.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bnmf.data.patterns import Lists
from bnmf.data.views import View
from bnmf.kernels.rescale import rescale as rescale_factors
from bnmf.kernels.sweep import sweep_rows
from bnmf.kernels.systems import sum_blocks, system_size
from bnmf.model.model import Model
from bnmf.priors.base import Coefficients
from bnmf.sampler.state import State
from bnmf.sampler.streams import DRAW_W, DRAW_Z, NOISE, RESCALE, START, Key, Stream
from bnmf.sampler.threads import Workers, single_threaded_blas
from bnmf.utils.typing import Floats, Words

# Below this fraction of the data's sum of squares, the squared error from the quadratic form has lost its digits to
# cancellation and is recomputed from the residuals.
MIN_TRUSTED_ERROR = 1e-8


def start(model: Model, stream: Stream, init: Any = "random", workers: Workers | None = None) -> State:
    """Return the state that a chain starts from.

    Parameters
    ----------
    model : Model
        What to sample from.
    stream : Stream
        Source of randomness.
    init : "random" or pair of arrays, default="random"
        A draw from the priors, or W0 (rows, K) and Z0 (K, columns).
    workers : Workers, optional
        Threads to share the rows.

    Returns
    -------
    State
        The state before the first sweep, with a noise variance drawn given the factors.
    """
    rng = stream.generator(stream.key(0, START))
    if isinstance(init, str):
        if init != "random":
            raise ValueError(f"init must be 'random' or a pair (W0, Z0), got {init!r}")
        W, Zt = (prior.draw(shape, rng) for prior, shape in zip(model.priors, model.factor_shapes, strict=True))
    else:
        W, Zt = _given_start(init, model)
    squared_error = sum_squared_error(model.data.rows, W, Zt, workers or Workers())
    sigma2 = model.noise.draw(model.data.n_observed, squared_error, rng)
    return State(W, Zt, sigma2, squared_error, 0)


def _given_start(init: Any, model: Model) -> tuple[Floats, Floats]:
    """Return validated copies of W0 and of Z0 transposed."""
    try:
        W0, Z0 = init
    except (TypeError, ValueError):
        raise ValueError(f"init must be 'random' or a pair (W0, Z0), got {init!r}") from None
    shape_W, shape_Zt = model.factor_shapes
    factors = []
    for name, given, shape in (("W0", W0, shape_W), ("Z0", Z0, shape_Zt[::-1])):
        factor = np.array(given, dtype=np.float64)
        if factor.shape != shape:
            raise ValueError(f"{name} of init must have shape {shape}, got {factor.shape}")
        if not np.isfinite(factor).all() or (factor < 0).any():
            raise ValueError(f"{name} of init must be finite and nonnegative")
        factors.append(factor)
    return np.ascontiguousarray(factors[0]), np.ascontiguousarray(factors[1].T)


def step(model: Model, state: State, stream: Stream, workers: Workers | None = None, *, rescale: bool = True) -> State:
    """Return the next state of the chain.

    Parameters
    ----------
    model : Model
        What to sample from.
    state : State
        The current state, which is not changed.
    stream : Stream
        Source of randomness.
    workers : Workers, optional
        Threads to share the rows; the draws do not depend on their number.
    rescale : bool, default=True
        End with the rescaling move.

    Returns
    -------
    State
        The state after one sweep.
    """
    workers = workers or Workers()
    sweep = state.sweep + 1
    keys = stream.keys(sweep)
    prior_W, prior_Z = model.coefficients
    W, Zt = state.W.copy(), state.Zt.copy()
    with single_threaded_blas():
        half_sweep(model.data.rows, W, Zt, prior_W, state.sigma2, keys[DRAW_W], workers)
        squared_error = half_sweep(model.data.columns, Zt, W, prior_Z, state.sigma2, keys[DRAW_Z], workers)
        if not squared_error > MIN_TRUSTED_ERROR * model.data.sum_of_squares:
            squared_error = sum_squared_error(model.data.rows, W, Zt, workers)
    sigma2 = model.noise.draw(model.data.n_observed, squared_error, stream.generator(keys[NOISE]))
    if rescale:
        of_W = prior_W.linear, prior_W.quadratic, prior_W.pairwise, prior_W.max_rate
        of_Z = prior_Z.linear, prior_Z.quadratic, prior_Z.pairwise, prior_Z.max_rate
        rescale_factors(W, Zt, *of_W, *of_Z, *keys[RESCALE])
    return State(W, Zt, sigma2, squared_error, sweep)


def half_sweep(
    view: View,
    W: Floats,
    Z: Floats,
    prior: Coefficients,
    sigma2: float,
    key: Key,
    workers: Workers,
    ids: Words | None = None,
) -> float:
    """Draw every row of W in place given Z, both (rows, K), and return the remaining squared error.

    Each row reads the random stream of its id, which is its number if `ids` is not given.
    """
    ids = view.ids if ids is None else ids
    gram = Z.T @ Z
    blocks = block_sums(view.lists, Z)
    squared_error = np.empty(view.n_rows)

    def work(begin: int, end: int) -> None:
        sweep_rows(
            W, Z, view.product(begin, end, Z), gram, blocks, *view.lists, view.lists_missing, view.order, view.repeats,
            ids, prior.linear, prior.quadratic, prior.pairwise, prior.max_rate, prior.paper_rule, 1.0 / sigma2, *key,
            begin, end, view.squares, squared_error,
        )  # fmt: skip

    workers.over_rows(work, view.n_rows)
    return float(squared_error.sum())


def block_sums(lists: Lists, Z: Floats) -> Floats:
    """Return Σ z zᵀ over each block of entries that are missing together."""
    n_blocks = len(lists.member_indptr) - 1
    blocks = np.empty(n_blocks * system_size(Z.shape[1]))
    if n_blocks:
        sum_blocks(Z, lists.member_indptr, lists.members, blocks)
    return blocks


def sum_squared_error(view: View, W: Floats, Z: Floats, workers: Workers) -> float:
    """Return Σ (a - w z)² over the observed entries, from the residuals."""
    return sum(workers.over_rows(lambda begin, end: view.squared_error(W, Z, begin, end), view.n_rows))


def sample(
    model: Model,
    stream: Stream,
    *,
    init: Any = "random",
    state: State | None = None,
    n_sweeps: int | None = None,
    n_threads: int = 1,
    rescale: bool = True,
) -> Iterator[State]:
    """Yield the states of a chain, one after each sweep.

    Parameters
    ----------
    model : Model
        What to sample from.
    stream : Stream
        Source of randomness.
    init : "random" or pair of arrays, default="random"
        Where a new chain starts; see :func:`start`.
    state : State, optional
        A state to continue from, in place of a new start.
    n_sweeps : int, optional
        Number of sweeps; endless by default.
    n_threads : int, default=1
        Threads that share the rows of a half-sweep.
    rescale : bool, default=True
        End each sweep with the rescaling move.

    Yields
    ------
    State
        The state after each sweep.

    Examples
    --------
    >>> import numpy as np
    >>> from bnmf.data import ObservedMatrix
    >>> data = ObservedMatrix.from_data(np.arange(12.0).reshape(4, 3))
    >>> model = Model(data, n_components=2, prior="gee")
    >>> states = list(sample(model, Stream(seed=0), n_sweeps=5))
    >>> [s.sweep for s in states], states[-1].W.shape, states[-1].Z.shape
    ([1, 2, 3, 4, 5], (4, 2), (2, 3))
    """
    with Workers(n_threads) as workers:
        state = start(model, stream, init, workers) if state is None else state
        while n_sweeps is None or n_sweeps > 0:
            state = step(model, state, stream, workers, rescale=rescale)
            yield state
            n_sweeps = None if n_sweeps is None else n_sweeps - 1
