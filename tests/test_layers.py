"""The layer rule: a package imports only from its own layer and earlier ones, and heavy libraries stay in theirs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import bnmf

PACKAGE = Path(bnmf.__file__).parent

# From the bottom up, in the order in which a fit uses them. Packages and top-level modules.
LAYERS = [
    {"utils"},
    {"kernels"},
    {"data", "priors"},
    {"model"},
    {"sampler"},
    {"posterior"},
    {"noise"},
    {"distributed"},
    {"inputs"},
    {"columns"},
    {"mixed"},
    {"estimator", "imputer", "selection", "checking", "datasets", "tables"},
    {"plots", "demo", "annotated"},
    {"report"},
    {"paper"},
    {"cli", "__main__"},
]
# What is imported from a later layer when a method is called, or for types only.
EXCEPTIONS = {("estimator", "bnmf.report.write_report"), ("inputs", "bnmf.estimator.BayesianNMF")}
LAYER_OF = {name: layer for layer, names in enumerate(LAYERS) for name in names}

# The packages that may import a library.
USERS = {
    "sklearn": {"inputs", "estimator", "imputer", "selection", "checking", "datasets", "paper", "demo", "cli"},
    "matplotlib": {"plots", "report", "paper", "demo"},
    "typer": {"cli"},
    "dask": {"distributed"},
    "distributed": {"distributed"},
}


def owner(path):
    """Return the package, or the top-level module, that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path):
    """Yield the full name of everything that a module imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def test_layers_name_what_exists():
    assert {owner(path) for path in MODULES} == set(LAYER_OF)


def test_modules_import_only_from_earlier_layers():
    wrong = []
    for path in MODULES:
        home = owner(path)
        for name in imported(path):
            library, *rest = name.split(".")
            if (home, name) in EXCEPTIONS:
                continue
            if library == "bnmf" and rest and rest[0] in LAYER_OF and LAYER_OF[rest[0]] > LAYER_OF[home]:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {name}, which is in a later layer")
            if library in USERS and home not in USERS[library]:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {library}, which is only for {USERS[library]}")
    assert wrong == []


HEAVY = ["pandas", "sklearn", "matplotlib", "typer", "rich", "arviz", "arviz_stats", "pooch"]
HEAVY += ["dask", "dask.array", "distributed", "bnmf.posterior"]


@pytest.mark.parametrize(
    "steps",
    [
        {
            "bnmf": set(),
            "bnmf.sampler.gibbs": set(),
            "bnmf.posterior": {"pandas", "bnmf.posterior"},
            "bnmf.estimator": {"pandas", "sklearn", "bnmf.posterior"},
        },
        {"bnmf.distributed.blocks": {"dask"}},
    ],
    ids=["a fit", "a worker of a cluster"],
)
def test_import_loads_nothing_heavy(steps):
    """Import modules one after the other in one process, with what each may load."""
    lines = ["import sys", *(f"import {name}; print(*sorted(set({HEAVY!r}) & set(sys.modules)))" for name in steps)]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    loaded = dict(zip(steps, (set(line.split()) for line in done.stdout.split("\n")), strict=False))
    assert [loaded[name] - allowed for name, allowed in steps.items()] == [set()] * len(steps)
