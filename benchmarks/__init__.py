"""Benchmarks against other libraries: ``python -m benchmarks`` writes a table of ratios.

Each implementation runs in its own process, and the processes are asked for one timed repeat in turn. Thus the load of
the machine affects all of them equally, no thread pool is shared, and a failure does not affect the others.
"""
