"""Docstrings are numpydoc, and list the parameters that the signatures have."""

import importlib
import inspect
import pkgutil

from numpydoc.validate import validate

import bnmf

# Unknown parameters, their order, and a summary that ends with a full stop. Where parameters are documented, all are.
CHECKED = {"PR01", "PR02", "PR03", "SS03", "GL08"}


def public_objects():
    """Yield the full name of every public class, function and method, and the object."""
    for info in pkgutil.walk_packages(bnmf.__path__, "bnmf."):
        if ".kernels." in info.name or info.name.endswith("__main__"):
            continue
        for name, thing in vars(importlib.import_module(info.name)).items():
            if name.startswith("_") or getattr(thing, "__module__", None) != info.name:
                continue
            if inspect.isfunction(thing) or inspect.isclass(thing):
                yield f"{info.name}.{name}", thing
            if inspect.isclass(thing):
                for method, value in vars(thing).items():
                    is_described = any(hasattr(base, method) for base in thing.__mro__[1:]) and not value.__doc__
                    if inspect.isfunction(value) and method[0] != "_" and not is_described:
                        yield f"{info.name}.{name}.{method}", value


def test_docstrings_agree_with_signatures():
    wrong = {}
    for name, thing in public_objects():
        ignored = set() if "Parameters\n" in (inspect.getdoc(thing) or "") else {"PR01"}
        errors = [text for code, text in validate(name)["errors"] if code in CHECKED - ignored]
        if errors:
            wrong[name] = errors
    assert wrong == {}
