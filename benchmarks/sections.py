"""Sections of the benchmarks: one function each, which adds rows to the tables."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from benchmarks import probes, race
from benchmarks.client import Client, Contestant, PeerError
from benchmarks.matrices import describe
from benchmarks.peers import PEERS
from benchmarks.race import Effort

OURS = "bnmf"
COMPLETE_SMALL, COMPLETE_LARGE, INCOMPLETE = "complete-160x254", "complete-5000x2000", "incomplete-100x50"
SCATTERED = "scattered-1000x400-80"
NUMBA = "5c6f095"  # the last version of bnmf whose kernels were compiled by Numba
AVX2 = ", AVX2"  # ends the label of a contestant on that processor
COMMON_NOISE, HALF_NORMAL, WITH_MAX_TERM, LAPLACE = "common noise", "GL2²", "GL2²,∞", "Laplace"
DEFAULT_MOVES = "default moves"
EXPONENT = "exponent of K"
FIRST_FIT = "new process with a first fit of a 50 x 20 matrix"
# Our chain is thinned, so that both chains keep the same number of draws. The minimum of many noisy estimates of the
# effective sample size depends on the number of draws, so the comparison would be biased otherwise.
NUTS_THINNING = 3
RANK = 20
"""Number of components unless stated."""


@dataclass(frozen=True)
class Settings:
    """Sizes and time limits of a run. Times are in seconds."""

    name: str
    effort: Effort
    timeout: float  # of one request to a worker
    burn_in: float  # of one chain
    ratings: int  # number of ratings
    growth: tuple[int, int]  # numbers of ratings whose times are compared
    nuts_draws: int
    nuts_repeats: int
    starts: int
    sweeps: tuple[tuple[str, int], ...]  # matrices and K whose fastest sweeps are compared


FULL = Settings(
    name="full",
    effort=Effort(repeats=15, min_repeats=3, repeat_seconds=0.5, budget=10.0),
    timeout=400.0,
    burn_in=5.0,
    ratings=20_000_000,
    growth=(2_000_000, 20_000_000),
    nuts_draws=1000,
    nuts_repeats=5,
    starts=5,
    sweeps=(
        ("gdsc", 20),
        ("gdsc", 50),
        ("complete-160x254", 20),
        ("scattered-1000x400-20", 20),
        *((SCATTERED, k) for k in (10, 20, 50, 100)),
        ("scattered-500x300-50", 50),
        ("scattered-100x50-20", 5),
        ("ratings-480000-6000x4000", 20),
        ("ratings-480000-6000x4000", 50),
    ),
)

QUICK = Settings(
    name="quick",
    effort=Effort(repeats=5, min_repeats=2, repeat_seconds=0.1, budget=0.7),
    timeout=60.0,
    burn_in=0.5,
    ratings=2_000_000,
    growth=(250_000, 2_000_000),
    nuts_draws=200,
    nuts_repeats=2,
    starts=2,
    sweeps=(("gdsc", 20), *((SCATTERED, k) for k in (10, 20, 50, 100)), ("scattered-100x50-20", 5)),
)


@dataclass
class Row:
    """One row of a table, with a value for each repeat."""

    data: str
    rank: int
    threads: int
    label: str
    unit: str
    values: list[float | None]
    baseline: str | None = None  # label of the row with the same data and rank that the ratio refers to
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass
class Section:
    """A section that is measured: what it needs to run, and its rows, notes, and reasons for failures."""

    client: Client
    settings: Settings
    uninstalled: dict[str, str]
    say: Callable[[str], None]
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)

    def ours(
        self, data: str, rank: int = RANK, threads: int = 1, label: str = OURS, peer: str = "bnmf", **options: Any
    ) -> Contestant:
        """Return bnmf as a contestant."""
        return Contestant(label, peer, data, rank, threads, {"burn_in": self.settings.burn_in, **options})

    def compete(
        self,
        contestants: list[Contestant],
        baseline: str | None = OURS,
        unit: str = "s per iteration",
        *,
        effort: Effort | None = None,
        n: int | None = None,
    ) -> None:
        """Time the contestants that are installed, and add their rows."""
        first = contestants[0]
        self.say(f"{describe(first.data)}, K = {first.rank}: {', '.join(c.label for c in contestants)}")
        installed = []
        for contestant in contestants:
            reason = self.uninstalled.get(PEERS[contestant.peer][1] or "")
            if reason:
                self.failures.append({"label": contestant.label, "reason": f"not installed: {reason}"})
            else:
                installed.append(contestant)
        lanes, failures = race.run(installed, self.client, effort or self.settings.effort, self.say, n=n)
        for lane in lanes:
            c = lane.contestant
            compared_with = baseline if c.label != baseline else None
            self.rows.append(Row(c.data, c.rank, c.threads, c.label, unit, lane.seconds, compared_with, lane.facts))
        for label, reason in failures.items():
            self.failures.append({"data": first.data, "rank": first.rank, "label": label, "reason": reason})

    def found(self) -> dict[str, Any]:
        """Return the results as plain values for JSON."""
        return {"rows": [asdict(row) for row in self.rows], "notes": self.notes, "failures": self.failures}


def gdsc(section: Section) -> None:
    """Other implementations on GDSC, and scikit-learn as it would be on a processor without AVX-512."""
    bnmf, scikit_learn = section.ours("gdsc"), Contestant("scikit-learn cd", "sklearn", "gdsc", RANK)
    smurff = Contestant("SMURFF", "smurff", "gdsc", RANK)
    section.compete([bnmf, scikit_learn, smurff, Contestant("NumPy reference", "reference", "gdsc", RANK)])
    older = [replace(c, label=c.label + AVX2, processor="AVX2") for c in (bnmf, scikit_learn)]
    section.compete(older, OURS + AVX2)


def complete(section: Section) -> None:
    """scikit-learn on a complete matrix, for which it is made."""
    section.compete([section.ours(COMPLETE_SMALL), Contestant("scikit-learn cd", "sklearn", COMPLETE_SMALL, RANK)])


def sweeps(section: Section) -> None:
    """Fastest sweeps of this version and of the last with Numba, on this processor and without AVX-512.

    Also of the priors and noise models that cost more, and the growth with K where entries are missing at random.
    """
    # Repeats are shorter: a minimum of CPU time needs fewer of them than a median.
    usual, unit = section.settings.effort, "s per sweep"
    effort = replace(usual, repeats=min(usual.repeats, 5), repeat_seconds=min(usual.repeat_seconds, 0.3))

    def fastest(data: str, rank: int, label: str = OURS, **options: Any) -> Contestant:
        burn_in = 0.1 * section.settings.burn_in
        return section.ours(data, rank, label=label, peer="bnmf-fastest", **{"burn_in": burn_in, **options})

    for data, rank in section.settings.sweeps:
        native = [fastest(data, rank), replace(fastest(data, rank, f"{NUMBA}, Numba"), version=NUMBA)]
        older = [replace(c, label=c.label + AVX2, processor="AVX2") for c in native]
        section.compete(native + older, OURS, unit, effort=effort)
    for label in (OURS, OURS + AVX2):
        rows = [row for row in section.rows if (row.data, row.label) == (SCATTERED, label)]
        if len(rows) > 1:
            # The least-squares slope of log seconds against log K: 1 is linear growth.
            logs = np.log([(row.rank, min(filter(None, row.values))) for row in rows])
            power = float(np.polyfit(*logs.T, 1)[0])
            ending = label.removeprefix(OURS)
            section.rows.append(Row(SCATTERED, rows[-1].rank, 1, EXPONENT + ending, "exponent", [power]))
    noises = [
        fastest("gdsc", RANK, COMMON_NOISE),
        fastest("gdsc", RANK, "noise by column", noise="column"),
        fastest("gdsc", RANK, "noise by row", noise="row"),
        fastest("gdsc", RANK, "noise by row and column", noise="both"),
        fastest("gdsc", RANK, DEFAULT_MOVES, default_moves=True),
    ]
    section.compete(noises, COMMON_NOISE, unit, effort=effort)
    priors = {HALF_NORMAL: "gl22", WITH_MAX_TERM: "gl22inf", "normal": "normal", LAPLACE: "laplace"}
    contestants = [fastest("gdsc", RANK, label, prior=prior) for label, prior in priors.items()]
    section.compete(contestants, HALF_NORMAL, unit, effort=effort)
    section.notes.append(
        "A value is the minimum CPU time of a sweep within one repeat. A sweep draws every entry once and ends with "
        f"the rescaling move; one with {DEFAULT_MOVES} does more, so that fewer are needed."
    )


def ratings(section: Section) -> None:
    """The two Gibbs samplers on the ratings, with two threads."""
    data = f"ratings-{section.settings.ratings}"
    section.compete([section.ours(data, threads=2), Contestant("SMURFF", "smurff", data, RANK, 2)])


def nuts(section: Section) -> None:
    """Time per effective sample of the worst prediction, compared with NUTS on the same model."""
    draws, repeats = section.settings.nuts_draws, section.settings.nuts_repeats
    warmup = draws // 2
    contestants = [
        Contestant(OURS, "bnmf-ess", INCOMPLETE, 5, 1, {"warmup": warmup, "thinning": NUTS_THINNING}),
        Contestant("NumPyro NUTS", "numpyro", INCOMPLETE, 5, 1, {"warmup": warmup, "draws": draws}),
    ]
    effort = replace(section.settings.effort, repeats=repeats)
    section.compete(contestants, OURS, "s per effective sample", effort=effort, n=draws)
    section.notes.append(
        f"Each repeat keeps {draws} draws of one chain (ours every {NUTS_THINNING}rd sweep). Compilation and "
        "warm-up are not counted for either, and NUTS starts from a state of our chain after its burn-in."
    )


def threads(section: Section) -> None:
    """Two threads in one chain, and two parallel chains, compared with one chain on one thread."""
    contestants = [
        section.ours(COMPLETE_LARGE, label="1 chain, 1 thread"),
        section.ours(COMPLETE_LARGE, threads=2, label="1 chain, 2 threads"),
        section.ours(COMPLETE_LARGE, threads=2, label="2 chains, 2 threads", peer="bnmf-chains"),
    ]
    section.compete(contestants, "1 chain, 1 thread")


def growth(section: Section) -> None:
    """Growth of the time per sweep with the observed entries."""
    sizes = section.settings.growth
    section.compete([section.ours(f"ratings-{n}", label=f"{n / 1e6:g} million entries") for n in sizes], None)


def memory(section: Section) -> None:
    """Peak memory of sampling the ratings, relative to the size of the input."""
    data = f"ratings-{section.settings.ratings}"
    section.say(f"{describe(data)}, K = {RANK}: peak memory")
    try:
        directory = str(section.client.directory)
        probes.run("-m", "benchmarks.matrices", directory, data)
        found = probes.asked("peak_memory", directory, data, str(RANK))
        ratio = found["peak"] / found["input"]
        section.rows.append(Row(data, RANK, 1, OURS, "peak memory / input size", [ratio], None, found))
    except PeerError as error:
        section.failures.append({"label": OURS, "reason": str(error)})


def startup(section: Section) -> None:
    """Start-up of new processes."""
    section.say("starts")
    help_of_command = "import sys; sys.argv[1:] = ['--help']; from bnmf.cli import app; app()"
    starts = range(section.settings.starts)
    try:
        fits = [probes.asked("first_fit") for _ in starts]
        values = {
            FIRST_FIT: [fit["process"] for fit in fits],
            "import bnmf": [fit["import"] for fit in fits],
            "bnmf --help": [probes.run("-c", help_of_command)[0] for _ in starts],
        }
        section.rows += [Row("", 0, 1, label, "s", found) for label, found in values.items()]
    except PeerError as error:
        section.failures.append({"label": OURS, "reason": str(error)})


SECTIONS: dict[str, Callable[[Section], None]] = {
    "gdsc": gdsc,
    "sweeps": sweeps,
    "complete": complete,
    "ratings": ratings,
    "nuts": nuts,
    "threads": threads,
    "growth": growth,
    "memory": memory,
    "startup": startup,
}
