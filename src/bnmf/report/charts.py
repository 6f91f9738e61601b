"""Charts as inline SVG, whose colours come from the style sheet, so that they follow light, dark and print."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable, Sequence
from html import escape

import numpy as np

from bnmf.report.markup import number
from bnmf.utils.text import short_names
from bnmf.utils.typing import Bools, Floats

WIDTH, HEIGHT = 460, 290
RIGHT, TOP, BOTTOM = 14, 30, 44
# Width of a character of a tick label, and of a name.
CHARACTER, NAME_CHARACTER = 7.2, 6.4
# Points of a line: more cannot be told apart.
MAX_POINTS = 300
# Line styles in the style sheet.
N_LINE_STYLES = 8
# Characters of a name beside a chart.
NAME_WIDTH = 16


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round numbers from `low` to `high`."""
    from matplotlib.ticker import MaxNLocator

    margin = 1e-9 * (high - low)
    places = MaxNLocator(count, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    return [float(f"{place:.10g}") for place in places if low - margin <= place <= high + margin]


def log_ticks(low: float, high: float) -> list[float]:
    """Return round numbers between two positive ones, for a logarithmic axis."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for multiples in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        found = [m * 10.0**p for p in powers for m in multiples if low <= 1.000001 * m * 10.0**p <= 1.000002 * high]
        if len(found) >= 3:
            return found[:: -(-len(found) // 6)]
    return [tick for tick in ticks(low, high, 4) if tick > 0]


def svg(width: float, height: float, content: str, title: str, attributes: str = "") -> str:
    """Return an SVG element that is as wide as its container."""
    return (
        f'<svg class="chart" viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(title)}" {attributes}>'
        f"{content}</svg>"
    )


def text(kind: str, x: float, y: float, content: str) -> str:
    """Return a text in SVG; `kind` names its classes."""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(content)}</text>'


class Chart:
    """Axes in which lines, bars and points are drawn; the label of the vertical one stands above it."""

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        x_label: str,
        y_label: str,
        title: str,
        *,
        log_y: bool = False,
        counts: bool = False,
    ) -> None:
        self.x, self.y, self.title = x, y, title
        self.scale: Callable[[Floats], Floats] = np.log10 if log_y else np.asarray
        levels = [level for level in (log_ticks if log_y else ticks)(*y) if not counts or level.is_integer()]
        level_texts = [number(level) for level in levels]
        self.left, bottom = 12 + CHARACTER * max(map(len, level_texts), default=0), HEIGHT - BOTTOM
        self.parts: list[str] = []
        for level, place in zip(level_texts, self.down(np.array(levels)), strict=True):
            self.parts.append(f'<path class="rule" d="M{self.left} {place:.1f}H{WIDTH - RIGHT}"/>')
            self.parts.append(text("tick end", self.left - 7, place + 4, level))
        marks = ticks(*x)
        for mark, place in zip(marks, self.across(np.array(marks)), strict=True):
            self.parts.append(text("tick mid", place, bottom + 17, number(mark)))
        self.parts.append(f'<path class="axis" d="M{self.left} {bottom}H{WIDTH - RIGHT}"/>')
        self.parts.append(text("label mid", 0.5 * (self.left + WIDTH - RIGHT), HEIGHT - 6, x_label))
        self.parts.append(text("label", 0, 13, y_label))

    def across(self, values: Floats) -> Floats:
        """Return horizontal places of values."""
        return self.left + (np.asarray(values) - self.x[0]) / (self.x[1] - self.x[0]) * (WIDTH - self.left - RIGHT)

    def down(self, values: Floats) -> Floats:
        """Return vertical places of values."""
        low, high = self.scale(np.array(self.y, dtype=float))
        return TOP + (high - self.scale(np.asarray(values, dtype=float))) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def shade(self, start: float, stop: float, label: str) -> None:
        """Shade a part of the horizontal axis."""
        a, b = self.across(np.array([start, stop]))
        height = HEIGHT - TOP - BOTTOM
        self.parts.insert(0, f'<rect class="shade" x="{a:.1f}" y="{TOP}" width="{b - a:.1f}" height="{height}"/>')
        self.parts.append(text("tick mid", (a + b) / 2, TOP + 13, label))

    def line(self, x: Floats, y: Floats, style: int) -> None:
        """Draw a line; values that are not finite leave it out there."""
        chosen = np.unique(np.linspace(0, len(x) - 1, min(len(x), MAX_POINTS)).round().astype(int))
        places = zip(self.across(x[chosen]), self.down(y[chosen]), strict=True)
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in places if math.isfinite(b))
        self.parts.append(f'<polyline class="line c{style % N_LINE_STYLES}" points="{points}"/>')

    def bars(self, edges: Floats, heights: Floats, hints: Sequence[str]) -> None:
        """Draw bars from the bottom up, with a text each for the mouse."""
        bottom = HEIGHT - BOTTOM
        places = self.across(edges)
        for left, right, high, hint in zip(places[:-1], places[1:], self.down(heights), hints, strict=True):
            self.parts.append(
                f'<rect class="bar" x="{left + 0.5:.1f}" y="{high:.1f}" width="{max(right - left - 1, 0.5):.1f}" '
                f'height="{max(bottom - high, 0):.1f}"><title>{escape(hint)}</title></rect>'
            )

    def points(self, x: Floats, y: Floats) -> None:
        """Draw points, and a line where both axes are equal."""
        ends = np.array([max(self.x[0], self.y[0]), min(self.x[1], self.y[1])])
        (a, b), (c, d) = self.across(ends), self.down(ends)
        places = zip(self.across(x), self.down(y), strict=True)
        self.parts.append(f'<path class="diagonal" d="M{a:.1f} {c:.1f}L{b:.1f} {d:.1f}"/>')
        self.parts.append('<path class="points" d="' + "".join(f"M{a:.1f} {b:.1f}h0" for a, b in places) + '"/>')

    def svg(self) -> str:
        """Return the chart as an SVG element."""
        return svg(WIDTH, HEIGHT, "".join(self.parts), self.title)


def histogram(values: Floats, x_label: str, y_label: str, title: str) -> str:
    """Return a histogram; extreme values that would leave the others in a corner are counted in the last bars."""
    low, high = float(values.min()), float(values.max())
    inner_low, inner_high = np.quantile(values, [0.005, 0.995])
    if (spread := inner_high - inner_low) > 0:
        low, high = max(low, inner_low - spread), min(high, inner_high + spread)
    low, high = (low, high) if high > low else (low - 0.5, high + 0.5)
    edges = np.linspace(low, high, min(37, max(6, int(3 * np.sqrt(len(values))))))
    counts = np.histogram(np.clip(values, low, high), edges)[0]
    chart = Chart((low, high), (0, 1.05 * counts.max()), x_label, y_label, title, counts=True)
    bars = zip(edges, edges[1:], counts, strict=False)
    chart.bars(edges, counts.astype(float), [f"{number(a)} to {number(b)}: {count:,}" for a, b, count in bars])
    return chart.svg()


def intervals(names: Sequence[str], mean: Floats, low: Floats, high: Floats, title: str) -> str:
    """Return points with intervals, one for each name, on an axis that includes zero."""
    width, left, step = 250.0, 112.0, 17.0
    height = step * len(names) + 20
    bottom, top = float(low.min(initial=0.0)), float(high.max(initial=0.0))
    top = max(top, bottom + 1e-300)

    def across(value: float) -> float:
        return left + (width - left - 14) * (value - bottom) / (top - bottom)

    parts = []
    for mark in ticks(bottom, top, 3):
        parts.append(f'<path class="rule" d="M{across(mark):.1f} 2V{height - 16}"/>')
        parts.append(text("tick mid", across(mark), height - 3, number(mark)))
    for i, name in enumerate(short_names(names, NAME_WIDTH)):
        y = step * i + 11
        hint = f"{names[i]}: {number(mean[i])} ({number(low[i])} to {number(high[i])})"
        parts.append(
            f"<g><title>{escape(hint)}</title>{text('name end', left - 8, y + 4, name)}"
            f'<path class="interval" d="M{across(low[i]):.1f} {y}H{across(high[i]):.1f}"/>'
            f'<circle class="mean" cx="{across(mean[i]):.1f}" cy="{y}" r="3.6"/></g>'
        )
    return svg(width, height, "".join(parts), title)


def agreement(found: Bools, title: str) -> str:
    """Return a grid of chains by components, with a full dot where a chain has found a component."""
    n_chains, n_components = found.shape
    left, row, step = 62, 20.0, min(24.0, 390.0 / n_components)
    bottom, across = 14 + row * n_chains, left + step * (np.arange(n_components) + 0.5)
    parts = []
    for chain in range(n_chains):
        y = 14 + row * chain
        parts.append(text("tick end", left - 6, y + 4, f"chain {chain}"))
        for is_found, x in zip(found[chain], across, strict=True):
            kind = "found" if is_found else "absent"
            parts.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y}" r="{min(6.0, 0.36 * step):.1f}"/>')
    labelled = range(0, n_components, -(-n_components // 20))
    parts += [text("tick mid", across[k], bottom + 2, str(k)) for k in labelled]
    parts.append(text("label mid", across.mean(), bottom + 22, "component"))
    return svg(WIDTH, bottom + 26, "".join(parts), title)


def ends_of(values: Floats, limits: tuple[float, float], form: Callable[[float], str]) -> tuple[str, str]:
    """Return the texts of the ends of a scale, with a sign where values lie beyond them."""
    low, high = map(form, limits)
    return f"≤ {low}" if values.min() < limits[0] else low, f"≥ {high}" if values.max() > limits[1] else high


def heat_map(
    values: Floats,
    limits: tuple[float, float],
    ends: tuple[str, str],
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    colours: str,
    data: str,  # the element with the numbers for the mouse
) -> str:
    """Return a picture of a matrix with names around it, and a scale with texts at its ends."""
    import matplotlib as mpl
    from matplotlib.colors import to_hex
    from matplotlib.image import imsave

    file, (n_rows, n_columns) = io.BytesIO(), values.shape
    shown = np.ma.masked_invalid(values)  # NaN is transparent
    imsave(file, shown, *limits, cmap=colours, format="png", metadata={"Software": "bnmf"})
    picture = base64.b64encode(file.getvalue()).decode("ascii")
    left, top, width, height = box = 112, 6, 330, 420
    longest = max(map(len, columns))
    is_upright = longest <= 3
    # Names beside each other need a gap.
    room = NAME_CHARACTER * longest + 3 if is_upright else 12.5
    row_step, column_step = -(-n_rows // 34), math.ceil(n_columns * room / width)
    row_names, column_names = (
        short_names(names[::step], NAME_WIDTH) for names, step in ((rows, row_step), (columns, column_step))
    )
    bottom = 22.0 if is_upright else 16.0 + NAME_CHARACTER * max(map(len, column_names))
    parts = [
        f'<rect class="missing" x="{left}" y="{top}" width="{width}" height="{height}"/>'
        f'<image x="{left}" y="{top}" width="{width}" height="{height}" preserveAspectRatio="none" '
        f'href="data:image/png;base64,{picture}"/><rect class="cursor" width="0" height="0"/>'
    ]
    for i, name in enumerate(row_names):
        parts.append(text("name end", left - 6, top + height * (i * row_step + 0.5) / n_rows + 4, name))
    for j, name in enumerate(column_names):
        x = left + width * (j * column_step + 0.5) / n_columns
        if is_upright:
            parts.append(text("name mid", x, top + height + 14, name))
        else:
            turned = f"translate({x + 4:.1f} {top + height + 8}) rotate(-90)"
            parts.append(f'<g transform="{turned}">{text("name end", 0, 0, name)}</g>')
    attributes = f'data-heat="{data}" data-box="{" ".join(map(str, box))}" data-shape="{n_rows} {n_columns}" tabindex=0'
    stops = ",".join(to_hex(mpl.colormaps[colours](x)) for x in np.linspace(0, 1, 9))
    return svg(left + width + 6, top + height + bottom, "".join(parts), title, attributes) + (
        f'<p class="scale"><span>{escape(ends[0])}</span><span class="ramp" '
        f'style="background:linear-gradient(90deg,{stops})"></span><span>{escape(ends[1])}</span></p>'
    )
