"""Directories of Parquet parts, read by the workers."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from bnmf.distributed import read_blocks, read_triples
from bnmf.distributed.sharded import ShardedMatrix
from tests.distributed.clusters import low_rank


@pytest.fixture(scope="module")
def triples(tmp_path_factory):
    """Return a directory of parts in no order, and the matrix that they hold."""
    rng = np.random.default_rng(0)
    X = sp.coo_array(np.where(rng.random((120, 30)) < 0.2, low_rank((120, 30)), 0.0))
    table = pd.DataFrame({"user": X.coords[0], "item": X.coords[1], "stars": X.data})
    directory = tmp_path_factory.mktemp("triples")
    for part, rows in enumerate(np.array_split(rng.permutation(len(table)), 3)):
        table.iloc[rows].to_parquet(directory / f"part-{part}.parquet")
    return directory, X.toarray()


@pytest.mark.parametrize("shape", [None, (130, 40)])
def test_triples(client, triples, shape):
    directory, X = triples
    blocks = read_triples(directory, row="user", column="item", value="stars", shape=shape, rows_per_block=50)
    assert len(blocks.blocks) == 3
    data = ShardedMatrix.from_dask(blocks, unstored="missing")
    assert data.shape == (shape or X.shape)
    assert data.n_observed == np.count_nonzero(X)
    np.testing.assert_array_equal(np.nan_to_num(data.dense_rows(np.arange(0, 120)))[:, :30], X)


def test_parts_with_whole_rows(client, tmp_path):
    X = low_rank((100, 7), missing=0.3)
    for part, rows in enumerate(np.array_split(np.arange(100), 4)):
        pd.DataFrame(X[rows]).add_prefix("f").to_parquet(tmp_path / f"part-{part}.parquet")
    np.testing.assert_array_equal(ShardedMatrix.from_dask(read_blocks(tmp_path)).dense_rows(np.arange(0, 100)), X)


def test_wrong_directories_are_refused(client, tmp_path):
    for read in (read_blocks, read_triples):
        with pytest.raises(ValueError, match=r"directory must hold files \*\.parquet"):
            read(tmp_path)
    for part in range(2):
        pd.DataFrame(np.ones((2, 2 + part))).add_prefix("f").to_parquet(tmp_path / f"part-{part}.parquet")
    with pytest.raises(ValueError, match="the same fields"):
        read_blocks(tmp_path)
