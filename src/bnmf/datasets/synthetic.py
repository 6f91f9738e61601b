"""Synthetic matrices, with the factors they were drawn from."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse, stats
from sklearn.utils import Bunch

from bnmf.utils.arguments import whole_number
from bnmf.utils.typing import Bools, Floats, Ints


def make_low_rank(
    n_rows: int = 100,
    n_columns: int = 50,
    n_components: int = 5,
    *,
    noise: float = 1.0,
    missing: float = 0.2,
    negative: bool = False,
    random_state: Any = None,
) -> Bunch:
    """Draw W Z + noise with exponential W and Z, and hide some of its entries at random.

    Parameters
    ----------
    n_rows, n_columns, n_components : int
        Shape and rank of the matrix.
    noise : float, default=1.0
        Standard deviation of the Gaussian noise.
    missing : float, default=0.2
        Fraction of hidden entries. Rows and columns may be hidden completely.
    negative : bool, default=False
        Keep negative entries, which the sampler accepts only if asked to. By default they are set to zero.
    random_state : int, numpy.random.Generator or None
        Seed or generator, as in `numpy.random.default_rng`.

    Returns
    -------
    sklearn.utils.Bunch
        `data` (array with NaN where hidden), `observed` (mask of the others), `W`, `Z` and `mean` = W Z.
    """
    _check_counts(n_rows=n_rows, n_columns=n_columns, n_components=n_components)
    for name, value, end in (("noise", noise, np.inf), ("missing", missing, 1)):
        if not 0 <= value < end:
            raise ValueError(f"{name} must be at least 0 and below {end}, got {value!r}")
    rng = np.random.default_rng(random_state)
    W = rng.exponential(size=(n_rows, n_components))
    Z = rng.exponential(size=(n_components, n_columns))
    mean = W @ Z
    data = mean + noise * rng.standard_normal(mean.shape)
    if not negative:
        data = np.maximum(data, 0.0)
    data.flat[rng.choice(data.size, size=round(missing * data.size), replace=False)] = np.nan
    return Bunch(data=data, observed=~np.isnan(data), W=W, Z=Z, mean=mean)


def make_drug_response(
    n_rows: int = 707,
    n_columns: int = 139,
    *,
    n_components: int = 10,
    random_state: Any = None,
) -> Bunch:
    """Draw a matrix that resembles the drug response (IC50) of cancer cell lines.

    On the logarithmic scale a response is the potency of the drug, minus the product of the pathways of the cell line
    with the effects of the drug on them, plus the resistance of the cell line and noise. Its exponential is capped at
    100 and floored, so that many entries are 0 or 100, as in the GDSC screen. The pattern of missing entries is similar
    too: some drugs are tested on half of the cell lines, some cell lines lack a block of drugs, and a few have hardly
    any entries.

    Parameters
    ----------
    n_rows, n_columns : int, default=707 and 139
        Number of cell lines and of drugs.
    n_components : int, default=10
        Number of pathways.
    random_state : int, numpy.random.Generator or None
        Seed or generator, as in `numpy.random.default_rng`.

    Returns
    -------
    sklearn.utils.Bunch
        `data` (array with NaN for missing entries; every row and column has an observed one), `observed` (mask of the
        observed entries), `complete` (the matrix without missing entries) and `log_response` (before cap and floor).

    Examples
    --------
    >>> made = make_drug_response(random_state=0)
    >>> made.data.shape, round(float(made.observed.mean()), 1)
    ((707, 139), 0.8)
    >>> float(made.complete.min()), float(made.complete.max())
    (0.0, 100.0)
    """
    _check_counts(n_rows=n_rows, n_columns=n_columns, n_components=n_components)
    rng = np.random.default_rng(random_state)
    log_response = _log_response(n_rows, n_columns, n_components, rng)
    # The cap before the exponential avoids overflow. The small constant makes the floor of exp(log(100)) 100.
    complete = np.floor(np.exp(np.minimum(log_response, np.log(100.0))) + 1e-9)
    observed = _screen(n_rows, n_columns, rng)
    data = np.where(observed, complete, np.nan)
    return Bunch(data=data, observed=observed, complete=complete, log_response=log_response)


def _log_response(n_rows: int, n_columns: int, n_components: int, rng: np.random.Generator) -> Floats:
    """Draw the logarithms; the constants were chosen to match the marginal statistics of GDSC."""
    # Shuffled quantiles instead of independent draws, whose mean over a hundred drugs would vary too much.
    level = (rng.permutation(n_columns) + 0.5) / n_columns
    potency = 5.9 - 3.1 * stats.gamma.ppf(level, 1.1)
    pathways = rng.exponential(size=(n_rows, n_components))
    targets = rng.exponential(size=(n_components, n_columns)) * (rng.random((n_components, n_columns)) < 0.3)
    # Scaled so that the variance of the effect does not depend on the number of pathways.
    effect = 2.2 / np.sqrt(n_components) * (pathways - 1) @ targets
    resistance = 0.5 * rng.standard_normal((n_rows, 1))
    return potency - effect + resistance + 1.1 * rng.standard_normal((n_rows, n_columns))


def _screen(n_rows: int, n_columns: int, rng: np.random.Generator) -> Bools:
    """Draw the mask of observed entries, with a pattern similar to that of GDSC."""
    late = rng.permutation(n_columns) < round(0.295 * n_columns)
    joined_late = rng.permutation(n_rows) < round(0.51 * n_rows)
    observed = np.where(late, joined_late[:, None], True)

    # The drugs of the first screen form two blocks, and some cell lines were tested with only one of them.
    block = rng.permutation(n_columns) < round(0.41 * n_columns)
    order = rng.permutation(n_rows)
    misses_first, misses_second = order < round(0.06 * n_rows), order >= n_rows - round(0.06 * n_rows)
    missed = np.where(block, misses_first[:, None], misses_second[:, None])
    observed &= ~missed | late

    observed &= rng.random(observed.shape) > 0.007
    observed[rng.permutation(n_rows) < round(0.003 * n_rows)] = False

    # Every cell line and every drug has at least one measurement.
    _give_one_entry(observed, rng)
    _give_one_entry(observed.T, rng)
    return observed


def _give_one_entry(rows: Bools, rng: np.random.Generator) -> None:
    """Set one entry of each empty row, in place."""
    empty = np.flatnonzero(~rows.any(axis=1))
    rows[empty, rng.integers(rows.shape[1], size=len(empty))] = True


def make_ratings(
    n_users: int = 1000,
    n_items: int = 1500,
    n_ratings: int = 50_000,
    *,
    n_components: int = 10,
    random_state: Any = None,
) -> Bunch:
    """Draw a sparse matrix of ratings from 1 to 5, most of them missing.

    The numbers of ratings per user and per item have long tails, as on rating sites. The mean of a rating is W Z with
    gamma distributed W and Z; noise is added, and the sum is rounded and clipped to the scale. No dense matrix is
    created.

    Parameters
    ----------
    n_users, n_items : int
        Shape of the matrix.
    n_ratings : int
        Number of stored entries: at most half of the matrix.
    n_components : int, default=10
        Rank of W Z.
    random_state : int, numpy.random.Generator or None
        Seed or generator, as in `numpy.random.default_rng`.

    Returns
    -------
    sklearn.utils.Bunch
        `data`, a SciPy CSR array in which an entry that is not stored is *missing*; `W` (users by components)
        and `Z` (components by items).

    Examples
    --------
    >>> made = make_ratings(200, 300, 4000, random_state=0)
    >>> made.data.shape, made.data.nnz, np.unique(made.data.data)
    ((200, 300), 4000, array([1., 2., 3., 4., 5.]))
    """
    _check_counts(n_users=n_users, n_items=n_items, n_ratings=n_ratings, n_components=n_components)
    if 2 * n_ratings > n_users * n_items:
        raise ValueError(
            f"n_ratings must be at most half of n_users * n_items, {n_users * n_items // 2}, got {n_ratings}"
            "; use make_low_rank for a matrix with few missing entries"
        )
    rng = np.random.default_rng(random_state)
    # With shape 5 and 10 components the standard deviation of W Z is about 0.7, and that of the ratings about 1.1.
    W = rng.gamma(5.0, 1 / 5.0, size=(n_users, n_components))
    Z = rng.gamma(5.0, 3.55 / (5.0 * n_components), size=(n_components, n_items))
    users, items = np.divmod(_distinct_pairs(n_users, n_items, n_ratings, rng), n_items)
    # The pairs are sorted, so they can be converted to the CSR format directly.
    starts = np.concatenate(([0], np.cumsum(np.bincount(users, minlength=n_users))))
    values = _rate(W, Z, users, items, rng)
    index_dtype = np.int32 if max(n_items, n_ratings) < 2**31 else np.int64
    data = sparse.csr_array((values, items.astype(index_dtype), starts.astype(index_dtype)), shape=(n_users, n_items))
    return Bunch(data=data, W=W, Z=Z)


def _distinct_pairs(n_users: int, n_items: int, n_pairs: int, rng: np.random.Generator) -> Ints:
    """Draw distinct pairs as sorted numbers user * n_items + item, with long-tailed popularity."""
    # As in the MovieLens data, the mean number of ratings of a user is about twice the median.
    user_weight = rng.lognormal(sigma=1.2, size=n_users)
    item_weight = rng.lognormal(sigma=1.7, size=n_items)
    pairs = np.empty(0, dtype=np.int64)
    flatness = 1.0
    while len(pairs) < n_pairs:
        lacking = n_pairs - len(pairs)
        n_draws = lacking + lacking // 4 + 16
        users = _draw_by_weight(user_weight**flatness, n_draws, rng)
        items = rng.permutation(_draw_by_weight(item_weight**flatness, n_draws, rng))
        pairs = np.unique(np.concatenate((pairs, users * np.int64(n_items) + items)))
        # Popular pairs are soon exhausted, so the popularity is flattened in each round.
        flatness *= 0.9
    surplus = rng.choice(len(pairs), size=len(pairs) - n_pairs, replace=False, shuffle=False)
    return np.delete(pairs, surplus)


def _draw_by_weight(weight: Floats, n_draws: int, rng: np.random.Generator) -> npt.NDArray[np.int32]:
    """Draw sorted indices with given weights; drawing counts is much faster than drawing indices one by one."""
    counts = rng.multinomial(n_draws, weight / weight.sum())
    return np.repeat(np.arange(len(weight), dtype=np.int32), counts)


def _rate(W: Floats, Z: Floats, users: Ints, items: Ints, rng: np.random.Generator) -> Floats:
    """Return W Z + noise at the pairs, rounded to the scale; computed in blocks to limit memory."""
    values = 0.9 * rng.standard_normal(len(users))
    columns = np.ascontiguousarray(Z.T)
    for start in range(0, len(users), 1 << 18):
        block = slice(start, start + (1 << 18))
        values[block] += np.einsum("pk,pk->p", W[users[block]], columns[items[block]])
    return np.clip(np.rint(values), 1.0, 5.0)


def _check_counts(**counts: int) -> None:
    """Raise an error if a count is not a positive whole number."""
    for name, count in counts.items():
        whole_number(count, name, 1)
