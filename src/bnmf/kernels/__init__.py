"""The compiled part: functions of arrays and numbers, and the only Numba code of the package.

Every function is serial and drops the GIL. Threads are started by the caller over ranges of rows, so there is
no threading layer to install, nothing is compiled twice, and the draws cannot depend on the number of threads.
"""
