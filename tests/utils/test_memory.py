"""A warning before a run that would exceed memory."""

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
    monkeypatch.setattr(Path, "read_text", lambda path: files[str(path)])
    assert available() == 2_000_000
    files["/sys/fs/cgroup/memory.max"] = "max\n"
    assert available() == 4000 * 1024


def test_available_is_unknown_without_these_files(monkeypatch):
    def missing(path):
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "read_text", missing)
    assert available() is None


def test_warns_above_half_of_the_memory_only():
    message = r"^the draws will take 600 B, and 1000 B of memory are free: do less$"
    with pytest.warns(MemoryWarning, match=message):
        warn_if_large(600, "the draws", "do less", free=1000)
    warn_if_large(400, "the draws", "do less", free=1000)


def test_fit_names_the_options(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 1000)
    X = np.random.default_rng(0).exponential(size=(8, 6))
    model = BayesianNMF(1, n_chains=1, burn_in=200, n_draws=100, random_state=0)
    with pytest.warns(MemoryWarning) as caught:
        model.fit(X)
    message = str(caught[0].message)
    assert "10.9 kB" in message  # 100 draws of (8 + 6) numbers of 8 bytes
    for option in ("thinning", "float32", "checkpoint", "keep_draws=False"):
        assert option in message
    with pytest.warns(MemoryWarning, match="fewer chains"):
        BayesianNMF(1, n_chains=1, n_draws=100, keep_draws=False, random_state=0).fit(X)


def test_draws_on_disk_need_no_memory(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "available", lambda: 1000)
    X = np.random.default_rng(0).exponential(size=(8, 6))
    BayesianNMF(1, n_chains=1, burn_in=200, n_draws=100, random_state=0, checkpoint=tmp_path).fit(X)
