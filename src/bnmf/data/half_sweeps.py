"""Half-sweeps over rows of the data: a factor is drawn given the other one, in the units of the model.

Rows with the same missing entries share the sums over what was observed and are drawn together. Real data are often
missing in blocks: a batch of cell lines on which some drugs were not tested misses all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bnmf.data.containers import pointers
from bnmf.kernels.compiled import (
    ROWS_PER_TILE,
    HalfSweep,
    Rows,
    all_above,
    listed_residuals,
    squared_residuals,
)
from bnmf.priors.base import Coefficients
from bnmf.utils.typing import Array, Floats, Ints, Words

# Below this fraction of its sum of squares, the squared error of a row from the quadratic form has lost its digits to
# cancellation and is recomputed from the residuals.
MIN_TRUSTED_ERROR = 1e-8


class ScaledView:
    """Rows whose data are multiplied by factors of the columns and of the rows, 1 by default, as they are read."""

    def __init__(self, view: Any, entry_scale: Floats | None = None, row_scale: Floats | None = None) -> None:
        self.view = view
        self.entry_scale = entry_scale
        self.row_scale = np.ones(1) if row_scale is None else row_scale
        self._kernel_rows: dict[int, Rows] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return everything but what the kernels read, which points to memory of this process."""
        return self.__dict__ | {"_kernel_rows": {}}

    def times(self, factor: Floats) -> ScaledView:
        """Return the view with its columns multiplied by further factors."""
        return ScaledView(self.view, factor if self.entry_scale is None else factor * self.entry_scale, self.row_scale)

    def kernel_rows(self, n_components: int) -> Rows:
        """Return the data for half-sweeps of K components, in the form that the kernels read."""
        if n_components not in self._kernel_rows:
            self._kernel_rows[n_components] = Rows(
                data=self.view.kernel_data,
                **self.view.split(min_sharing(n_components))._asdict(),
                entry_scale=self.entry_scale,
                row_scale=self.row_scale,
                squares=self.squares,
                ids=self.view.ids,
            )
        return self._kernel_rows[n_components]

    @cached_property
    def sums_of_squares(self) -> Floats:
        """Σ a² of each row."""
        return self.view.sums_of_squares(self.entry_scale) * self.row_scale**2

    @cached_property
    def squares(self) -> Floats:
        """The same as the kernels read it: zeros for rows that only list their entries, which the kernels sum."""
        return np.zeros(self.view.n_rows) if self.view.form == "listed" else self.sums_of_squares.copy()

    @cached_property
    def trusted_errors(self) -> Floats:
        """The squared error of each row above which that from the quadratic form has digits left."""
        return MIN_TRUSTED_ERROR * self.sums_of_squares

    def refresh(self) -> None:
        """Compute the sums again after entries of the data have changed, in the memory that the kernels read."""
        for name in ("sums_of_squares", "trusted_errors"):
            self.__dict__.pop(name, None)
        if self.view.form != "listed":
            self.squares[:] = self.sums_of_squares

    def half_sweep(
        self,
        W: Floats,
        Z: Floats,
        prior: Coefficients,
        row_variance: Floats,
        entry_variance: Floats,
        key: tuple[int, int],
        workers: Any,
        ids: Words | None = None,
        *,
        needs_errors: bool = True,
        n_passes: int = 1,
        roots: Floats | None = None,
        drawn: tuple[int, int] | None = None,
    ) -> Floats:
        """Draw every row of W in place given Z, both (rows, K), and return the squared error of each row."""
        # Entry (i, j) has variance row_variance_i entry_variance_j, each one number or one for each row or column. The
        # squared errors are divided by entry_variance; without `needs_errors` they are not to be used. Each row reads
        # the random stream of its id, by default its number, and is drawn `n_passes` times. `roots` are the roots of
        # weights of the entries that rows list, and `drawn` are the first component that is drawn and the one after the
        # last. `workers` are those of `bnmf.sampler.threads`.
        weighted = self.times(1.0 / np.sqrt(entry_variance)) if needs_errors and entry_variance.size > 1 else self
        squared_error = np.empty(len(W))
        half = HalfSweep(
            self.kernel_rows(W.shape[1]), W, Z, prior.kernel_prior, workers.memory, row_variance, entry_variance, key,
            n_passes, drawn or (0, W.shape[1]), squared_error,
            squares=None if weighted is self else weighted.squares, roots=roots, ids=ids,
        )  # fmt: skip
        workers.over_tiles(lambda first, end: half.draw(first, end, workers.memory), len(W))
        if needs_errors:
            weighted.correct_errors(W, Z, entry_variance, squared_error)
        return squared_error

    def correct_errors(self, W: Floats, Z: Floats, entry_variance: Floats, squared_error: Floats) -> None:
        """Replace squared errors that cancelled, and divide all by a common variance."""
        # Rows that only list their entries have the squares of their residuals summed, which do not cancel.
        if self.view.form != "listed" and not all_above(squared_error, self.trusted_errors):
            if entry_variance.size > 1:
                Z = Z * (1.0 / np.sqrt(entry_variance))[:, None]  # as the kernels read it
            for row in np.flatnonzero(~(squared_error > self.trusted_errors)).tolist():
                self._over(squared_residuals, W, Z, row, row + 1, squared_error)
        if entry_variance.size == 1 and entry_variance[0] != 1.0:
            squared_error /= entry_variance[0]

    def squared_errors(self, W: Floats, Z: Floats, workers: Any = None) -> Floats:
        """Return Σ (a - w z)² over the observed entries of each row, from the residuals."""
        return self._over_tiles(squared_residuals, W, Z, np.empty(self.view.n_rows), workers)

    def listed_residuals(self, W: Floats, Z: Floats, workers: Any = None) -> Floats:
        """Return a - w z of every listed entry, of rows that list what was observed."""
        return self._over_tiles(listed_residuals, W, Z, np.empty(len(self.view.indices)), workers)

    def _over_tiles(self, kernel: Callable[..., None], W: Floats, Z: Floats, out: Floats, workers: Any) -> Floats:
        n_rows = self.view.n_rows

        def compute(first: int, last: int) -> None:
            self._over(kernel, W, Z, first * ROWS_PER_TILE, min(last * ROWS_PER_TILE, n_rows), out)

        if workers is None:
            compute(0, -(-n_rows // ROWS_PER_TILE))
        else:
            workers.over_tiles(compute, n_rows)
        return out

    def _over(self, kernel: Callable[..., None], W: Floats, Z: Floats, start: int, stop: int, out: Floats) -> None:
        kernel(W, Z, self.kernel_rows(W.shape[1]), start, stop, out)


# --- rows that are drawn together


class Split(NamedTuple):
    """The rows of each tile in the order in which they are drawn, as the kernels take them."""

    indptr: Ints  # tile t has the rows rows[indptr[t]:indptr[t + 1]]
    rows: Ints
    n_sharing: Ints  # how many of a tile, the first ones, share their missing entries with others
    repeats: Array  # whether each of those has the missing entries of the row before it, 1 or 0


def min_sharing(n_components: int) -> int:
    """Return the number of rows with the same missing entries from which a shared system pays."""
    # By timing: that of setting up a system grows with K², and that of drawing a row from its residuals with K.
    return 3 + n_components // 25


def split_rows(patterns: Ints, rows_per_tile: int, min_sharing: int) -> Split:
    """Return the rows that are drawn together, because they have the same missing entries, and then the others."""
    tiles = np.arange(len(patterns)) // rows_per_tile
    _, place, sizes = np.unique(np.stack([tiles, patterns]), axis=1, return_inverse=True, return_counts=True)
    n_alike = np.where(patterns >= 0, sizes[place], 0)
    shares = n_alike >= max(min_sharing, 1)
    rows = np.lexsort((np.where(shares, patterns, -1), np.where(shares, -n_alike, 0), ~shares, tiles)).astype(np.int64)
    repeats = np.zeros(len(rows), np.uint8)
    repeats[1:] = (patterns[rows[1:]] == patterns[rows[:-1]]) & (tiles[rows[1:]] == tiles[rows[:-1]])
    n_tiles = -(-len(patterns) // rows_per_tile)
    n_rows, n_sharing = (np.bincount(which, minlength=n_tiles) for which in (tiles, tiles[shares]))
    return Split(pointers(n_rows), rows, n_sharing.astype(np.int64), repeats * shares[rows])
