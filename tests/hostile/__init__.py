"""Hostile tests: random inputs, damaged files, full disks, kills and wrong calls.

Every attempt ends in the right result or in a clear error; anything else is bad. `make test` runs a few hundred
attempts with fixed seeds, `make hostile` some thousands with others, and counts them (:mod:`tests.hostile.__main__`).
"""
