"""Draws of a fit and everything that is computed from them."""

from bnmf.posterior.posterior import Posterior

__all__ = ["Posterior"]
