"""Matrices and fits beyond one machine, on a Dask cluster.

``BayesianNMF.fit`` takes a `dask.array`, a :class:`RowBlocks` or a list of delayed blocks of rows while a
`distributed.Client` is connected. The draws are those of a fit in one process, bit for bit.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bnmf.distributed.cluster import ClusterLost
    from bnmf.distributed.parquet import read_blocks, read_triples
    from bnmf.distributed.sharded import ShardedMatrix
    from bnmf.distributed.sources import RowBlocks

__all__ = ["ClusterLost", "RowBlocks", "ShardedMatrix", "read_blocks", "read_triples"]

# Loaded on first use: workers, which may have little memory, need no more than `blocks`.
_MODULES = {
    "ClusterLost": "cluster",
    "RowBlocks": "sources",
    "ShardedMatrix": "sharded",
    "read_blocks": "parquet",
    "read_triples": "parquet",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'bnmf.distributed' has no attribute {name!r}")
    return getattr(import_module(f"bnmf.distributed.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
