"""Squared errors from the residuals: slow, but nothing cancels."""

from bnmf.kernels.compile import inlined, kernel


@inlined
def dot(x, y):
    """Return Σ x y."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@kernel
def listed_residuals(W, Z, indptr, indices, values, entry_scale, row_scale, start, stop, out):
    """Write a - w z at every listed position of rows `start` to `stop`, which list what was observed."""
    for row in range(start, stop):
        scale = row_scale[row if row_scale.size > 1 else 0]
        for i in range(indptr[row], indptr[row + 1]):
            column = indices[i]
            out[i] = values[i] * (entry_scale[column] * scale) - dot(W[row], Z[column])


@kernel
def squared_residuals(
    W, Z, dense, indptr, indices, values, lists_missing, entry_scale, row_scale, start, stop, squared_error
):
    """Write the squared error of rows `start` to `stop`, computed from the residuals: slow, but nothing cancels.

    The arguments are those of `draw_tiles`; `dense` is the data with zeros in place of missing entries.
    """
    for row in range(start, stop):
        total = 0.0
        scale = row_scale[row if row_scale.size > 1 else 0]
        if lists_missing[row]:
            i, end = indptr[row], indptr[row + 1]
            for column in range(dense.shape[1]):
                if i < end and indices[i] == column:
                    i += 1
                else:
                    value = dense[row, column] * (entry_scale[column] * scale)
                    residual = value - dot(W[row], Z[column])
                    total += residual * residual
        else:
            for i in range(indptr[row], indptr[row + 1]):
                column = indices[i]
                residual = values[i] * (entry_scale[column] * scale) - dot(W[row], Z[column])
                total += residual * residual
        squared_error[row] = total
