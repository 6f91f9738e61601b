"""One file for each finished method and fold, so that an interrupted run can be resumed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np

from benchmarks.gdsc.methods import CHOOSING, INNER_FOLDS, PROBABILITY, Baseline, Forecast, Hidden, Model
from bnmf.data.folds import folds
from bnmf.data.identity import fingerprint
from bnmf.data.observed import ObservedMatrix
from bnmf.utils import digests
from bnmf.utils.files import write_bytes
from bnmf.utils.typing import Floats

SEED = 0
Record = dict[str, Any]


class Task(NamedTuple):
    """A method and a fold; the digest is of everything that the result depends on, except for the code."""

    name: str
    method: Model | Baseline
    fold: int
    digest: str

    def path(self, out: Path) -> Path:
        """Return the file of the result."""
        return out / f"{self.name}-{self.fold}-{self.digest}.json"


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


def run(X: Floats, todo: list[Task], n_folds: int, out: Path, n_jobs: int) -> Iterator[Record]:
    """Do the tasks that are not finished, and yield each result when it is on the disk."""
    out.mkdir(parents=True, exist_ok=True)
    found = folds(ObservedMatrix.from_data(X), n_folds, np.random.default_rng(SEED), balanced=True)
    hidden = [Hidden(fold.rows, fold.columns, fold.values) for fold in found]
    jobs = (joblib.delayed(_do)(X, task, hidden[task.fold], out) for task in todo)
    yield from joblib.Parallel(n_jobs, batch_size=1, return_as="generator_unordered")(jobs)


def _do(X: Floats, task: Task, hidden: Hidden, out: Path) -> Record:
    A = X.copy()
    A[hidden.rows, hidden.columns] = np.nan
    forecast = task.method.forecast(A, hidden, SEED)
    record = {"method": task.name, "fold": task.fold, "digest": task.digest, **scores(forecast, hidden.values)}
    write_bytes(task.path(out), json.dumps(record).encode())
    return record


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


def finished(todo: list[Task], out: Path, results: Path) -> list[Record]:
    """Return the results that are there already: in separate files, or in the file of an earlier run."""
    earlier = json.loads(results.read_text(encoding="utf-8")) if results.exists() else []
    known = {record["digest"]: record for record in earlier}
    found = []
    for task in todo:
        path = task.path(out)
        if path.exists():
            found.append(json.loads(path.read_bytes()))
        elif task.digest in known:
            found.append({**known[task.digest], "method": task.name})
    return found


def store(records: list[Record], results: Path) -> None:
    """Write many results into one file, a line each, in an order that does not depend on when they were finished."""
    ordered = sorted(records, key=lambda record: (record["method"], record["fold"]))
    lines = ",\n".join(json.dumps(record, ensure_ascii=False) for record in ordered)
    results.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(results, f"[\n{lines}\n]\n".encode())
