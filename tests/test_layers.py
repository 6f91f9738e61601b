"""The layer rule: a module imports only from its own layer and those above it, and heavy libraries stay in theirs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import bnmf

PACKAGE = Path(bnmf.__file__).parent

# From the top: every module may import from its own line and from the lines above it. A new module goes in here.
LAYERS = [
    {"kernels"},
    {"holes", "observed", "priors", "prior_draws", "noise", "workers", "memory", "progress", "reference"},
    {"gibbs", "hashing"},
    {"store", "chains"},
    {
        "posterior",
        "posterior_file",
        "predictions",
        "alignment",
        "diagnostics",
        "summary",
        "moments",
        "new_rows",
        "fitting",
    },
    {"estimator", "imputer", "selection", "distributed", "datasets"},
    {"plots", "report", "experiments"},
    {"cli", "__main__"},
]
LAYER_OF = {room: layer for layer, rooms in enumerate(LAYERS) for room in rooms}

# Which rooms may load a library.
HOMES = {
    "numba": {"kernels"},
    "llvmlite": {"kernels"},
    "sklearn": {"estimator", "imputer", "selection", "distributed", "datasets", "experiments"},
    "matplotlib": {"plots", "report", "experiments"},
    "dask": {"distributed"},
    "distributed": {"distributed"},
    "typer": {"cli"},
}


def room_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path):
    """Yield the full name of everything that a module imports, wherever in it, but for the sake of types alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_module_imports_only_from_above(path):
    room = room_of(path)
    assert room in LAYER_OF, f"{room} has no layer yet: give it one in LAYERS"
    for name in imported(path):
        library, *rest = name.split(".")
        if library == "bnmf" and rest and rest[0] in LAYER_OF:
            assert LAYER_OF[rest[0]] <= LAYER_OF[room], f"{room} imports {rest[0]}, which is below it"
        if library in HOMES:
            assert room in HOMES[library], f"{library} is for {', '.join(sorted(HOMES[library]))} alone"


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import bnmf", ["numba", "sklearn", "matplotlib", "typer", "rich", "arviz", "arviz_stats", "dask", "pooch"]),
        ("import bnmf.gibbs", ["sklearn", "matplotlib", "typer", "rich", "arviz", "arviz_stats", "dask", "pooch"]),
        ("import bnmf.estimator", ["matplotlib", "typer", "rich", "arviz", "dask", "pooch"]),
    ],
)
def test_import_loads_nothing_heavy(code, heavy):
    program = f"import sys; {code}; print(*sorted(set({heavy!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
