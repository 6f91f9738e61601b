"""``python -m benchmarks``: measure, print the tables, and save them after each section."""

import argparse
import datetime
import os
import tempfile
import time
from pathlib import Path

from benchmarks import environment, results
from benchmarks.client import Client
from benchmarks.sections import FULL, QUICK, SECTIONS, Section


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller data and fewer repeats: under 3 minutes")
    parser.add_argument("--only", action="append", choices=SECTIONS, help="measure this section (may be repeated)")
    parser.add_argument(
        "--data-dir",
        type=Path,
        default=environment.ROOT.parent / "shared" / "data",
        help="directory with gdsc/ic50.txt; without it, a synthetic matrix of the same shape is used",
    )
    options = parser.parse_args()
    settings = QUICK if options.quick else FULL
    began = time.perf_counter()

    def say(line: str) -> None:
        print(f"[{time.perf_counter() - began:6.1f} s] {line}", flush=True)

    uninstalled = environment.ensure(say)
    machine = results.machine()
    # Sections that are not measured in this run keep their earlier results, date and processor.
    sections = results.load(settings) if options.only else {}
    text = ""
    with tempfile.TemporaryDirectory(prefix="bnmf-bench-") as directory:
        try:
            for name in options.only or SECTIONS:
                started = time.perf_counter()
                load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
                with Client(Path(directory), options.data_dir, settings.timeout) as client:
                    section = Section(client, settings, uninstalled, say)
                    SECTIONS[name](section)
                sections[name] = {
                    "date": datetime.datetime.now().strftime("%Y-%m-%d %H:%M"),
                    "seconds": time.perf_counter() - started,
                    "load": load,
                    "processor": machine["processor"],
                    **section.found(),
                }
                found = {"sections": sections, "settings": settings.name, "machine": machine}
                text = results.save(found, settings)
        except KeyboardInterrupt:
            say("interrupted: finished sections are saved")
    print(text)
    say(f"saved in {results.DIRECTORY.relative_to(environment.ROOT)}")


if __name__ == "__main__":
    main()
