"""Time of a sweep, of this version and of the last one with Numba, on this processor and without AVX-512.

    python -m benchmarks.sweeps [--quick] [--only gdsc] [--data-dir ../shared/data]

One thread, GEE prior, common noise; a sweep draws every entry once and ends with the rescaling move. A time is the
minimum of the CPU times of all sweeps. The contestants are measured in turn, each in a process of its own, so that the
ratios of a run can be trusted where its times cannot. A processor without AVX-512 is played by this one: the
kernels and OpenBLAS are told to use nothing above AVX2.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmarks import sections, tables
from benchmarks.client import Client
from benchmarks.environment import ROOT
from benchmarks.matrices import describe
from benchmarks.sections import (
    AVX2,
    COLUMN_NOISE,
    COMMON_NOISE,
    DEFAULT_MOVES,
    HALF_NORMAL,
    LAPLACE,
    NORMAL,
    NUMBA,
    OURS,
    WITH_MAX_TERM,
    Outcome,
    Row,
)
from benchmarks.settings import FULL, QUICK, Settings
from benchmarks.variants import NUMBA as NUMBA_COMMIT

HEADER = [
    "matrix", "K", "bnmf", f"bnmf / {NUMBA_COMMIT}", "AVX2: bnmf", f"AVX2: bnmf / {NUMBA_COMMIT}", "AVX2 / native",
]  # fmt: skip
# Ratios on GDSC with K = 20.
PAIRS = (
    (WITH_MAX_TERM, HALF_NORMAL),
    (NORMAL, HALF_NORMAL),
    (LAPLACE, HALF_NORMAL),
    (COLUMN_NOISE, COMMON_NOISE),
    (DEFAULT_MOVES, COMMON_NOISE),
)


def measure(settings: Settings, data_dir: Path, say: Callable[[str], None]) -> Outcome:
    """Run the section of the benchmarks with this interpreter: it needs no other package."""
    with tempfile.TemporaryDirectory(prefix="bnmf-sweeps-") as directory:
        client = Client(Path(directory), data_dir, settings.timeout, Path(sys.executable))
        try:
            return sections.sweeps(sections.Context(client, settings, {}, say))
        finally:
            client.close()


def page(outcome: Outcome) -> str:
    """Return the results as Markdown."""
    rows = {(row.data, row.rank, row.label): row for row in outcome.rows}

    def ratio(data: str, rank: int, label: str, other: str) -> str:
        found, baseline = rows.get((data, rank, label)), rows.get((data, rank, other))
        return f"{found.fastest / baseline.fastest:.2f}" if found and baseline else ""

    def cells(data: str, rank: int) -> list[str]:
        return [
            describe(data),
            str(rank),
            _time(rows.get((data, rank, OURS))),
            ratio(data, rank, OURS, NUMBA),
            _time(rows.get((data, rank, OURS + AVX2))),
            ratio(data, rank, OURS + AVX2, NUMBA + AVX2),
            ratio(data, rank, OURS + AVX2, OURS),
        ]

    measured = dict.fromkeys((row.data, row.rank) for row in outcome.rows if row.label.startswith(OURS))
    lines = [tables.markdown_table(HEADER, [cells(*case) for case in measured]), ""]
    lines += [
        f"- {describe(row.data)}: {row.label} {row.fastest:.2f}" for row in outcome.rows if row.unit == "exponent"
    ]
    for label, other in PAIRS:
        if ("gdsc", 20, label) in rows:
            lines.append(f"- {describe('gdsc')}, K = 20: {label} / {other} {ratio('gdsc', 20, label, other)}")
    return "\n".join([*lines, *(f"- {line}" for line in tables.not_measured(outcome.as_dict()))])


def _time(row: Row | None) -> str:
    if row is None:
        return ""
    return f"{row.fastest * 1e6:.0f} µs" if row.fastest < 0.01 else f"{row.fastest * 1e3:.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer matrices and shorter repeats: under 3 minutes")
    parser.add_argument("--only", action="append", help="measure only matrices whose name starts so (may be repeated)")
    parser.add_argument("--data-dir", type=Path, default=ROOT.parent / "shared" / "data")
    options = parser.parse_args()
    settings = QUICK if options.quick else FULL
    if options.only:
        chosen = tuple(case for case in settings.sweeps if case[0].startswith(tuple(options.only)))
        if not chosen:
            parser.error(f"--only must start one of {', '.join(dict(settings.sweeps))}, got {', '.join(options.only)}")
        settings = replace(settings, sweeps=chosen)
    print(page(measure(settings, options.data_dir, lambda line: print(line, file=sys.stderr, flush=True))))


if __name__ == "__main__":
    main()
