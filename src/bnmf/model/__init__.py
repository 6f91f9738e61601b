"""The model: data, priors and noise. It defines the density and knows nothing of how it is sampled."""

from bnmf.model import contaminated, gaussian, student_t
from bnmf.model.model import Model

__all__ = ["Model", "contaminated", "gaussian", "student_t"]
