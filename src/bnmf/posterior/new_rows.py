"""Rows that come after the fit: draws of their W given the draws of Z."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bnmf.data.containers import LARGEST_SQUARE, SMALLEST
from bnmf.data.identity import row_ids, scramble
from bnmf.data.latent import Filled
from bnmf.data.limits import Limits
from bnmf.data.observed import ObservedMatrix
from bnmf.data.views import Stored
from bnmf.model.noise import Law, NoiseState
from bnmf.posterior.base import Moments, taken
from bnmf.sampler.streams import DRAW_W, ENTRIES, LATENT, NOISE, Stream
from bnmf.sampler.threads import Workers
from bnmf.utils import memory
from bnmf.utils.typing import Floats, Indices, Words

if TYPE_CHECKING:
    from bnmf.posterior.posterior import Posterior

# Half-sweeps before the first draw of a chain, and from one draw of Z to the next, which differ little; and how often
# each draws a row given its sums.
BURN_IN_SWEEPS = 30
SWEEPS_PER_DRAW = 3
N_PASSES = 4


def posterior_of(fitted: Posterior | Moments, data: ObservedMatrix, seed: int) -> Posterior:
    """Return the posterior of other rows, as :meth:`bnmf.Posterior.posterior_of` does, for data of the sampler."""
    if isinstance(fitted, Moments):
        raise ValueError(
            "new rows need the draws of Z, which a fit with keep_draws=False does not keep: fit with keep_draws=True"
        )
    if data.shape[1] != fitted.shape[1]:
        raise ValueError(f"X has {data.shape[1]} columns, the posterior {fitted.shape[1]}")
    ids = row_ids(data, fitted.scale)
    if fitted.offset is not None:
        data = data.shifted(fitted.offset)
    where = find_fitted(ids, fitted.row_ids)
    new = np.flatnonzero(where < 0)
    fields: dict[str, Any] = {"row_ids": None, "log_density": None}
    if not np.array_equal(where, np.arange(fitted.shape[0])):  # else the draws need no copy
        memory.warn_if_large(
            8 * fitted.n_chains * fitted.n_draws * data.shape[0] * fitted.n_components,
            f"the draws of W for {data.shape[0]:,} rows",
            "pass fewer rows at a time",
        )
        fields = taken(fitted, where)
    fields |= {"n_observed": data.n_observed, "row_names": data.row_names, "prior_W": None}
    result = replace(fitted, **fields)
    result.fitted = fitted
    if len(new):  # they have draws of another row so far
        if fitted.prior_W is None:
            raise ValueError("this posterior does not hold the prior of W, which new rows need")
        if fitted.prior_W.is_by_entry:
            raise ValueError("the prior of W has a rate for each fitted entry, and none for new rows")
        if fitted.n_fixed[1] and np.ptp(fitted.W[0, 0, :, -fitted.n_fixed[1] :], axis=0).any():
            raise ValueError("fixed_weights differ between rows, and those of new rows are not known")
        given = fitted
        if fitted.noise_factor is not None and len(fitted.noise_factor) > 1:  # that of a new row is not known
            given = replace(fitted, noise_factor=np.median(fitted.noise_factor, axis=0, keepdims=True))
            fields["noise_factor"][new] = given.noise_factor
        rows = (data.listed() if _is_weighted(given) else data).rows.select(new)
        limits = None if data.limits is None else data.limits.of_rows(new)
        result.W = result.W.astype(np.float64, copy=False)
        result.W[:, :, new], variances = draw(rows, ids[new], given, seed, limits)
        if result.row_noise is not None:
            result.row_noise[:, :, new] = variances
    return result


def find_fitted(ids: Words, fitted: Words | None) -> Indices:
    """Return the number of each row among the fitted rows, -1 for those that were not fitted."""
    if fitted is None:
        return np.full(len(ids), -1)
    if np.array_equal(ids, fitted):  # the fitted data themselves, in which rows may be equal
        return np.arange(len(ids))
    distinct, first = np.unique(fitted, return_index=True)
    place = pd.Index(distinct).get_indexer(pd.Index(ids))
    return np.where(place < 0, -1, first[place])


def _is_weighted(fitted: Posterior) -> bool:
    """Return whether entries differ in their precisions, so that all that was observed must be listed."""
    return fitted.law.has_entries or fitted.noise_factor is not None


def draw(view: Stored, ids: Words, fitted: Posterior, seed: int, limits: Limits | None = None) -> tuple[Floats, Floats]:
    """Draw W (chain, draw, rows, K) and row noise of new rows under every draw of Z, each row by its content alone."""
    shape = fitted.n_chains, fitted.n_draws, view.n_rows
    W, row_noise = np.empty((*shape, fitted.n_components)), np.ones(shape)
    filled = None if limits is None else Filled(limits, view)
    with Workers() as workers:
        for chain in range(fitted.n_chains):
            drawn = _chain(view, ids, fitted, Stream(seed, chain), filled, workers)
            for number, (weights, variance) in enumerate(drawn):
                # Numbers of Python: their product is infinite without a warning.
                largest = float(np.max(fitted.noise_variance[chain, number])) * float(variance.max())
                if not (largest < LARGEST_SQUARE and np.isfinite(weights).all()):
                    raise FloatingPointError(
                        "X has rows so much larger than the fitted ones that their weights or noise leave the range "
                        "of floating-point numbers: see whether they are in the same unit"
                    )
                W[chain, number], row_noise[chain, number] = weights, variance
    return W, row_noise


def _chain(
    view: Stored, ids: Words, fitted: Posterior, stream: Stream, filled: Filled | None, workers: Workers
) -> Iterator[tuple[Floats, Floats]]:
    """Yield weights and noise of new rows for each draw of a chain."""
    chain, law, prior, rates = stream.chain, fitted.law, fitted.prior_W, fitted.rate_W
    assert prior is not None
    rows = (view if filled is None else filled.rows).scaled()
    strengths, is_weighted = fitted.row_strength, _is_weighted(fitted)
    row_of, known = view.listed_rows, np.ones(1)
    if fitted.noise_factor is not None:
        factor = np.broadcast_to(fitted.noise_factor, (view.n_rows, fitted.shape[1]))
        known = 1.0 / factor[row_of, view.indices] ** 2
    weights = np.repeat(fitted.W[chain, 0].mean(axis=0, dtype=np.float64)[None], view.n_rows, axis=0)
    variance = np.ones(1 if strengths is None else view.n_rows)
    sweep, entry, before = 0, np.ones(len(view.indices)), None
    n_free = fitted.n_components - fitted.n_fixed[1]
    for draw in range(fitted.n_draws):
        Zt = np.ascontiguousarray(fitted.Z[chain, draw].T, dtype=np.float64)
        of_draw = prior.learned.with_rate(rates[chain, draw]) if prior.learned and rates is not None else prior
        coefficients = of_draw.coefficients(weights.shape)
        noise = np.atleast_1d(fitted.noise_variance[chain, draw])
        if before is not None:
            sizes = np.mean(np.square(fitted.W[chain, draw, :, :n_free], dtype=np.float64), axis=0)
            weights[:, :n_free] += _change(weights, before, Zt, noise, sizes)
            if not prior.is_real:
                np.maximum(weights, 0.0, out=weights)
        before, n_sweeps = Zt, BURN_IN_SWEEPS if draw == 0 else SWEEPS_PER_DRAW
        for turn in range(n_sweeps):
            sweep += 1
            if filled is not None:
                weight = (entry * known)[filled.listed] if is_weighted else None
                filled.draw_all(
                    rows, stream.key(sweep, LATENT), workers, ids, W=weights, Z=Zt, row_variance=variance,
                    column_variance=noise, weight=weight,
                )  # fmt: skip
                rows.refresh()
            errors = rows.half_sweep(
                weights, Zt, coefficients, variance, noise, stream.key(sweep, DRAW_W), workers, ids,
                drawn=(0, n_free), needs_errors=strengths is not None, n_passes=N_PASSES,
                roots=np.sqrt(entry * known) if is_weighted else None,
            )  # fmt: skip
            if strengths is not None:
                variance = _draw_row_noise(strengths[chain, draw], errors, view, stream, sweep, ids)
            if law.has_entries and turn < n_sweeps - 1:  # weights are drawn last
                squares = rows.listed_residuals(weights, Zt) ** 2 * known
                squares /= NoiseState(variance, noise).variance_at(row_of, view.indices)
                entry = _draw_entries(law, chain * fitted.n_draws + draw, squares, view, stream, sweep, ids)
        yield weights, variance


def _change(weights: Floats, before: Floats, Zt: Floats, noise: Floats, sizes: Floats) -> Floats:
    """Return what to add to the weights so that they predict from Zt what they did from the Z before."""
    # If the noise is small, single entries of correlated weights follow Z too slowly. Mean squares of fitted weights
    # keep the changes of components that predict nothing small.
    free = Zt[:, : len(sizes)]
    of_noise = free.T / noise
    system = of_noise @ free + np.diag(1.0 / np.maximum(sizes, SMALLEST))
    # Not a matrix product, whose rounding depends on the number of rows.
    return np.einsum("ik,jk->ij", weights, np.linalg.solve(system, of_noise @ (before - Zt)))


def _generators(stream: Stream, key: tuple[int, int], ids: Words) -> Iterator[np.random.Generator]:
    """Yield a generator for each row, keyed by its content."""
    high, low = key
    return (stream.generator((high ^ int(identity), low)) for identity in ids)


def _draw_row_noise(strength: float, errors: Floats, view: Stored, stream: Stream, sweep: int, ids: Words) -> Floats:
    """Draw the relative variance of each row, each from its random stream."""
    shape, rate = strength + 0.5 * view.n_observed, strength + 0.5 * errors
    generators = _generators(stream, stream.key(sweep, NOISE), ids)
    return rate / np.array([rng.gamma(s) for rng, s in zip(generators, shape, strict=True)])


def _draw_entries(law: Law, draw: int, squares: Floats, view: Stored, stream: Stream, sweep: int, ids: Words) -> Floats:
    """Draw the factor of the precision of each entry, those of a row from its random stream."""
    high, low = key = stream.key(sweep, ENTRIES)
    if law.has_outliers:
        uniforms = _uniforms(ids[view.listed_rows] ^ np.uint64(high), view.indices ^ np.uint64(low))
        return law.gross_factors(draw, squares, view.indices.astype(np.intp), uniforms)
    factors = np.empty(len(squares))
    for rng, (start, stop) in zip(_generators(stream, key, ids), pairwise(view.indptr), strict=True):
        factors[start:stop] = law.draw_entries(draw, squares[start:stop], rng)
    return factors


def _uniforms(first: Words, second: Words) -> Floats:
    """Return a uniform number for each pair of words: a generator for each row would take ten times as long."""
    words = scramble(scramble(first) + second * np.uint64(0x9E3779B97F4A7C15))
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
