"""Files of posteriors that are damaged: what was saved, or a PosteriorFileError."""

import io
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
from tests.hostile.outcomes import Outcome, judged, require

MODELS: list[dict[str, Any]] = [
    {"prior": "ard"},
    {"prior": L1([0.5, 1.5]), "noise": "both", "offset": "min"},
    {"prior": LInf(1.0), "noise": "common", "scale": None},
    {"prior": ("laplace", "normal")},
]


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


def require_same(found: Posterior, expected: Posterior) -> None:
    """Raise `Wrong` if two posteriors differ."""
    for item in fields(expected):
        a, b = getattr(found, item.name), getattr(expected, item.name)
        if isinstance(b, np.ndarray):
            require(np.array_equal(a, b), f"{item.name} differs")


def require_usable(posterior: Posterior) -> None:
    """Raise `Wrong`, or an error, if a posterior that was accepted does not work."""
    low, high = posterior.interval(0.5)
    results = [posterior.mean(), posterior.std(), low, high]
    if posterior.prior_W is not None and not posterior.prior_W.is_by_entry:
        results.append(posterior.posterior_of(data()[:2] * 2.0).mean())
    posterior.align()
    posterior.summary()
    for found in results:
        require(not np.isnan(found).any(), "NaN in a result")


CHANGES: list[Callable[[bytes, np.random.Generator], bytes]] = [bytes_changed, members_changed]


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
        require_same(found, expected)
        require_usable(found)

    return judged(
        load, f"{number}: {change.__name__} of model {model}", (PosteriorFileError,), "posterior of bnmf|format"
    )


def run(number: int, report: Callable[[Outcome], None], n: int = 200) -> None:
    """Attempt n files."""
    for i in range(n):
        report(attempt(1000 * number + i))
