"""Interleaved timing: the contestants of a race are measured in turn, one repeat at a time."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.client import Client, Contestant, PeerError

# Limit on the iterations of one repeat.
MAX_ITERATIONS = 4096


@dataclass(frozen=True)
class Effort:
    """How long a race takes. Times are in seconds."""

    repeats: int
    min_repeats: int  # even if the budget is exceeded
    repeat_seconds: float  # approximate time of one repeat
    budget: float  # of one contestant


@dataclass
class Lane:
    """A contestant in a race, with the seconds per iteration of each repeat; None if the repeat gave no timing."""

    contestant: Contestant
    n: int  # iterations per repeat
    elapsed: float  # seconds of one repeat, including overhead
    seconds: list[float | None] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    spent: float = 0.0  # seconds of all repeats so far

    def repeat(self, client: Client, effort: Effort) -> None:
        """Measure one repeat, unless there are enough and the budget would be exceeded."""
        done = sum(seconds is not None for seconds in self.seconds)
        if done >= effort.min_repeats and self.spent + self.elapsed > effort.budget:
            self.seconds.append(None)
            return
        answer = client.repeat(self.contestant, self.n)
        self.spent += answer.pop("elapsed")
        seconds = answer.pop("seconds")
        # Timings by difference can be negative if the noise exceeds the difference.
        self.seconds.append(seconds if seconds > 0 else None)
        self.facts = answer


def run(
    contestants: list[Contestant],
    client: Client,
    effort: Effort,
    say: Callable[[str], None],
    *,
    n: int | None = None,
) -> tuple[list[Lane], dict[str, str]]:
    """Time the contestants in turn, and return the lanes of those that finished and the reasons why others did not.

    Each repeat has `n` iterations; by default, as many as take about `repeat_seconds`.
    """
    lanes: list[Lane] = []
    failures: dict[str, str] = {}
    for contestant in contestants:
        try:
            client.set_up(contestant)
            lanes.append(Lane(contestant, n, 0.0) if n else _calibrated(contestant, client, effort))
        except PeerError as error:
            failures[contestant.label] = str(error)
            say(f"  {contestant.label}: {error}")
    for repeat in range(effort.repeats):
        # Each repeat starts with a different contestant, so that the order does not favour any of them.
        start = repeat % max(len(lanes), 1)
        for lane in lanes[start:] + lanes[:start]:
            if lane.contestant.label not in failures:
                try:
                    lane.repeat(client, effort)
                except PeerError as error:
                    failures[lane.contestant.label] = f"in repeat {repeat + 1}: {error}"
    for lane in lanes:
        if not any(lane.seconds):
            failures.setdefault(lane.contestant.label, "too noisy: no difference of two fits was positive")
    return [lane for lane in lanes if lane.contestant.label not in failures], failures


def _calibrated(contestant: Contestant, client: Client, effort: Effort) -> Lane:
    """Return a lane whose number of iterations takes about `repeat_seconds`."""
    n, enough = 1, effort.repeat_seconds
    while True:
        answer = client.repeat(contestant, n)
        elapsed, iterating = answer["elapsed"], n * answer["seconds"]
        # If each repeat includes set-up that is subtracted, the iterations must take at least as long as the set-up.
        long_enough = iterating >= max(enough / 2, elapsed / 2) or elapsed >= 10 * enough
        if long_enough or n >= MAX_ITERATIONS:
            return Lane(contestant, n, elapsed)
        n = min(MAX_ITERATIONS, n * (2 if elapsed > enough / 4 else 8))
