"""The Gibbs sampler: state in, state out.

A sweep draws the latent values of entries that are only known to lie between limits or have a gross error, W given Z, Z
given W, the noise after the half-sweep that yields its squared errors, the learned rates, and the scale of each
component. Latent values come first and are drawn given everything else, so that they are no part of a state.
Everything is in units of the model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from bnmf.data.half_sweeps import ScaledView
from bnmf.kernels.compiled import all_finite, draw_both
from bnmf.model.model import Model, Rates
from bnmf.model.noise import NoiseState
from bnmf.priors import exact_draws
from bnmf.priors.base import Coefficients
from bnmf.sampler import streams
from bnmf.sampler.moves import MIXING, Moves
from bnmf.sampler.streams import Stream
from bnmf.sampler.threads import Workers
from bnmf.utils.typing import Floats

# Largest variance of the noise in the warm-up, as a part of the mean square of the data.
WARM_UP_VARIANCE = 0.1
# Smallest variance of the noise of a column in as many sweeps after it, as a part of that of all columns on average,
# both relative to the variances of the data.
SETTLING_VARIANCE = 0.1


class State(NamedTuple):
    """One state of a chain, in units of the model."""

    W: Floats  # (rows, K)
    Zt: Floats  # (columns, K)
    noise: NoiseState
    rates: Rates
    squared_error: float  # of the observed entries
    log_likelihood: float  # of the observed entries
    sweep: int  # number of sweeps so far

    @property
    def Z(self) -> Floats:
        """Z, of shape (K, columns)."""
        return self.Zt.T

    @property
    def sigma2(self) -> float:
        """The variance of common noise."""
        return float(self.noise.row[0] * self.noise.column[0])


def start(model: Model, stream: Stream, init: Any = "random", workers: Workers | None = None) -> State:
    """Return the state that a chain starts from."""
    workers = workers or Workers()
    rng = stream.generator(stream.key(0, streams.START))
    rates = model.starting_rates
    if isinstance(init, str):
        if init != "random":
            raise ValueError(f"init must be 'random' or a pair (W0, Z0), got {init!r}")
        priors = model.coefficients(rates)
        W, Zt = (exact_draws.draw(prior, shape, rng) for prior, shape in zip(priors, model.factor_shapes, strict=True))
    else:
        W, Zt = _given_start(init, model)
    model.fixed.apply(W, Zt, model.units.scale)
    noise = model.noise_model.start(model.data.shape)
    errors = np.empty(0)
    if model.noise_model.has_entries:
        residuals = model.rows.listed_residuals(W, Zt, workers)
        noise = model.noise_model.update_entries(noise, model.standardised_squares(residuals, noise)[0], rng)
    for half in model.noise_model.updated_after:
        view, given, other = _half(half, model, W, Zt)
        errors = view.squared_errors(given, other, workers)
        noise = _update_noise(model, half, noise, errors, stream, 0)
    squared_error = float(errors.sum())
    log_likelihood = -math.inf if model.is_weighted else _log_likelihood(model, noise, errors)
    return State(W, Zt, noise, rates, squared_error, log_likelihood, 0)


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
    """Return the next state of the chain."""
    workers = workers or Workers()
    sweep = state.sweep + 1
    W, Zt, noise = state.W.copy(), state.Zt.copy(), state.noise
    prior_W, prior_Z = workers.coefficients(model, state.rates)
    if model.data.limits is not None or model.noise_model.has_outliers:
        priors = (prior_W, prior_Z) if moves.interweave else None
        model, noise = with_latent_values(model, W, Zt, noise, stream, sweep, workers, priors)
    if _runs_in_one_call(model, noise, workers):
        errors = _draw_both(model, W, Zt, prior_W, prior_Z, noise, stream, sweep, moves.n_passes, workers)
        noise = _update_noise(model, model.noise_model.halves[-1], noise, errors, stream, sweep)
    else:
        errors, roots = np.empty(0), model.roots(noise)
        for half in model.noise_model.halves:
            view, given, other = _half(half, model, W, Zt)
            row_variance, entry_variance = _variances(half, noise)
            prior, part = (prior_W, streams.DRAW_W) if half == "W" else (prior_Z, streams.DRAW_Z)
            is_used = half in model.noise_model.updated_after
            errors = view.half_sweep(
                given, other, prior, row_variance, entry_variance, stream.key(sweep, part), workers,
                needs_errors=is_used, n_passes=moves.n_passes, roots=roots[half], drawn=model.drawn[half],
            )  # fmt: skip
            if is_used:
                noise = _update_noise(model, half, noise, errors, stream, sweep)
    squared_error = float(np.add.reduce(errors))
    if len(model.noise_model.updated_after) > 1:  # those errors are divided by the variances of one side
        squared_error = float(model.columns.squared_errors(Zt, W, workers).sum())
    log_likelihood = None
    if model.is_weighted:
        residuals = model.rows.listed_residuals(W, Zt, workers)
        if model.noise_model.has_entries:
            squares, _ = model.standardised_squares(residuals, noise)
            noise = model.noise_model.update_entries(
                noise, squares, stream.generator(stream.key(sweep, streams.ENTRIES))
            )
        squared_error, log_likelihood = float(residuals @ residuals), model.log_likelihood_of(residuals, noise)
    rates = state.rates
    if rates:
        rates = model.draw_rates(W, Zt, stream.key(sweep, streams.RATES))
        prior_W, prior_Z = workers.coefficients(model, rates)
    free = model.drawn["Z"][0], model.drawn["W"][1]
    moves.apply(W, Zt, prior_W, prior_Z, free, stream, sweep, workers.memory)
    if log_likelihood is None:
        log_likelihood = _log_likelihood(model, noise, errors)
    return State(W, Zt, noise, rates, squared_error, log_likelihood, sweep)


def _runs_in_one_call(model: Model, noise: NoiseState, workers: Workers) -> bool:
    """Return whether compiled code runs both half-sweeps at once: on small data, in one thread."""
    # What needs more than their squared errors between them or at their end takes the longer way.
    halves, updated_after = model.noise_model.halves, model.noise_model.updated_after
    last = noise.row if halves[-1] == "Z" else noise.column  # variances that the last squared errors are divided by
    is_plain = model.data.in_memory and not model.is_weighted
    return is_plain and len(updated_after) == 1 and last.size == 1 and workers.may_draw_at_once(max(model.data.shape))


def _draw_both(
    model: Model,
    W: Floats,
    Zt: Floats,
    prior_W: Coefficients,
    prior_Z: Coefficients,
    noise: NoiseState,
    stream: Stream,
    sweep: int,
    n_passes: int,
    workers: Workers,
) -> Floats:
    """Run both half-sweeps, and return the squared errors of the last."""
    rows, columns, drawn, n_components = model.rows, model.columns, model.drawn, W.shape[1]
    errors = np.empty(len(W)), np.empty(len(Zt))
    columns_first = model.noise_model.halves[0] == "Z"
    draw_both(
        rows.kernel_rows(n_components), columns.kernel_rows(n_components), W, Zt, prior_W.kernel_prior,
        prior_Z.kernel_prior, workers.memory, noise.row, noise.column, stream.key(sweep, streams.DRAW_W),
        stream.key(sweep, streams.DRAW_Z), n_passes, drawn["W"], drawn["Z"], columns_first, *errors,
    )  # fmt: skip
    if columns_first:
        rows.correct_errors(W, Zt, noise.column, errors[0])
        return errors[0]
    columns.correct_errors(Zt, W, noise.row, errors[1])
    return errors[1]


def _update_noise(model: Model, half: str, noise: NoiseState, errors: Floats, stream: Stream, sweep: int) -> NoiseState:
    """Draw what a half-sweep tells about the noise."""
    key = stream.key(sweep, streams.NOISE if half == model.noise_model.halves[-1] else streams.NOISE_FIRST)
    n_observed = (model.rows if half == "W" else model.columns).view.n_observed
    return model.noise_model.update(half, noise, errors, n_observed, model.max_precisions[half], key)


def check_range(where: str, W: Floats, Zt: Floats, squared_error: float = 0.0) -> None:
    """Raise an error unless both factors and their squared error are finite."""
    if not (math.isfinite(squared_error) and all_finite(W) and all_finite(Zt)):
        raise FloatingPointError(
            f"draws left the range of floating-point numbers in {where}. Divide the data by a number of their size, or "
            "use another prior: one of the scale of the data, and not LInf(rule='paper'), which is known to diverge"
        )


def _half(half: str, model: Model, W: Floats, Zt: Floats) -> tuple[ScaledView, Floats, Floats]:
    """Return the data of a half-sweep, the factor that it draws, and the other one."""
    return (model.rows, W, Zt) if half == "W" else (model.columns, Zt, W)


def _variances(half: str, noise: NoiseState) -> tuple[Floats, Floats]:
    """Return the variances of the rows of a half-sweep, and those of the entries of a row."""
    return (noise.row, noise.column) if half == "W" else (noise.column, noise.row)


def _log_likelihood(model: Model, noise: NoiseState, errors: Floats) -> float:
    """Return the log density of the observed entries, given squared errors of the last half-sweep."""
    row_variance, _ = _variances(model.noise_model.halves[-1], noise)
    data = model.data
    by_row = row_variance.size > 1
    fit = np.add.reduce(errors / row_variance) if by_row else np.add.reduce(errors) / row_variance[0]
    logs = data.n_observed * math.log(2.0 * math.pi)
    for variance, view in ((noise.row, data.rows), (noise.column, data.columns)):
        if variance.size > 1:
            logs += float(view.n_observed @ np.log(variance))
        else:
            logs += data.n_observed * math.log(variance[0])
    return float(-0.5 * (logs + fit)) + model.noise_model.log_gross(noise, data.columns.n_observed)


def with_latent_values(
    model: Model,
    W: Floats,
    Zt: Floats,
    noise: NoiseState,
    stream: Stream,
    sweep: int,
    workers: Workers,
    priors: tuple[Coefficients, Coefficients] | None = None,
) -> tuple[Model, NoiseState]:
    """Return the model of data with latent values drawn given factors and noise, and the noise given these values."""
    # Latent are limited entries, and those with gross errors. These data belong to the workers of the chain, and hold
    # until the next call. With the priors of W and Zt, both are then drawn in place together with values beyond limits.
    filled, own = workers.filled(model)
    has_outliers = model.noise_model.has_outliers
    options: dict[str, Any] = {"row_variance": noise.row, "column_variance": noise.column}
    if has_outliers:
        options |= model.noise_model.gross_errors(noise)
    if model.is_weighted:
        options["weight"] = model.weights(noise)[filled.listed]
    key = stream.key(sweep, streams.OUTLIERS if has_outliers else streams.LATENT)
    filled.draw_all(model.rows, key, workers, W=W, Z=Zt, **options)
    if has_outliers:
        n_observed, key = model.data.columns.n_observed, stream.key(sweep, streams.SHARES)
        noise = model.noise_model.update_share(noise, filled.gross(), n_observed, key)
    if priors is not None and model.data.in_memory:
        weight = model.weights(noise) if model.is_weighted else None
        keys = stream.key(sweep, streams.FOLLOWED_W), stream.key(sweep, streams.FOLLOWED_Z)
        filled.draw_with_factors(
            (model.rows, model.columns), (W, Zt), priors, (model.drawn["W"], model.drawn["Z"]),
            (noise.row, noise.column), weight, keys, workers,
        )  # fmt: skip
    for half in model.noise_model.updated_after:  # only these half-sweeps use the sums of squares
        _half(half, own, W, Zt)[0].refresh()
    return own, noise


def sample(
    model: Model,
    stream: Stream,
    *,
    init: Any = "random",
    state: State | None = None,
    n_sweeps: int | None = None,
    n_warm_up: int = 0,
    n_threads: int = 1,
    moves: Moves = MIXING,
) -> Iterator[State]:
    """Yield the states of a chain, one after each of `n_sweeps` sweeps from a state, or without an end."""
    # Up to sweep `n_warm_up` the variances of rows and columns are nearly equal: if they differ too early, a column
    # that is not fitted yet gets a large variance, and then no weight. They are small too: if all columns are taken for
    # noise, components vanish, and on small tables it takes hundreds of sweeps until they return. In as many sweeps
    # after these no column has much less noise than others: one that others determine would hold all components in
    # place, and those that are superfluous could not vanish, but would fit the noise of the other columns.
    with Workers(n_threads) as workers:
        state = start(model, stream, init, workers) if state is None else state
        warm_up = model.with_shared_noise() if state.sweep < n_warm_up else model
        last = math.inf if n_sweeps is None else state.sweep + n_sweeps
        while state.sweep < last:
            if state.sweep < n_warm_up:
                state = step(warm_up, state._replace(noise=_small(model, state.noise)), stream, workers, moves)
            elif state.sweep < 2 * n_warm_up:
                state = step(model, state._replace(noise=_settling(model, state.noise)), stream, workers, moves)
            else:
                state = step(model, state, stream, workers, moves)
            yield state


def _small(model: Model, noise: NoiseState) -> NoiseState:
    """Return noise whose variances are at most a part of the mean square of the data."""
    law = model.noise_model
    if law.is_known or not model.units.by_column:  # columns that share a unit may be of unlike sizes
        return noise
    side = "row" if law.has_rows and not law.has_columns else "column"
    return noise._replace(**{side: np.minimum(getattr(noise, side), WARM_UP_VARIANCE * model.mean_square)})


def _settling(model: Model, noise: NoiseState) -> NoiseState:
    """Return noise of which no column has much less than the columns have on average."""
    law = model.noise_model
    if law.is_known or not law.has_columns or not model.units.by_column:
        return noise
    variances = model.variances
    varies = variances > 0.0
    if not varies.any():
        return noise
    average = np.minimum(noise.column[varies] / variances[varies], 1.0).mean()
    return noise._replace(column=np.maximum(noise.column, SETTLING_VARIANCE * average * variances))
