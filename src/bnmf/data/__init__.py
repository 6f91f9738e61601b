"""The data: what was observed of a matrix, in one form for every container it may come in."""

from bnmf.data.observed import ObservedMatrix

__all__ = ["ObservedMatrix"]
