"""Matrices and fits beyond one machine, on a Dask cluster.

``BayesianNMF.fit`` takes a `dask.array`, a :class:`RowBlocks` or a list of delayed blocks of rows while a
`distributed.Client` is connected. The draws are those of a fit in one process, bit for bit.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bnmf.distributed.cluster import ClusterLost
    from bnmf.distributed.sharded import ShardedMatrix
    from bnmf.distributed.sources import RowBlocks, read_blocks, read_triples

__all__ = ["ClusterLost", "RowBlocks", "read_blocks", "read_triples"]


def __getattr__(name: str) -> Any:
    """Load a public name on first use: workers, which may have little memory, need no more than `blocks`."""
    if name not in __all__:
        raise AttributeError(f"module 'bnmf.distributed' has no attribute {name!r}")
    module = "cluster" if name == "ClusterLost" else "sources"
    return getattr(import_module(f"bnmf.distributed.{module}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)


# --- for data that may or may not be on a cluster: nothing here loads Dask


def is_on_cluster(X: Any) -> bool:
    """Return whether X is a Dask collection, a future, row blocks, or a list of such."""
    first = X[0] if isinstance(X, (list, tuple)) and X else X
    return type(first).__module__.startswith(("dask.", "distributed.", "bnmf.distributed."))


def refuse_cluster(X: Any) -> None:
    """Raise an error if X is on a cluster: its conversion to an array would bring all of it here."""
    if is_on_cluster(X):
        raise TypeError(
            f"X is on a cluster (a {type(X).__name__}), and only BayesianNMF.fit takes such data: elsewhere pass rows "
            "that fit into memory, for instance X[:1000].compute()"
        )


def load(X: Any, **options: Any) -> ShardedMatrix:
    """Return data on a cluster as :meth:`ShardedMatrix.from_dask` does."""
    try:
        from bnmf.distributed.sharded import ShardedMatrix
    except ImportError as error:
        raise ImportError(f"data on a cluster need Dask: pip install 'bnmf[dask]' ({error})") from error
    return ShardedMatrix.from_dask(X, **options)
