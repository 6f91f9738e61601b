"""A factor by columns: components are copied to contiguous columns, padded with zeros to whole vectors.

Moves that change whole components read them so. `w` points to the first column, and column k starts at k * length.
"""

from bnmf.kernels.compile import inlined, linked
from bnmf.kernels.processor import WIDTH
from bnmf.kernels.vectors import broadcast, extract_lane, larger, load, store


@linked
def copy_to_columns(W, w, length):
    """Copy a factor to columns of `length` rows."""
    n_rows, n_components = W.shape
    for k in range(n_components):
        for row in range(n_rows, length):
            w[k * length + row] = 0.0
    for row in range(n_rows):
        for k in range(n_components):
            w[k * length + row] = W[row, k]


@inlined
def copy_from_columns(w, length, W):
    """Copy columns back to a factor."""
    for row in range(W.shape[0]):
        for k in range(W.shape[1]):
            W[row, k] = w[k * length + row]


@inlined
def set_kinks(j, n_components, w, length, kinks):
    """Write the largest entry of each row other than the j-th."""
    for i in range(0, length, WIDTH):
        kink = broadcast(0.0)
        for k in range(n_components):
            if k != j:
                kink = larger(kink, load(w, k * length + i))
        store(kinks, i, kink)


@inlined
def lane_sum(x):
    """Return the sum of the lanes of a vector."""
    total = 0.0
    for lane in range(WIDTH):
        total += extract_lane(x, lane)
    return total


@inlined
def lane_maximum(x):
    """Return the largest lane of a vector of nonnegative numbers."""
    largest = 0.0
    for lane in range(WIDTH):
        largest = max(largest, extract_lane(x, lane))
    return largest
