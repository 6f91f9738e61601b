"""The model: data, priors and noise. It defines the density and its conditionals."""

from bnmf.model import contaminated, student_t
from bnmf.model.model import Model

__all__ = ["Model", "contaminated", "student_t"]
