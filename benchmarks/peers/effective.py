"""Effective sample size of predictions."""

import numpy as np
from arviz_stats.base import array_stats

from bnmf.utils.typing import Floats


def worst_ess(predictions: Floats) -> float:
    """Return the smallest bulk effective sample size over predictions (draws, entries) of one chain."""
    return float(np.min(array_stats.ess(predictions[None], chain_axis=0, draw_axis=1, method="bulk")))
