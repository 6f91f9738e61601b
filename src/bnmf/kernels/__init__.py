"""Compiled kernels: functions of arrays and numbers, and the only Numba code of the package.

Every kernel is serial and releases the GIL. The caller runs them in threads over ranges of rows. So no Numba threading
layer is needed, each kernel is compiled once, and the draws do not depend on the number of threads.
"""
