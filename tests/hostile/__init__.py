"""Hostile tests: random inputs, damaged files, full disks, kills and wrong calls.

Every attempt ends in the right result or in a clear error; anything else fails. `make test` makes a few hundred
attempts with fixed seeds, `make hostile` fifty times as many with new ones.
"""
