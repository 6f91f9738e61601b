"""Latent values: of entries that are only known to lie between limits, and of all if they may have gross errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bnmf.data.containers import pointers
from bnmf.data.half_sweeps import ScaledView
from bnmf.data.limits import Limits
from bnmf.data.views import Stored, flat, places_in
from bnmf.kernels.compiled import ROWS_PER_TILE, EntryList, Given, Interwoven, Latent, Outliers
from bnmf.priors.base import Coefficients
from bnmf.utils.typing import Floats, Indices, Key, Words

# Share of the observed entries of a row or column that lie beyond one limit from which it is drawn together with their
# values: below, that takes more time than it saves.
MIN_FOLLOWING = 2 / 3


class Filled:
    """Rows of the data, and columns if given, with the latent values of entries with limits or with gross errors."""

    columns: Stored

    def __init__(
        self,
        limits: Limits | None,
        rows: Stored,
        columns: Stored | None = None,
        *,
        has_outliers: bool = False,
        is_dense: bool = False,
    ) -> None:
        self.rows, n_limited = rows.own(), 0 if limits is None else len(limits)
        if columns is not None:
            self.columns = columns.own()
        self.listed = np.empty(0, np.intp)
        """Where rows list the entries with limits, if they list all that was observed."""
        self._kernels: list[EntryList] = []
        self._interwoven: list[tuple[Interwoven, Indices]] = []
        shared: dict[str, Any] = {}
        if has_outliers:
            self.sums = np.zeros((-(-rows.n_rows // ROWS_PER_TILE), 2, rows.n_columns))
            shared = {"sums": self.sums.reshape(-1), "errors": np.empty(n_limited)}
            self._kernels.append(self._outliers(limits, is_dense and rows.form == "dense", columns is not None))
        if limits is None:
            return
        # Finite and infinite intervals are drawn in different ways: those of a row come one after the other.
        order = np.lexsort((np.isinf(limits.upper - limits.lower), limits.rows))
        at, to = limits.rows[order], limits.columns[order]
        targets = self.rows.targets(at, to)
        self.listed = targets[0][1]
        if columns is not None:
            targets += self.columns.targets(to, at)
        lists, lower, upper = _lists(at, to, rows), limits.lower[order], limits.upper[order]
        # After the others, which start new sums.
        self._kernels.append(Latent(lower=lower, upper=upper, targets=targets, **lists, **shared))
        if columns is not None and rows.form != "sparse":
            self._interwoven = self._with_followers(limits, order, shared.get("errors"))

    def _outliers(self, limits: Limits | None, is_dense: bool, has_columns: bool) -> Outliers:
        """Return the kernel of entries without limits; dense rows list missing ones too, and have the same columns."""
        at, to, values = _recorded(self.rows, limits, is_dense)
        targets = self.rows.targets(at, to)[is_dense:]  # matrices of dense rows are written in order
        if has_columns:
            targets += self.columns.targets(to, at)[is_dense:]
        matrix = self.rows.matrix if is_dense else None
        transposed = self.columns.matrix if is_dense and has_columns else None
        lists, sums = _lists(at, to, self.rows), self.sums.reshape(-1)
        return Outliers(values=values, sums=sums, targets=targets, matrix=matrix, transposed=transposed, **lists)

    def _with_followers(self, limits: Limits, order: Indices, errors: Floats | None) -> list[Any]:
        """Return kernels for rows and columns of which many values follow the factors, and where entries are listed."""
        at, to, _ = _recorded(self.rows, None, False)
        lower, upper = limits.at(at, to)
        follows = np.isinf(upper - lower)
        entries: dict[str, Any] = {
            "limit": np.where(follows, np.where(np.isinf(lower), upper, lower), np.nan),
            "above": (follows & np.isfinite(lower)).astype(np.uint8),
        }
        if errors is not None:
            entries["places"] = places_in(limits.flat[order], flat(at, to, limits.shape))
        kernels = []
        for own, other, view in ((at, to, self.rows), (to, at, self.columns)):
            share = np.bincount(own, follows, view.n_rows) / np.maximum(view.n_observed, 1)
            chosen = np.flatnonzero((share >= MIN_FOLLOWING)[own])
            chosen = chosen[np.lexsort((follows[chosen], own[chosen]))]
            targets = self.rows.targets(at[chosen], to[chosen]) + self.columns.targets(to[chosen], at[chosen])
            kernel = Interwoven(
                **_lists(own[chosen], other[chosen], view),
                targets=targets,
                **{"errors": errors, "places": None} | {name: array[chosen] for name, array in entries.items()},
            )
            kernels.append((kernel, chosen))
        return kernels if any(len(chosen) for _, chosen in kernels) else []

    def draw_all(
        self, scaled: ScaledView, key: Key, workers: Any, ids: Words | None = None, *, W: Floats, Z: Floats,
        row_variance: Floats, column_variance: Floats, **options: Any,
    ) -> None:  # fmt: skip
        """Draw the latent values of all rows, with the scales of other views; see `Given`."""
        ids, n_rows = self.rows.ids if ids is None else ids, self.rows.n_rows
        given = Given(
            W=W, Z=Z, entry_scale=scaled.entry_scale, row_scale=scaled.row_scale, row_variance=row_variance,
            column_variance=column_variance, ids=ids, key=key, **options,
        )  # fmt: skip
        _over_rows(self._kernels, given, n_rows, workers)

    def draw_with_factors(
        self,
        scaled: tuple[ScaledView, ScaledView],
        factors: tuple[Floats, Floats],
        priors: tuple[Coefficients, Coefficients],
        drawn: tuple[tuple[int, int], tuple[int, int]],
        variances: tuple[Floats, Floats],
        weight: Floats | None,  # factors of the precisions of entries, as rows list them
        keys: tuple[Key, Key],
        workers: Any,
    ) -> None:
        """Draw W and then Z in place together with the values that follow them; everything comes in such a pair."""
        for side, (kernel, listed) in enumerate(self._interwoven):
            prior, view, W = priors[side], (self.rows, self.columns)[side], factors[side]
            if not len(listed) or prior.max_rate or (prior.absolute is not None and prior.absolute.any()):
                continue  # the density along such a draw has kinks
            given = Given(
                W=W, Z=factors[1 - side], entry_scale=scaled[side].entry_scale, row_scale=scaled[side].row_scale,
                row_variance=variances[side], column_variance=variances[1 - side], ids=view.ids, key=keys[side],
                weight=None if weight is None else weight[listed], prior=prior.kernel_prior, drawn=drawn[side],
            )  # fmt: skip
            _over_rows([kernel], given, view.n_rows, workers)

    def gross(self) -> Floats:
        """Return the number of gross errors in each column, and their sum of squares in units of the model."""
        return self.sums.sum(axis=0)

    def scaled(self, rows: ScaledView, columns: ScaledView) -> tuple[ScaledView, ScaledView]:
        """Return rows and columns with the factors of other views."""
        of_rows, of_columns = (
            own.scaled(like.entry_scale, like.row_scale) for own, like in ((self.rows, rows), (self.columns, columns))
        )
        return of_rows, of_columns


def _lists(at: Indices, to: Indices, view: Stored) -> dict[str, Any]:
    """Return entries as the kernels list them, given their rows, which ascend, and their columns."""
    indptr = pointers(np.bincount(at, minlength=view.n_rows))
    return {"n_columns": view.n_columns, "indptr": indptr, "columns": to.astype(np.uint32)}


def _over_rows(kernels: Sequence[EntryList], given: Given, n_rows: int, workers: Any) -> None:
    """Draw the entries of several kernels, one after the other in each tile of rows."""

    def work(first: int, last: int) -> None:
        for kernel in kernels:
            kernel.draw(given, first * ROWS_PER_TILE, min(last * ROWS_PER_TILE, n_rows))

    workers.over_tiles(work, n_rows)


def _recorded(view: Stored, limits: Limits | None, is_dense: bool) -> tuple[Indices, Indices, Floats]:
    """Return rows, columns and values of the entries without limits, or of all entries with NaN for the others."""
    if view.form == "listed":
        at, to, values = view.listed_rows, view.indices.astype(np.intp), view.values.astype(np.float64)
        if limits is None:
            return at, to, values
        exact = places_in(limits.flat, flat(at, to, limits.shape)) < 0
        return at[exact], to[exact], values[exact]
    values = view.dense_with_nan()
    if limits is not None:
        values[limits.rows, limits.columns] = np.nan
    at, to = np.nonzero(np.ones(values.shape, bool) if is_dense else ~np.isnan(values))
    return at, to, values[at, to]
