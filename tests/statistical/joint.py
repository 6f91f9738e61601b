"""What the sampler samples from, in plain NumPy: the joint density, priors of the noise, and limits of coarse data."""

import numpy as np

from bnmf.model import contaminated
from bnmf.model.noise import MAX_PRECISION
from bnmf.noise import ContaminatedNoise, StudentT

# Caps, detection limits, rounding and signs: each is a fixed function of the value.
CAP, FLOOR, STEP, CUT = 1.2, 0.3, 0.5, 0.8


def log_joint(model, W, Zt, noise):
    """Return the log density of data and factors given the noise, up to a constant."""
    A = model.data.dense_rows(np.arange(len(W))) / model.units.scale
    seen = ~np.isnan(A)
    variance = np.broadcast_to(noise.row[:, None] * noise.column, A.shape)[seen]
    for precision in (model.entry_precision, noise.entry):
        variance = variance if precision is None or not precision.size else variance / precision
    fit = -0.5 * ((A - W @ Zt.T)[seen] ** 2 / variance + np.log(variance)).sum()
    prior_W, prior_Z = model.priors
    return fit + prior_W.log_density(W) + prior_Z.log_density(Zt)


def draw_noise(law, shape, rng):
    """Draw a state of the noise from its prior; that of Student's t has factors of all entries, row by row."""
    noise, scale, sides = law.start(shape), 1.0, {}
    if law.is_known:
        return noise
    if law.by == "common":
        sides["column"] = np.array([law.scale / rng.gamma(law.shape)])
    else:
        scale = rng.gamma(0.5) / 0.5
    for side, mean in (("row", scale if law.by == "row" else 1.0), ("column", scale)):
        if law.by in (side, "both"):
            strength = float(rng.choice(law._strengths))
            precision = rng.gamma(strength, size=getattr(noise, side).size) / (strength * mean)
            if np.any(precision > MAX_PRECISION):
                return draw_noise(law, shape, rng)  # outside of the bound: draw everything again
            sides |= {side: 1.0 / precision, f"{side}_strength": strength}
    if isinstance(law, StudentT):
        df = float(rng.choice(law._dfs))
        sides |= {"df": df, "entry": rng.gamma(0.5 * df, size=shape[0] * shape[1]) / (0.5 * df)}
    if isinstance(law, ContaminatedNoise):
        sides["share"] = np.clip(rng.beta(*contaminated.SHARE_PRIOR, size=shape[1]), 1e-300, 1.0 - 1e-16)
    return noise._replace(scale=scale, **sides)


def coarsened(A: np.ndarray, scale: np.ndarray | float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return the limits of what is recorded of each entry: by its position exact, cut, rounded or only a side."""
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
