"""Matrices and fits beyond one machine, on a Dask cluster.

``BayesianNMF.fit`` takes a `dask.array`, a :class:`RowBlocks` or a list of delayed blocks of rows while a
`distributed.Client` is connected. The draws are those of a fit in one process, bit for bit.
"""

from bnmf.distributed.cluster import ClusterLost
from bnmf.distributed.parquet import read_blocks, read_triples
from bnmf.distributed.sharded import ShardedMatrix
from bnmf.distributed.sources import RowBlocks

__all__ = ["ClusterLost", "RowBlocks", "ShardedMatrix", "read_blocks", "read_triples"]
