"""How much is measured: the full run, and the quick one."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Sizes and patience of a run; seconds unless said."""

    name: str
    ranks: tuple[int, ...]
    repeats: int
    min_repeats: int  # also of a contestant that is over its budget
    repeat_seconds: float  # a repeat has as many iterations as take about this long
    budget: float  # of one contestant in one race
    timeout: float  # of one answer
    slow_entries: int  # the largest full matrix for the peers that take seconds for an iteration on it
    burn_in: float
    ratings: int
    growth_entries: tuple[int, ...]
    growth_ranks: tuple[int, ...]
    nuts_draws: int
    nuts_warmup: int
    nuts_repeats: int
    cold_starts: int
    warm_starts: int  # after each cold one


FULL = Settings(
    name="full",
    ranks=(10, 20, 50),
    repeats=15,
    min_repeats=3,
    repeat_seconds=0.5,
    budget=10.0,
    timeout=400.0,
    slow_entries=10_000_000,
    burn_in=5.0,
    ratings=20_000_000,
    growth_entries=(2_000_000, 5_000_000, 10_000_000, 20_000_000),
    growth_ranks=(10, 20, 50, 100),
    nuts_draws=1000,
    nuts_warmup=500,
    nuts_repeats=5,
    cold_starts=3,
    warm_starts=3,
)

QUICK = Settings(
    name="quick",
    ranks=(20,),
    repeats=5,
    min_repeats=2,
    repeat_seconds=0.1,
    budget=0.7,
    timeout=60.0,
    slow_entries=1_000_000,
    burn_in=0.5,
    ratings=2_000_000,
    growth_entries=(250_000, 500_000, 1_000_000, 2_000_000),
    growth_ranks=(10, 20, 50, 100),
    nuts_draws=200,
    nuts_warmup=100,
    nuts_repeats=2,
    cold_starts=1,
    warm_starts=2,
)
