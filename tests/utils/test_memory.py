"""A warning before a run that would exceed memory, and an error before a result that does."""

from pathlib import Path

import numpy as np
import pytest

from bnmf import BayesianNMF
from bnmf.utils import memory
from bnmf.utils.memory import MemoryWarning, available, warn_if_large

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="needs Linux's /proc/meminfo")
def test_available_is_what_the_system_says():
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    total = 1024 * int(lines["MemTotal"].split()[0])
    assert 2**20 < available() <= total


def test_available_takes_the_smaller_of_machine_and_container(monkeypatch):
    files = {
        "/proc/meminfo": "MemTotal: 8000 kB\nMemAvailable: 4000 kB\n",
        "/sys/fs/cgroup/memory.max": "3000000\n",
        "/sys/fs/cgroup/memory.current": "1000000\n",
    }

    def read_text(path):
        if str(path) not in files:
            raise FileNotFoundError(path)
        return files[str(path)]

    monkeypatch.setattr(Path, "read_text", read_text)
    assert available() == 2_000_000
    files["/sys/fs/cgroup/memory.max"] = "max\n"
    assert available() == 4000 * 1024
    files.clear()
    assert available() is None


def test_a_warning_above_half_of_the_memory_and_an_error_above_all_of_it(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 2048)
    warn_if_large(1024, "the draws", "do less")
    with pytest.warns(MemoryWarning, match=r"^the draws will take 1.5 kB, and 2.0 kB of memory are free: do less$"):
        warn_if_large(1536, "the draws", "do less")
    memory.require(2048, "it", "no")
    with pytest.raises(MemoryError, match=r"^the table takes 3.0 kB, and 2.0 kB of memory are free: take less$"):
        memory.require(3072, "the table", "take less")
    monkeypatch.setattr(memory, "available", lambda: None)
    memory.require(10**30, "it", "no")


@pytest.fixture(scope="module")
def model():
    return BayesianNMF(2, n_chains=1, burn_in=2, n_draws=4, random_state=0).fit(np.ones((30, 20)))


@pytest.mark.parametrize("name", ["mean", "std", "quantile", "interval", "reconstruct", "impute"])
def test_results_that_do_not_fit_are_refused_with_another_way(model, monkeypatch, name):
    monkeypatch.setattr(memory, "available", lambda: 8 * 30 * 20 - 1)
    of = model.posterior_ if name in ("mean", "std", "quantile") else model
    with pytest.raises(MemoryError, match=r"30 x 20 entries takes 4.7 kB, .* free: .*rows.*columns|memory map"):
        getattr(of, name)(*[[0.1, 0.5]] * (name == "quantile"))
    assert model.posterior_.mean([0, 1], [2, 3]).shape == (2,)
    assert model.impute(out=np.empty((30, 20))).shape == (30, 20)
