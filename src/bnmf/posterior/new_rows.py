"""Rows that come after the fit: draws of their W given the draws of Z."""

from __future__ import annotations

import numpy as np

from bnmf.data.views import View
from bnmf.priors.base import Coefficients
from bnmf.sampler import gibbs
from bnmf.sampler.streams import DRAW_W, Stream
from bnmf.sampler.threads import Workers, single_threaded_blas
from bnmf.utils.typing import Array, Bools, Floats, Indices, Words

# Half-sweeps before the first draw of a chain, and from one draw of Z to the next, which differ little.
BURN_IN_SWEEPS = 30
SWEEPS_PER_DRAW = 3


def draw(view: View, ids: Words, W: Array, Z: Array, noise_variance: Floats, prior: Coefficients, seed: int) -> Floats:
    """Draw W of new rows under every draw of Z.

    Parameters
    ----------
    view : View
        The new rows.
    ids : ndarray of uint64
        Identity of each row, which keys its random stream: what is drawn for a row depends only on its content.
    W : ndarray of shape (chain, draw, fitted rows, K)
        Draws of the fitted rows; their mean is where new rows start.
    Z : ndarray of shape (chain, draw, K, columns)
        Draws of the right factor.
    noise_variance : ndarray of shape (chain, draw)
        Draws of σ².
    prior : Coefficients
        Prior of a row of W.
    seed : int
        Seed of the streams.

    Returns
    -------
    ndarray of shape (chain, draw, new rows, K)
        The draws.
    """
    n_chains, n_draws = Z.shape[:2]
    out = np.empty((n_chains, n_draws, view.n_rows, Z.shape[2]))
    with single_threaded_blas(), Workers() as workers:
        for chain in range(n_chains):
            stream = Stream(seed, chain)
            rows = np.repeat(W[chain, 0].mean(axis=0, dtype=np.float64)[None], view.n_rows, axis=0)
            sweep = 0
            for draw in range(n_draws):
                Zt = np.ascontiguousarray(Z[chain, draw].T, dtype=np.float64)
                sigma2 = float(noise_variance[chain, draw])
                for _ in range(BURN_IN_SWEEPS if draw == 0 else SWEEPS_PER_DRAW):
                    sweep += 1
                    gibbs.half_sweep(view, rows, Zt, prior, sigma2, stream.key(sweep, DRAW_W), workers, ids)
                out[chain, draw] = rows
    return out


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
