"""A race: contestants measured in turns, repeat by repeat."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from benchmarks.client import Contestant, PeerError
from benchmarks.settings import Settings

MOST_ITERATIONS = 4096


class Track(Protocol):
    """What a race needs of the client."""

    def set_up(self, contestant: Contestant) -> int: ...
    def repeat(self, contestant: Contestant, slot: int, n: int) -> dict: ...
    def release(self) -> None: ...


@dataclass
class Lane:
    """A contestant in a race: seconds of one iteration in each repeat, None where it sat out."""

    contestant: Contestant
    slot: int
    n: int
    elapsed: float  # of one repeat
    seconds: list[float | None]
    facts: dict
    spent: float = 0.0
    drowned: int = 0  # repeats whose difference was not positive


def run(
    contestants: list[Contestant],
    track: Track,
    settings: Settings,
    say: Callable[[str], None],
    *,
    n: int | None = None,
    repeats: int | None = None,
) -> tuple[list[Lane], dict[str, str]]:
    """Race the contestants, and return their lanes and why others have none.

    With `n` every repeat has that many iterations; without, as many as take about `repeat_seconds`.
    """
    lanes: list[Lane] = []
    failures: dict[str, str] = {}
    for contestant in contestants:
        try:
            slot = track.set_up(contestant)
            count, elapsed = (n, 0.0) if n else _calibrate(contestant, slot, track, settings)
            lanes.append(Lane(contestant, slot, count, elapsed, [], {}))
        except PeerError as error:
            failures[contestant.who] = str(error)
            say(f"  {contestant.who}: {error}")
    for repeat in range(repeats or settings.repeats):
        # Each repeat begins with another one, so that nobody always runs after the same neighbour.
        start = repeat % max(len(lanes), 1)
        for lane in lanes[start:] + lanes[:start]:
            if lane.contestant.who not in failures:
                _one_repeat(lane, repeat, track, settings, failures)
    track.release()
    for lane in lanes:
        if not any(lane.seconds):
            failures.setdefault(lane.contestant.who, "too noisy: no difference of two fits was positive")
        elif lane.drowned:
            lane.facts["repeats lost in noise"] = lane.drowned
    return [lane for lane in lanes if lane.contestant.who not in failures], failures


def _calibrate(contestant: Contestant, slot: int, track: Track, settings: Settings) -> tuple[int, float]:
    """Return a number of iterations that takes about `repeat_seconds`, and what it took."""
    n, enough = 1, settings.repeat_seconds
    while True:
        answer = track.repeat(contestant, slot, n)
        elapsed, iterating = answer["elapsed"], n * answer["seconds"]
        # Where setting up is part of each repeat and cancels by difference, what is left must not drown in it.
        long = iterating >= max(enough / 2, elapsed / 2) or elapsed >= 10 * enough
        if long or n >= MOST_ITERATIONS:
            return n, elapsed
        n = min(MOST_ITERATIONS, n * (2 if elapsed > enough / 4 else 8))


def _one_repeat(lane: Lane, repeat: int, track: Track, settings: Settings, failures: dict[str, str]) -> None:
    done = sum(seconds is not None for seconds in lane.seconds)
    if done >= settings.min_repeats and lane.spent + lane.elapsed > settings.budget:
        lane.seconds.append(None)
        return
    try:
        answer = track.repeat(lane.contestant, lane.slot, lane.n)
    except PeerError as error:
        failures[lane.contestant.who] = f"in repeat {repeat + 1}: {error}"
        return
    lane.spent += answer.pop("elapsed")
    seconds = answer.pop("seconds")
    lane.seconds.append(seconds if seconds > 0 else None)  # a difference of two times can drown in noise
    lane.drowned += seconds <= 0
    lane.facts = answer
