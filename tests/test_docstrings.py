"""Docstrings are numpydoc, and list the parameters that the signatures have."""

import importlib
import inspect
import pkgutil

import pytest
from numpydoc.validate import validate

import bnmf

# Parameters that are documented must be those of the signature (PR01 missing, PR02 unknown, PR03 order), and a
# public function has a summary that ends with a full stop.
CHECKED = {"PR02", "PR03", "SS03", "GL08"}


def public_objects():
    """Yield the full names of public classes, functions and methods."""
    for info in pkgutil.walk_packages(bnmf.__path__, "bnmf."):
        if ".kernels." in info.name or info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        for name, thing in vars(module).items():
            if name.startswith("_") or getattr(thing, "__module__", None) != info.name:
                continue
            if inspect.isfunction(thing) or inspect.isclass(thing):
                yield f"{info.name}.{name}"
            if inspect.isclass(thing):
                methods = (m for m, value in vars(thing).items() if inspect.isfunction(value) and m[0] != "_")
                yield from (f"{info.name}.{name}.{method}" for method in methods)


@pytest.mark.parametrize("name", sorted(public_objects()))
def test_docstring_agrees_with_the_signature(name):
    errors = {code: text for code, text in validate(name)["errors"] if code in CHECKED}
    documented = "Parameters\n" in (inspect.getdoc(resolve(name)) or "")
    if documented:
        errors |= {code: text for code, text in validate(name)["errors"] if code == "PR01"}
    assert not errors


def resolve(name):
    parts = name.split(".")
    for i in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:i]))
        except ImportError:
            continue
        for part in parts[i:]:
            thing = getattr(thing, part)
        return thing
    raise ValueError(name)


@pytest.mark.parametrize("name", ["BayesianNMF", "NMFImputer", "Posterior"])
def test_every_parameter_of_the_public_face_is_documented(name):
    thing = getattr(bnmf, name)
    text = inspect.getdoc(thing)
    for parameter in inspect.signature(thing).parameters:
        assert parameter in text
