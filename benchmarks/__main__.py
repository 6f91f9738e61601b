"""``python -m benchmarks``: measure, print the tables, and save them after each section."""

import argparse
import datetime
import tempfile
import time
from pathlib import Path

from benchmarks import environment, tables
from benchmarks.client import Client
from benchmarks.sections import SECTIONS, Context
from benchmarks.settings import FULL, QUICK

RESULTS_DIRECTORY = environment.ROOT / "benchmarks" / "results"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller data and fewer repeats: under 3 minutes")
    parser.add_argument("--only", action="append", choices=SECTIONS, help="measure this section (may be repeated)")
    parser.add_argument(
        "--data-dir",
        type=Path,
        default=environment.ROOT.parent / "shared" / "data",
        help="directory with gdsc/ic50.txt; without it, a synthetic matrix of the same shape is used",
    )
    return parser.parse_args()


def main() -> None:
    options = arguments()
    settings = QUICK if options.quick else FULL
    began = time.perf_counter()

    def say(line: str) -> None:
        print(f"[{time.perf_counter() - began:6.1f} s] {line}", flush=True)

    uninstalled = environment.ensure(say)
    # Sections that are not measured in this run keep their earlier results, date and processor.
    results = tables.load(settings, RESULTS_DIRECTORY) if options.only else {"sections": {}}
    results["sections"] = {name: results["sections"][name] for name in SECTIONS if name in results["sections"]}
    for section in results["sections"].values():
        section.setdefault("processor", results["machine"]["processor"])
    results |= {"settings": settings.name, "machine": tables.machine(environment.versions())}
    with tempfile.TemporaryDirectory(prefix="bnmf-bench-") as directory:
        client = Client(Path(directory), options.data_dir, settings.timeout)
        try:
            for name in options.only or SECTIONS:
                started, load = time.perf_counter(), tables.load_average()
                outcome = SECTIONS[name](Context(client, settings, uninstalled, say))
                date = datetime.datetime.now().strftime("%Y-%m-%d %H:%M")
                facts = {"date": date, "seconds": time.perf_counter() - started, "load": load}
                facts["processor"] = results["machine"]["processor"]
                results["sections"][name] = facts | outcome.as_dict()
                tables.save(results, settings, RESULTS_DIRECTORY)
        except KeyboardInterrupt:
            say("interrupted: finished sections are saved")
        finally:
            client.close()
    tables.show(results, settings)
    say(f"saved in {RESULTS_DIRECTORY.relative_to(environment.ROOT)}")


if __name__ == "__main__":
    main()
