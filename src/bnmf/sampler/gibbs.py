"""The Gibbs sampler: state in, state out.

A sweep draws W given Z, Z given W, the noise after the half-sweep that yields its squared errors, the learned rates,
and the scale of each component. Everything is in units of the model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import singledispatch
from typing import Any

import numpy as np

from bnmf.data.views import ScaledView
from bnmf.kernels.products import set_other
from bnmf.kernels.rescale import rescale
from bnmf.kernels.rows import ROWS_PER_TILE, MaxTerm
from bnmf.kernels.shear import shear
from bnmf.kernels.shear import workspace_size as shear_size
from bnmf.kernels.sweep import draw_tiles
from bnmf.kernels.systems import min_sharing
from bnmf.model.model import Model, Rates
from bnmf.model.noise import NoiseState
from bnmf.priors.base import Coefficients
from bnmf.sampler.moves import MIXING, Moves
from bnmf.sampler.state import State
from bnmf.sampler.streams import DRAW_W, DRAW_Z, NOISE, NOISE_FIRST, RATES, RESCALE, SHEAR, START, Key, Stream
from bnmf.sampler.threads import Workers, single_threaded_blas
from bnmf.utils.typing import Floats, Words

# Below this fraction of its sum of squares, the squared error of a row from the quadratic form has lost its digits to
# cancellation and is recomputed from the residuals.
MIN_TRUSTED_ERROR = 1e-8
NO_NUMBERS, ONE = np.zeros(0), np.ones(1)


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


def step(model: Model, state: State, stream: Stream, workers: Workers | None = None, moves: Moves = MIXING) -> State:
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
    moves : Moves, optional
        What to do beside drawing each row once.

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
    for half in model.noise_model.halves:
        view, given, other = _half(half, model, W, Zt)
        row_variance, entry_variance = _variances(half, noise)
        prior, key = (prior_W, keys[DRAW_W]) if half == "W" else (prior_Z, keys[DRAW_Z])
        is_used = half in model.noise_model.updated_after
        errors = half_sweep(
            view, given, other, prior, row_variance, entry_variance, key, workers, needs_errors=is_used,
            n_passes=moves.n_passes,
        )  # fmt: skip
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
    if moves.rescale or moves.n_partners:
        separable_W, max_W = _kernel_prior(prior_W)
        separable_Z, max_Z = _kernel_prior(prior_Z)
        priors = separable_W, separable_Z, max_W, max_Z
        if moves.rescale:
            rescale(W, Zt, *priors, *keys[RESCALE])
        if moves.n_partners and W.shape[1] > 1:
            partners = (sweep - 1) * moves.n_partners, sweep * moves.n_partners
            shear(W, Zt, *priors, keys[SHEAR], partners, workers.numbers(shear_size(len(W), *Zt.shape)))
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
    fit = (errors / row_variance).sum() if row_variance.size > 1 else errors.sum() / row_variance[0]
    logs = data.n_observed * math.log(2.0 * math.pi)
    for variance, view in ((noise.row, data.rows), (noise.column, data.columns)):
        if variance.size > 1:
            logs += float(view.n_observed @ np.log(variance))
        else:
            logs += data.n_observed * math.log(variance[0])
    return State(W, Zt, noise, rates, squared_error, float(-0.5 * (logs + fit)), sweep)


@singledispatch
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
    n_passes: int = 1,
) -> Floats:
    """Draw every row of W in place given Z, both (rows, K), and return the squared error of each row.

    Entry (i, j) has variance row_variance_i entry_variance_j, each one number or one for each row or column. Unequal
    variances of the columns enter as a scaling of Z and of the data by their roots. The squared errors are divided by
    entry_variance; without `needs_errors` they are not to be used. Each row reads the random stream of its id, which
    is its number if `ids` is not given, and is drawn `n_passes` times.

    Data that are not in this process register a function of their own, which calls this one where they are.
    """
    rows = view.view
    deviation = NO_NUMBERS
    if entry_variance.size > 1:
        precision, deviation = 1.0 / row_variance, np.sqrt(entry_variance)
        view = view.times(1.0 / deviation)
    else:
        precision = 1.0 / (row_variance * entry_variance)
    other = workers.other_factor(*Z.shape, is_scaled=view.entry_scale is not None)
    set_other(Z, deviation, NO_NUMBERS if view.entry_scale is None else view.entry_scale, other)
    data = rows.kernel_data(view.squares if needs_errors else rows.squares)
    entry_scale = ONE if view.entry_scale is None else view.entry_scale
    scales = precision, entry_scale, view.row_scale  # the fields of `Scales`
    separable, max_term = _kernel_prior(prior)
    streams = *key, rows.ids if ids is None else ids, n_passes  # the fields of `Streams`
    sharing, others = rows.split(min_sharing(W.shape[1]))
    side, longest = other[0].shape[1], rows.longest_list
    squared_error = np.empty(rows.n_rows)

    def draw(*tiles: int) -> None:
        draw_tiles(
            W, other, data, scales, separable, max_term, streams, tiles, sharing, others,
            workers.workspace(side, longest), squared_error,
        )  # fmt: skip

    workers.over_tiles(draw, rows.n_rows)
    if needs_errors:
        _recompute_cancelled(view, W, other[0], squared_error)
        if entry_variance.size == 1 and entry_variance[0] != 1.0:
            squared_error /= entry_variance[0]
    return squared_error


def _kernel_prior(prior: Coefficients) -> tuple[tuple[Any, ...], MaxTerm | None]:
    """Return a prior in the form of the kernels: the fields of `Separable`, and the max term if there is one.

    Code for a max term is compiled only if there is one.
    """
    max_term = MaxTerm(prior.max_rate, prior.paper_rule) if prior.max_rate else None
    return (prior.linear, prior.quadratic, prior.pairwise), max_term


def _recompute_cancelled(view: ScaledView, W: Floats, padded: Floats, squared_error: Floats) -> None:
    """Replace squared errors that have cancelled by those of the residuals, given Z as the kernels read it."""
    is_trusted = squared_error > MIN_TRUSTED_ERROR * view.sums_of_squares
    if not is_trusted.all():
        Z = np.ascontiguousarray(padded[:-1, : W.shape[1]])
        for row in np.flatnonzero(~is_trusted).tolist():
            view.squared_errors(W, Z, row, row + 1, squared_error)


@singledispatch
def squared_errors(view: ScaledView, W: Floats, Z: Floats, workers: Workers) -> Floats:
    """Return Σ (a - w z)² over the observed entries of each row, from the residuals."""
    errors = np.empty(view.view.n_rows)

    def compute(first: int, last: int) -> None:
        view.squared_errors(W, Z, first * ROWS_PER_TILE, min(last * ROWS_PER_TILE, len(errors)), errors)

    with single_threaded_blas():
        workers.over_tiles(compute, len(errors))
    return errors


def sample(
    model: Model,
    stream: Stream,
    *,
    init: Any = "random",
    state: State | None = None,
    n_sweeps: int | None = None,
    n_threads: int = 1,
    moves: Moves = MIXING,
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
    moves : Moves, optional
        What a sweep does beside drawing each row once.

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
            state = step(model, state, stream, workers, moves)
            yield state
            n_sweeps = None if n_sweeps is None else n_sweeps - 1
