"""Sections of the benchmarks: one function each, which returns rows of the tables."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from benchmarks import probes, race, variants
from benchmarks.client import Client, Contestant, PeerError
from benchmarks.matrices import describe
from benchmarks.peers import PEERS
from benchmarks.settings import Settings
from benchmarks.spread import exponent

OURS = "bnmf"
COMPLETE_SMALL, COMPLETE_LARGE, INCOMPLETE = "complete-160x254", "complete-5000x2000", "incomplete-100x50"
SCATTERED = "scattered-1000x400-80"
NUMBA = f"{variants.NUMBA}, Numba"
AVX2 = ", AVX2"  # ends the label of a contestant on that processor
COMMON_NOISE, COLUMN_NOISE, ROW_NOISE, BOTH_NOISE = (
    "common noise", "noise by column", "noise by row", "noise by row and column",
)  # fmt: skip
HALF_NORMAL, WITH_MAX_TERM, NORMAL, LAPLACE = "GL2²", "GL2²,∞", "normal", "Laplace"
DEFAULT_MOVES = "default moves"
EXPONENT = "exponent of K"
FIRST_FIT = "new process with a first fit of a 50 x 20 matrix"
# Our chain is thinned, so that both chains keep the same number of draws. The minimum of many noisy estimates of the
# effective sample size depends on the number of draws, so the comparison would be biased otherwise.
NUTS_THINNING = 3
RANK = 20
"""Number of components unless stated."""


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

    @property
    def fastest(self) -> float:
        """The smallest value."""
        return min(value for value in self.values if value is not None)


@dataclass
class Context:
    """What a section needs to run."""

    client: Client
    settings: Settings
    uninstalled: dict[str, str]
    say: Callable[[str], None]


@dataclass
class Outcome:
    """Results of a section: rows, notes, and the reasons for failures."""

    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def ours(
    context: Context,
    data: str,
    rank: int = RANK,
    threads: int = 1,
    label: str = OURS,
    peer: str = "bnmf",
    **options: Any,
) -> Contestant:
    """Return bnmf as a contestant."""
    return Contestant(label, peer, data, rank, threads, {"burn_in": context.settings.burn_in, **options})


def scikit_learn(data: str) -> Contestant:
    """Return coordinate descent as a contestant."""
    return Contestant("scikit-learn cd", "sklearn", data, RANK)


def smurff(data: str, threads: int = 1) -> Contestant:
    """Return SMURFF as a contestant."""
    return Contestant("SMURFF", "smurff", data, RANK, threads)


def compete(
    context: Context, outcome: Outcome, contestants: list[Contestant], *, baseline: str | None, unit: str, **how: int
) -> None:
    """Time the contestants that are installed, and add their rows to the outcome."""
    first = contestants[0]
    context.say(f"{describe(first.data)}, K = {first.rank}: {', '.join(c.label for c in contestants)}")
    installed = []
    for contestant in contestants:
        reason = context.uninstalled.get(PEERS[contestant.peer][1] or "")
        if reason:
            outcome.failures.append({"label": contestant.label, "reason": f"not installed: {reason}"})
        else:
            installed.append(contestant)
    lanes, failures = race.run(installed, context.client, context.settings, context.say, **how)
    for lane in lanes:
        c = lane.contestant
        compared_with = baseline if c.label != baseline else None
        outcome.rows.append(Row(c.data, c.rank, c.threads, c.label, unit, lane.seconds, compared_with, lane.facts))
    for label, reason in failures.items():
        outcome.failures.append({"data": first.data, "rank": first.rank, "label": label, "reason": reason})


def gdsc(context: Context) -> Outcome:
    """Other implementations on GDSC, and scikit-learn as it would be on a processor without AVX-512."""
    outcome = Outcome()
    peers = [scikit_learn("gdsc"), smurff("gdsc"), Contestant("NumPy reference", "reference", "gdsc", RANK)]
    compete(context, outcome, [ours(context, "gdsc"), *peers], baseline=OURS, unit="s per iteration")
    older = [replace(c, label=c.label + AVX2, processor="AVX2") for c in (ours(context, "gdsc"), scikit_learn("gdsc"))]
    compete(context, outcome, older, baseline=OURS + AVX2, unit="s per iteration")
    return outcome


def complete(context: Context) -> Outcome:
    """scikit-learn on a complete matrix, for which it is made."""
    outcome = Outcome()
    contestants = [ours(context, COMPLETE_SMALL), scikit_learn(COMPLETE_SMALL)]
    compete(context, outcome, contestants, baseline=OURS, unit="s per iteration")
    return outcome


def sweeps(context: Context) -> Outcome:
    """Fastest sweeps of this version and of the last one with Numba, on this processor and without AVX-512.

    Also of the priors and noise models that cost more, and the growth with K where entries are missing at random.
    """
    outcome, settings = Outcome(), context.settings.for_fastest_sweeps()
    context = replace(context, settings=settings)

    def fastest(data: str, rank: int, label: str, **options: Any) -> Contestant:
        return ours(context, data, rank, label=label, peer="bnmf-fastest", **options)

    versions: dict[str, str | None] = {OURS: None, NUMBA: variants.NUMBA}
    try:
        variants.source_of(variants.NUMBA, context.client.directory)
    except variants.NotAvailable as error:
        outcome.failures.append({"label": versions.popitem()[0], "reason": str(error)})
        context.say(str(error))
    unit = "s per sweep"
    for data, rank in settings.sweeps:
        contestants = [
            replace(fastest(data, rank, label + ending), processor=processor, version=version)
            for processor, ending in (("native", ""), ("AVX2", AVX2))
            for label, version in versions.items()
        ]
        compete(context, outcome, contestants, baseline=OURS, unit=unit)
    for ending in ("", AVX2):
        rows = [row for row in outcome.rows if (row.data, row.label) == (SCATTERED, OURS + ending)]
        if len(rows) > 1:
            power = exponent([row.rank for row in rows], [row.fastest for row in rows])
            last = max(row.rank for row in rows)
            outcome.rows.append(Row(SCATTERED, last, 1, EXPONENT + ending, "exponent", [power]))
    if ("gdsc", 20) in settings.sweeps:
        others = [
            fastest("gdsc", 20, COMMON_NOISE),
            fastest("gdsc", 20, COLUMN_NOISE, noise="column"),
            fastest("gdsc", 20, ROW_NOISE, noise="row"),
            fastest("gdsc", 20, BOTH_NOISE, noise="both"),
            fastest("gdsc", 20, DEFAULT_MOVES, default_moves=True),
        ]
        compete(context, outcome, others, baseline=COMMON_NOISE, unit=unit)
        priors = [
            fastest("gdsc", 20, HALF_NORMAL, prior="gl22"),
            fastest("gdsc", 20, WITH_MAX_TERM, prior="gl22inf"),
            fastest("gdsc", 20, NORMAL, prior="normal"),
            fastest("gdsc", 20, LAPLACE, prior="laplace"),
        ]
        compete(context, outcome, priors, baseline=HALF_NORMAL, unit=unit)
    outcome.notes.append(
        "A value is the minimum CPU time of a sweep within one repeat. A sweep draws every entry once and ends with "
        f"the rescaling move; one with {DEFAULT_MOVES} does more, so that fewer are needed."
    )
    return outcome


def ratings(context: Context) -> Outcome:
    """The two Gibbs samplers on the ratings, with two threads."""
    data, outcome = f"ratings-{context.settings.ratings}", Outcome()
    contestants = [ours(context, data, threads=2), smurff(data, threads=2)]
    compete(context, outcome, contestants, baseline=OURS, unit="s per iteration")
    return outcome


def nuts(context: Context) -> Outcome:
    """Time per effective sample of the worst prediction, compared with NUTS on the same model."""
    settings, outcome = context.settings, Outcome()
    draws, warmup = settings.nuts_draws, settings.nuts_warmup
    contestants = [
        Contestant(OURS, "bnmf-ess", INCOMPLETE, 5, 1, {"warmup": warmup, "thinning": NUTS_THINNING}),
        Contestant("NumPyro NUTS", "numpyro", INCOMPLETE, 5, 1, {"warmup": warmup, "draws": draws}),
    ]
    unit = "s per effective sample"
    compete(context, outcome, contestants, baseline=OURS, unit=unit, n=draws, repeats=settings.nuts_repeats)
    outcome.notes.append(
        f"Each repeat keeps {draws} draws of one chain (ours every {NUTS_THINNING}rd sweep). Compilation and "
        "warm-up are not counted for either, and NUTS starts from a state of our chain after its burn-in."
    )
    return outcome


def threads(context: Context) -> Outcome:
    """Two threads in one chain, and two parallel chains, compared with one chain on one thread."""
    outcome, data = Outcome(), COMPLETE_LARGE
    contestants = [
        ours(context, data, label="1 chain, 1 thread"),
        ours(context, data, threads=2, label="1 chain, 2 threads"),
        ours(context, data, threads=2, label="2 chains, 2 threads", peer="bnmf-chains"),
    ]
    compete(context, outcome, contestants, baseline="1 chain, 1 thread", unit="s per iteration")
    return outcome


def growth(context: Context) -> Outcome:
    """Growth of the time per sweep with the observed entries."""
    outcome = Outcome()
    sized = [ours(context, f"ratings-{n}", label=f"{n / 1e6:g} million entries") for n in context.settings.growth]
    compete(context, outcome, sized, baseline=None, unit="s per iteration")
    return outcome


def memory(context: Context) -> Outcome:
    """Peak memory of sampling the ratings, relative to the size of the input."""
    data, outcome = f"ratings-{context.settings.ratings}", Outcome()
    context.say(f"{describe(data)}, K = {RANK}: peak memory")
    try:
        # The data are created in a worker, because creating them takes more memory than sampling.
        context.client.make(ours(context, data))
        found = probes.memory(context.client.directory, data, RANK)
        ratio = found["peak"] / found["input"]
        outcome.rows.append(Row(data, RANK, 1, OURS, "peak memory / input size", [ratio], None, found))
    except PeerError as error:
        outcome.failures.append({"label": OURS, "reason": str(error)})
    return outcome


def startup(context: Context) -> Outcome:
    """Start-up of new processes."""
    outcome, settings = Outcome(), context.settings
    starts, command_help = [], []
    context.say("starts")
    try:
        starts = [probes.startup() for _ in range(settings.starts)]
        command_help = [probes.command_help() for _ in range(settings.starts)]
    except PeerError as error:
        outcome.failures.append({"label": OURS, "reason": str(error)})
    for label, values in (
        (FIRST_FIT, [start["process"] for start in starts]),
        ("import bnmf", [start["import"] for start in starts]),
        ("bnmf --help", command_help),
    ):
        if values:
            outcome.rows.append(Row("", 0, 1, label, "s", values))
    return outcome


SECTIONS: dict[str, Callable[[Context], Outcome]] = {
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
