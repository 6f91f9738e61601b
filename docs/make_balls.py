"""Draw docs/balls.png: what each penalty makes of a row of W with two components.

Run from the root of the repository: python -m docs.make_balls
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from bnmf.plots.look import ACCENT, INK, SOFT
from bnmf.priors import L1, L1Squared, L2Squared, LInf, Prior

PRIORS = {
    "L1 (GEE)": L1(1.0),
    "L1² (GL1²)": L1Squared(1.0),
    "L2² (GL2²)": L2Squared(1.0),
    "L∞ (GL∞)": LInf(1.0),
    "L2² + L∞ (GL2²,∞)": L2Squared(1.0) + LInf(1.0),
}
# Largest weight that is shown.
END = 2.5
LEVELS = [0.25, 0.5, 1.0, 1.5, 2.0]
# Values of the second weight at which the density of the first is drawn, with the line of each.
OTHERS = {0.2: (INK, "-"), 1.0: (ACCENT, "--"), 2.0: (SOFT, ":")}
STEPS = 101


def penalty(prior: Prior, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return R(w) = -log p(w), up to a constant, for many rows w."""
    pairs = np.stack(np.broadcast_arrays(first, second), axis=-1).reshape(-1, 1, 2)
    return np.reshape([-prior.log_density(pair) for pair in pairs], np.broadcast(first, second).shape)


def main() -> None:
    weights = np.linspace(0, END, STEPS)
    first, second = np.meshgrid(weights, weights)
    figure = Figure(figsize=(10.4, 6.4), layout="constrained")
    axes = figure.subplots(3, len(PRIORS), sharex=True, sharey="row")
    for column, (title, prior) in zip(axes.T, PRIORS.items(), strict=True):
        values = penalty(prior, first, second)
        draw_balls(column[0], first, second, values)
        column[0].set_title(title, fontsize=10)
        column[1].imshow(np.exp(-values), origin="lower", extent=(0, END, 0, END), cmap="Blues", vmin=0, vmax=1)
        column[1].set_aspect("equal")
        draw_conditionals(column[2], prior, weights)
        column[2].set_xlabel("$w_1$")
    for ax, label in zip(
        axes[:, 0], ("penalty $R$\n\n$w_2$", "prior density\n\n$w_2$", "density of $w_1$"), strict=True
    ):
        ax.set_ylabel(label)
    axes[2, 0].set_ylim(0, 2.5)
    axes[2, 0].legend(title="if $w_2$ is", fontsize=8, title_fontsize=8, frameon=False)
    figure.savefig(Path(__file__).with_name("balls.png"), dpi=100)


def draw_balls(ax, first, second, values) -> None:
    """Fill the unit ball R = 1 and draw other level sets."""
    ax.contourf(first, second, values, levels=[-1.0, 1.0], colors=["#dbe4f0"])
    widths = [2.0 if level == 1 else 0.7 for level in LEVELS]
    ax.contour(first, second, values, levels=LEVELS, colors=INK, linewidths=widths)
    ax.set_aspect("equal")
    ax.spines[["top", "right"]].set_visible(False)


def draw_conditionals(ax, prior: Prior, weights: np.ndarray) -> None:
    """Draw the density of one weight given the other."""
    wide = np.linspace(0, 30, 1501)
    for other, (colour, line) in OTHERS.items():
        mass = np.trapezoid(np.exp(-penalty(prior, wide, np.array(other))), wide)
        density = np.exp(-penalty(prior, weights, np.array(other))) / mass
        ax.plot(weights, density, line, color=colour, label=f"{other:g}")
    ax.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
