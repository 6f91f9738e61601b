"""Side-by-side benchmarks: ``python -m benchmarks`` measures bnmf and its peers in turns and writes a table of ratios.

Every contestant is a process of its own that is asked for one timed repeat at a time, so that all of them meet the
same moods of the machine, none shares a thread pool with another, and one that fails does not lose the rest.
"""
