"""The Gibbs sampler: state in, state out.

A sweep draws W given Z, Z given W, the noise after the half-sweep that yields its squared errors, the learned rates,
and the scale of each component. Everything is in units of the model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from bnmf.data.patterns import Lists
from bnmf.data.views import ScaledView
from bnmf.kernels.rescale import rescale as rescale_factors
from bnmf.kernels.sweep import sweep_rows
from bnmf.kernels.systems import sum_blocks, system_size
from bnmf.model.model import Model, Rates
from bnmf.model.noise import NoiseState
from bnmf.priors.base import Coefficients
from bnmf.sampler.state import State
from bnmf.sampler.streams import DRAW_W, DRAW_Z, NOISE, NOISE_FIRST, RATES, RESCALE, START, Key, Stream
from bnmf.sampler.threads import Workers, single_threaded_blas
from bnmf.utils.typing import Floats, Words

# Below this fraction of its sum of squares, the squared error of a row from the quadratic form has lost its digits to
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
        A draw from the priors, or W0 (rows, K) and Z0 (K, columns), with Z0 in the user's units.
    workers : Workers, optional
        Threads to share the rows.

    Returns
    -------
    State
        The state before the first sweep, with noise drawn given the factors.
    """
    workers = workers or Workers()
    rng = stream.generator(stream.key(0, START))
    rates = model.starting_rates
    if isinstance(init, str):
        if init != "random":
            raise ValueError(f"init must be 'random' or a pair (W0, Z0), got {init!r}")
        priors = model.priors_at(rates)
        W, Zt = (prior.draw(shape, rng) for prior, shape in zip(priors, model.factor_shapes, strict=True))
    else:
        W, Zt = _given_start(init, model)
    noise = model.noise_model.start(model.data.shape)
    errors = np.empty(0)
    for half in model.noise_model.updated_after:
        view, given, other = _half(half, model, W, Zt)
        errors = squared_errors(view, given, other, workers)
        bounds = model.max_precisions[half]
        noise = model.noise_model.update(half, noise, errors, view.view.n_observed, bounds, rng)
    return _state(model, W, Zt, noise, rates, errors, float(errors.sum()), 0)


def _given_start(init: Any, model: Model) -> tuple[Floats, Floats]:
    """Return validated copies of W0 and of Z0 transposed, in units of the model."""
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
    return np.ascontiguousarray(factors[0]), np.ascontiguousarray((factors[1] / model.units.scale).T)


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
    prior_W, prior_Z = model.coefficients(state.rates)
    W, Zt, noise = state.W.copy(), state.Zt.copy(), state.noise
    errors, last = np.empty(0), model.noise_model.halves[-1]
    with single_threaded_blas():
        for half in model.noise_model.halves:
            view, given, other = _half(half, model, W, Zt)
            row_variance, entry_variance = _variances(half, noise)
            prior, key = (prior_W, keys[DRAW_W]) if half == "W" else (prior_Z, keys[DRAW_Z])
            is_used = half in model.noise_model.updated_after
            errors = half_sweep(
                view, given, other, prior, row_variance, entry_variance, key, workers, needs_errors=is_used
            )
            if is_used:
                rng = stream.generator(keys[NOISE if half == last else NOISE_FIRST])
                bounds = model.max_precisions[half]
                noise = model.noise_model.update(half, noise, errors, view.view.n_observed, bounds, rng)
        squared_error = float(errors.sum())
        if model.noise_model.by == "both":  # those errors are divided by the variances of one side
            squared_error = float(squared_errors(model.columns, Zt, W, workers).sum())
    rates = state.rates
    if rates:
        rates = model.draw_rates(W, Zt, stream.generator(keys[RATES]))
        prior_W, prior_Z = model.coefficients(rates)
    if rescale:
        of_W = prior_W.linear, prior_W.quadratic, prior_W.pairwise, prior_W.max_rate
        of_Z = prior_Z.linear, prior_Z.quadratic, prior_Z.pairwise, prior_Z.max_rate
        rescale_factors(W, Zt, *of_W, *of_Z, *keys[RESCALE])
    return _state(model, W, Zt, noise, rates, errors, squared_error, sweep)


def _half(half: str, model: Model, W: Floats, Zt: Floats) -> tuple[ScaledView, Floats, Floats]:
    """Return the data of a half-sweep, the factor that it draws, and the other one."""
    return (model.rows, W, Zt) if half == "W" else (model.columns, Zt, W)


def _variances(half: str, noise: NoiseState) -> tuple[Floats, Floats]:
    """Return the variances of the rows of a half-sweep, and those of the entries of a row."""
    return (noise.row, noise.column) if half == "W" else (noise.column, noise.row)


def _state(
    model: Model,
    W: Floats,
    Zt: Floats,
    noise: NoiseState,
    rates: Rates,
    errors: Floats,
    squared_error: float,
    sweep: int,
) -> State:
    """Return a state with its log likelihood, given the squared errors of the rows of the last half-sweep."""
    row_variance, _ = _variances(model.noise_model.halves[-1], noise)
    data = model.data
    logs = data.n_observed * math.log(2.0 * math.pi)
    for variance, view in ((noise.row, data.rows), (noise.column, data.columns)):
        if variance.size > 1:
            logs += float(view.n_observed @ np.log(variance))
        else:
            logs += data.n_observed * math.log(variance[0])
    log_likelihood = -0.5 * (logs + (errors / row_variance).sum())
    return State(W, Zt, noise, rates, squared_error, float(log_likelihood), sweep)


def half_sweep(
    view: ScaledView,
    W: Floats,
    Z: Floats,
    prior: Coefficients,
    row_variance: Floats,
    entry_variance: Floats,
    key: Key,
    workers: Workers,
    ids: Words | None = None,
    *,
    needs_errors: bool = True,
) -> Floats:
    """Draw every row of W in place given Z, both (rows, K), and return the squared error of each row.

    Entry (i, j) has variance row_variance_i entry_variance_j, each one number or one for each row or column. Unequal
    variances of the columns enter as a scaling of Z and of the data by their roots. The squared errors are divided by
    entry_variance; without `needs_errors` they are not to be used. Each row reads the random stream of its id, which
    is its number if `ids` is not given.
    """
    rows = view.view
    ids = rows.ids if ids is None else ids
    if entry_variance.size > 1:
        precision = 1.0 / row_variance
        root = 1.0 / np.sqrt(entry_variance)
        Z = Z * root[:, None]
        view = view.times(root)
    else:
        precision = 1.0 / (row_variance * entry_variance)
    squares = view.squares if needs_errors else rows.squares
    product_Z = Z if view.entry_scale is None else Z * view.entry_scale[:, None]
    value_scale = np.ones(len(Z)) if view.entry_scale is None else view.entry_scale
    gram = Z.T @ Z
    blocks = block_sums(rows.lists, Z)
    squared_error = np.empty(rows.n_rows)

    def work(begin: int, end: int) -> None:
        sweep_rows(
            W, Z, view.product(begin, end, product_Z), gram, blocks, *rows.lists, rows.lists_missing, rows.order,
            rows.repeats, ids, prior.linear, prior.quadratic, prior.pairwise, prior.max_rate, prior.paper_rule,
            precision, value_scale, view.row_scale, *key, begin, end, squares, squared_error,
        )  # fmt: skip

    workers.over_rows(work, rows.n_rows)
    if needs_errors:
        _recompute_cancelled(view, W, Z, squared_error)
        if entry_variance.size == 1 and entry_variance[0] != 1.0:
            squared_error /= entry_variance[0]
    return squared_error


def _recompute_cancelled(view: ScaledView, W: Floats, Z: Floats, squared_error: Floats) -> None:
    """Replace squared errors that have cancelled by those of the residuals."""
    cancelled = np.flatnonzero(~(squared_error > MIN_TRUSTED_ERROR * view.sums_of_squares))
    for row in cancelled.tolist():
        view.squared_errors(W, Z, row, row + 1, squared_error)


def block_sums(lists: Lists, Z: Floats) -> Floats:
    """Return Σ z zᵀ over each block of entries that are missing together."""
    n_blocks = len(lists.member_indptr) - 1
    blocks = np.empty(n_blocks * system_size(Z.shape[1]))
    if n_blocks:
        sum_blocks(Z, lists.member_indptr, lists.members, blocks)
    return blocks


def squared_errors(view: ScaledView, W: Floats, Z: Floats, workers: Workers) -> Floats:
    """Return Σ (a - w z)² over the observed entries of each row, from the residuals."""
    errors = np.empty(view.view.n_rows)
    workers.over_rows(lambda begin, end: view.squared_errors(W, Z, begin, end, errors), len(errors))
    return errors


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
