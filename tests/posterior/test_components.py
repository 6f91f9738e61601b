"""Components as people look at them, and the posterior of a part of the matrix."""

import numpy as np
import pandas as pd
import pytest

from bnmf import Posterior
from bnmf.posterior.components import Components


def posterior_of(W, Z, **options):
    shape = (2, 10)
    rng = np.random.default_rng(0)
    jitter = rng.uniform(0.99, 1.01, (*shape, *W.shape)), rng.uniform(0.99, 1.01, (*shape, *Z.shape))
    noise = options.pop("noise_variance", np.ones(shape))
    return Posterior(W * jitter[0], Z * jitter[1], noise, rng.random((2, 15)), n_observed=W.shape[0], **options)


W = np.array([[4.0, 0.0], [2.0, 0.0], [0.0, 3.0], [0.0, 9.0]])
Z = np.array([[1.0, 0.0, 10.0], [0.0, 2.0, 30.0]])


def test_sizes_and_shares_are_those_of_the_predictions():
    components = Components.of(posterior_of(W, Z))
    first = int(np.argmax(components.W[0]))  # the one with rows 0 and 1
    parts = W.sum(axis=0) * Z.sum(axis=1)
    np.testing.assert_allclose(components.sizes[[first, 1 - first]], parts / parts.sum(), rtol=0.01)
    assert first == 1  # the smaller one
    np.testing.assert_allclose(components.row_shares[:, first], [1, 1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(components.column_shares[first], [1, 0, 6 * 10 / (6 * 10 + 12 * 30)], rtol=0.01)
    assert components.row_order().tolist()[:2] in ([2, 3], [3, 2])
    np.testing.assert_array_equal(components.n_chains_with, [2, 2])


def test_top_entries_are_compared_in_the_units_of_the_fit():
    components = Components.of(posterior_of(W, Z, scale=np.array([1.0, 1.0, 100.0])))
    first = int(np.argmax(components.W[0]))
    rows = components.top_rows(first, 2)
    assert rows.positions.tolist() == [0, 1]
    np.testing.assert_allclose(rows.mean, [4 / 1.5, 2 / 1.5], rtol=0.02)
    assert (rows.low < rows.mean).all()
    assert (rows.mean < rows.high).all()
    columns = components.top_columns(first, 3)
    assert columns.positions.tolist() == [0, 2, 1]  # 10 / 100 is less than 1
    np.testing.assert_allclose(columns.mean, [1.5, 15.0, 0.0], rtol=0.02)


@pytest.mark.parametrize("n_known", [None, 1, 4])
def test_subset_predicts_as_the_whole(n_known):
    """Also with known factors, of every row or the same for all, and Student's t."""
    rng = np.random.default_rng(1)
    posterior = posterior_of(
        W,
        Z,
        noise_variance=rng.random((2, 10, 3)),
        row_noise=rng.random((2, 10, 4)),
        offset=np.array([1.0, 2.0, 3.0]),
        scale=np.array([1.0, 2.0, 3.0]),
        row_names=pd.Index(list("abcd")),
        noise_factor=None if n_known is None else rng.uniform(0.5, 2.0, size=(n_known, 3)),
        df=None if n_known is None else rng.uniform(3.0, 9.0, size=(2, 10)),
    )
    part = posterior.subset(np.array([3, 0]), np.array([2, 1]))
    np.testing.assert_allclose(part.mean(), posterior.mean()[np.ix_([3, 0], [2, 1])])
    np.testing.assert_allclose(part.std(noise=True), posterior.std(noise=True)[np.ix_([3, 0], [2, 1])])
    assert part.row_names.tolist() == ["d", "a"]
    assert part.scale.tolist() == [3.0, 2.0]
