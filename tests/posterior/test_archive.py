"""Saved posteriors: complete, or a clear error; nothing in a file is executed."""

import io
import json
import pickle
import warnings
import zipfile
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest

from bnmf import BayesianNMF, Posterior
from bnmf.posterior.archive import PosteriorFileError
from bnmf.priors import L1, Gamma, L2Squared


@pytest.fixture(scope="module")
def frame():
    values = np.random.default_rng(0).exponential(size=(12, 4))
    return pd.DataFrame(values, index=[f"cell {i}" for i in range(12)], columns=list("wxyz"))


@pytest.fixture(scope="module")
def model(frame):
    with warnings.catch_warnings(action="ignore"):
        settings = {"prior": "gl12", "noise": "common", "scale": None}
        return BayesianNMF(2, n_chains=2, burn_in=5, n_draws=6, random_state=0, **settings).fit(frame)


def test_round_trip(tmp_path, model, frame):
    path = tmp_path / "posterior.npz"
    model.posterior_.save(path)
    again = Posterior.load(path)
    for name in ("W", "Z", "noise_variance", "train_mse", "row_ids"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model.posterior_, name))
    assert list(again.row_names) == list(frame.index)
    assert list(again.column_names) == list(frame.columns)
    assert again.n_observed == 48
    # It can take new rows: the prior came along.
    rows = frame.to_numpy()[:2] * 1.5
    assert str(again.prior_W) == "L1Squared(rate=0.1)"
    assert again.lower_bound == 0.0
    np.testing.assert_array_equal(again.for_rows(rows).W, model.posterior_.for_rows(rows).W)


def full():
    """Return a posterior with every optional array: 2 chains, 3 draws, 5 rows, 4 columns, K = 2."""
    rng = np.random.default_rng(0)
    return Posterior(
        W=rng.exponential(size=(2, 3, 5, 2)),
        Z=rng.exponential(size=(2, 3, 2, 4)),
        noise_variance=rng.exponential(size=(2, 3, 4)),
        train_mse=rng.exponential(size=(2, 7)),
        n_observed=17,
        prior_W=L2Squared(Gamma(2.0, 0.5), by="component"),
        row_ids=np.arange(5, dtype=np.uint64),
        lower_bound=-np.inf,
        log_density=rng.normal(size=(2, 3)),
        row_noise=rng.exponential(size=(2, 3, 5)),
        row_strength=rng.exponential(size=(2, 3)),
        rate_W=rng.exponential(size=(2, 3, 2)),
        rate_Z=rng.exponential(size=(2, 3, 1)),
        offset=rng.normal(size=4),
        scale=rng.exponential(size=4),
        thinning=2,
        df=rng.uniform(3.0, 9.0, size=(2, 3)),
        noise_factor=rng.uniform(0.5, 2.0, size=(5, 4)),
    )


@pytest.mark.parametrize("scale", ["column", "matrix"])
def test_round_trip_of_optional_arrays(tmp_path, scale):
    path, posterior = tmp_path / "posterior.npz", full()
    if scale == "matrix":
        posterior = replace(posterior, scale=np.array([2.5]), noise_factor=posterior.noise_factor[:1])
    posterior.save(path)
    again = Posterior.load(path)
    for item in fields(Posterior):
        value, expected = getattr(again, item.name), getattr(posterior, item.name)
        if isinstance(expected, np.ndarray):
            np.testing.assert_array_equal(value, expected)
            assert value.dtype == expected.dtype
        elif item.name == "prior_W":
            assert repr(value) == repr(expected)
        else:
            assert value == expected
    np.testing.assert_array_equal(again.mean(), posterior.mean())
    for end, expected in zip(again.interval(), posterior.interval(), strict=True):
        np.testing.assert_array_equal(end, expected)
    rows = np.array([[1.0, np.nan, -2.0, 0.5]])
    found, expected = again.for_rows(rows), posterior.for_rows(rows)
    np.testing.assert_array_equal(found.W, expected.W)
    np.testing.assert_array_equal(found.row_noise, expected.row_noise)


def test_optional_arrays_that_are_not_there(tmp_path):
    path = tmp_path / "posterior.npz"
    none = dict.fromkeys(["log_density", "row_noise", "row_strength", "rate_W", "rate_Z", "offset", "scale"])
    none |= {"df": None, "noise_factor": None}
    replace(full(), **none, prior_W=None, row_ids=None, lower_bound=0.0).save(path)
    again = Posterior.load(path)
    assert all(getattr(again, name) is None for name in (*none, "prior_W", "row_ids"))
    assert again.lower_bound == 0.0


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("log_density", lambda x: x[:, :-1]),
        ("log_density", lambda x: x[:, :, None]),
        ("log_density", lambda x: x.astype(int)),
        ("row_noise", lambda x: x[:, :, :-1]),
        ("row_noise", lambda x: x[:, :, :1]),
        ("row_noise", lambda x: x[:, :, 0]),
        ("row_strength", lambda x: x[:1]),
        ("rate_W", lambda x: np.repeat(x, 2, axis=2)),
        ("rate_W", lambda x: x[:, :-1]),
        ("rate_W", lambda x: x[:, :, 0]),
        ("rate_Z", lambda x: np.repeat(x, 3, axis=2)),
        ("offset", lambda x: x[:1]),
        ("offset", lambda x: x[None]),
        ("scale", lambda x: x[:3]),
        ("scale", lambda x: x.astype(str)),
        ("row_ids", lambda x: x.astype(float)),
        ("df", lambda x: x[:, :-1]),
        ("df", lambda x: x[:1]),
        ("df", lambda x: x.astype(int)),
        ("noise_factor", lambda x: x[:, :-1]),
        ("noise_factor", lambda x: x[:-1]),
        ("noise_factor", lambda x: x[0]),
        ("noise_factor", lambda x: x[:, :1]),
    ],
)
def test_optional_arrays_of_a_wrong_shape_or_type(tmp_path, name, change):
    path = tmp_path / "posterior.npz"
    full().save(path)
    rewrite(path, **{name: change})
    with pytest.raises(PosteriorFileError, match=f"{name} has dtype"):
        Posterior.load(path)


def test_noise_variance_of_a_wrong_number_of_columns(tmp_path):
    path = tmp_path / "posterior.npz"
    full().save(path)
    rewrite(path, noise_variance=lambda variance: variance[:, :, :-1])
    with pytest.raises(PosteriorFileError, match="do not match"):
        Posterior.load(path)


def test_a_learned_prior_without_its_rates(tmp_path):
    path = tmp_path / "posterior.npz"
    replace(full(), rate_W=None).save(path)
    with pytest.raises(PosteriorFileError, match="there are no draws of it"):
        Posterior.load(path)


def test_saving_replaces_in_one_step(tmp_path, model, monkeypatch):
    path = tmp_path / "posterior.npz"
    model.posterior_.save(path)
    before = path.read_bytes()

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        model.posterior_.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["posterior.npz"]


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Posterior.load(tmp_path / "nowhere.npz")


@pytest.mark.parametrize("cut", [0, 1, 100, 0.5, 0.99])
def test_truncated(tmp_path, model, cut):
    path = tmp_path / "posterior.npz"
    model.posterior_.save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(cut * len(content)) if isinstance(cut, float) else cut])
    with pytest.raises(PosteriorFileError, match="not a posterior of bnmf, or it is damaged"):
        Posterior.load(path)


def test_every_flipped_byte_is_an_error_or_harmless(tmp_path, model):
    """A flipped byte is found by the checksums of the file, or lies in a part that is not read."""
    path = tmp_path / "posterior.npz"
    model.posterior_.save(path)
    content = bytearray(path.read_bytes())
    rng = np.random.default_rng(0)
    n_found = 0
    for position in rng.integers(len(content), size=200):
        damaged = content.copy()
        damaged[position] ^= 0xFF
        path.write_bytes(bytes(damaged))
        try:
            again = Posterior.load(path)
        except PosteriorFileError:
            n_found += 1
        else:
            np.testing.assert_array_equal(again.W, model.posterior_.W)
            np.testing.assert_array_equal(again.Z, model.posterior_.Z)
    assert n_found > 100


class Trap:
    """Would leave a trace if it were unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("something in the file was run",))


def test_nothing_in_a_file_is_run(tmp_path):
    path = tmp_path / "trap.npz"
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(PosteriorFileError):
        Posterior.load(path)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        inner = io.BytesIO()
        np.lib.format.write_array(inner, np.array([Trap()], dtype=object), allow_pickle=True)
        archive.writestr("header.npy", inner.getvalue())
    path.write_bytes(buffer.getvalue())
    with pytest.raises(PosteriorFileError):
        Posterior.load(path)


def rewrite(path, **changes):
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    for name, value in changes.items():
        arrays[name] = value(arrays[name])
    np.savez(path, **arrays)


def edited_header(old, new):
    return lambda header: np.frombuffer(bytes(header).replace(old, new), np.uint8)


def header_with(**values):
    """Return a function that gives a header other values."""
    return lambda header: np.frombuffer(json.dumps(json.loads(bytes(header)) | values).encode(), np.uint8)


def changed(array, value):
    """Return an array with one number of another value."""
    array = array.copy()
    array.flat[array.size // 2] = value
    return array


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"header": edited_header(b"bnmf posterior", b"other posterior")}, "is not a posterior of bnmf"),
        ({"header": edited_header(b'"format": 7', b'"format": 9')}, "format 9, and this version of bnmf reads 7"),
        ({"header": edited_header(b'"cell 0", ', b"")}, "11 names for 12"),
        ({"W": lambda W: W[:, :-1]}, r"log_density has dtype float64 and shape \(2, 6\)"),
        ({"Z": lambda Z: Z[:, :-1]}, "do not match"),
        ({"Z": lambda Z: Z[:, :, :-1]}, "do not match"),
        ({"noise_variance": lambda variance: variance[:1]}, "do not match"),
        ({"noise_variance": lambda variance: variance[:, :, None]}, "do not match"),  # neither common nor by column
        ({"train_mse": lambda mse: mse[:1]}, "do not match"),
        ({"Z": lambda Z: Z[0]}, "Z has dtype float64 and 3 dimensions"),
        ({"W": lambda W: W.astype(str)}, "W has dtype"),
        ({"W": lambda W: W.astype(np.float16)}, "W has dtype float16"),
        ({"Z": lambda Z: Z.astype(">f8")}, "Z has dtype >f8"),
        ({"Z": lambda Z: changed(Z, 1e200)}, "its predictions leave the range of floating-point numbers"),
        ({"train_mse": lambda mse: changed(mse, 1e307)}, "train_mse holds numbers that are too large"),
        ({"W": lambda W: changed(W, 0.125)}, "its arrays are not those that were saved together"),
        ({"row_ids": lambda ids: ids[::-1]}, "its arrays are not those that were saved together"),
        ({"row_ids": lambda ids: ids[1:]}, "row_ids has dtype uint64 and shape"),
        ({"header": edited_header(b"L1Squared", b"L9Squared")}, "unknown prior"),
        ({"header": edited_header(b'"rate": 0.1', b'"rate": -1')}, "rate of L1Squared must be finite"),
        ({"header": edited_header(b'"cell 0"', b'["cell 0"]')}, "not a list of words and numbers"),
        ({"header": edited_header(b'"thinning": 1', b'"thinning": 0')}, "thinning is 0"),
        ({"header": edited_header(b'"thinning": 1', b'"thinning": true')}, "thinning is True"),
        ({"header": edited_header(b'"n_observed": ', b'"n_observed": -')}, "n_observed is -"),
        ({"header": edited_header(b'"n_observed": ', b'"n_observed": 999')}, "n_observed 999"),
        ({"header": edited_header(b'"nonnegative": true', b'"nonnegative": 1')}, "nonnegative is 1"),
        ({"header": header_with(notes=[3])}, "its notes are not sentences"),
        ({"header": header_with(notes=[""])}, "its notes are not sentences"),
        ({"header": header_with(notes="abc")}, "its notes are not sentences"),
        ({"header": header_with(row_names="abcdefghijkl")}, "not a list of words and numbers"),
        ({"header": lambda header: np.frombuffer(b"[1, 2]", np.uint8)}, "is not a posterior of bnmf, or it is damaged"),
        ({"W": lambda W: changed(W, np.nan)}, "W holds numbers that are not finite"),
        ({"Z": lambda Z: changed(Z, np.inf)}, "Z holds numbers that are not finite"),
        ({"W": lambda W: changed(W, -1e-9)}, "W holds numbers that are not nonnegative"),
        ({"train_mse": lambda mse: changed(mse, -1.0)}, "train_mse holds numbers that are not nonnegative"),
        ({"noise_variance": lambda variance: changed(variance, 0.0)}, "noise_variance holds .* not positive"),
        ({"log_density": lambda density: changed(density, np.nan)}, "log_density holds numbers that are not finite"),
        (dict.fromkeys(("W", "Z", "noise_variance", "log_density"), lambda draws: draws[:, :0]), "is empty"),
        (dict.fromkeys(("W", "Z", "noise_variance", "log_density", "train_mse"), lambda draws: draws[:0]), "is empty"),
    ],
)
def test_foreign_content(tmp_path, model, changes, words):
    path = tmp_path / "posterior.npz"
    model.posterior_.save(path)
    rewrite(path, **changes)
    with pytest.raises(PosteriorFileError, match=words):
        Posterior.load(path)


def test_a_prior_of_another_number_of_components(tmp_path):
    path = tmp_path / "posterior.npz"
    fitted = BayesianNMF(2, prior=L1([1.0, 2.0]), n_chains=1, burn_in=1, n_draws=4, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted.fit(np.ones((5, 4))).posterior_.save(path)
    assert Posterior.load(path).for_rows(np.ones((1, 4))).W.shape == (1, 4, 1, 2)
    rewrite(path, header=edited_header(b"[1.0, 2.0]", b"[1.0, 2.0, 3.0]"))
    with pytest.raises(PosteriorFileError, match="rate of L1"):
        Posterior.load(path)


@pytest.mark.parametrize("name", ["header", "W", "foreign"])
def test_compressed_members_are_not_opened(tmp_path, model, name):
    """Of a small file that would fill the memory."""
    path = tmp_path / "posterior.npz"
    model.posterior_.save(path)
    with zipfile.ZipFile(path) as archive:
        members = {member.filename: archive.read(member) for member in archive.infolist()}
    members[f"{name}.npy"] = np.lib.format.magic(1, 0) + bytes(10**6)
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content, zipfile.ZIP_DEFLATED if member == f"{name}.npy" else zipfile.ZIP_STORED)
    with pytest.raises(PosteriorFileError, match=f"{name}.npy is compressed"):
        Posterior.load(path)


def test_a_member_that_claims_to_be_huge(tmp_path, model):
    path = tmp_path / "posterior.npz"
    model.posterior_.save(path)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**4)})
    with zipfile.ZipFile(path) as archive:
        members = {member.filename: archive.read(member) for member in archive.infolist()}
    members["W.npy"] = header.getvalue() + bytes(100)
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    with pytest.raises(PosteriorFileError, match="damaged"):
        Posterior.load(path)


@pytest.mark.parametrize("name", ["offset", "scale", "row_noise", "row_ids"])
def test_a_lost_array_is_not_taken_for_none(tmp_path, name):
    path = tmp_path / "posterior.npz"
    X = np.random.default_rng(0).exponential(size=(9, 4))
    settings = {"noise": "both", "offset": "min", "n_chains": 1, "burn_in": 2, "n_draws": 4, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        BayesianNMF(2, **settings).fit(X).posterior_.save(path)
    with zipfile.ZipFile(path) as archive:
        members = {member.filename: archive.read(member) for member in archive.infolist()}
    del members[f"{name}.npy"]
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    with pytest.raises(PosteriorFileError, match="its arrays are not those that were saved together"):
        Posterior.load(path)
