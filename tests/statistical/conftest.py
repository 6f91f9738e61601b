"""Thousands of small models are made here: none of them is too large for memory."""

import pytest

from bnmf.utils import memory


@pytest.fixture(autouse=True)
def unknown_memory(monkeypatch):
    """Do not ask the system, which takes longer than the rest of a small model."""
    monkeypatch.setattr(memory, "available", lambda: None)
