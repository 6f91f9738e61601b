"""Compare models and baselines on GDSC drug responses, by cross-validation over entries.

    python -m benchmarks.gdsc --data-dir ../shared/data [--models default,nmf] [--folds 5] [--write docs/gdsc.md]

Each finished method and fold is kept in a separate file; the same command resumes after an interruption, and
repeats nothing. What is finished is collected in benchmarks/results/gdsc.json, from which the tables of the page are
made. To fit again after a change of the code, remove its lines there and the files of --out.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks import pages
from benchmarks.gdsc import methods, page, records
from benchmarks.gdsc.methods import Baseline, Model
from bnmf.utils.typing import Floats

HERE = Path(__file__).resolve().parent.parent
OUT = HERE / "_gdsc"
RESULTS = HERE / "results" / "gdsc.json"


def load(data_dir: Path | None) -> Floats:
    """Return the matrix as published experiments use it: whole numbers, NaN where missing."""
    from bnmf.datasets import fetch_gdsc_ic50

    return fetch_gdsc_ic50(data_home=data_dir, download_if_missing=data_dir is None).data.to_numpy()


def chosen(names: str | None) -> dict[str, Model | Baseline]:
    """Return methods by name, all by default."""
    wanted = list(methods.METHODS) if names is None else names.split(",")
    unknown = [name for name in wanted if name not in methods.METHODS]
    if unknown:
        raise SystemExit(f"--models must be among {', '.join(methods.METHODS)}, got {', '.join(unknown)}")
    return {name: methods.METHODS[name] for name in wanted}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.gdsc", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-dir", type=Path, help="directory with gdsc/ic50.txt; without it the file is downloaded")
    parser.add_argument("--models", help="names of methods, separated by commas; all by default")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2, help="number of fits side by side, each on one core")
    parser.add_argument("--out", type=Path, default=OUT, help="directory of finished fits")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file with all results")
    parser.add_argument("--write", type=Path, help="the page whose tables are replaced")
    options = parser.parse_args(arguments)
    if options.folds < 2:
        parser.error(f"--folds must be at least 2, got {options.folds}")
    X = load(options.data_dir)
    selected = chosen(options.models)
    # Tables are of all methods: those that are not run now were perhaps finished before.
    everything = records.tasks(X, methods.METHODS, options.folds)
    done = records.finished(everything, options.out, options.results)
    digests = {record["digest"] for record in done}
    todo = [task for task in everything if task.name in selected and task.digest not in digests]
    print(f"{len(done)} fits are finished, {len(todo)} to do", flush=True)
    for record in records.run(X, todo, options.folds, options.out, options.jobs):
        done.append(record)
        facts = f"error {record['mse']:.1f}, log density {record['log_density']:.2f}, coverage {record['coverage']:.3f}"
        print(f"{record['method']}, fold {record['fold']}: {facts}, {record['choice']}", flush=True)
        records.store(done, options.results)
    if page.summary(done, methods.METHODS, options.folds).empty:
        raise SystemExit("no method has results of all folds yet")
    text = page.tables(done, methods.METHODS, options.folds)
    print(text)
    if options.write:
        pages.write(options.write, gdsc=text)


if __name__ == "__main__":
    main()
