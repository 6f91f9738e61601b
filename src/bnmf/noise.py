"""Noise models, for the parameter `noise` of :class:`bnmf.BayesianNMF`."""

from bnmf.model.gaussian import CommonNoise, GroupedNoise, KnownNoise
from bnmf.model.noise import Noise
from bnmf.model.student_t import StudentT

__all__ = ["CommonNoise", "GroupedNoise", "KnownNoise", "Noise", "StudentT"]
