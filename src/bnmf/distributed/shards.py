"""Rows and columns of a matrix in blocks on a cluster, and the half-sweeps over them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np

from bnmf.data.views import ScaledView, View
from bnmf.distributed import blocks as on_workers
from bnmf.distributed.blocks import Given, Own
from bnmf.distributed.cluster import Blocks, Cluster
from bnmf.priors.base import Coefficients
from bnmf.sampler import gibbs
from bnmf.sampler.streams import Key
from bnmf.sampler.threads import Workers
from bnmf.utils.typing import Floats, Ints, Words


class ShardedView:
    """Rows of the data, or of its transpose, in blocks: what the model and the sampler ask of a view."""

    def __init__(self, cluster: Cluster, blocks: Blocks, bounds: Ints, n_columns: int) -> None:
        self.cluster, self.blocks, self.bounds, self.n_columns = cluster, blocks, bounds, n_columns
        self._numbers: dict[str, Any] = {}

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.bounds[-1])

    def scaled(self, entry_scale: Floats | None = None, row_scale: Floats | None = None) -> ShardedScaledView:
        """Return a view whose data are multiplied by factors of columns and rows, as they are read."""
        return ShardedScaledView(cast(View, self), entry_scale, row_scale)

    def slices(self) -> list[slice]:
        """Return the rows of each block."""
        return [slice(int(a), int(b)) for a, b in zip(self.bounds[:-1], self.bounds[1:], strict=True)]

    def owner(self, row: int) -> int:
        """Return the number of the block that has a row."""
        return int(np.searchsorted(self.bounds, row, side="right")) - 1

    # --- numbers of each row, computed where it is

    @property
    def n_observed(self) -> Ints:
        """Number of observed entries."""
        return self._of_rows("n_observed")

    def resolutions(self) -> Floats:
        """Return the step in which the entries of each row are recorded."""
        return self._of_rows("resolutions")

    def root_mean_squares(self) -> Floats:
        """Return the root of the mean of a² of each row."""
        return self._of_rows("root_mean_squares")

    def largest_magnitudes(self) -> Floats:
        """Return the largest magnitude of the observed entries of each row."""
        return self._of_rows("largest_magnitudes")

    def sums(self) -> Floats:
        """Return the sum of the observed entries of each row."""
        return self._of_rows("sums")

    def _of_rows(self, name: str) -> Any:
        if name not in self._numbers:
            found = self.cluster.over(self.blocks, on_workers.numbers_of_rows, name=name)
            self._numbers[name] = np.concatenate(found)
        return self._numbers[name]

    def observed_values(self, row: int) -> Floats:
        """Return the observed entries of a row."""
        number = self.owner(row)
        own = {number: row - int(self.bounds[number])}
        return self.cluster.over(self.blocks, on_workers.values_of_row, own)[0]


class ShardedScaledView(ScaledView):
    """A sharded view whose data are multiplied by factors; its half-sweeps run on the cluster."""

    @property
    def shards(self) -> ShardedView:
        """The blocks."""
        return cast(ShardedView, self.view)

    def given(self, Z: Floats, entry_variance: Floats) -> Given:
        """Return what all blocks need of the other side."""
        return Given(Z, entry_variance, self.entry_scale)

    def own(self, W: Floats, prior: Coefficients | None, row_variance: Floats) -> dict[int, Own]:
        """Return what each block needs of its rows."""
        row_scale = self.row_scale if self.has_row_scale else None
        return {
            number: Own(
                rows.start,
                W[rows],
                None if prior is None else prior_of(prior, rows),
                part(row_variance, rows),
                None if row_scale is None else part(row_scale, rows),
            )
            for number, rows in enumerate(self.shards.slices())
        }  # fmt: skip

    def squared_errors(self, W: Floats, Z: Floats, start: int, stop: int, out: Floats) -> None:
        """Write the squared errors of rows `start` to `stop`."""
        out[start:stop] = errors_on_cluster(self, W, Z)[start:stop]


def part(array: Any, rows: slice) -> Any:
    """Return the rows of an array that may have one for all."""
    return array[rows] if len(array) > 1 else array


def prior_of(prior: Coefficients, rows: slice) -> Coefficients:
    """Return the prior of some rows."""
    arrays = {name: getattr(prior, name) for name in ("linear", "quadratic", "absolute")}
    return replace(prior, **{name: part(array, rows) for name, array in arrays.items() if array is not None})


@gibbs.half_sweep.register(ShardedScaledView)
def half_sweep_on_cluster(
    view: ShardedScaledView,
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
    roots: None = None,
    drawn: tuple[int, int] | None = None,
) -> Floats:
    """Run :func:`bnmf.sampler.gibbs.half_sweep` on each block, where it is; entries have no weights there."""
    shards = view.shards
    found = shards.cluster.over(
        shards.blocks,
        on_workers.draw_block,
        view.own(W, prior, row_variance),
        view.given(Z, entry_variance),
        stream=key,
        needs_errors=needs_errors,
        n_passes=n_passes,
        drawn=drawn,
    )
    for rows, block in zip(shards.slices(), found, strict=True):
        W[rows] = block.W
    return np.concatenate([block.errors for block in found]) if needs_errors else np.empty(len(W))


@gibbs.squared_errors.register(ShardedScaledView)
def errors_on_cluster(view: ShardedScaledView, W: Floats, Z: Floats, workers: Workers | None = None) -> Floats:
    """Run :func:`bnmf.sampler.gibbs.squared_errors` on each block, where it is."""
    shards, none = view.shards, np.ones(1)
    own, given = view.own(W, None, none), view.given(Z, none)
    return np.concatenate(shards.cluster.over(shards.blocks, on_workers.errors_of_block, own, given))
