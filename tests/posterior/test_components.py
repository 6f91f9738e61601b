"""Components: brought together again from any order and scale, and as people look at them; a part of the matrix."""

import numpy as np
import pandas as pd
import pytest

from bnmf import Posterior
from bnmf.posterior.components import Components, align


def scrambled(n_chains=3, n_draws=20, rows=30, columns=20, k=4, noise=0.02, seed=0):
    """Return true factors, and draws of them in random orders and scales with a little noise."""
    rng = np.random.default_rng(seed)
    # Sparse factors, as components that can be told apart are.
    W0, Z0 = rng.exponential(size=(rows, k)) * (rng.random((rows, k)) < 0.4), rng.exponential(size=(k, columns))
    Z0 *= rng.random((k, columns)) < 0.5
    W, Z = np.empty((n_chains, n_draws, rows, k)), np.empty((n_chains, n_draws, k, columns))
    for chain in range(n_chains):
        for draw in range(n_draws):
            order, scale = rng.permutation(k), rng.uniform(0.1, 10.0, k)
            W[chain, draw] = (W0 + noise * rng.random(W0.shape))[:, order] * scale
            Z[chain, draw] = (Z0 + noise * rng.random(Z0.shape))[order] / scale[:, None]
    return W0, Z0, W, Z


def test_draws_are_brought_into_one_order_and_scale():
    W0, Z0, W, Z = scrambled()
    alignment = align(W, Z)
    aligned_W, aligned_Z = alignment.apply_W(W), alignment.apply_Z(Z)
    assert aligned_W.std(axis=(0, 1)).max() < 0.2
    assert aligned_Z.std(axis=(0, 1)).max() < 0.05
    assert W.std(axis=(0, 1)).mean() > 10 * aligned_W.std(axis=(0, 1)).mean()  # they were not, before
    np.testing.assert_allclose(aligned_W.mean(axis=2), 1.0)
    assert alignment.agrees.all()
    # And it is the truth that they are brought to, but for the order.
    mean_W, mean_Z = alignment.means(W, Z)
    np.testing.assert_allclose(aligned_W @ aligned_Z, W @ Z)
    np.testing.assert_allclose(mean_W, aligned_W.mean(axis=(0, 1)))
    np.testing.assert_allclose(mean_Z, aligned_Z.mean(axis=(0, 1)))
    truth = np.concatenate([W0 / np.linalg.norm(W0, axis=0), (Z0 / np.linalg.norm(Z0, axis=1)[:, None]).T])
    found = np.concatenate(
        [mean_W / np.linalg.norm(mean_W, axis=0), (mean_Z / np.linalg.norm(mean_Z, axis=1)[:, None]).T]
    )
    assert np.sort((truth.T @ found / 2).max(axis=0)).min() > 0.97


def test_signs_are_those_of_the_reference():
    rng = np.random.default_rng(3)
    W0, Z0 = rng.normal(size=(30, 3)), rng.normal(size=(3, 20))
    signs = rng.choice([-1.0, 1.0], size=(2, 40, 3))
    W, Z = W0 * signs[:, :, None], Z0 * signs[:, :, :, None]
    alignment = align(W, Z, signed=(True, True))
    aligned_W, aligned_Z = alignment.apply_W(W), alignment.apply_Z(Z)
    assert aligned_W.std(axis=(0, 1)).max() < 1e-12
    assert aligned_Z.std(axis=(0, 1)).max() < 1e-12
    np.testing.assert_allclose((aligned_W**2).mean(axis=2), 1.0)
    assert alignment.agrees.all()


def test_the_reference_agrees_with_itself_where_signs_cancel():
    W = np.array([1.0, -1.0] * 10).reshape(1, 20, 1, 1)
    alignment = align(W, np.ones((1, 20, 1, 1)), signed=(True, False))
    assert alignment.agrees.all()
    mean_W, mean_Z = alignment.means(W, np.ones((1, 20, 1, 1)))
    np.testing.assert_allclose([mean_W[0, 0], mean_Z[0, 0]], [0.0, 1.0])


def test_no_sign_is_changed_where_one_factor_is_nonnegative():
    rng = np.random.default_rng(4)
    W, Z = rng.normal(size=(2, 40, 30, 3)), rng.exponential(size=(2, 40, 3, 20))
    assert (align(W, Z, signed=(True, False)).scale > 0).all()


def test_a_chain_with_another_solution_is_named_and_left_out():
    _, _, W, Z = scrambled(n_chains=3)
    _, _, other_W, other_Z = scrambled(n_chains=1, seed=99)
    W[2], Z[2] = other_W[0], other_Z[0]
    alignment = align(W, Z)
    assert alignment.agrees[:2].all()
    assert not alignment.agrees[2].any()
    assert not alignment.agrees.all(axis=0).any()
    assert (alignment.agrees.sum(axis=0) > 1).all()
    mean_W, _ = alignment.means(W, Z)
    np.testing.assert_allclose(mean_W, alignment.apply_W(W)[:2].mean(axis=(0, 1)))


def test_one_component_that_differs_does_not_spoil_the_others():
    _, _, W, Z = scrambled(n_chains=2)
    _, _, other_W, other_Z = scrambled(n_chains=2, seed=99)
    reference = align(W, Z)
    W, Z = reference.apply_W(W), reference.apply_Z(Z)
    W[1, :, :, 0], Z[1, :, 0] = other_W[1, :, :, 0], other_Z[1, :, 0]
    alignment = align(W, Z)
    assert alignment.agrees.sum() == 7
    assert (~alignment.agrees.all(axis=0)).sum() == 1


def test_dead_component():
    _, _, W, Z = scrambled()
    W[0, 3, :, 1] = 0.0
    Z[1, 2, 2] = 0.0
    alignment = align(W, Z)
    assert np.isfinite(alignment.apply_W(W)).all()
    assert np.isfinite(alignment.apply_Z(Z)).all()


# --- sizes, shares and top entries


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
