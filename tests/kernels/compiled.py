"""Parts of the kernels compiled for calls from Python, which in the package only kernels call."""

import numba

from bnmf.kernels import lanes, products, random, systems, truncated_normal


def compiled(function):
    """Return a compiled function of Python that calls `function`."""
    return numba.njit(lambda *arguments: function(*arguments))


exp_of_negative = compiled(lanes.exp_of_negative)

add_outer_products = compiled(products.add_outer_products)
set_dense_product = compiled(products.set_dense_product)
set_sparse_product = compiled(products.set_sparse_product)

exponential = compiled(random.exponential)
mix = compiled(random.mix)
next_word = compiled(random.next_word)
normal = compiled(random.normal)
stream_of = compiled(random.stream_of)
uniform = compiled(random.uniform)

set_system = compiled(systems.set_system)

draw_positive = compiled(truncated_normal.draw_positive)
draw_real = compiled(truncated_normal.draw_real)
draw_two_piece = compiled(truncated_normal.draw_two_piece)
scaled_erfc = compiled(truncated_normal.scaled_erfc)
