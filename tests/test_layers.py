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
    {"distributed"},
    {"estimator", "imputer", "selection", "datasets", "tables"},
    {"plots", "paper", "digits"},
    {"report"},
    {"cli", "__main__"},
]
LAYER_OF = {name: layer for layer, names in enumerate(LAYERS) for name in names}

# The packages that may import a library.
USERS = {
    "sklearn": {"estimator", "imputer", "selection", "datasets", "paper", "digits", "cli"},
    "matplotlib": {"plots", "report", "paper", "digits"},
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


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_module_imports_only_from_earlier_layers(path):
    home = owner(path)
    for name in imported(path):
        library, *rest = name.split(".")
        if library == "bnmf" and rest and rest[0] in LAYER_OF:
            assert LAYER_OF[rest[0]] <= LAYER_OF[home], f"{home} imports {rest[0]}, which is a later layer"
        if library in USERS:
            assert home in USERS[library], f"{library} is only for {', '.join(sorted(USERS[library]))}"


def test_one_meaning_for_each_module_name():
    """A module name occurs once; a package may hold a module of its own name."""
    names = [path.stem for path in MODULES if path.stem not in ("__init__", "__main__", path.parent.name)]
    names.remove("reproduce")  # the command, and the experiments that it runs
    assert sorted(set(names)) == sorted(names)


HEAVY = ["pandas", "sklearn", "matplotlib", "typer", "rich", "arviz", "arviz_stats", "pooch"]
HEAVY += ["dask", "dask.array", "distributed", "bnmf.posterior"]


@pytest.mark.parametrize(
    ("module", "allowed"),
    [
        ("bnmf", set()),
        ("bnmf.sampler.gibbs", set()),
        ("bnmf.distributed.blocks", {"dask"}),
        ("bnmf.posterior", {"pandas", "bnmf.posterior"}),
        ("bnmf.estimator", {"pandas", "sklearn", "bnmf.posterior"}),
    ],
)
def test_import_loads_nothing_heavy(module, allowed):
    program = f"import sys, {module}; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) - allowed == set()
