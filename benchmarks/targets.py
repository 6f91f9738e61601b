"""Performance targets, and whether they were met."""

from dataclasses import dataclass
from typing import Any

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
)
from benchmarks.settings import Settings
from benchmarks.spread import Spread, ratios, spread

SMALL = "scattered-100x50-20"
# Section, data, rank, threads and label of a row.
Key = tuple[str, str, int, int, str]


@dataclass(frozen=True)
class Target:
    """A required and a desired bound on the ratio of two rows, or on the values of one."""

    quantity: str
    numerator: Key
    denominator: Key | None
    bound: float
    goal: float | None
    smaller_is_better: bool = False
    scale: float = 1.0
    unit: str = "x"

    def measured(self, sections: dict[str, Any]) -> Spread | None:
        """Return the ratio with its spread, or None if a row was not measured."""
        values = _values(self.numerator, sections)
        if values and self.denominator:
            baseline = _values(self.denominator, sections)
            values = ratios(values, baseline) if baseline else None
        return spread([value * self.scale for value in values if value is not None]) if values else None

    def verdict(self, found: Spread | None) -> str:
        """Return whether the median meets the bound, and the goal."""
        if found is None:
            return "not measured"

        def reaches(bound: float) -> bool:
            return found.median <= bound if self.smaller_is_better else found.median >= bound

        if self.goal is not None and reaches(self.goal):
            return "yes, goal met"
        return "yes" if reaches(self.bound) else "no"


def _values(key: Key, sections: dict[str, Any]) -> list[float | None] | None:
    section, *wanted = key
    for row in sections.get(section, {}).get("rows", []):
        if [row["data"], row["rank"], row["threads"], row["label"]] == wanted:
            return row["values"]
    return None


def targets(settings: Settings) -> list[Target]:
    """Return the targets of a run."""
    ratings = f"ratings-{settings.ratings}"
    first, last = settings.growth

    def row(section: str, data: str, label: str = OURS, rank: int = 20, threads: int = 1) -> Key:
        return section, data, rank, threads, label

    def start(label: str) -> Key:
        return "startup", "", 0, 1, label

    def over_numba(data: str, rank: int, bound: float) -> Target:
        return Target(
            f"{describe(data)}, K = {rank}: bnmf sweep / sweep of {NUMBA}",
            row("sweeps", data, rank=rank), row("sweeps", data, NUMBA, rank=rank), bound, None, smaller_is_better=True,
        )  # fmt: skip

    def over_half_normal(label: str, bound: float) -> Target:
        return Target(
            f"GDSC, K = 20: sweep of {label} / sweep of GL2²",
            row("sweeps", "gdsc", label), row("sweeps", "gdsc", HALF_NORMAL), bound, None, smaller_is_better=True,
        )  # fmt: skip

    gdsc, small = row("gdsc", "gdsc"), row("complete", COMPLETE_SMALL)
    one = row("threads", COMPLETE_LARGE, "1 chain, 1 thread")
    return [
        Target(
            "GDSC, K = 20: bnmf sweep / scikit-learn cd iteration (which treats missing entries as zeros)",
            gdsc, row("gdsc", "gdsc", "scikit-learn cd"), 1.4, None, smaller_is_better=True,
        ),
        Target(
            "the same without AVX-512",
            row("gdsc", "gdsc", OURS + AVX2), row("gdsc", "gdsc", "scikit-learn cd" + AVX2),
            1.6, None, smaller_is_better=True,
        ),
        Target(
            "complete 160 x 254, K = 20: bnmf sweep / scikit-learn cd iteration",
            small, row("complete", COMPLETE_SMALL, "scikit-learn cd"), 2.5, 1.5, smaller_is_better=True,
        ),
        over_numba(SCATTERED, 20, 0.8),
        over_numba(SMALL, 5, 0.4),
        Target(
            f"{describe(SCATTERED)}: exponent of K, from 10 to 100",
            row("sweeps", SCATTERED, EXPONENT, rank=100), None, 1.1, None, smaller_is_better=True, unit="",
        ),
        over_half_normal(WITH_MAX_TERM, 1.3),
        over_half_normal(LAPLACE, 2.0),
        Target("GDSC, K = 20: SMURFF sweep / bnmf sweep", row("gdsc", "gdsc", "SMURFF"), gdsc, 25, None),
        Target(
            "GDSC, K = 20: NumPy reference sweep / bnmf sweep",
            row("gdsc", "gdsc", "NumPy reference"), gdsc, 150, None,
        ),
        Target(
            "GEE, 100 x 50, K = 5: effective samples per second of the worst prediction, bnmf / NUTS",
            row("nuts", INCOMPLETE, "NumPyro NUTS", rank=5), row("nuts", INCOMPLETE, rank=5), 50, 100,
        ),
        Target(
            "5,000 x 2,000, K = 20: speed-up of one chain by a second thread",
            one, row("threads", COMPLETE_LARGE, "1 chain, 2 threads", threads=2), 1.7, 1.9,
        ),
        Target(
            "5,000 x 2,000, K = 20: throughput of 2 chains on 2 threads / 1 chain",
            one, row("threads", COMPLETE_LARGE, "2 chains, 2 threads", threads=2), 1.85, 1.9,
        ),
        Target(
            f"{describe(ratings)}, K = 20, 2 threads: SMURFF sweep / bnmf sweep",
            row("ratings", ratings, "SMURFF", threads=2), row("ratings", ratings, threads=2), 10, None,
        ),
        Target(
            f"{describe(ratings)}: peak memory / size of the CSR input",
            row("memory", ratings), None, 1.8, None, smaller_is_better=True,
        ),
        Target(
            f"time per sweep and entry, {last / 1e6:g} million / {first / 1e6:g} million entries",
            row("growth", f"ratings-{last}", f"{last / 1e6:g} million entries"),
            row("growth", f"ratings-{first}", f"{first / 1e6:g} million entries"),
            1.25, None, smaller_is_better=True, scale=first / last,
        ),
        Target(FIRST_FIT, start(FIRST_FIT), None, 3, None, smaller_is_better=True, unit=" s"),
        Target("import bnmf, files cached", start("import bnmf"), None, 1.0, None, True, unit=" s"),
        Target("bnmf --help", start("bnmf --help"), None, 0.5, None, True, unit=" s"),
    ]  # fmt: skip
