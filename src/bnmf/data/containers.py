"""From what a user passes (array, masked array, DataFrame, sparse matrix) to checked float arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from bnmf.utils.arguments import is_pandas
from bnmf.utils.typing import Array, Bools, Floats, Indices, Ints

# Sizes of data whose squares, and sums of them, are floating-point numbers.
LARGEST, SMALLEST = 1e144, 1e-144
LARGEST_SQUARE = 1e304


def as_floats(X: Any) -> Floats:
    """Return a dense X as a two-dimensional float array with NaN for missing entries."""
    if is_pandas(X, "DataFrame"):
        from pandas.api import types

        wrong = [
            str(name)
            for name, kind in X.dtypes.items()
            if not types.is_numeric_dtype(kind) or types.is_complex_dtype(kind)
        ]
        if wrong:
            raise TypeError(f"X must be numeric, but these columns are not: {', '.join(wrong[:5])}")
        array = X.to_numpy(dtype=np.float64, na_value=np.nan)
    elif isinstance(X, np.ma.MaskedArray) and X.dtype.kind in "fiub":
        array = np.ma.filled(X.astype(np.float64), np.nan)
    else:
        try:
            array = np.asarray(X)
        except ValueError as error:
            raise ValueError(f"X must be a matrix, got lists of unequal length ({error})") from error
    if array.dtype.kind not in "fiub":
        raise TypeError(f"X must hold real numbers, got an array of dtype {array.dtype}")
    if array.ndim != 2:
        raise ValueError(f"X must be a matrix of two dimensions, got {array.ndim} (shape {array.shape})")
    if array.size == 0:
        raise ValueError(f"X must not be empty, got shape {array.shape}")
    return array.astype(np.float64, copy=False)


def refuse_dates(X: Any) -> None:
    """Raise an error if there are dates or durations in a dense X, of which NumPy makes numbers, of NaT -9.2e18."""
    if is_pandas(X, "DataFrame"):
        wrong = [str(column) for column, dtype in X.dtypes.items() if dtype.kind in "mM"]
        if wrong:
            raise TypeError(f"X must hold numbers, but these columns are dates or durations: {', '.join(wrong[:5])}")
        return
    try:
        array = np.asarray(X)
    except (TypeError, ValueError):  # refused elsewhere
        return
    dates = (np.datetime64, np.timedelta64)
    if array.dtype.kind in "mM" or (array.dtype == object and any(isinstance(value, dates) for value in array.flat)):
        raise TypeError(f"X must hold numbers, got dates or durations (an array of dtype {array.dtype})")


def as_mask(observed: Any, shape: tuple[int, ...]) -> Bools:
    """Return the argument `observed` as a boolean array of the shape of X."""
    try:
        mask = np.asarray(observed)
    except ValueError as error:
        raise ValueError(f"observed must have the shape of X, {shape}, got lists of unequal length") from error
    if mask.shape != shape:
        raise ValueError(f"observed must have the shape of X, {shape}, got {mask.shape}")
    if mask.dtype != bool:
        if mask.dtype.kind not in "iuf" or not np.isin(mask, (0, 1)).all():
            raise ValueError("observed must hold booleans (or zeros and ones), True where an entry was observed")
        mask = mask.astype(bool)
    return mask


def as_csr(X: Any) -> sp.csr_array:
    """Return a sparse X as float CSR with sorted indices and no duplicates, without a copy where possible."""
    if X.ndim != 2:
        raise ValueError(f"X must be a matrix of two dimensions, got {X.ndim}")
    if 0 in X.shape:
        raise ValueError(f"X must not be empty, got shape {X.shape}")
    if X.dtype.kind not in "fiub":
        raise TypeError(f"X must hold real numbers, got a sparse matrix of dtype {X.dtype}")
    check_positions(X)
    matrix = sp.csr_array(X, dtype=np.float64)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def as_dense(matrix: sp.csr_array, unstored: str) -> Floats:
    """Return a sparse matrix as a dense array with NaN for missing entries, given what its unstored entries mean."""
    array = np.full(matrix.shape, 0.0 if unstored == "zero" else np.nan)
    array[row_numbers(matrix.indptr), matrix.indices] = matrix.data
    return array


def pointers(lengths: Array) -> Ints:
    """Return where each of several consecutive lists starts, given their lengths, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def row_numbers(indptr: Array) -> Indices:
    """Return the number of the list that each listed entry is in, given where the lists start."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def check_positions(X: Any) -> None:
    """Raise an error if a sparse X stores entries outside its shape, which compiled code would read from memory."""
    if X.ndim != 2:
        return  # refused elsewhere
    try:
        if X.format in ("csr", "csc", "bsr"):
            X.check_format(full_check=True)
        elif X.format != "coo":
            X.tocsr().check_format(full_check=True)
        else:
            for at, size in zip(X.coords, X.shape, strict=True):
                if len(at) and not (at.min() >= 0 and at.max() < size):
                    raise ValueError(f"it has indices from {at.min()} to {at.max()} for a side of {size}")
    except (ValueError, IndexError) as error:
        raise ValueError(f"X is not a valid sparse matrix: {error}") from error


def refuse_padding(X: Any) -> None:
    """Raise an error if a sparse X whose unstored entries are missing stores zeros that may fill up its format."""
    pads = X.format == "dia" or (X.format == "bsr" and X.blocksize != (1, 1))
    n_zeros = X.nnz - X.count_nonzero() if pads else 0
    if n_zeros:
        raise ValueError(
            f"X is of the sparse format {X.format!r} and stores zeros ({n_zeros:,}). Which of them only fill up its "
            f"{'blocks' if X.format == 'bsr' else 'diagonals'}, and so are missing with unstored='missing', cannot be "
            "told: pass a matrix of another format, such as csr, that was not made from this one"
        )


def check_values(values: Floats, *, negative: bool) -> float:
    """Return the smallest value, at most 0; NaN is missing, and others must be finite, not huge, and not `negative`."""
    # Without a mask of all entries, which would take memory.
    lowest, highest = (float(extreme.reduce(values, axis=None, initial=0.0)) for extreme in (np.fmin, np.fmax))
    if not (np.isfinite(lowest) and np.isfinite(highest)):
        raise ValueError(f"X must be finite where it is observed, got {np.isinf(values).sum()} infinite entries")
    if max(-lowest, highest) > LARGEST:
        raise ValueError(
            f"X must not exceed {LARGEST:g}, got an entry of size {max(-lowest, highest):g}: squares of such numbers "
            "leave the range of floating-point numbers, so divide X by a constant"
        )
    if lowest < 0 and not negative:
        raise ValueError(
            f"Negative values in data: X must be nonnegative, got {(values < 0).sum()} negative entries, the lowest "
            f"{lowest:g}, unless offset='min' or factors may be negative too, as with prior='normal'"
        )
    return lowest
