"""Compare models and baselines on GDSC drug responses, by cross-validation over entries.

    python -m benchmarks.gdsc --data-dir ../shared/data [--models default,nmf] [--folds 5] [--write docs/gdsc.md]

The result of each method and fold is added to benchmarks/results/gdsc.json as soon as it is finished, and the tables of
the page are made from that file. The same command resumes after an interruption, and repeats nothing. To fit again
after a change of the code, remove lines there.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np

from benchmarks import pages
from benchmarks.environment import ROOT
from benchmarks.gdsc import methods, page
from benchmarks.gdsc.methods import CHOOSING, INNER_FOLDS, PROBABILITY, Baseline, Forecast, Hidden, Model
from benchmarks.gdsc.page import Record
from bnmf.data.folds import folds
from bnmf.data.identity import fingerprint
from bnmf.data.observed import ObservedMatrix
from bnmf.utils import digests
from bnmf.utils.files import write_bytes
from bnmf.utils.typing import Floats

RESULTS = ROOT / "benchmarks" / "results" / "gdsc.json"
SEED = 0


class Task(NamedTuple):
    """A method and a fold; the digest is of everything that the result depends on, except for the code."""

    name: str
    method: Model | Baseline
    fold: int
    digest: str


def load(data_dir: Path | None) -> Floats:
    """Return the matrix as published experiments use it: whole numbers, NaN where missing."""
    from bnmf.datasets import fetch_gdsc_ic50

    return fetch_gdsc_ic50(data_home=data_dir, download_if_missing=data_dir is None).data.to_numpy()


def tasks(X: Floats, methods: dict[str, Model | Baseline], n_folds: int) -> list[Task]:
    """Return what there is to do, first folds first, so that a table of all methods is there early."""
    data = fingerprint(ObservedMatrix.from_data(X))
    return [
        Task(name, method, fold, digests.of_json([data, n_folds, SEED, fold, repr(_essence(method))])[:16])
        for fold in range(n_folds)
        for name, method in methods.items()
    ]


def _essence(method: Model | Baseline) -> tuple[Any, ...]:
    """Return what a result depends on: a new label is no reason to fit again."""
    if isinstance(method, Model):
        choosing = (method.ks, INNER_FOLDS, sorted(CHOOSING.items())) if method.ks else ()
        return (sorted(method.settings.items()), choosing, method.below, *(["limits"] if method.has_limits else []))
    return (method.fill.__name__, method.options)


def do(X: Floats, task: Task, hidden: Hidden) -> Record:
    """Hide a fold, forecast it, and return the scores."""
    A = X.copy()
    A[hidden.rows, hidden.columns] = np.nan
    forecast = task.method.forecast(A, hidden, SEED)
    return {"method": task.name, "fold": task.fold, "digest": task.digest, **scores(forecast, hidden.values)}


def scores(forecast: Forecast, values: Floats) -> Record:
    """Return how good a forecast was."""
    squares = (values - forecast.mean) ** 2
    inside = (forecast.low <= values) & (values <= forecast.high)
    width = forecast.high - forecast.low
    beyond = np.maximum(forecast.low - values, 0.0) + np.maximum(values - forecast.high, 0.0)
    return {
        "mse": round(float(squares.mean()), 3),
        "r2": round(1.0 - float(squares.mean() / values.var()), 5),
        "log_density": round(float(forecast.log_density.mean()), 4),
        "log_probability": round(float(forecast.log_probability.mean()), 4),
        "coverage": round(float(inside.mean()), 4),
        "width": round(float(width.mean()), 2),
        "interval_score": round(float((width + 2.0 / (1.0 - PROBABILITY) * beyond).mean()), 2),
        "choice": forecast.choice,
        "seconds": round(forecast.seconds, 2),
    }


def store(records: list[Record], path: Path) -> None:
    """Write all results, a line each, in an order that does not depend on when they were finished."""
    ordered = sorted(records, key=lambda record: (record["method"], record["fold"]))
    lines = ",\n".join(json.dumps(record, ensure_ascii=False) for record in ordered)
    write_bytes(path, f"[\n{lines}\n]\n".encode())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        "python -m benchmarks.gdsc", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-dir", type=Path, help="directory with gdsc/ic50.txt; without it the file is downloaded")
    parser.add_argument("--models", help="names of methods, separated by commas; all by default")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2, help="number of fits side by side, each on one core")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file with all results")
    parser.add_argument("--write", type=Path, help="the page whose tables are replaced")
    options = parser.parse_args(arguments)
    names = options.models.split(",") if options.models else list(methods.METHODS)
    if unknown := sorted(set(names) - set(methods.METHODS)):
        parser.error(f"--models must be among {', '.join(methods.METHODS)}, got {', '.join(unknown)}")
    X = load(options.data_dir)
    # Tables are of all methods: those that are not run now were perhaps finished before.
    everything = tasks(X, methods.METHODS, options.folds)
    earlier = json.loads(options.results.read_text(encoding="utf-8")) if options.results.exists() else []
    known = {record["digest"]: record for record in earlier}
    done = [{**known[task.digest], "method": task.name} for task in everything if task.digest in known]
    todo = [task for task in everything if task.name in names and task.digest not in known]
    print(f"{len(done)} fits are finished, {len(todo)} to do", flush=True)
    split = folds(ObservedMatrix.from_data(X), options.folds, np.random.default_rng(SEED), balanced=True)
    hidden = [Hidden(fold.rows, fold.columns, fold.values) for fold in split]
    jobs = (joblib.delayed(do)(X, task, hidden[task.fold]) for task in todo)
    for record in joblib.Parallel(options.jobs, batch_size=1, return_as="generator_unordered")(jobs):
        done.append(record)
        facts = f"error {record['mse']:.1f}, log density {record['log_density']:.2f}, coverage {record['coverage']:.3f}"
        print(f"{record['method']}, fold {record['fold']}: {facts}, {record['choice']}", flush=True)
        store(done, options.results)
    if page.summary(done, methods.METHODS, options.folds).empty:
        raise SystemExit("no method has results of all folds yet")
    text = page.tables(done, methods.METHODS, options.folds)
    print(text)
    if options.write:
        pages.write(options.write, gdsc=text)


if __name__ == "__main__":
    main()
