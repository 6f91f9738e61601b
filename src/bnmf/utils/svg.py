"""Small pictures as inline SVG, in the colour of the text around them, for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from bnmf.utils.typing import Floats

# Points of a line: more cannot be told apart in a small picture.
MAX_POINTS = 120
_DASHES = ("", "5 2", "1 2", "6 2 1 2")


def sparkline(lines: Floats, shaded: int, label: str) -> str:
    """Return lines over the same positions, on a logarithmic axis, with the first positions shaded."""
    width, height = 220, 44
    n_points = lines.shape[1]
    chosen = np.unique(np.linspace(0, n_points - 1, min(n_points, MAX_POINTS)).round().astype(int))
    logs = np.log(np.where(lines[:, chosen] > 0, lines[:, chosen], np.nan))
    x = (chosen + 0.5) / n_points * width
    low, high = (float(np.nanmin(logs)), float(np.nanmax(logs))) if np.isfinite(logs).any() else (0.0, 1.0)
    y = 3 + (high - logs) / (high - low if high > low else 1.0) * (height - 6)
    parts = [f'<rect width="{shaded / n_points * width:.1f}" height="{height}" fill="currentColor" opacity="0.1"/>']
    for line, dash in zip(y, (_DASHES[i % len(_DASHES)] for i in range(len(y))), strict=True):
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, line, strict=True) if np.isfinite(b))
        parts.append(f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-dasharray="{dash}"/>')
    return picture(width, height, "".join(parts), label)


def gauge(value: float, limits: tuple[float, float], start: float, stop: float, label: str) -> str:
    """Return a dot on a scale whose two limits are marked; a value beyond an end is drawn at that end."""
    width, height = 90, 14

    def place(number: float) -> float:
        return 5 + (width - 10) * (min(max(number, start), stop) - start) / (stop - start)

    marks = "".join(
        f'<path d="M{place(limit):.1f} 2v10" stroke="currentColor" stroke-width="1" opacity="0.6"/>' for limit in limits
    )
    line = f'<path d="M5 7h{width - 10}" stroke="currentColor" stroke-width="1" opacity="0.4"/>'
    fill = "none" if value > limits[1] else "currentColor"
    dot = f'<circle cx="{place(value):.1f}" cy="7" r="4" fill="{fill}" stroke="currentColor" stroke-width="1.5"/>'
    return picture(width, height, line + marks + dot, label)


def curve(x: Sequence[float], y: Sequence[float], errors: Sequence[float], marked: int, label: str) -> str:
    """Return points with error bars and a line through them, one of them marked."""
    width, height = 260, 110
    low, high = min(np.subtract(y, errors)), max(np.add(y, errors))
    across = 10 + (np.asarray(x, float) - min(x)) / (max(x) - min(x) or 1.0) * (width - 20)

    def down(number: float) -> float:
        return float(8 + (high - number) / (high - low or 1.0) * (height - 16))

    parts = [
        '<polyline fill="none" stroke="currentColor" stroke-width="1.2" points="'
        + " ".join(f"{a:.1f},{down(b):.1f}" for a, b in zip(across, y, strict=True))
        + '"/>'
    ]
    for i, (a, b, error) in enumerate(zip(across, y, errors, strict=True)):
        parts.append(f'<path d="M{a:.1f} {down(b - error):.1f}V{down(b + error):.1f}" stroke="currentColor"/>')
        radius, fill = (6, "none") if i == marked else (3, "currentColor")
        parts.append(f'<circle cx="{a:.1f}" cy="{down(b):.1f}" r="{radius}" fill="{fill}" stroke="currentColor"/>')
    return picture(width, height, "".join(parts), label)


def picture(width: int, height: int, content: str, label: str) -> str:
    """Return an SVG element with a label for those who do not see it."""
    return (
        f'<svg role="img" aria-label="{escape(label)}" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">{content}</svg>'
    )
