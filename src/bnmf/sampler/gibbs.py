"""The Gibbs sampler: state in, state out.

A sweep draws W given Z, Z given W, the noise variance, and the scale of each component. Every part of every sweep of
every chain has its own random stream, so a chain goes on from any state of it exactly as if it had never stopped.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

from bnmf.holes import Lists
from bnmf.kernels.random import key_of, set_keys
from bnmf.kernels.rescale import rescale
from bnmf.kernels.sweep import sweep_rows
from bnmf.kernels.systems import sum_blocks, system_size
from bnmf.noise import InverseGamma
from bnmf.observed import ObservedMatrix, View
from bnmf.priors import Coefficients, Prior, as_pair
from bnmf.workers import Workers, single_threaded_blas

Floats = NDArray[np.float64]
Key = tuple[np.uint64, np.uint64] | NDArray[np.uint64]

# Below this part of the data's own sum of squares the cheap form of the squared error has cancelled.
CANCELLED = 1e-8
# Parts of a sweep, each with its own random stream: places in the keys of a sweep.
N_PARTS = 5
START, DRAW_W, DRAW_Z, NOISE, RESCALE = range(N_PARTS)


@dataclass(frozen=True, eq=False)
class Model:
    """What is sampled from: data, priors, rank.

    Parameters
    ----------
    data : ObservedMatrix
        The data.
    n_components : int
        K.
    prior : Prior, str or pair of them, default="gl22"
        Prior of both factors, or one for W and one for Z. A matrix of rates for Z has shape (K, columns).
    noise : InverseGamma, optional
        Prior of the noise variance; shape 1 and scale 1 by default.
    rescale : bool, default=True
        Whether a sweep ends with the rescaling move.
    """

    data: ObservedMatrix
    n_components: int
    prior: Any = "gl22"
    noise: InverseGamma = field(default_factory=InverseGamma)
    rescale: bool = True

    def __post_init__(self) -> None:
        k = self.n_components
        try:
            k = operator.index(k)
        except TypeError:
            raise TypeError(f"n_components must be a whole number, got {k!r}") from None
        if k < 1:
            raise ValueError(f"n_components must be at least 1, got {k}")
        if k > min(self.data.shape):
            warnings.warn(
                f"n_components={k} is larger than the smaller side of the matrix, {min(self.data.shape)}: that is a "
                "valid model, but more components than the data can tell apart",
                stacklevel=3,
            )
        _ = self.coefficients  # a rate of the wrong shape is an error now, and not in the first sweep

    @cached_property
    def priors(self) -> tuple[Prior, Prior]:
        """Priors of W and of Zᵀ, both with rows first."""
        prior_W, prior_Z = as_pair(self.prior)
        return prior_W, prior_Z.transposed()

    @cached_property
    def coefficients(self) -> tuple[Coefficients, Coefficients]:
        """Coefficients of the two priors."""
        shapes = [(side, self.n_components) for side in self.data.shape]
        return self.priors[0].coefficients(shapes[0]), self.priors[1].coefficients(shapes[1])

    def log_joint(self, state: State) -> float:
        """Return the log of the joint density of data and state, up to a constant.

        Parameters
        ----------
        state : State
            Where to evaluate it.

        Returns
        -------
        float
            Log likelihood plus log priors.
        """
        squared_error = sum_squared_error(self.data.rows, state.W, state.Zt, Workers())
        n = self.data.n_observed + 2.0 * (self.noise.shape + 1.0)
        fit = -0.5 * n * np.log(state.sigma2) - (0.5 * squared_error + self.noise.scale) / state.sigma2
        return float(fit + self.priors[0].log_density(state.W) + self.priors[1].log_density(state.Zt))


class State(NamedTuple):
    """One state of a chain.

    Attributes
    ----------
    W, Zt : ndarray of shape (rows, K) and (columns, K)
        The factors; Zt is Z transposed.
    sigma2 : float
        The noise variance.
    squared_error : float
        Σ (a - w z)² over the observed entries.
    sweep : int
        Number of sweeps up to here.
    """

    W: Floats
    Zt: Floats
    sigma2: float
    squared_error: float
    sweep: int

    @property
    def Z(self) -> Floats:
        """Z, of shape (K, columns)."""
        return self.Zt.T


class Stream:
    """The randomness of one chain.

    Parameters
    ----------
    seed : int or None
        The same seed gives the same chain; None takes a new one from the system.
    chain : int, default=0
        Number of the chain: chains of one seed are independent.
    """

    def __init__(self, seed: int | None = None, chain: int = 0) -> None:
        sequence = np.random.SeedSequence(seed)
        self.seed = sequence.entropy
        self.chain = chain
        self._words = sequence.generate_state(2, np.uint64)
        self._philox = np.random.Philox(_Key(self._words))  # type: ignore[arg-type]
        self._generator = np.random.Generator(self._philox)
        self._start = self._philox.state

    def key(self, sweep: int, part: int) -> Key:
        """Return the 128-bit key of one part of one sweep."""
        high, low = key_of(*self._words, self.chain, sweep, part)
        return np.uint64(high), np.uint64(low)

    def keys(self, sweep: int) -> NDArray[np.uint64]:
        """Return the keys of all parts of one sweep, a row each."""
        keys = np.empty((N_PARTS, 2), np.uint64)
        set_keys(*self._words, self.chain, sweep, keys)
        return keys

    def generator(self, key: Key) -> np.random.Generator:
        """Return the one NumPy generator of this stream, to start from a key: it is good until the next call."""
        self._start["state"]["key"][:] = key
        self._philox.state = self._start  # a new one would take four times as long
        return self._generator


class _Key(ISeedSequence):
    """Words handed over as they are: `Philox(key=...)` would ask the system for a seed first, and not use it."""

    def __init__(self, words: NDArray[np.uint64]) -> None:
        self._words = words

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[Any]:
        return self._words


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
        The state before the first sweep, the noise variance drawn given the factors.
    """
    rng = stream.generator(stream.key(0, START))
    shapes = [(side, model.n_components) for side in model.data.shape]
    if isinstance(init, str):
        if init != "random":
            raise ValueError(f"init must be 'random' or a pair (W0, Z0), got {init!r}")
        W, Zt = (prior.draw(shape, rng) for prior, shape in zip(model.priors, shapes, strict=True))
    else:
        W, Zt = _given_start(init, shapes)
    squared_error = sum_squared_error(model.data.rows, W, Zt, workers or Workers())
    sigma2 = model.noise.draw(model.data.n_observed, squared_error, rng)
    return State(W, Zt, sigma2, squared_error, 0)


def _given_start(init: Any, shapes: list[tuple[int, int]]) -> tuple[Floats, Floats]:
    try:
        W0, Z0 = init
    except (TypeError, ValueError):
        raise ValueError(f"init must be 'random' or a pair (W0, Z0), got {init!r}") from None
    factors = [
        np.array(W0, dtype=np.float64, order="C"),
        np.array(np.asarray(Z0).T, dtype=np.float64, order="C"),
    ]
    expected = [shapes[0], shapes[1][::-1]]
    for name, factor, shape, shown in zip(("W0", "Z0"), factors, shapes, expected, strict=True):
        if factor.shape != shape:
            got = factor.shape if name == "W0" else factor.shape[::-1]
            raise ValueError(f"{name} of init must have shape {shown}, got {got}")
        if not np.isfinite(factor).all() or (factor < 0).any():
            raise ValueError(f"{name} of init must be finite and nonnegative")
    return factors[0], factors[1]


def step(model: Model, state: State, stream: Stream, workers: Workers | None = None) -> State:
    """Return the next state of the chain.

    Parameters
    ----------
    model : Model
        What to sample from.
    state : State
        Where the chain is.
    stream : Stream
        Source of randomness.
    workers : Workers, optional
        Threads to share the rows; the draws do not depend on how many.

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
        if not squared_error > CANCELLED * model.data.sum_of_squares:
            squared_error = sum_squared_error(model.data.rows, W, Zt, workers)
    sigma2 = model.noise.draw(model.data.n_observed, squared_error, stream.generator(keys[NOISE]))
    if model.rescale:
        of_W = prior_W.linear, prior_W.quadratic, prior_W.coupling, prior_W.slope
        of_Z = prior_Z.linear, prior_Z.quadratic, prior_Z.coupling, prior_Z.slope
        rescale(W, Zt, *of_W, *of_Z, *keys[RESCALE])
    return State(W, Zt, sigma2, squared_error, sweep)


def half_sweep(
    view: View,
    W: Floats,
    Z: Floats,
    prior: Coefficients,
    sigma2: float,
    key: Key,
    workers: Workers,
    ids: NDArray[np.uint64] | None = None,
) -> float:
    """Draw every row of W in place given Z, both (rows, K), and return the squared error that is left.

    Each row reads the random stream of its id: its number, if no `ids` are given.
    """
    ids = view.ids if ids is None else ids
    gram = Z.T @ Z
    blocks = block_sums(view.lists, Z)
    squared_error = np.empty(view.n_rows)

    def work(begin: int, end: int) -> None:
        sweep_rows(
            W, Z, view.product(begin, end, Z), gram, blocks, *view.lists, view.lists_missing, view.order, view.repeats,
            ids, prior.linear, prior.quadratic, prior.coupling, prior.slope, prior.published, 1.0 / sigma2, *key, begin,
            end, view.squares, squared_error,
        )  # fmt: skip

    workers.over_rows(work, view.n_rows)
    return float(squared_error.sum())


def block_sums(lists: Lists, Z: Floats) -> Floats:
    """Return Σ z zᵀ over each block of holes that go together."""
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
        A state to go on from, in place of a new start.
    n_sweeps : int, optional
        Number of sweeps; endless by default.
    n_threads : int, default=1
        Threads that share the rows of a half-sweep.

    Yields
    ------
    State
        The state after each sweep.

    Examples
    --------
    >>> import numpy as np
    >>> data = ObservedMatrix.from_data(np.arange(12.0).reshape(4, 3))
    >>> model = Model(data, n_components=2, prior="gee")
    >>> states = list(sample(model, Stream(seed=0), n_sweeps=5))
    >>> [s.sweep for s in states], states[-1].W.shape, states[-1].Z.shape
    ([1, 2, 3, 4, 5], (4, 2), (2, 3))
    """
    with Workers(n_threads) as workers:
        state = start(model, stream, init, workers) if state is None else state
        while n_sweeps is None or n_sweeps > 0:
            state = step(model, state, stream, workers)
            yield state
            n_sweeps = None if n_sweeps is None else n_sweeps - 1
