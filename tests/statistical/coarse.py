"""What is recorded of exact data: caps, detection limits, rounding and signs, each a fixed function of the value."""

import numpy as np

CAP, FLOOR, STEP, CUT = 1.2, 0.3, 0.5, 0.8


def coarsened(A: np.ndarray, scale: np.ndarray | float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return the limits of what is recorded of each entry, by its position exact, cut, rounded or only a side."""
    x = A / scale
    kind = np.arange(A.size).reshape(A.shape) % 5
    step = np.floor(x / STEP) * STEP
    lower = np.select(
        [kind == 1, kind == 2, kind == 3, kind == 4],
        [np.minimum(x, CAP), np.where(x <= FLOOR, -np.inf, x), step, np.where(x > CUT, CUT, -np.inf)],
        x,
    )
    upper = np.select(
        [kind == 1, kind == 2, kind == 3, kind == 4],
        [np.where(x >= CAP, np.inf, x), np.maximum(x, FLOOR), step + STEP, np.where(x > CUT, np.inf, CUT)],
        x,
    )
    return lower * scale, upper * scale
