"""Whether all numbers of an array are finite: NaN and infinity are how draws beyond the range of floating point end."""

from bnmf.kernels.compile import kernel


@kernel
def all_finite(numbers):
    """Return whether all numbers of a one-dimensional array are finite.

    The count of the others is vectorised by the compiler; a sum of floats, whose order is fixed, is not.
    """
    n_others = 0
    for i in range(numbers.size):
        n_others += numbers[i] - numbers[i] != 0.0
    return n_others == 0
