"""Settings of the full and of the quick run."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Settings:
    """Sizes and time limits of a run. Times are in seconds."""

    name: str
    repeats: int
    min_repeats: int  # even if the budget of a contestant is exceeded
    repeat_seconds: float  # approximate time of one repeat
    budget: float  # of one contestant in one race
    timeout: float  # of one request to a worker
    burn_in: float  # of one chain
    ratings: int  # number of ratings
    growth: tuple[int, int]  # numbers of ratings whose times are compared
    nuts_draws: int
    nuts_warmup: int
    nuts_repeats: int
    starts: int
    sweeps: tuple[tuple[str, int], ...]  # matrices and K whose fastest sweeps are compared

    def for_fastest_sweeps(self) -> Settings:
        """Return shorter repeats: a minimum of CPU time needs fewer of them than a median."""
        return replace(
            self, repeats=min(self.repeats, 5), repeat_seconds=min(self.repeat_seconds, 0.3), burn_in=0.1 * self.burn_in
        )


FULL = Settings(
    name="full",
    repeats=15,
    min_repeats=3,
    repeat_seconds=0.5,
    budget=10.0,
    timeout=400.0,
    burn_in=5.0,
    ratings=20_000_000,
    growth=(2_000_000, 20_000_000),
    nuts_draws=1000,
    nuts_warmup=500,
    nuts_repeats=5,
    starts=5,
    sweeps=(
        ("gdsc", 20),
        ("gdsc", 50),
        ("complete-160x254", 20),
        ("scattered-1000x400-20", 20),
        ("scattered-1000x400-80", 10),
        ("scattered-1000x400-80", 20),
        ("scattered-1000x400-80", 50),
        ("scattered-1000x400-80", 100),
        ("scattered-500x300-50", 50),
        ("scattered-100x50-20", 5),
        ("ratings-480000-6000x4000", 20),
        ("ratings-480000-6000x4000", 50),
    ),
)

QUICK = Settings(
    name="quick",
    repeats=5,
    min_repeats=2,
    repeat_seconds=0.1,
    budget=0.7,
    timeout=60.0,
    burn_in=0.5,
    ratings=2_000_000,
    growth=(250_000, 2_000_000),
    nuts_draws=200,
    nuts_warmup=100,
    nuts_repeats=2,
    starts=2,
    sweeps=(
        ("gdsc", 20),
        ("scattered-1000x400-80", 10),
        ("scattered-1000x400-80", 20),
        ("scattered-1000x400-80", 50),
        ("scattered-1000x400-80", 100),
        ("scattered-100x50-20", 5),
    ),
)
