"""Noise models, for the parameter `noise` of :class:`bnmf.BayesianNMF`."""

from bnmf.model.contaminated import ContaminatedNoise
from bnmf.model.gaussian import CommonNoise, GroupedNoise, KnownNoise
from bnmf.model.noise import Noise
from bnmf.model.student_t import StudentT

__all__ = ["CommonNoise", "ContaminatedNoise", "GroupedNoise", "KnownNoise", "Noise", "StudentT"]
