"""Rows that come after the fit: draws of their W given the draws of Z."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bnmf import gibbs
from bnmf.hashing import row_ids
from bnmf.observed import ObservedMatrix
from bnmf.workers import Workers, single_threaded_blas

if TYPE_CHECKING:
    from bnmf.posterior import Posterior

Floats = NDArray[np.float64]

# Half-sweeps before the first draw of a chain, and from one draw of Z to the next: Z moves little between them.
FIRST, BETWEEN = 30, 3


def draw(posterior: Posterior, data: ObservedMatrix, seed: int) -> Floats:
    """Draw W of new rows under every draw of Z.

    Parameters
    ----------
    posterior : Posterior
        The draws.
    data : ObservedMatrix
        The rows.
    seed : int
        Seed of their streams.

    Returns
    -------
    ndarray of shape (chain, draw, rows, K)
        The draws; rows that were fitted keep theirs.
    """
    ids = row_ids(data)
    W = np.empty((posterior.n_chains, posterior.n_draws, data.shape[0], posterior.n_components))
    known, where = _known(ids, posterior.row_ids)
    W[:, :, known] = posterior.W[:, :, where]
    if known.all():
        return W
    prior = posterior.prior_W
    if prior is None:
        raise ValueError("this posterior holds no prior of W, so it cannot take new rows")
    if len(prior.linear) > 1 or len(prior.quadratic) > 1:
        raise ValueError("the prior of W has a rate for each fitted entry, so new rows have none")
    new = np.flatnonzero(~known)
    view = data.rows.select(new)
    with single_threaded_blas(), Workers() as workers:
        for chain in range(posterior.n_chains):
            stream = gibbs.Stream(seed, chain)
            # Starting from the fitted rows' mean, and not at random, a row depends on nothing but what it holds.
            rows = np.repeat(posterior.W[chain, 0].mean(axis=0, dtype=np.float64)[None], len(new), axis=0)
            sweep = 0
            for draw in range(posterior.n_draws):
                Zt = np.ascontiguousarray(posterior.Z[chain, draw].T, dtype=np.float64)
                sigma2 = float(posterior.noise_variance[chain, draw])
                for _ in range(FIRST if draw == 0 else BETWEEN):
                    sweep += 1
                    key = stream.key(sweep, gibbs.DRAW_W)
                    gibbs.half_sweep(view, rows, Zt, prior, sigma2, key, workers, ids[new])
                W[chain, draw, new] = rows
    return W


def _known(ids: NDArray[np.uint64], fitted: NDArray[np.uint64] | None) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Return which rows were fitted, and which fitted rows those are."""
    if fitted is None or not len(fitted):
        return np.zeros(len(ids), bool), np.empty(0, np.intp)
    if np.array_equal(ids, fitted):  # the fitted data itself, in which rows may be alike
        return np.ones(len(ids), bool), np.arange(len(ids))
    order = np.argsort(fitted, kind="stable")
    place = np.minimum(np.searchsorted(fitted[order], ids), len(fitted) - 1)
    known = fitted[order][place] == ids
    return known, order[place[known]]
