"""Saved posteriors: complete, or a clear error; nothing in a file is executed."""

import pickle
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest

from bnmf import Posterior
from bnmf.posterior.archive import PosteriorFileError
from bnmf.posterior.calibration import Calibration
from bnmf.posterior.verdict import Finding
from bnmf.priors import Gamma, L2Squared


def full():
    """Return a posterior with every optional field: 2 chains, 3 draws, 5 rows, 4 columns, K = 2."""
    rng = np.random.default_rng(0)
    return Posterior(
        W=rng.exponential(size=(2, 3, 5, 2)),
        Z=rng.exponential(size=(2, 3, 2, 4)).astype(np.float32),
        noise_variance=rng.exponential(size=(2, 3, 4)),
        train_mse=rng.exponential(size=(2, 7)),
        n_observed=17,
        row_names=pd.MultiIndex.from_product([["a", "b"], [1, 2, 3]], names=["x", None])[:5],
        column_names=pd.DatetimeIndex(
            ["2024-01-31", "2024-03-01", "2023-07-31", "1969-05-05"], tz="Europe/Berlin", name="month"
        ),
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
        notes=(Finding("fit", "poor", "it is bad", "do more"), Finding("fit", "usable", "is it?")),
        df=rng.uniform(3.0, 9.0, size=(2, 3)),
        noise_factor=rng.uniform(0.5, 2.0, size=(5, 4)),
        n_fixed=(1, 0),
        signed=(False, True),
        calibration=Calibration(np.array([0, 3]), np.array([True, False]), np.array([0.5, 3.0]), np.array([1.0, -2.0])),
    )


def bare():
    """Return the same without all that is optional, but with gross errors, which exclude Student's t."""
    posterior = full()
    noise, share = posterior.noise_variance[..., 0], np.full((2, 3, 4), 0.1)
    return Posterior(posterior.W, posterior.Z, noise, posterior.train_mse, n_observed=17, outlier_share=share)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "posterior.npz"
    full().save(path)
    return path


@pytest.mark.parametrize("make", [full, bare])
def test_round_trip(tmp_path, make):
    path, posterior = tmp_path / "posterior.npz", make()
    posterior.save(path)
    again = Posterior.load(path)
    for item in fields(Posterior):
        value, expected = getattr(again, item.name), getattr(posterior, item.name)
        if isinstance(expected, Calibration):
            value, expected = value.to_array(), expected.to_array()
        if isinstance(expected, np.ndarray):
            np.testing.assert_array_equal(value, expected, strict=True)
        elif isinstance(expected, pd.Index):
            pd.testing.assert_index_equal(value, expected)
        else:
            assert repr(value) == repr(expected)
    assert str(again.verdict) == str(posterior.verdict)


def test_names_that_json_lacks_become_text(path):
    replace(full(), row_names=pd.Index([1, 2.5, "c", None, (1, 2)], dtype=object)).save(path)
    assert Posterior.load(path).row_names.tolist() == [1, 2.5, "c", "None", "(1, 2)"]


def test_saving_replaces_in_one_step(path, monkeypatch):
    before = path.read_bytes()

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        full().save(path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["posterior.npz"]


# --- damaged files


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_missing_and_truncated(path, share):
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(PosteriorFileError, match="not a posterior of bnmf, or it is damaged"):
        Posterior.load(path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Posterior.load(path.with_name("nowhere.npz"))


def test_every_flipped_byte_is_an_error_or_harmless(path):
    """A flipped byte is found by the checksums of the file, or lies in a part that is not read."""
    content, expected = bytearray(path.read_bytes()), full()
    n_found = 0
    for position in np.random.default_rng(0).integers(len(content), size=200):
        damaged = content.copy()
        damaged[position] ^= 0xFF
        path.write_bytes(bytes(damaged))
        try:
            again = Posterior.load(path)
        except PosteriorFileError:
            n_found += 1
        else:
            np.testing.assert_array_equal(again.W, expected.W)
            np.testing.assert_array_equal(again.Z, expected.Z)
    assert n_found > 100


class Trap:
    """Would leave a trace if it were unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("something in the file was run",))


def test_nothing_in_a_file_is_run(path):
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(PosteriorFileError):
        Posterior.load(path)


def edited_header(old, new):
    return lambda arrays: arrays | {"header": np.frombuffer(bytes(arrays["header"]).replace(old, new), np.uint8)}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (edited_header(b"bnmf posterior", b"other posterior"), "is not a posterior of bnmf"),
        (edited_header(b'"format": 8', b'"format": 9'), "format 9, and this version of bnmf reads 8"),
        (edited_header(b"L2Squared", b"L9Squared"), "unknown prior"),
        (lambda arrays: arrays | {"W": arrays["W"] + 1.0}, "its arrays are not those that were saved together"),
        (lambda arrays: {k: v for k, v in arrays.items() if k != "offset"}, "not those that were saved together"),
    ],
)
def test_files_that_were_put_together_otherwise(path, change, words):
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    np.savez(path, **change(arrays))
    with pytest.raises(PosteriorFileError, match=words):
        Posterior.load(path)
