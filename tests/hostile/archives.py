"""Files of posteriors that are damaged or made up: what was saved, or a PosteriorFileError."""

import io
import json
import pickle
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bnmf import BayesianNMF, Posterior
from bnmf.posterior.archive import PosteriorFileError
from bnmf.priors import L1, LInf
from bnmf.utils import digests
from tests.hostile.outcomes import Outcome, judged, require

MODELS: list[dict[str, Any]] = [
    {"prior": "ard"},
    {"prior": L1([0.5, 1.5]), "noise": "both", "offset": "min"},
    {"prior": LInf(1.0), "noise": "common", "scale": None},
    {"prior": ("laplace", "normal")},
]
# What a field of the header, or a part of it, is replaced by.
VALUES: list[Any] = [None, True, 0, -1, 3, 2.5, 10**30, "", "x", [], [1], ["a"] * 6, [[1]], {}, {"a": 1}, [None] * 6]
NUMBERS = [np.nan, np.inf, -np.inf, -1.0, 0.0, 1e308, 1e200, 1e100, 1e-300, -1e-300]


class Trap:
    """Raises an error that nothing catches if it is unpickled."""

    def __reduce__(self) -> Any:
        return _sprung, ()


def _sprung() -> None:
    raise SystemExit("something in a file was run")


def data() -> np.ndarray:
    """Return the data of all files."""
    X = np.random.default_rng(0).exponential(size=(6, 4))
    X[1, 2] = np.nan
    return X


@cache
def saved(model: int) -> bytes:
    """Return the content of a file."""
    settings = {"n_components": 2, "n_chains": 2, "burn_in": 3, "n_draws": 5, "random_state": 0, **MODELS[model]}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "posterior.npz"
        BayesianNMF(**settings).fit(data()).posterior_.save(path)
        return path.read_bytes()


def members(content: bytes) -> dict[str, bytes]:
    """Return what a file holds."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {member.filename: archive.read(member) for member in archive.infolist()}


def zipped(parts: dict[str, bytes], compressed: str = "") -> bytes:
    """Return a file, one member of which may be compressed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part, zipfile.ZIP_DEFLATED if name == compressed else zipfile.ZIP_STORED)
    return buffer.getvalue()


def npy(array: Any) -> bytes:
    """Return an array as a file."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=True)
    return buffer.getvalue()


def bytes_changed(content: bytes, rng: np.random.Generator) -> bytes:
    """Flip a bit, cut, fill with zeros, append, or replace everything."""
    found, place = bytearray(content), int(rng.integers(len(content)))
    kind = rng.integers(6)
    if kind <= 1:
        found[place] ^= 1 << int(rng.integers(8))
    elif kind == 2:
        del found[place:]
    elif kind == 3:
        found[place:] = bytes(len(found) - place)
    elif kind == 4:
        found += rng.bytes(50)
    else:
        others = [b"", rng.bytes(300), pickle.dumps(Trap()), npy(np.ones(3)), npy(np.array([Trap()], object))]
        found = bytearray(others[int(rng.integers(len(others)))])
    return bytes(found)


def members_changed(content: bytes, rng: np.random.Generator) -> bytes:
    """Add, compress, remove, exchange or enlarge members, or put a pickle in their place."""
    parts = members(content)
    name, other = (str(found) for found in rng.choice(sorted(parts), 2))
    kind = rng.integers(7)
    if kind == 0:
        parts["foreign.npy"] = npy(np.array([Trap()], object))
        parts["../../outside.txt"] = b"text"
    elif kind == 1:
        return zipped(parts, compressed=name)
    elif kind == 2:
        del parts[name]
    elif kind == 3:
        parts[name] = parts[other]
    elif kind == 4:
        parts[name] = npy(np.array([Trap()], object))
    elif kind == 5:
        header = io.BytesIO()
        shape = tuple(int(n) for n in rng.choice([1, 2, 10**4, 10**9], 4))
        np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": shape})
        parts[name] = header.getvalue() + bytes(64)
    else:
        parts[name] = rng.bytes(len(parts[name]))
    return zipped(parts)


def numbers_changed(content: bytes, rng: np.random.Generator) -> bytes:
    """Change a number, the type or the shape of an array."""
    parts = members(content)
    name = str(rng.choice([name for name in parts if name != "header.npy"]))
    array = np.load(io.BytesIO(parts[name]))
    kind = rng.integers(5)
    if kind <= 1 and array.dtype.kind == "f":
        array.flat[int(rng.integers(array.size))] = rng.choice(NUMBERS)
    elif kind == 2:
        with np.errstate(all="ignore"):
            array = array.astype(rng.choice(["f4", "i8", "c16", "U8", "f2", ">f8"]))
    elif kind == 3:
        array = np.delete(array, 0, axis=int(rng.integers(array.ndim)))
    else:
        array = array[:0] if rng.random() < 0.5 else array[None]
    parts[name] = npy(array)
    if rng.random() < 0.7:  # by someone who knows the format
        header = json.loads(bytes(np.load(io.BytesIO(parts["header.npy"]))))
        header["digests"][name.removesuffix(".npy")] = digests.of_arrays(array)
        parts["header.npy"] = npy(np.frombuffer(json.dumps(header).encode(), np.uint8))
    return zipped(parts)


def header_changed(content: bytes, rng: np.random.Generator) -> bytes:
    """Give a field of the header another value or none, also within its records."""
    parts = members(content)
    header = json.loads(bytes(np.load(io.BytesIO(parts["header.npy"]))))
    where: Any = header
    key = str(rng.choice(sorted(header)))
    while isinstance(where[key], (list, dict)) and len(where[key]) and rng.random() < 0.7:
        where = where[key]
        key = int(rng.integers(len(where))) if isinstance(where, list) else str(rng.choice(sorted(where)))
    if rng.random() < 0.1 and isinstance(where, dict):
        del where[key]
    else:
        where[key] = VALUES[int(rng.integers(len(VALUES)))]
    text = json.dumps(header) if rng.random() < 0.9 else rng.choice(["[]", "3", "null", "{", "NaN", '"text"'])
    parts["header.npy"] = npy(np.frombuffer(str(text).encode(), np.uint8))
    return zipped(parts)


def require_same(found: Posterior, expected: Posterior) -> None:
    """Raise `Wrong` if two posteriors differ."""
    for item in fields(expected):
        a, b = getattr(found, item.name), getattr(expected, item.name)
        if isinstance(b, np.ndarray):
            require(np.array_equal(a, b), f"{item.name} differs")


def require_usable(posterior: Posterior) -> None:
    """Raise `Wrong`, or an error, if a posterior that was accepted does not work."""
    low, high = posterior.interval(0.5)
    results = [posterior.mean(), posterior.std(noise=True), low, high]
    if posterior.prior_W is not None and not posterior.prior_W.is_by_entry:
        results.append(posterior.for_rows(data()[:2] * 2.0).mean())
    posterior.align()
    posterior.summary()
    for found in results:
        require(not np.isnan(found).any(), "NaN in a result")


CHANGES: list[Callable[[bytes, np.random.Generator], bytes]] = [
    bytes_changed,
    members_changed,
    numbers_changed,
    header_changed,
]


def attempt(number: int) -> Outcome:
    """Change a file and read it."""
    rng = np.random.default_rng(number)
    model, change = int(rng.integers(len(MODELS))), CHANGES[int(rng.integers(len(CHANGES)))]

    def load() -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "posterior.npz"
            path.write_bytes(saved(model))
            expected = Posterior.load(path)
            path.write_bytes(change(saved(model), rng))
            found = Posterior.load(path)
        if change in (bytes_changed, members_changed):
            require_same(found, expected)
        require_usable(found)

    return judged(
        load, f"{number}: {change.__name__} of model {model}", (PosteriorFileError,), "posterior of bnmf|format"
    )


def run(number: int, report: Callable[[Outcome], None], n: int = 200) -> None:
    """Attempt n files."""
    for i in range(n):
        report(attempt(1000 * number + i))
