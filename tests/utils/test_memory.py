"""A word before a run that would not fit into memory."""

import numpy as np
import pytest

from bnmf import BayesianNMF, memory
from bnmf.memory import MemoryWarning, available, warn_if_large


def test_available_is_a_plausible_number():
    free = available()
    assert free is None or 2**20 < free < 2**50


def test_warns_above_the_set_part_only():
    with pytest.warns(
        MemoryWarning, match=r"the draws will take 600.0 B|600 B, and 1000 B of memory are free: do less"
    ):
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
