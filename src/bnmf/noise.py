"""Noise models, for the parameter `noise` of :class:`bnmf.BayesianNMF`."""

from bnmf.model.noise import CommonNoise, GroupedNoise, StudentT

__all__ = ["CommonNoise", "GroupedNoise", "StudentT"]
