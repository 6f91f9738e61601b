"""Checksums of the draws: what was written is recognised, and anything else is not."""

import numpy as np
import pytest

from bnmf.sampler.checkpoint import Checksums
from bnmf.sampler.stores import Schedule

SCHEDULE = Schedule(n_chains=1, burn_in=3, n_draws=4, thinning=2)
PIECES = (2, 5, 11)  # in the burn-in, after one draw, and the end


def quantities():
    rng = np.random.default_rng(0)
    return {"W": rng.random((4, 3, 2)), "Z": rng.random((4, 2, 5)), "train_mse": rng.random(11)}


def written(values, identity="run 0"):
    sums = Checksums(identity, SCHEDULE)
    for sweep in PIECES:
        sums.add(values, sweep)
    return sums


def read(sums, identity="run 0"):
    arrays = sums.arrays()
    return Checksums(identity, SCHEDULE, arrays["ends"], arrays["checksums"])


def test_what_was_written_is_recognised():
    values = quantities()
    sums = read(written(values))
    assert sums.end == 11
    assert sums.damaged(values, 11) == ""


def test_a_new_chain_has_none():
    sums = Checksums("run 0", SCHEDULE)
    assert sums.end == 0
    assert sums.damaged(quantities(), 0) == ""


@pytest.mark.parametrize(
    ("name", "place", "words"),
    [
        ("train_mse", 0, "train_mse.npy, sweeps 1 to 2"),
        ("train_mse", 2, "train_mse.npy, sweeps 3 to 5"),
        ("train_mse", 10, "train_mse.npy, sweeps 6 to 11"),
        ("W", (0, 0, 0), "W.npy, sweeps 3 to 5"),
        ("Z", (3, 1, 4), "Z.npy, sweeps 6 to 11"),
    ],
)
def test_the_last_bit_of_any_number_matters(name, place, words):
    values = quantities()
    sums = written(values)
    values[name][place] = np.nextafter(values[name][place], 2.0)
    assert sums.damaged(values, 11) == words


def test_what_came_after_the_last_piece_does_not_matter():
    values = quantities()
    sums = Checksums("run 0", SCHEDULE)
    sums.add(values, 5)
    values["W"][1:] = np.nan
    values["train_mse"][5:] = np.nan
    assert sums.damaged(values, 5) == ""


def test_other_chains_and_runs_are_told_apart():
    values = quantities()
    assert read(written(values), "run 1").damaged(values, 11) != ""


def test_draws_in_another_place_are_found():
    values = quantities()
    sums = written(values)
    values["W"][[1, 2]] = values["W"][[2, 1]]
    assert sums.damaged(values, 11) == "W.npy, sweeps 6 to 11"


def test_a_state_of_another_sweep():
    values = quantities()
    assert written(values).damaged(values, 10) == "the record of checksums"


def test_a_quantity_more_or_less():
    values = quantities()
    sums = written(values)
    assert sums.damaged(values | {"rate_W": np.ones(4)}, 11) == "the record of checksums"
    del values["W"]
    assert sums.damaged(values, 11) == "the record of checksums"


@pytest.mark.parametrize("ends", [[2, 5], [2, 5, 5], [5, 2, 11]])
def test_pieces_that_no_run_writes(ends):
    sums = written(quantities()).arrays()["checksums"]
    with pytest.raises(ValueError, match="checksums are incomplete"):
        Checksums("run 0", SCHEDULE, np.array(ends), sums)
