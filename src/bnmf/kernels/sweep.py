"""The half-sweep: draw every entry of W, row by row, given Z. For Z it is called with the roles exchanged.

A row sees the data through four numbers per component, sums over its *observed* entries: zz = Σ z², and zr = Σ z r
with the residual r that leaves the component out. Each row of the data lists either its observed or its missing
positions, whichever are fewer, and keeps r = value - prediction there (value = 0 where missing):

- observed ones listed:  zz and zr are plain sums over the list;
- missing ones listed:   zz and zr are those of the full row with zeros in the holes, from the products B = A Z and
  G = ZᵀZ that BLAS made, less the sums over the list.

So a row costs O(listed K + K²) whatever its length.
"""

import numpy as np

from bnmf.kernels.compile import kernel
from bnmf.kernels.random import stream_of
from bnmf.kernels.truncated_normal import draw_positive, draw_two_piece

# Lists are padded with zeros to a multiple of this, so that the loops over them are whole vectors.
PAD = 8
# A component that lives in the holes of a row to more than this part would cancel: such rows list what they observe.
CANCELLED = 1e-6


@kernel
def sweep_rows(
    W, Z, product, gram, dense, indptr, indices, values, lists_missing, ids, linear, quadratic, coupling,
    slope, published, precision, key_high, key_low, start, stop, squares, squared_error,
):  # fmt: skip
    """Draw rows `start` to `stop` of W in place, and write the squared error that each is left with.

    Parameters
    ----------
    W, Z : (rows, K) and (columns, K)
        The factor to draw and the one that is given.
    product, gram : (stop - start, K) and (K, K)
        A Z for these rows, and ZᵀZ. Read only for rows that list their missing entries.
    dense : (rows, columns) or (0, 0)
        The data with zeros in the holes, if it is kept that way.
    indptr, indices, values, lists_missing
        Positions listed for each row, the data there, and which of the two kinds they are.
    ids : (rows,) of uint64
        Which random stream each row reads.
    linear, quadratic : (1 or rows, K)
        Coefficients of the prior, with the numbers `coupling` and `slope`.
    published : bool
        Use the rule that the paper prints for L∞ in place of the exact conditional.
    precision : float
        1 / σ².
    squares, squared_error : (rows,)
        Σ a² over the observed entries of each row (in), and the squared error there (out).
    """
    n_components = W.shape[1]
    longest = 0
    for row in range(start, stop):
        longest = max(longest, indptr[row + 1] - indptr[row])
    size = padded(max(longest, dense.shape[1]))
    columns = np.empty(n_components * size)
    residuals = np.empty(size)
    everything = np.empty(dense.shape[1], np.uint32)
    c = np.empty(n_components)
    zz = np.empty(n_components)

    for row in range(start, stop):
        w = W[row]
        listed = indices[indptr[row] : indptr[row + 1]]
        data = values[indptr[row] : indptr[row + 1]]
        by_missing = lists_missing[row]
        lin = linear[row if linear.shape[0] > 1 else 0]
        quad = quadratic[row if quadratic.shape[0] > 1 else 0]

        while True:  # once, or twice if the first form of the row cancels
            length = padded(listed.size)
            z = columns[: n_components * length].reshape(n_components, length)
            r = residuals[:length]
            gather(Z, listed, z)
            residual(data, z, w, r)
            if not by_missing:
                for k in range(n_components):
                    zz[k] = dot(z[k], z[k])
                break
            cancelled = False
            for k in range(n_components):
                zz[k] = gram[k, k] - dot(z[k], z[k])
                cancelled |= zz[k] < CANCELLED * gram[k, k]
                c[k] = product[row - start, k]
                zz[k] = max(zz[k], 0.0)
            if not (cancelled and dense.size > 0):
                break
            listed = complement(listed, everything)
            data = dense[row][listed]
            by_missing = False
        if by_missing:
            for k in range(n_components):
                subtract(w[k], gram[k], c)

        draw_row(w, z, r, c, zz, gram, by_missing, lin, quad, coupling, slope, published, precision,
                 stream_of(key_high, key_low, ids[row]))  # fmt: skip
        error = dot(r, r)
        if by_missing:
            error = squares[row] - dot(w, product[row - start]) - dot(w, c) - error
        squared_error[row] = error


@kernel
def draw_row(w, z, r, c, zz, gram, by_missing, linear, quadratic, coupling, slope, published, precision, stream):
    """Draw the entries of one row in turn, carrying c = product - gram w and the residuals r along."""
    total = 0.0
    for k in range(w.size):
        total += w[k]
    for k in range(w.size):
        old = w[k]
        zr = dot(z[k], r)
        if by_missing:
            zr = c[k] - zr
        p = zz[k] * precision + quadratic[k]
        b = (zr + zz[k] * old) * precision - linear[k] - coupling * (total - old)
        if slope == 0.0:
            new, stream = draw_positive(b, p, stream)
        else:
            corner = largest_other(w, k)
            if not published:
                new, stream = draw_two_piece(b, p, corner, slope, stream)
            else:
                new, stream = draw_positive(b - slope if old >= corner else b, p, stream)
        w[k] = new
        change = new - old
        total += change
        subtract(change, z[k], r)
        if by_missing:
            subtract(change, gram[k], c)


@kernel
def padded(length):
    """Return `length` rounded up to whole vectors."""
    return (length + PAD - 1) // PAD * PAD


@kernel
def gather(Z, listed, z):
    """Copy the listed rows of Z into the columns of z, with zeros after them."""
    for k in range(z.shape[0]):
        for i in range(listed.size):
            z[k, i] = Z[listed[i], k]
        for i in range(listed.size, z.shape[1]):
            z[k, i] = 0.0


@kernel
def residual(data, z, w, r):
    """Set r = data - w z, and zero where z is padded."""
    for i in range(r.size):
        r[i] = data[i] if i < data.size else 0.0
    for k in range(w.size):
        subtract(w[k], z[k], r)


@kernel
def dot(x, y):
    """Return Σ x y."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@kernel
def subtract(factor, x, y):
    """Take factor * x from y."""
    for i in range(y.size):
        y[i] -= factor * x[i]


@kernel
def largest_other(w, k):
    """Return the largest entry of w but the k-th, and 0 if there is no other."""
    largest = 0.0
    for j in range(w.size):
        if j != k:
            largest = max(largest, w[j])
    return largest


@kernel
def complement(listed, out):
    """Return the sorted positions of range(out.size) that are not in the sorted list."""
    n = 0
    i = 0
    for position in range(out.size):
        if i < listed.size and listed[i] == position:
            i += 1
        else:
            out[n] = position
            n += 1
    return out[:n]


@kernel
def squared_residuals(W, Z, dense, indptr, indices, values, lists_missing, start, stop):
    """Return the squared error of rows `start` to `stop` from the residuals themselves."""
    total = 0.0
    for row in range(start, stop):
        if lists_missing[row]:
            i, end = indptr[row], indptr[row + 1]
            for column in range(dense.shape[1]):
                if i < end and indices[i] == column:
                    i += 1
                else:
                    total += (dense[row, column] - dot(W[row], Z[column])) ** 2
        else:
            for i in range(indptr[row], indptr[row + 1]):
                total += (values[i] - dot(W[row], Z[indices[i]])) ** 2
    return total
