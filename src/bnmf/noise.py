"""Noise models, for the parameter `noise` of :class:`bnmf.BayesianNMF`."""

from bnmf.model.contaminated import ContaminatedNoise
from bnmf.model.noise import CommonNoise, GroupedNoise, KnownNoise, Noise
from bnmf.model.student_t import StudentT

__all__ = ["CommonNoise", "ContaminatedNoise", "GroupedNoise", "KnownNoise", "Noise", "StudentT"]
