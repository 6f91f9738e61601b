"""Rows that come after the fit: draws of their W given the draws of Z."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from bnmf.data.containers import LARGEST_SQUARE
from bnmf.data.identity import row_ids, scramble
from bnmf.data.latent import Filled
from bnmf.data.limits import Limits
from bnmf.data.observed import ObservedMatrix
from bnmf.data.views import Stored
from bnmf.model.noise import Law, NoiseState
from bnmf.posterior.base import Moments
from bnmf.sampler import gibbs
from bnmf.sampler.streams import DRAW_W, ENTRIES, LATENT, NOISE, Stream
from bnmf.sampler.threads import Workers
from bnmf.utils import memory
from bnmf.utils.typing import Bools, Floats, Indices, Words

if TYPE_CHECKING:
    from bnmf.posterior.posterior import Posterior

# Half-sweeps before the first draw of a chain, and from one draw of Z to the next, which differ little.
BURN_IN_SWEEPS = 30
SWEEPS_PER_DRAW = 3


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
    is_fitted, where = find_fitted(ids, fitted.row_ids)
    W, row_noise = fitted.W, fitted.row_noise
    if fitted.row_ids is None or not np.array_equal(ids, fitted.row_ids):  # the fitted rows need no copy
        memory.warn_if_large(
            8 * fitted.n_chains * fitted.n_draws * data.shape[0] * fitted.n_components,
            f"the draws of W for {data.shape[0]:,} rows",
            "pass fewer rows at a time",
        )
        W = np.empty((fitted.n_chains, fitted.n_draws, data.shape[0], fitted.n_components))
        W[:, :, is_fitted] = fitted.W[:, :, where]
        if fitted.row_noise is not None:
            row_noise = np.empty(W.shape[:3])
            row_noise[:, :, is_fitted] = fitted.row_noise[:, :, where]
    known = factor = fitted.noise_factor
    if known is not None and len(known) > 1:  # that of a new row is not known
        factor = np.repeat(np.median(known, axis=0, keepdims=True), len(ids), axis=0)
        factor[is_fitted] = known[where]
    new = np.flatnonzero(~is_fitted)
    if len(new):
        if fitted.prior_W is None:
            raise ValueError("this posterior does not hold the prior of W, which new rows need")
        if fitted.prior_W.is_by_entry:
            raise ValueError("the prior of W has a rate for each fitted entry, and none for new rows")
        if fitted.n_fixed[1] and np.ptp(fitted.W[0, 0, :, -fitted.n_fixed[1] :], axis=0).any():
            raise ValueError("fixed_weights differ between rows, and those of new rows are not known")
        weighted = fitted.law.has_entries or factor is not None
        rows = (data.listed() if weighted else data).rows.select(new)
        limits = None if data.limits is None else data.limits.of_rows(new)
        of_new = factor if factor is None or len(factor) == 1 else factor[new]
        weights, variances = draw(rows, ids[new], replace(fitted, noise_factor=of_new), seed, limits)
        spread = 1.0 if variances is None else float(variances.max())
        # Numbers of Python: their product is infinite without a warning.
        is_finite = float(np.max(fitted.noise_variance)) * spread < LARGEST_SQUARE
        if not (is_finite and np.isfinite(weights).all()):
            raise FloatingPointError(
                "X has rows so much larger than the fitted ones that their weights or noise leave the range of "
                "floating-point numbers: see whether they are in the same unit"
            )
        W[:, :, new] = weights
        if row_noise is not None:
            row_noise[:, :, new] = variances
    result = replace(
        fitted,
        W=W,
        row_noise=row_noise,
        noise_factor=factor,
        n_observed=data.n_observed,
        row_names=data.row_names,
        prior_W=None,
        row_ids=None,
        log_density=None,
    )
    result.fitted = fitted
    return result


def draw(
    view: Stored, ids: Words, fitted: Posterior, seed: int, limits: Limits | None = None
) -> tuple[Floats, Floats | None]:
    """Draw W (chain, draw, rows, K) and row noise of new rows under every draw of Z, each row by its content alone."""
    W = np.empty((fitted.n_chains, fitted.n_draws, view.n_rows, fitted.n_components))
    row_noise = None if fitted.row_noise is None else np.empty(W.shape[:3])
    law, prior, rates = fitted.law, fitted.prior_W, fitted.rate_W
    assert prior is not None
    learned = prior.learned
    filled = None if limits is None else Filled(limits, view)
    rows = (view if filled is None else filled.rows).scaled()
    is_weighted = law.has_entries or fitted.noise_factor is not None
    known, row_of = np.ones(1), view.listed_rows
    if fitted.noise_factor is not None:
        factor = np.broadcast_to(fitted.noise_factor, (view.n_rows, fitted.shape[1]))
        known = 1.0 / factor[row_of, view.indices] ** 2
    with Workers() as workers:
        for chain in range(fitted.n_chains):
            stream = Stream(seed, chain)
            weights = np.repeat(fitted.W[chain, 0].mean(axis=0, dtype=np.float64)[None], view.n_rows, axis=0)
            variance = np.ones(1 if row_noise is None else view.n_rows)
            sweep, entry = 0, np.ones(len(view.indices))
            for draw in range(fitted.n_draws):
                Zt = np.ascontiguousarray(fitted.Z[chain, draw].T, dtype=np.float64)
                of_draw = learned.with_rate(rates[chain, draw]) if learned and rates is not None else prior
                coefficients = of_draw.coefficients(weights.shape)
                noise = np.atleast_1d(fitted.noise_variance[chain, draw])
                n_sweeps = BURN_IN_SWEEPS if draw == 0 else SWEEPS_PER_DRAW
                for turn in range(n_sweeps):
                    sweep += 1
                    if filled is not None:
                        weight = (entry * known)[filled.listed] if is_weighted else None
                        filled.draw_all(
                            rows, stream.key(sweep, LATENT), workers, ids, W=weights, Z=Zt, row_variance=variance,
                            column_variance=noise, weight=weight,
                        )  # fmt: skip
                        rows.refresh()
                    key = stream.key(sweep, DRAW_W)
                    errors = rows.half_sweep(
                        weights, Zt, coefficients, variance, noise, key, workers, ids,
                        drawn=(0, fitted.n_components - fitted.n_fixed[1]), needs_errors=row_noise is not None,
                        roots=np.sqrt(entry * known) if is_weighted else None,
                    )  # fmt: skip
                    if row_noise is not None and fitted.row_strength is not None:
                        strength = float(fitted.row_strength[chain, draw])
                        variance = _draw_row_noise(strength, errors, view, stream, sweep, ids)
                    # Weights that have not yet followed a new Z would make gross errors of all entries.
                    if law.has_entries and (not law.has_outliers or n_sweeps // 2 <= turn < n_sweeps - 1):
                        squares = rows.listed_residuals(weights, Zt) ** 2 * known
                        squares /= NoiseState(variance, noise).variance_at(row_of, view.indices)
                        entry = _draw_entries(law, chain * fitted.n_draws + draw, squares, view, stream, sweep, ids)
                gibbs.check_range("new rows", weights, Zt)
                W[chain, draw] = weights
                if row_noise is not None:
                    row_noise[chain, draw] = variance
    return W, row_noise


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


def find_fitted(ids: Words, fitted: Words | None) -> tuple[Bools, Indices]:
    """Return which rows were fitted, and the number of each of those among the fitted rows."""
    if fitted is None or not len(fitted):
        return np.zeros(len(ids), bool), np.empty(0, np.intp)
    if np.array_equal(ids, fitted):  # the fitted data themselves, in which rows may be equal
        return np.ones(len(ids), bool), np.arange(len(ids))
    order = np.argsort(fitted, kind="stable")
    place = np.minimum(np.searchsorted(fitted[order], ids), len(fitted) - 1)
    known = fitted[order][place] == ids
    return known, order[place[known]]
