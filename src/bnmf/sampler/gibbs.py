"""The Gibbs sampler: state in, state out.

A sweep draws the latent values of entries that are only known to lie between limits, W given Z, Z given W, the noise
after the half-sweep that yields its squared errors, the learned rates, and the scale of each component. Latent values
come first and are drawn given everything else, so that they are no part of a state. Everything is in units of the
model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import singledispatch
from typing import Any

import numpy as np

from bnmf.data.limits import refreshed
from bnmf.data.patterns import min_sharing
from bnmf.data.views import ScaledView
from bnmf.kernels.compiled import ROWS_PER_TILE, HalfSweep, Prior, all_finite, rescale, shear
from bnmf.model.model import Model
from bnmf.model.noise import NoiseState, StudentT
from bnmf.priors.base import Coefficients
from bnmf.sampler.moves import MIXING, Moves
from bnmf.sampler.state import State
from bnmf.sampler.streams import (
    DRAW_W,
    DRAW_Z,
    ENTRIES,
    LATENT,
    NOISE,
    NOISE_FIRST,
    RATES,
    RESCALE,
    SHEAR,
    START,
    Key,
    Stream,
)
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
    model.fixed.apply(W, Zt, model.units.scale)
    noise = model.noise_model.start(model.data.shape)
    errors = np.empty(0)
    if isinstance(model.noise_model, StudentT):
        residuals = listed_residuals(model, W, Zt, workers)
        noise = model.noise_model.update_entries(noise, model.standardised_squares(residuals, noise)[0], rng)
    for half in model.noise_model.updated_after:
        view, given, other = _half(half, model, W, Zt)
        errors = squared_errors(view, given, other, workers)
        bounds = model.max_precisions[half]
        noise = model.noise_model.update(half, noise, errors, view.view.n_observed, bounds, rng)
    log_likelihood = -math.inf if model.is_weighted else _log_likelihood(model, noise, errors)
    return State(W, Zt, noise, rates, float(errors.sum()), log_likelihood, 0)


def _given_start(init: Any, model: Model) -> tuple[Floats, Floats]:
    """Return validated copies of W0 and of Z0 transposed, in units of the model."""
    try:
        W0, Z0 = init
    except (TypeError, ValueError):
        raise ValueError(f"init must be 'random' or a pair (W0, Z0), got {init!r}") from None
    shape_W, shape_Zt = model.factor_shapes
    factors = []
    given_factors = ("W0", W0, shape_W, model.priors[0]), ("Z0", Z0, shape_Zt[::-1], model.priors[1])
    for name, given, shape, prior in given_factors:
        factor = np.array(given, dtype=np.float64)
        if factor.shape != shape:
            raise ValueError(f"{name} of init must have shape {shape}, got {factor.shape}")
        if not np.isfinite(factor).all() or ((factor < 0).any() and not prior.is_real):
            raise ValueError(f"{name} of init must be finite{'' if prior.is_real else ' and nonnegative'}")
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
    if model.data.limits is not None:
        model = with_latent_values(model, W, Zt, noise, keys[LATENT], workers)
    errors, last, roots = np.empty(0), model.noise_model.halves[-1], model.roots(noise)
    for half in model.noise_model.halves:
        view, given, other = _half(half, model, W, Zt)
        row_variance, entry_variance = _variances(half, noise)
        prior, key = (prior_W, keys[DRAW_W]) if half == "W" else (prior_Z, keys[DRAW_Z])
        is_used = half in model.noise_model.updated_after
        errors = half_sweep(
            view, given, other, prior, row_variance, entry_variance, key, workers, needs_errors=is_used,
            n_passes=moves.n_passes, roots=roots[half], drawn=model.drawn[half],
        )  # fmt: skip
        if is_used:
            rng = stream.generator(keys[NOISE if half == last else NOISE_FIRST])
            bounds = model.max_precisions[half]
            noise = model.noise_model.update(half, noise, errors, view.view.n_observed, bounds, rng)
    squared_error = float(errors.sum())
    if model.noise_model.by == "both":  # those errors are divided by the variances of one side
        squared_error = float(squared_errors(model.columns, Zt, W, workers).sum())
    log_likelihood = None
    if model.is_weighted:
        residuals = listed_residuals(model, W, Zt, workers)
        if isinstance(model.noise_model, StudentT):
            squares, _ = model.standardised_squares(residuals, noise)
            noise = model.noise_model.update_entries(noise, squares, stream.generator(keys[ENTRIES]))
        squared_error, log_likelihood = float(residuals @ residuals), model.log_likelihood_of(residuals, noise)
    rates = state.rates
    if rates:
        rates = model.draw_rates(W, Zt, stream.generator(keys[RATES]))
        prior_W, prior_Z = model.coefficients(rates)
    _move(W, Zt, prior_W, prior_Z, model, keys, moves, sweep, workers)
    if log_likelihood is None:
        log_likelihood = _log_likelihood(model, noise, errors)
    return State(W, Zt, noise, rates, squared_error, log_likelihood, sweep)


def check_range(where: str, W: Floats, Zt: Floats, squared_error: float = 0.0) -> None:
    """Raise an error unless both factors and their squared error are finite.

    Parameters
    ----------
    where : str
        When the factors were drawn, for the message.
    W, Zt : ndarray of shape (rows, K) and (columns, K)
        The factors.
    squared_error : float, default=0.0
        Σ (a - w z)² over the observed entries.
    """
    if not (math.isfinite(squared_error) and all_finite(W) and all_finite(Zt)):
        raise FloatingPointError(
            f"draws left the range of floating-point numbers in {where}. Divide the data by a number of their size, or "
            "use another prior: one of the scale of the data, and not LInf(rule='paper'), which is known to diverge"
        )


def _move(
    W: Floats,
    Zt: Floats,
    prior_W: Coefficients,
    prior_Z: Coefficients,
    model: Model,
    keys: Words,
    moves: Moves,
    sweep: int,
    workers: Workers,
) -> None:
    """Rescale and shear the components in place, apart from those that are fixed in a factor."""
    first, end = model.drawn["Z"][0], model.drawn["W"][1]
    if end - first < W.shape[1]:
        if end <= first or any(prior.pairwise or prior.max_rate for prior in (prior_W, prior_Z)):
            return  # the penalty of a row depends on what is fixed, which the moves do not know
        free_W, free_Zt = np.ascontiguousarray(W[:, first:end]), np.ascontiguousarray(Zt[:, first:end])
        free_priors = prior_W.of_components(first, end), prior_Z.of_components(first, end)
        _move_all(free_W, free_Zt, *free_priors, keys, moves, sweep, workers)
        W[:, first:end], Zt[:, first:end] = free_W, free_Zt
    else:
        _move_all(W, Zt, prior_W, prior_Z, keys, moves, sweep, workers)


def _move_all(
    W: Floats,
    Zt: Floats,
    prior_W: Coefficients,
    prior_Z: Coefficients,
    keys: Words,
    moves: Moves,
    sweep: int,
    workers: Workers,
) -> None:
    """Rescale and shear all components in place."""
    priors = _kernel_prior(prior_W), _kernel_prior(prior_Z)
    if moves.rescale:
        key_high, key_low = keys[RESCALE]
        rescale(W, Zt, *priors, key_high, key_low, workers.memory)
    if moves.n_partners and W.shape[1] > 1 and can_shear(prior_W, prior_Z):
        key_high, key_low = keys[SHEAR]
        first, end = (sweep - 1) * moves.n_partners, sweep * moves.n_partners
        shear(W, Zt, *priors, key_high, key_low, first, end, workers.memory)


def can_shear(prior_W: Coefficients, prior_Z: Coefficients) -> bool:
    """Return whether the density along a shear is smooth, or its interval is finite: what the move is made for."""
    real = [prior.absolute for prior in (prior_W, prior_Z) if prior.absolute is not None]
    return not real or not (any(rates.any() for rates in real) or prior_W.max_rate or prior_Z.max_rate)


def _half(half: str, model: Model, W: Floats, Zt: Floats) -> tuple[ScaledView, Floats, Floats]:
    """Return the data of a half-sweep, the factor that it draws, and the other one."""
    return (model.rows, W, Zt) if half == "W" else (model.columns, Zt, W)


def _variances(half: str, noise: NoiseState) -> tuple[Floats, Floats]:
    """Return the variances of the rows of a half-sweep, and those of the entries of a row."""
    return (noise.row, noise.column) if half == "W" else (noise.column, noise.row)


def _log_likelihood(model: Model, noise: NoiseState, errors: Floats) -> float:
    """Return the log density of the observed entries, given the squared errors of the rows of the last half-sweep."""
    row_variance, _ = _variances(model.noise_model.halves[-1], noise)
    data = model.data
    fit = (errors / row_variance).sum() if row_variance.size > 1 else errors.sum() / row_variance[0]
    logs = data.n_observed * math.log(2.0 * math.pi)
    for variance, view in ((noise.row, data.rows), (noise.column, data.columns)):
        if variance.size > 1:
            logs += float(view.n_observed @ np.log(variance))
        else:
            logs += data.n_observed * math.log(variance[0])
    return float(-0.5 * (logs + fit))


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
    roots: Floats | None = None,
    drawn: tuple[int, int] | None = None,
) -> Floats:
    """Draw every row of W in place given Z, both (rows, K), and return the squared error of each row.

    Entry (i, j) has variance row_variance_i entry_variance_j, each one number or one for each row or column. Unequal
    variances of the columns enter as a scaling of Z and of the data by their roots. The squared errors are divided by
    entry_variance; without `needs_errors` they are not to be used. Each row reads the random stream of its id, which
    is its number if `ids` is not given, and is drawn `n_passes` times. `roots` are the roots of the weights of the
    entries, for data whose rows list what was observed: each entry counts, in the squared errors too, as often as its
    weight says. `drawn` is the first component that is drawn and the one after the last: all by default.

    Data that are not in this process register a function of their own, which calls this one where they are.
    """
    rows, deviation = view.view, None
    if entry_variance.size > 1:
        precision, deviation = 1.0 / row_variance, np.sqrt(entry_variance)
        view = view.times(1.0 / deviation)
    else:
        with np.errstate(over="ignore"):  # an infinite variance ends the chain after this sweep
            precision = 1.0 / (row_variance * entry_variance)
    key_high, key_low = key
    first_drawn, end_drawn = (0, W.shape[1]) if drawn is None else drawn
    squared_error = np.empty(rows.n_rows)
    half = HalfSweep(
        W=W,
        Z=Z,
        data=rows.kernel_data,
        split=rows.kernel_split(min_sharing(W.shape[1])),
        prior=_kernel_prior(prior),
        memory=workers.memory,
        precision=precision,
        deviation=deviation,
        entry_scale=view.entry_scale,
        row_scale=view.row_scale,
        squares=view.squares if needs_errors else rows.squares,
        roots=roots,
        ids=rows.ids if ids is None else ids,
        key_high=key_high,
        key_low=key_low,
        n_passes=n_passes,
        first_drawn=first_drawn,
        end_drawn=end_drawn,
        squared_error=squared_error,
    )
    workers.over_tiles(lambda first, end: half.draw(first, end, workers.memory), rows.n_rows)
    if needs_errors:
        if roots is None:  # weighted errors are sums of squares, which cannot cancel
            _recompute_cancelled(view, W, Z, deviation, squared_error)
        if entry_variance.size == 1 and entry_variance[0] != 1.0:
            squared_error /= entry_variance[0]
    return squared_error


def _kernel_prior(prior: Coefficients) -> Prior:
    """Return a prior in the form that the kernels read."""
    return Prior(
        linear=prior.linear,
        quadratic=prior.quadratic,
        pairwise=prior.pairwise,
        absolute=prior.absolute,
        max_rate=prior.max_rate,
        paper_rule=prior.paper_rule,
    )


def _recompute_cancelled(
    view: ScaledView, W: Floats, Z: Floats, deviation: Floats | None, squared_error: Floats
) -> None:
    """Replace squared errors that have cancelled by those of the residuals."""
    is_trusted = squared_error > MIN_TRUSTED_ERROR * view.sums_of_squares
    if not is_trusted.all():
        if deviation is not None:
            Z = Z * (1.0 / deviation)[:, None]  # as the kernels read it
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


def listed_residuals(model: Model, W: Floats, Zt: Floats, workers: Workers) -> Floats:
    """Return a - w z of every observed entry, row by row."""
    residuals = np.empty(model.data.n_observed)

    def compute(first: int, last: int) -> None:
        model.rows.listed_residuals(W, Zt, first * ROWS_PER_TILE, min(last * ROWS_PER_TILE, len(W)), residuals)

    workers.over_tiles(compute, len(W))
    return residuals


def with_latent_values(model: Model, W: Floats, Zt: Floats, noise: NoiseState, key: Key, workers: Workers) -> Model:
    """Return the model of data whose limited entries have values drawn given the factors and the noise.

    These data belong to the workers of the chain, and hold until the next call.
    """
    filled, (key_high, key_low) = workers.filled(model.data), key
    given = {"W": W, "Z": Zt, "row_variance": noise.row, "column_variance": noise.column}
    weight = None if filled.listed is None or not model.is_weighted else model.weights(noise)[filled.listed]

    def draw(first: int, last: int) -> None:
        start, stop = first * ROWS_PER_TILE, min(last * ROWS_PER_TILE, len(W))
        filled.draw(model.rows, start, stop, **given, weight=weight, key_high=key_high, key_low=key_low)

    workers.over_tiles(draw, len(W))
    return model.with_data(refreshed(filled.rows, model.rows), refreshed(filled.columns, model.columns))


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
