"""Charts as inline SVG, whose colours come from the style sheet, so that they follow light, dark and print."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np

from bnmf.report.markup import number, percent
from bnmf.utils.text import shortened
from bnmf.utils.typing import Bools, Floats

WIDTH, HEIGHT = 460, 280
LEFT, RIGHT, TOP, BOTTOM = 66, 12, 14, 44
# Points of a line: more cannot be told apart.
MAX_POINTS = 300
# Line styles in the style sheet.
N_LINE_STYLES = 8
# Characters of a name beside a chart.
LABEL_WIDTH = 17


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round numbers from `low` to `high`.

    Examples
    --------
    >>> ticks(0.0, 9.7), ticks(-0.12, 0.31)
    ([0.0, 2.0, 4.0, 6.0, 8.0], [-0.1, 0.0, 0.1, 0.2, 0.3])
    """
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(multiple * power for multiple in (1, 2, 2.5, 5, 10) if multiple * power >= 0.999 * raw)
    first = math.ceil(low / step - 1e-9)
    return [float(f"{i * step:.10g}") for i in range(first, math.floor(high / step + 1e-9) + 1)]


class Chart:
    """Axes in which lines, bars and points are drawn."""

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        x_label: str,
        y_label: str,
        title: str,
        *,
        log_y: bool = False,
        percents: bool = False,
        counts: bool = False,
    ) -> None:
        self.x, self.log_y, self.counts, self.title = x, log_y, counts, title
        self.y = (math.log10(y[0]), math.log10(y[1])) if log_y else y
        self.parts: list[str] = []
        self._axes(x_label, y_label, percent if percents else number)

    def across(self, values: Floats) -> Floats:
        """Return horizontal places of values."""
        return LEFT + (np.asarray(values, float) - self.x[0]) / (self.x[1] - self.x[0]) * (WIDTH - LEFT - RIGHT)

    def down(self, values: Floats) -> Floats:
        """Return vertical places of values."""
        values = np.log10(np.asarray(values, float)) if self.log_y else np.asarray(values, float)
        return TOP + (self.y[1] - values) / (self.y[1] - self.y[0]) * (HEIGHT - TOP - BOTTOM)

    def _axes(self, x_label: str, y_label: str, x_text: object) -> None:
        bottom = HEIGHT - BOTTOM
        levels = [10.0**tick for tick in _log_ticks(*self.y)] if self.log_y else ticks(*self.y)
        if self.counts:
            levels = [level for level in levels if level.is_integer()]
        for level, place in zip(levels, self.down(np.array(levels)), strict=True):
            self.parts.append(f'<path class="rule" d="M{LEFT} {place:.1f}H{WIDTH - RIGHT}"/>')
            self.parts.append(f'<text class="tick end" x="{LEFT - 7}" y="{place + 4:.1f}">{number(level)}</text>')
        marks = ticks(*self.x)
        for mark, place in zip(marks, self.across(np.array(marks)), strict=True):
            text = x_text(mark)  # type: ignore[operator]
            self.parts.append(f'<text class="tick mid" x="{place:.1f}" y="{bottom + 17}">{text}</text>')
        self.parts.append(f'<path class="axis" d="M{LEFT} {bottom}H{WIDTH - RIGHT}"/>')
        middle = 0.5 * (LEFT + WIDTH - RIGHT)
        self.parts.append(f'<text class="label mid" x="{middle}" y="{HEIGHT - 6}">{escape(x_label)}</text>')
        centre = 0.5 * (TOP + bottom)
        self.parts.append(
            f'<text class="label mid" transform="translate(13 {centre}) rotate(-90)">{escape(y_label)}</text>'
        )

    def shade(self, start: float, stop: float, text: str) -> None:
        """Shade a part of the horizontal axis."""
        a, b = self.across(np.array([start, stop]))
        self.parts.insert(
            0, f'<rect class="shade" x="{a:.1f}" y="{TOP}" width="{b - a:.1f}" height="{HEIGHT - TOP - BOTTOM}"/>'
        )
        self.parts.append(f'<text class="tick mid" x="{(a + b) / 2:.1f}" y="{TOP + 13}">{escape(text)}</text>')

    def line(self, x: Floats, y: Floats, style: int) -> None:
        """Draw a line; values that are not finite leave it out there."""
        chosen = np.unique(np.linspace(0, len(x) - 1, min(len(x), MAX_POINTS)).round().astype(int))
        places = zip(self.across(x[chosen]), self.down(y[chosen]), strict=True)
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in places if math.isfinite(b))
        self.parts.append(f'<polyline class="line c{style % N_LINE_STYLES}" points="{points}"/>')

    def bars(self, edges: Floats, heights: Floats, texts: Sequence[str]) -> None:
        """Draw bars from the bottom up, with a text each for the mouse."""
        a, b, top = self.across(edges[:-1]), self.across(edges[1:]), self.down(heights)
        bottom = HEIGHT - BOTTOM
        for left, right, high, text in zip(a, b, top, texts, strict=True):
            self.parts.append(
                f'<rect class="bar" x="{left + 0.5:.1f}" y="{high:.1f}" width="{max(right - left - 1, 0.5):.1f}" '
                f'height="{max(bottom - high, 0):.1f}"><title>{escape(text)}</title></rect>'
            )

    def points(self, x: Floats, y: Floats) -> None:
        """Draw points."""
        places = zip(self.across(x), self.down(y), strict=True)
        self.parts.append('<path class="points" d="' + "".join(f"M{a:.1f} {b:.1f}h0" for a, b in places) + '"/>')

    def diagonal(self) -> None:
        """Draw where both axes are equal."""
        ends = np.array([max(self.x[0], self.y[0]), min(self.x[1], self.y[1])])
        (a, b), (c, d) = self.across(ends), self.down(ends)
        self.parts.append(f'<path class="diagonal" d="M{a:.1f} {c:.1f}L{b:.1f} {d:.1f}"/>')

    def svg(self) -> str:
        """Return the chart as an SVG element."""
        return svg(WIDTH, HEIGHT, "".join(self.parts), self.title)


def svg(width: float, height: float, content: str, title: str, attributes: str = "") -> str:
    """Return an SVG element that is as wide as its container."""
    return (
        f'<svg class="chart" viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(title)}" {attributes}>'
        f"{content}</svg>"
    )


def _log_ticks(low: float, high: float) -> list[float]:
    """Return logarithms of round numbers between two logarithms."""
    for multiples in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        marks = [p + math.log10(m) for p in range(math.floor(low), math.ceil(high) + 1) for m in multiples]
        found = [mark for mark in marks if low - 1e-9 <= mark <= high + 1e-9]
        if len(found) >= 3:
            step = -(-len(found) // 6)
            return found[::step]
    return [math.log10(tick) for tick in ticks(10**low, 10**high, 4) if tick > 0]


def histogram(values: Floats, x_label: str, y_label: str, title: str, *, percents: bool = False) -> str:
    """Return a histogram."""
    low, high = _trimmed(values)
    edges = np.linspace(low, high, min(37, max(6, int(3 * np.sqrt(len(values))))))
    counts = np.histogram(np.clip(values, low, high), edges)[0]
    text = percent if percents else number
    chart = Chart((low, high), (0, 1.05 * counts.max()), x_label, y_label, title, percents=percents, counts=True)
    texts = [f"{text(a)} to {text(b)}: {count:,}" for a, b, count in zip(edges, edges[1:], counts, strict=False)]
    chart.bars(edges, counts.astype(float), texts)
    return chart.svg()


def _trimmed(values: Floats) -> tuple[float, float]:
    """Return the range of the values, without the largest if they would leave the others in a corner."""
    low, high = float(values.min()), float(values.max())
    inner_low, inner_high = (float(end) for end in np.quantile(values, [0.005, 0.995]))
    spread = inner_high - inner_low
    if spread > 0:
        low, high = max(low, inner_low - spread), min(high, inner_high + spread)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def intervals(names: Sequence[str], mean: Floats, low: Floats, high: Floats, title: str) -> str:
    """Return points with intervals, one for each name, on an axis that includes zero."""
    width, left, step = 250.0, 112.0, 17.0
    height = step * len(names) + 20
    bottom, top = float(low.min(initial=0.0)), float(high.max(initial=0.0))
    top = max(top, bottom + 1e-300)
    marks = ticks(bottom, top, 3)

    def across(value: float) -> float:
        return left + (width - left - 14) * (value - bottom) / (top - bottom)

    parts = []
    for mark in marks:
        parts.append(f'<path class="rule" d="M{across(mark):.1f} 2V{height - 16}"/>')
        parts.append(f'<text class="tick mid" x="{across(mark):.1f}" y="{height - 3}">{number(mark)}</text>')
    for i, label in enumerate(names):
        y = step * i + 11
        hint = f"{label}: {number(mean[i])} ({number(low[i])} to {number(high[i])})"
        parts.append(
            f"<g><title>{escape(hint)}</title>"
            f'<text class="name end" x="{left - 8}" y="{y + 4}">{escape(shortened(label, LABEL_WIDTH))}</text>'
            f'<path class="interval" d="M{across(low[i]):.1f} {y}H{across(high[i]):.1f}"/>'
            f'<circle class="mean" cx="{across(mean[i]):.1f}" cy="{y}" r="3.6"/></g>'
        )
    return svg(width, height, "".join(parts), title)


def agreement(found: Bools, title: str) -> str:
    """Return a grid of chains by patterns, with a full dot where a chain has found a pattern."""
    n_chains, n_patterns = found.shape
    left, step = 46, min(24.0, 400.0 / n_patterns)
    row = 20.0
    radius = min(6.0, 0.36 * step)
    parts = []
    for chain in range(n_chains):
        y = 14 + row * chain
        parts.append(f'<text class="tick end" x="{left - 6}" y="{y + 4}">run {chain + 1}</text>')
        for pattern in range(n_patterns):
            kind = "found" if found[chain, pattern] else "absent"
            x = left + step * (pattern + 0.5)
            parts.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y}" r="{radius:.1f}"/>')
    every = -(-n_patterns // 20)
    for pattern in range(0, n_patterns, every):
        x, y = left + step * (pattern + 0.5), 14 + row * n_chains + 2
        parts.append(f'<text class="tick mid" x="{x:.1f}" y="{y}">{pattern + 1}</text>')
    height = 14 + row * n_chains + 26
    parts.append(f'<text class="label mid" x="{left + step * n_patterns / 2:.1f}" y="{height - 4}">pattern</text>')
    return svg(max(left + step * n_patterns + 8, 300), height, "".join(parts), title)
