"""Interleaved timing: the contestants of a race are measured in turn, one repeat at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from benchmarks.client import Contestant, PeerError
from benchmarks.settings import Settings

# Limit on the iterations of one repeat.
MAX_ITERATIONS = 4096


class Track(Protocol):
    """The part of the client that a race uses."""

    def set_up(self, contestant: Contestant) -> int: ...
    def repeat(self, contestant: Contestant, slot: int, n: int) -> dict: ...
    def release(self) -> None: ...


@dataclass
class Lane:
    """A contestant in a race, with the seconds per iteration of each repeat; None if the repeat gave no timing."""

    contestant: Contestant
    slot: int
    n: int  # iterations per repeat
    elapsed: float  # seconds of one repeat, including overhead
    seconds: list[float | None]
    facts: dict
    spent: float = 0.0  # seconds of all repeats so far
    n_not_positive: int = 0  # repeats in which the difference of two fits was not positive


def run(
    contestants: list[Contestant],
    track: Track,
    settings: Settings,
    say: Callable[[str], None],
    *,
    n: int | None = None,
    repeats: int | None = None,
) -> tuple[list[Lane], dict[str, str]]:
    """Time the contestants in turn, and return the lanes of those that finished and the reasons why others did not.

    Each repeat has `n` iterations; by default, as many as take about `repeat_seconds`.
    """
    lanes: list[Lane] = []
    failures: dict[str, str] = {}
    for contestant in contestants:
        try:
            slot = track.set_up(contestant)
            count, elapsed = (n, 0.0) if n else _calibrate(contestant, slot, track, settings)
            lanes.append(Lane(contestant, slot, count, elapsed, [], {}))
        except PeerError as error:
            failures[contestant.label] = str(error)
            say(f"  {contestant.label}: {error}")
    for repeat in range(repeats or settings.repeats):
        # Each repeat starts with a different contestant, so that the order does not favour any of them.
        start = repeat % max(len(lanes), 1)
        for lane in lanes[start:] + lanes[:start]:
            if lane.contestant.label not in failures:
                _one_repeat(lane, repeat, track, settings, failures)
    track.release()
    for lane in lanes:
        if not any(lane.seconds):
            failures.setdefault(lane.contestant.label, "too noisy: no difference of two fits was positive")
        elif lane.n_not_positive:
            lane.facts["repeats without timing"] = lane.n_not_positive
    return [lane for lane in lanes if lane.contestant.label not in failures], failures


def _calibrate(contestant: Contestant, slot: int, track: Track, settings: Settings) -> tuple[int, float]:
    """Return a number of iterations that takes about `repeat_seconds`, and the seconds it took."""
    n, enough = 1, settings.repeat_seconds
    while True:
        answer = track.repeat(contestant, slot, n)
        elapsed, iterating = answer["elapsed"], n * answer["seconds"]
        # If each repeat includes set-up that is subtracted, the iterations must take at least as long as the set-up.
        long_enough = iterating >= max(enough / 2, elapsed / 2) or elapsed >= 10 * enough
        if long_enough or n >= MAX_ITERATIONS:
            return n, elapsed
        n = min(MAX_ITERATIONS, n * (2 if elapsed > enough / 4 else 8))


def _one_repeat(lane: Lane, repeat: int, track: Track, settings: Settings, failures: dict[str, str]) -> None:
    done = sum(seconds is not None for seconds in lane.seconds)
    if done >= settings.min_repeats and lane.spent + lane.elapsed > settings.budget:
        lane.seconds.append(None)
        return
    try:
        answer = track.repeat(lane.contestant, lane.slot, lane.n)
    except PeerError as error:
        failures[lane.contestant.label] = f"in repeat {repeat + 1}: {error}"
        return
    lane.spent += answer.pop("elapsed")
    seconds = answer.pop("seconds")
    # Timings by difference can be negative if the noise exceeds the difference.
    lane.seconds.append(seconds if seconds > 0 else None)
    lane.n_not_positive += seconds <= 0
    lane.facts = answer
