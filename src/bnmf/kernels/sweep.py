"""The half-sweep: draw every entry of W, row by row, given Z. For Z it is called with the roles exchanged.

A row sees the data only through sums over its *observed* entries: Σ z zᵀ, Σ z a and Σ a². They are one symmetric
matrix, the *system* of the row: Σ y yᵀ where y = (z, a) has the data as one more column. Each row of the data lists
either its observed or its missing positions, whichever are fewer:

- observed ones listed:  the system is the sum over the list;
- missing ones listed:   it is that of the full row with zeros in the holes, from the products A Z and ZᵀZ that BLAS
  made, less the sum over the list.

So a row costs O(listed K² / 2 + K²) whatever its length, and each listed row of Z is read once. Real holes come in
blocks (a drug that was not tried on a batch of cell lines), so rows with the same holes are drawn one after the other,
and share their sums.
"""

import math

import numpy as np

from bnmf.kernels.compile import inlined, kernel
from bnmf.kernels.random import stream_of
from bnmf.kernels.truncated_normal import draw_positive, draw_scaled, draw_two_piece
from bnmf.kernels.vectors import WIDTH, add_product, load, load_one, prefetch, repeated, splat, store, store_one, total

# Listed rows of Z that are gathered at a time: few enough to stay in the nearest cache.
CHUNK = 32
# A factor of more numbers than this is not in the nearer caches: its rows are asked for ahead of their use.
FAR = 2**15
# A component that lives in the holes of a row but for this part would cancel: such rows are summed the other way.
CANCELLED = 1e-6


@kernel
def sweep_rows(
    W, Z, product, gram, indptr, indices, values, lists_missing, order, repeats, ids, linear, quadratic, coupling,
    slope, published, precision, key_high, key_low, start, stop, squares, squared_error,
):  # fmt: skip
    """Draw rows `start` to `stop` of W in place, and write the squared error that each is left with.

    Parameters
    ----------
    W, Z : (rows, K) and (columns, K)
        The factor to draw and the one that is given.
    product, gram : (stop - start, K) and (K, K)
        A Z for these rows, and ZᵀZ. Read only for rows that list their missing entries.
    indptr, indices, values, lists_missing
        Positions listed for each row, the data there, and which of the two kinds they are.
    order, repeats : (rows,)
        In which order to draw the rows `start` to `stop`, and whether a row has the same holes as the one before it.
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
    side = padded(W.shape[1] + 1)
    size = side * side
    systems = aligned(2 * size)  # that of a full row, but for its data, and that of the row at hand
    for k in range(W.shape[1]):
        for j in range(W.shape[1]):
            systems[k * side + j] = gram[k, j]
    chunk = aligned(CHUNK * side + WIDTH)
    v, c, sums = aligned(side), aligned(side), aligned(side)
    p, inverse, scale, offset = aligned(side), aligned(side), aligned(side), aligned(side)

    system = 0
    for position in range(start, stop):
        row = order[position]
        first, last = indptr[row], indptr[row + 1]
        by_missing = lists_missing[row]
        if by_missing and first == last:
            system = 0
        elif not repeats[position]:
            system = size
            if by_missing:
                copy(systems, 0, size, systems, system)
            else:
                fill(systems, system, size, 0.0)
            add_rows(-1.0 if by_missing else 1.0, Z, indices, values, first, last, chunk, systems, system, side)
            if by_missing and is_cancelled(systems, system, side, gram):
                fill(systems, system, size, 0.0)
                add_complement(Z, indices, first, last, chunk, systems, system, side)

        fill(c, 0, side, 0.0)
        if by_missing:  # the system does not hold the data
            set_data(W, row, product, row - start, squares[row], c)
        squared_error[row] = draw_row(
            W, row, systems, system, side, v, c, sums, p, inverse, scale, offset, linear, quadratic, coupling, slope,
            published, precision, stream_of(key_high, key_low, ids[row]),
        )  # fmt: skip


@inlined
def draw_row(
    W, row, systems, system, side, v, c, sums, p, inverse, scale, offset, linear, quadratic, coupling, slope,
    published, precision, stream,
):  # fmt: skip
    """Draw the entries of one row in turn, and return the squared error that is left.

    With y = (z, a) and v = (w, -1), the residuals are r = -v y, and c becomes Σ y r. A change of one entry moves c
    by a row of the system, and the squared error by a square.
    """
    n_components = W.shape[1]
    of_linear = row if linear.shape[0] > 1 else 0
    of_quadratic = row if quadratic.shape[0] > 1 else 0
    sum_w = 0.0
    for k in range(n_components):
        v[k] = W[row, k]
        sum_w += v[k]
        zz = max(systems[system + k * side + k], 0.0)
        p[k] = zz * precision + quadratic[of_quadratic, k]
        offset[k] = zz * precision * v[k] - linear[of_linear, k]
    for k in range(n_components):
        inverse[k] = 1.0 / p[k]
        scale[k] = math.sqrt(inverse[k])
    v[n_components] = -1.0
    subtract_product(systems, system, side, v, sums, c)
    squared_error = c[n_components]
    for k in range(n_components):
        squared_error -= v[k] * c[k]

    zr = c[0]
    for k in range(n_components):
        old = v[k]
        b = zr * precision + offset[k]
        if coupling != 0.0:
            b -= coupling * (sum_w - old)
        if slope == 0.0:
            new, stream = draw_scaled(b, p[k], inverse[k], scale[k], stream)
        else:
            corner = largest_other(v, n_components, k)
            if not published:
                new, stream = draw_two_piece(b, p[k], corner, slope, stream)
            else:
                new, stream = draw_positive(b - slope if old >= corner else b, p[k], stream)
        v[k] = new
        change = new - old
        sum_w += change
        at = system + k * side
        squared_error -= change * (2.0 * zr - max(systems[at + k], 0.0) * change)
        zr = c[k + 1] - change * systems[at + k + 1]  # at once: the next draw waits for nothing else
        factor = splat(-change)
        for j in range(k // WIDTH * WIDTH, side, WIDTH):  # what lies before is done with
            store(c, j, add_product(load(c, j), factor, load(systems, at + j)))
    for k in range(n_components):
        W[row, k] = v[k]
    return squared_error


@inlined
def subtract_product(systems, system, side, v, sums, out):
    """Take system v from `out`; of the system only the blocks on and above the diagonal are read."""
    zero = splat(0.0)
    for k in range(side):
        below = zero
        for j in range(k // WIDTH * WIDTH + WIDTH, side, WIDTH):
            below = add_product(below, load(v, j), load(systems, system + k * side + j))
        sums[k] = total(below)
    for j in range(0, side, WIDTH):
        even = load(sums, j)
        odd = zero
        for k in range(0, j + WIDTH, 2):  # two sums, because each addition waits for the one before
            at = system + k * side + j
            even = add_product(even, repeated(v, k), load(systems, at))
            odd = add_product(odd, repeated(v, k + 1), load(systems, at + side))
        rest = add_product(load(out, j), splat(-1.0), even)
        store(out, j, add_product(rest, splat(-1.0), odd))


@inlined
def set_data(W, row, product, of_product, square, c):
    """Write Σ z a and Σ a r of a row whose system does not hold its data."""
    n_components = W.shape[1]
    for k in range(n_components):
        c[k] = product[of_product, k]
        square -= W[row, k] * c[k]
    c[n_components] = square


@inlined
def is_cancelled(systems, system, side, gram):
    """Tell whether next to nothing is left of a diagonal entry."""
    cancelled = False
    for k in range(gram.shape[0]):
        cancelled |= systems[system + k * side + k] < CANCELLED * gram[k, k]
    return cancelled


@kernel
def add_complement(Z, indices, first, last, chunk, systems, system, side):
    """Add Σ z zᵀ over the positions that are *not* listed; the data come from the product, which does not cancel."""
    positions = np.empty(Z.shape[0], np.uint32)
    length = complement(indices[first:last], positions)
    add_rows(1.0, Z, positions, np.zeros(length), 0, length, chunk, systems, system, side)


@kernel
def add_rows(sign, Z, indices, values, first, last, chunk, systems, system, side):
    """Add sign * Σ y yᵀ over the rows y = (z, a) listed from `first` to `last` to a system."""
    width = Z.shape[1]
    for begin in range(first, last, CHUNK):
        n = min(CHUNK, last - begin)
        if Z.size > FAR:
            # The list goes on with that of the next row, so what is asked for is used whatever ends here.
            for i in range(begin + n, min(begin + n + CHUNK, indices.size)):
                ahead = np.int64(indices[i]) * width
                for j in range(ahead, ahead + width, WIDTH):
                    prefetch(Z, j)
        for i in range(n):
            copy(Z, np.int64(indices[begin + i]) * width, width, chunk, i * side)
            chunk[i * side + width] = values[begin + i]
        add_chunk(sign, chunk, n, systems, system, side)


@inlined
def add_chunk(sign, chunk, n, systems, system, side):
    """Add sign * Σ y yᵀ over the n rows y of a chunk to the blocks on and above the diagonal of a system."""
    factor = splat(sign)
    for k in range(0, side, WIDTH):
        for j in range(k, side - WIDTH, 2 * WIDTH):
            add_two_blocks(factor, chunk, n, k, j, systems, system, side)
        if (side - k) // WIDTH % 2 == 1:
            add_one_block(factor, chunk, n, k, side - WIDTH, systems, system, side)


@inlined
def add_two_blocks(factor, chunk, n, k, j, systems, system, side):
    """Add to two blocks side by side: sixteen vectors hold them while the rows go by, so each number serves many."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = splat(0.0)
    t0 = t1 = t2 = t3 = t4 = t5 = t6 = t7 = splat(0.0)
    for i in range(0, n * side, side):
        s = load(chunk, i + j)
        t = load(chunk, i + j + WIDTH)
        x = repeated(chunk, i + k)
        s0, t0 = add_product(s0, x, s), add_product(t0, x, t)
        x = repeated(chunk, i + k + 1)
        s1, t1 = add_product(s1, x, s), add_product(t1, x, t)
        x = repeated(chunk, i + k + 2)
        s2, t2 = add_product(s2, x, s), add_product(t2, x, t)
        x = repeated(chunk, i + k + 3)
        s3, t3 = add_product(s3, x, s), add_product(t3, x, t)
        x = repeated(chunk, i + k + 4)
        s4, t4 = add_product(s4, x, s), add_product(t4, x, t)
        x = repeated(chunk, i + k + 5)
        s5, t5 = add_product(s5, x, s), add_product(t5, x, t)
        x = repeated(chunk, i + k + 6)
        s6, t6 = add_product(s6, x, s), add_product(t6, x, t)
        x = repeated(chunk, i + k + 7)
        s7, t7 = add_product(s7, x, s), add_product(t7, x, t)
    at = system + k * side + j
    add_block(factor, (s0, s1, s2, s3, s4, s5, s6, s7), systems, at, side)
    add_block(factor, (t0, t1, t2, t3, t4, t5, t6, t7), systems, at + WIDTH, side)


@inlined
def add_one_block(factor, chunk, n, k, j, systems, system, side):
    """Add to the last block of a line, which has none beside it."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = splat(0.0)
    for i in range(0, n * side, side):
        s = load(chunk, i + j)
        s0 = add_product(s0, repeated(chunk, i + k), s)
        s1 = add_product(s1, repeated(chunk, i + k + 1), s)
        s2 = add_product(s2, repeated(chunk, i + k + 2), s)
        s3 = add_product(s3, repeated(chunk, i + k + 3), s)
        s4 = add_product(s4, repeated(chunk, i + k + 4), s)
        s5 = add_product(s5, repeated(chunk, i + k + 5), s)
        s6 = add_product(s6, repeated(chunk, i + k + 6), s)
        s7 = add_product(s7, repeated(chunk, i + k + 7), s)
    add_block(factor, (s0, s1, s2, s3, s4, s5, s6, s7), systems, system + k * side + j, side)


@inlined
def add_block(factor, block, systems, at, side):
    """Add factor * block to the eight by eight entries of a system from `at` on."""
    for vector in block:
        store(systems, at, add_product(load(systems, at), factor, vector))
        at += side


@inlined
def copy(source, at, length, out, to):
    """Copy numbers in whole vectors; the last one overlaps the one before."""
    if length < WIDTH:
        for i in range(length):
            store_one(out, to + i, load_one(source, at + i))
    else:
        for i in range(0, length - WIDTH, WIDTH):
            store(out, to + i, load(source, at + i))
        store(out, to + length - WIDTH, load(source, at + length - WIDTH))


@inlined
def fill(out, at, length, number):
    """Fill whole vectors with a number."""
    for i in range(at, at + length, WIDTH):
        store(out, i, splat(number))


@kernel
def aligned(size):
    """Return an array of zeros that starts where a vector can be read at once."""
    array = np.zeros(size + WIDTH)
    skip = (-(array.ctypes.data // 8)) % WIDTH
    return array[skip : skip + size]


@kernel
def padded(length):
    """Return `length` rounded up to whole vectors."""
    return (length + WIDTH - 1) // WIDTH * WIDTH


@inlined
def dot(x, y):
    """Return Σ x y."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@kernel
def largest_other(w, length, k):
    """Return the largest of the first `length` entries of w but the k-th, and 0 if there is no other."""
    largest = 0.0
    for j in range(length):
        if j != k:
            largest = max(largest, w[j])
    return largest


@kernel
def complement(listed, out):
    """Write the sorted positions of range(out.size) that are not in the sorted list, and return how many."""
    n = 0
    i = 0
    for position in range(out.size):
        if i < listed.size and listed[i] == position:
            i += 1
        else:
            out[n] = position
            n += 1
    return n


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
