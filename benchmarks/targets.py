"""Performance targets, and whether they were met."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from benchmarks.matrices import describe
from benchmarks.sections import (
    AVX2,
    COMPLETE_LARGE,
    COMPLETE_SMALL,
    EXPONENT,
    FIRST_FIT,
    HALF_NORMAL,
    INCOMPLETE,
    LAPLACE,
    NUMBA,
    OURS,
    SCATTERED,
    WITH_MAX_TERM,
    Settings,
)

Timings = Sequence[float | None]
# Section, data, rank, threads and label of a row.
Key = tuple[str, str, int, int, str]


class Spread(NamedTuple):
    """Median, and the 10% and 90% quantiles over the repeats."""

    median: float
    low: float
    high: float

    def text(self, unit: str = "") -> str:
        """Return the median and the range, without the range if all values are equal."""
        if self.low == self.high:
            return f"{self.median:.3g}{unit}"
        return f"{self.median:.3g}{unit} ({self.low:.3g}-{self.high:.3g})"


def spread(values: Timings, scale: float = 1.0) -> Spread:
    """Return the spread of the values that are not None, times a number."""
    low, median, high = scale * np.quantile([value for value in values if value is not None], [0.1, 0.5, 0.9])
    return Spread(float(median), float(low), float(high))


def ratios(numerator: Timings, denominator: Timings) -> list[float]:
    """Return the ratio for each repeat in which both have a timing."""
    pairs = zip(numerator, denominator, strict=False)
    return [a / b for a, b in pairs if a is not None and b is not None]


@dataclass(frozen=True)
class Target:
    """A bound on the ratio of two rows, or on the values of one: the most or the least that it may be."""

    quantity: str
    numerator: Key
    denominator: Key | None = None
    most: float = np.inf
    least: float = -np.inf
    scale: float = 1.0
    unit: str = "x"

    def line(self, sections: dict[str, Any]) -> list[str]:
        """Return the line of the table: quantity, measured, required, and whether the median meets that."""
        required = f"≤ {self.most:g}{self.unit}" if self.most < np.inf else f"≥ {self.least:g}{self.unit}"
        values = _values(self.numerator, sections)
        if self.denominator:
            values = ratios(values, _values(self.denominator, sections))
        if not values:
            return [self.quantity, "", required, "not measured"]
        found = spread(values, self.scale)
        in_ms = self.unit == " s" and found.median < 1
        return [
            self.quantity,
            spread(values, 1e3 * self.scale).text(" ms") if in_ms else found.text(self.unit),
            required,
            "yes" if self.least <= found.median <= self.most else "no",
        ]


def _values(key: Key, sections: dict[str, Any]) -> Timings:
    """Return the values of a row, none if it was not measured."""
    section, *wanted = key
    for row in sections.get(section, {}).get("rows", []):
        if [row["data"], row["rank"], row["threads"], row["label"]] == wanted:
            return row["values"]
    return []


def targets(settings: Settings) -> list[Target]:
    """Return the targets of a run."""
    ratings = f"ratings-{settings.ratings}"
    first, last = settings.growth

    def row(section: str, data: str, label: str = OURS, rank: int = 20, threads: int = 1) -> Key:
        return section, data, rank, threads, label

    def start(label: str) -> Key:
        return "startup", "", 0, 1, label

    def over_numba(data: str, rank: int, most: float) -> Target:
        return Target(
            f"{describe(data)}, K = {rank}: bnmf sweep / sweep of {NUMBA}, Numba",
            row("sweeps", data, rank=rank), row("sweeps", data, f"{NUMBA}, Numba", rank), most=most,
        )  # fmt: skip

    gdsc, one = row("gdsc", "gdsc"), row("threads", COMPLETE_LARGE, "1 chain, 1 thread")
    half_normal = row("sweeps", "gdsc", HALF_NORMAL)
    return [
        Target(
            "GDSC, K = 20: bnmf sweep / scikit-learn cd iteration (which treats missing entries as zeros)",
            gdsc, row("gdsc", "gdsc", "scikit-learn cd"), most=1.4,
        ),
        Target(
            "the same without AVX-512",
            row("gdsc", "gdsc", OURS + AVX2), row("gdsc", "gdsc", "scikit-learn cd" + AVX2), most=1.6,
        ),
        Target(
            "complete 160 x 254, K = 20: bnmf sweep / scikit-learn cd iteration",
            row("complete", COMPLETE_SMALL), row("complete", COMPLETE_SMALL, "scikit-learn cd"), most=2.5,
        ),
        over_numba(SCATTERED, 20, 0.8),
        over_numba("scattered-100x50-20", 5, 0.4),
        Target(
            f"{describe(SCATTERED)}: exponent of K, from 10 to 100",
            row("sweeps", SCATTERED, EXPONENT, rank=100), most=1.1, unit="",
        ),
        Target(
            "GDSC, K = 20: sweep of GL2²,∞ / sweep of GL2²",
            row("sweeps", "gdsc", WITH_MAX_TERM), half_normal, most=1.3,
        ),
        Target(
            "GDSC, K = 20: sweep of Laplace / sweep of GL2²",
            row("sweeps", "gdsc", LAPLACE), half_normal, most=2.0,
        ),
        Target("GDSC, K = 20: SMURFF sweep / bnmf sweep", row("gdsc", "gdsc", "SMURFF"), gdsc, least=25),
        Target(
            "GDSC, K = 20: NumPy reference sweep / bnmf sweep", row("gdsc", "gdsc", "NumPy reference"), gdsc, least=150
        ),
        Target(
            "GEE, 100 x 50, K = 5: effective samples per second of the worst prediction, bnmf / NUTS",
            row("nuts", INCOMPLETE, "NumPyro NUTS", rank=5), row("nuts", INCOMPLETE, rank=5), least=50,
        ),
        Target(
            "5,000 x 2,000, K = 20: speed-up of one chain by a second thread",
            one, row("threads", COMPLETE_LARGE, "1 chain, 2 threads", threads=2), least=1.7,
        ),
        Target(
            "5,000 x 2,000, K = 20: throughput of 2 chains on 2 threads / 1 chain",
            one, row("threads", COMPLETE_LARGE, "2 chains, 2 threads", threads=2), least=1.85,
        ),
        Target(
            f"{describe(ratings)}, K = 20, 2 threads: SMURFF sweep / bnmf sweep",
            row("ratings", ratings, "SMURFF", threads=2), row("ratings", ratings, threads=2), least=10,
        ),
        Target(f"{describe(ratings)}: peak memory / size of the CSR input", row("memory", ratings), most=1.8),
        Target(
            f"time per sweep and entry, {last / 1e6:g} million / {first / 1e6:g} million entries",
            row("growth", f"ratings-{last}", f"{last / 1e6:g} million entries"),
            row("growth", f"ratings-{first}", f"{first / 1e6:g} million entries"),
            most=1.25, scale=first / last,
        ),
        Target(FIRST_FIT, start(FIRST_FIT), most=3, unit=" s"),
        Target("import bnmf, files cached", start("import bnmf"), most=1.0, unit=" s"),
        Target("`bnmf --help`", start("bnmf --help"), most=0.5, unit=" s"),
    ]  # fmt: skip
