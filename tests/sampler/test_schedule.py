"""Which sweeps are kept, counted one by one."""

import numpy as np
import pytest

from bnmf.sampler.stores import Schedule


def test_by_hand():
    schedule = Schedule(n_chains=2, burn_in=4, n_draws=3, thinning=2)
    assert schedule.n_sweeps == 10
    assert [sweep for sweep in range(13) if schedule.keeps(sweep)] == [6, 8, 10, 12]
    assert [schedule.draws_after(sweep) for sweep in range(11)] == [0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3]
    assert [schedule.sweeps_for(n) for n in range(4)] == [4, 6, 8, 10]


@pytest.mark.parametrize("burn_in", [0, 1, 5])
@pytest.mark.parametrize("thinning", [1, 2, 7])
def test_counts_agree(burn_in, thinning):
    schedule = Schedule(burn_in=burn_in, n_draws=4, thinning=thinning)
    n_kept = 0
    for sweep in range(1, schedule.n_sweeps + 1):
        if schedule.keeps(sweep):
            n_kept += 1
            assert schedule.sweeps_for(n_kept) == sweep  # no later than necessary
        assert schedule.draws_after(sweep) == n_kept
    assert n_kept == 4
    assert schedule.keeps(schedule.n_sweeps)  # no sweep after the last draw
    assert not schedule.keeps(0)
    assert schedule.draws_after(0) == 0


def test_defaults():
    schedule = Schedule()
    assert (schedule.n_chains, schedule.burn_in, schedule.n_draws, schedule.thinning) == (4, 300, 200, 1)
    assert schedule.n_sweeps == 500


@pytest.mark.parametrize(("name", "lowest"), [("n_chains", 1), ("burn_in", 0), ("n_draws", 1), ("thinning", 1)])
def test_limits(name, lowest):
    assert getattr(Schedule(**{name: lowest}), name) == lowest
    with pytest.raises(ValueError, match=f"{name} must be at least {lowest}, got {lowest - 1}"):
        Schedule(**{name: lowest - 1})
    for wrong in (2.0, "2", True, None, np.float64(2)):
        with pytest.raises(TypeError, match=f"{name} must be a whole number, got"):
            Schedule(**{name: wrong})


def test_numpy_integers():
    schedule = Schedule(np.int64(2), np.int32(3), np.uint8(4), np.int64(5))
    assert schedule == Schedule(2, 3, 4, 5)
    assert schedule.n_sweeps == 23
