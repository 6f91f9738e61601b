"""The numbers to reach, and whether they were."""

from dataclasses import dataclass
from typing import Any

from benchmarks.data import describe
from benchmarks.sections import FULL_LARGE, FULL_SMALL, HOLES, OURS
from benchmarks.settings import Settings
from benchmarks.spread import Spread, ratios, spread

# A row by its section, data, rank, threads and name.
Key = tuple[str, str, int, int, str]


@dataclass(frozen=True)
class Target:
    """A bound on the ratio of two rows, or on the values of one."""

    what: str
    over: Key
    under: Key | None
    bound: float
    aim: float | None
    smaller_is_better: bool = False
    scale: float = 1.0
    unit: str = "x"

    def measured(self, sections: dict[str, Any]) -> Spread | None:
        """Return the ratio with its spread, or None if a row is not there."""
        values = _values(self.over, sections)
        if values and self.under:
            under = _values(self.under, sections)
            values = ratios(values, under) if under else None
        return spread([value * self.scale for value in values if value is not None]) if values else None

    def verdict(self, found: Spread | None) -> str:
        """Return whether the median reaches the bound, and the aim."""
        if found is None:
            return "not measured"

        def reaches(bound: float) -> bool:
            return found.median <= bound if self.smaller_is_better else found.median >= bound

        if self.aim is not None and reaches(self.aim):
            return "yes, and the aim"
        return "yes" if reaches(self.bound) else "no"


def _values(key: Key, sections: dict[str, Any]) -> list[float | None] | None:
    section, *wanted = key
    for row in sections.get(section, {}).get("rows", []):
        if [row["data"], row["rank"], row["threads"], row["who"]] == wanted:
            return row["values"]
    return None


def targets(settings: Settings) -> list[Target]:
    """Return the targets, on the data of a run."""
    ratings = f"ratings-{settings.ratings}"
    first, last = settings.growth_entries[0], settings.growth_entries[-1]

    def row(section: str, data: str, who: str = OURS, rank: int = 20, threads: int = 1) -> Key:
        return section, data, rank, threads, who

    def start(who: str) -> Key:
        return "startup", "", 0, 1, who

    gdsc, small = row("gdsc", "gdsc"), row("full-small", FULL_SMALL)
    one = row("threads", FULL_LARGE, "1 chain, 1 thread")
    return [
        Target(
            "GDSC, K = 20: our sweep (holes handled) over scikit-learn's cd iteration (holes ignored)",
            gdsc, row("gdsc", "gdsc", "scikit-learn cd"), 3.5, 2.0, smaller_is_better=True,
        ),
        Target(
            "full 160 x 254, K = 20: the same",
            small, row("full-small", FULL_SMALL, "scikit-learn cd"), 2.5, 1.5, smaller_is_better=True,
        ),
        Target("GDSC, K = 20: SMURFF's sweep over ours", row("gdsc", "gdsc", "SMURFF"), gdsc, 12, 25),
        Target("GDSC, K = 20: reference.py's sweep over ours", row("gdsc", "gdsc", "reference.py"), gdsc, 60, 150),
        Target(
            "effective samples per second over NUTS, GEE 100 x 50, K = 5 (worst prediction)",
            row("nuts", HOLES, "NumPyro NUTS", rank=5), row("nuts", HOLES, rank=5), 50, 100,
        ),
        Target(
            "2 threads over 1 within a chain, 5,000 x 2,000, K = 20",
            one, row("threads", FULL_LARGE, "1 chain, 2 threads", threads=2), 1.7, 1.9,
        ),
        Target(
            "2 chains on 2 threads over 1 chain, 5,000 x 2,000, K = 20",
            one, row("threads", FULL_LARGE, "2 chains, 2 threads", threads=2), 1.85, 1.9,
        ),
        Target(
            f"{describe(ratings)}, K = 20: SMURFF's sweep over ours, 2 threads",
            row("ratings", ratings, "SMURFF", threads=2), row("ratings", ratings, threads=2), 5, 10,
        ),
        Target(
            f"{describe(ratings)}: peak memory over the input's own CSR size",
            row("memory", ratings), None, 3.5, 2.5, smaller_is_better=True,
        ),
        Target(
            f"time per sweep and entry at {last / 1e6:g} million entries over that at {first / 1e6:g} million",
            row("growth", f"ratings-{last}", f"{last / 1e6:g} million entries"),
            row("growth", f"ratings-{first}", f"{first / 1e6:g} million entries"),
            1.25, None, smaller_is_better=True, scale=first / last,
        ),
        Target("compiling for a first fit", start("compiling a first fit, cold"), None, 20, None, True, unit=" s"),
        Target("import bnmf, warm disk", start("import bnmf"), None, 1.0, None, True, unit=" s"),
        Target("bnmf --help", start("bnmf --help"), None, 0.5, None, True, unit=" s"),
    ]  # fmt: skip
