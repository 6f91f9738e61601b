"""What is measured: one function a section, each giving rows for the table."""

import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from benchmarks import probes, race
from benchmarks.client import Client, Contestant, PeerError
from benchmarks.data import describe, full_entries
from benchmarks.peers import PEERS
from benchmarks.settings import Settings
from benchmarks.spread import exponent, spread

OURS = "bnmf"
FULL_SMALL, FULL_LARGE, HOLES = "full-160x254", "full-5000x2000", "holes-100x50"
# Our chain is thinned so that both sides keep equally many draws: the smallest of many noisy estimates of the
# effective sample size is lower the fewer the draws.
NUTS_THINNING = 3
SLOW = ("reference", "smurff")


@dataclass
class Row:
    """One line of the table: who did what, and a value for each repeat."""

    data: str
    rank: int
    threads: int
    who: str
    unit: str
    values: list[float | None]
    over: str | None = None  # the row of the same data, rank and threads that it is compared with
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass
class Context:
    """What a section works with."""

    client: Client
    settings: Settings
    uninstalled: dict[str, str]
    say: Callable[[str], None]


@dataclass
class Outcome:
    """What a section found: rows, notes, and why something is not there."""

    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failures: list[dict[str, Any]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def ours(context: Context, data: str, rank: int, threads: int = 1, who: str = OURS, peer: str = "bnmf") -> Contestant:
    """Return bnmf as a contestant."""
    return Contestant(who, peer, data, rank, threads, {"burn_in": context.settings.burn_in})


def peers_for(data: str, rank: int, threads: int = 1) -> list[Contestant]:
    """Return the peers whose work on a matrix is comparable."""

    def peer(who: str, name: str, **options: Any) -> Contestant:
        return Contestant(who, name, data, rank, threads, options)

    cd, mu = (peer(f"scikit-learn {solver}", "sklearn", solver=solver) for solver in ("cd", "mu"))
    smurff, cmfrec = peer("SMURFF", "smurff"), peer("cmfrec", "cmfrec")
    reference, implicit = peer("reference.py", "reference"), peer("implicit", "implicit")
    if data.startswith("ratings"):
        return [cd, mu, smurff, cmfrec, implicit]  # the reference would need the dense matrix
    if data.startswith("full"):
        return [cd, mu, smurff, cmfrec, reference]  # implicit takes sparse data only
    return [cd, mu, smurff, cmfrec, implicit, reference]


def compete(
    context: Context, outcome: Outcome, contestants: list[Contestant], *, over: str | None, unit: str, **how: int
) -> None:
    """Race those that are installed, and add their rows."""
    first = contestants[0]
    context.say(f"{describe(first.data)}, K = {first.rank}: {', '.join(c.who for c in contestants)}")
    able = []
    for contestant in contestants:
        reason = context.uninstalled.get(PEERS[contestant.peer][1] or "")
        if reason:
            outcome.failures.append({"who": contestant.who, "why": f"not installed: {reason}"})
        else:
            able.append(contestant)
    lanes, failures = race.run(able, context.client, context.settings, context.say, **how)
    for lane in lanes:
        c = lane.contestant
        against = over if c.who != over else None
        outcome.rows.append(Row(c.data, c.rank, c.threads, c.who, unit, lane.seconds, against, lane.facts))
    for who, why in failures.items():
        outcome.failures.append({"data": first.data, "rank": first.rank, "who": who, "why": why})


def peers_on(*names: str) -> Callable[[Context], Outcome]:
    """Return the section that races everybody on some matrices at every rank."""

    def section(context: Context) -> Outcome:
        outcome = Outcome()
        for data in names:
            for rank in context.settings.ranks:
                contestants = [ours(context, data, rank)]
                for peer in peers_for(data, rank):
                    if peer.peer in SLOW and full_entries(data) > context.settings.slow_entries:
                        outcome.failures.append(
                            {"who": peer.who, "why": f"slow on {describe(data)}: in the full run only"}
                        )
                    else:
                        contestants.append(peer)
                compete(context, outcome, contestants, over=OURS, unit="s per iteration")
        return outcome

    return section


def ratings(context: Context) -> Outcome:
    """Everybody on the ratings, and the two samplers with two threads."""
    data = f"ratings-{context.settings.ratings}"
    outcome = peers_on(data)(context)
    for rank in context.settings.ranks:
        smurff = [c for c in peers_for(data, rank, threads=2) if c.peer == "smurff"]
        compete(context, outcome, [ours(context, data, rank, 2), *smurff], over=OURS, unit="s per iteration")
    return outcome


def nuts(context: Context) -> Outcome:
    """Effective samples of the worst prediction, against NUTS on the same model."""
    settings, outcome = context.settings, Outcome()
    draws, warmup = settings.nuts_draws, settings.nuts_warmup
    contestants = [
        Contestant(OURS, "bnmf-ess", HOLES, 5, 1, {"warmup": warmup, "thinning": NUTS_THINNING}),
        Contestant("NumPyro NUTS", "numpyro", HOLES, 5, 1, {"warmup": warmup, "draws": draws}),
    ]
    unit = "s per effective sample"
    compete(context, outcome, contestants, over=OURS, unit=unit, n=draws, repeats=settings.nuts_repeats)
    outcome.notes.append(
        f"Each repeat keeps {draws} draws of one chain (ours every {NUTS_THINNING}rd sweep). Compiling and warm-up are "
        "not counted on either side, and NUTS starts from a state inside the posterior."
    )
    return outcome


def threads(context: Context) -> Outcome:
    """Two threads within a chain, and two chains at once, over one."""
    outcome = Outcome()
    for data in (FULL_LARGE, "gdsc"):
        rank = 20
        contestants = [
            ours(context, data, rank, 1, "1 chain, 1 thread"),
            ours(context, data, rank, 2, "1 chain, 2 threads"),
            replace(ours(context, data, rank, 1, "1 chain, 1 thread, BLAS left as it starts"), held=False),
            ours(context, data, rank, 2, "2 chains, 2 threads", "bnmf-chains"),
        ]
        compete(context, outcome, contestants, over="1 chain, 1 thread", unit="s per iteration")
    return outcome


def growth(context: Context) -> Outcome:
    """Time of a sweep against observed entries, rank and threads."""
    outcome, settings = Outcome(), context.settings
    smallest = f"ratings-{settings.growth_entries[0]}"

    def fit(name: str, sizes: list[float], contestants: list[Contestant]) -> None:
        before = len(outcome.rows)
        compete(context, outcome, contestants, over=None, unit="s per iteration")
        rows = outcome.rows[before:]
        if len(rows) == len(contestants) > 1:
            slope = exponent(sizes, [spread(row.values).median for row in rows])
            outcome.notes.append(f"{name}: time grows with exponent {slope:.2f}")
            context.say(f"  {outcome.notes[-1]}")

    entries = list(settings.growth_entries)
    sized = [ours(context, f"ratings-{n}", 20, who=f"{n / 1e6:g} million entries") for n in entries]
    fit(f"observed entries ({entries[0]:,} to {entries[-1]:,}, K = 20)", entries, sized)
    ranks = list(settings.growth_ranks)
    for data in (smallest, "gdsc"):
        fit(
            f"K ({ranks[0]} to {ranks[-1]}, {describe(data)})",
            ranks,
            [ours(context, data, k, who=f"K = {k}") for k in ranks],
        )
    counts = [n for n in (1, 2, 4, 8, 16) if n <= (os.cpu_count() or 1)]
    data = f"ratings-{entries[-1]}"
    threaded = [ours(context, data, 20, n, f"threads: {n}") for n in counts]
    fit(f"threads (1 to {counts[-1]}, {describe(data)}, K = 20)", counts, threaded)
    return outcome


def memory(context: Context) -> Outcome:
    """Peak memory of sampling the ratings over the size of the input."""
    data, rank = f"ratings-{context.settings.ratings}", 20
    context.say(f"{describe(data)}, K = {rank}: peak memory")
    outcome = Outcome()
    try:
        # A worker makes the data if nobody has: making takes more memory than sampling, and must not count.
        context.client.make(ours(context, data, rank))
        found = probes.memory(context.client.directory, data, rank)
        ratio = found["peak"] / found["input"]
        outcome.rows.append(Row(data, rank, 1, OURS, "peak memory over input", [ratio], None, found))
    except PeerError as error:
        outcome.failures.append({"who": OURS, "why": str(error)})
    return outcome


def startup(context: Context) -> Outcome:
    """Compiling from nothing, and starting with everything compiled."""
    outcome, settings = Outcome(), context.settings
    cold, warm, helped = [], [], []
    context.say("cold and warm starts")
    try:
        for _ in range(settings.cold_starts):
            with tempfile.TemporaryDirectory() as cache:
                cold.append(probes.startup(cache))
                warm += [probes.startup(cache) for _ in range(settings.warm_starts)]
        helped = [probes.command_help() for _ in range(settings.warm_starts)]
    except PeerError as error:
        outcome.failures.append({"who": OURS, "why": str(error)})
    compiling = [c["first fit"] - w["first fit"] for c, w in zip(cold, warm[:: settings.warm_starts], strict=False)]
    for who, values in (
        ("compiling a first fit, cold", compiling),
        ("fresh process with a first fit, warm", [w["process"] for w in warm]),
        ("import bnmf", [w["import"] for w in warm]),
        ("bnmf --help", helped),
    ):
        if values:
            outcome.rows.append(Row("", 0, 1, who, "s", values))
    return outcome


SECTIONS: dict[str, Callable[[Context], Outcome]] = {
    "gdsc": peers_on("gdsc"),
    "full-small": peers_on(FULL_SMALL),
    "full-large": peers_on(FULL_LARGE),
    "ratings": ratings,
    "nuts": nuts,
    "threads": threads,
    "growth": growth,
    "memory": memory,
    "startup": startup,
}
