"""Compiled kernels: C++ sources, and the module made of them for the level of this processor (`compiled`).

Every kernel is serial and releases the GIL. The caller runs them in threads over ranges of rows, so the draws do not
depend on the number of threads. Numbers and shapes are checked before anything is read.
"""
