"""The long form: attempts in separate processes for some minutes, counted by their outcomes.

Run from the root of the repository: python -m tests.hostile --minutes 10 --write docs/promises.md. Every line of a
worker is one attempt; a worker that hangs or crashes is a bad attempt, and the next one starts with another seed.
"""

import argparse
import faulthandler
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks import pages

from tests.hostile import calls, checkpoints, inputs, interruptions
from tests.hostile.outcomes import BAD, CLEAR, RIGHT, Outcome

# Seconds after which an attempt counts as hanging. The first ones load everything.
SECONDS_PER_ATTEMPT = 180

Report = Callable[[Outcome], None]
# What runs a batch of attempts, and its share of the time.
GROUPS: dict[str, tuple[Callable[[int, Report], None], float]] = {
    "inputs": (inputs.run, 0.5),
    "files of checkpoints": (checkpoints.run, 0.15),
    "kills": (interruptions.run_kills, 0.1),
    "full and read-only disks": (interruptions.run_disks, 0.1),
    "wrong calls": (calls.run, 0.15),
}


class Over(Exception):
    """The time of a group is over."""


def work(group: str, seed: int, seconds: float) -> None:
    """Attempt things for some seconds, and print each outcome."""
    end = time.monotonic() + seconds
    attempts = GROUPS[group][0]

    def report(outcome: Outcome) -> None:
        faulthandler.dump_traceback_later(SECONDS_PER_ATTEMPT, exit=True)
        print(json.dumps(outcome), flush=True)
        if time.monotonic() > end:
            raise Over

    faulthandler.dump_traceback_later(SECONDS_PER_ATTEMPT, exit=True)
    try:
        while True:
            attempts(seed, report)
            seed += 1
    except Over:
        pass


def tried(group: str, seed: int, seconds: float) -> list[Outcome]:
    """Return the outcomes of all attempts of a group, in workers that may crash."""
    found: list[Outcome] = []
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        options = ["--worker", group, "--seed", str(seed), "--seconds", str(left)]
        command = [sys.executable, "-m", "tests.hostile", *options]
        done = subprocess.run(command, capture_output=True, text=True)
        found += [Outcome(*json.loads(line)) for line in done.stdout.splitlines()]
        if done.returncode:
            found.append(
                Outcome(BAD, f"the process of seed {seed} ended with {done.returncode}: {done.stderr[-2000:]}")
            )
        seed += 500
    return found


def table(counts: dict[str, Counter[str]]) -> str:
    """Return the counts as Markdown."""
    total: Counter[str] = sum(counts.values(), Counter())
    rows = [
        [name, *(f"{number:,}" for number in (count.total(), count[RIGHT], count[CLEAR], count[BAD]))]
        for name, count in [*counts.items(), ("all", total)]
    ]
    return pages.table(["group", "tried", "right result", "clear error", "bad"], rows)


def main() -> int:
    """Run all groups, two at a time, and return the number of bad attempts."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description="Hostile tests, long form.")
    parser.add_argument("--minutes", type=float, default=10.0, help="about how long")
    parser.add_argument("--seed", type=int, default=None, help="first seed; by default one of the time")
    parser.add_argument("--write", type=Path, help="page whose table is replaced")
    parser.add_argument("--worker", choices=GROUPS, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    seed = int(time.time()) % 10**6 if options.seed is None else options.seed
    if options.worker:
        work(options.worker, seed, options.seconds)
        return 0
    n_parallel = 2
    with ThreadPoolExecutor(n_parallel) as pool:
        futures = {
            name: pool.submit(tried, name, seed, 60.0 * options.minutes * n_parallel * share)
            for name, (_, share) in GROUPS.items()
        }
        outcomes = {name: future.result() for name, future in futures.items()}
    for outcome in (outcome for found in outcomes.values() for outcome in found if outcome.kind == BAD):
        print(f"BAD  {outcome.what}")
    counts = {name: Counter(outcome.kind for outcome in found) for name, found in outcomes.items()}
    text = table(counts)
    print(f"{text}\nfirst seed: {seed}")
    if options.write:
        pages.write(options.write, hostile=f"{text}\n\n{options.minutes:g} minutes on two cores, first seed {seed}.")
    return sum(count[BAD] for count in counts.values())


if __name__ == "__main__":
    sys.exit(min(main(), 1))
