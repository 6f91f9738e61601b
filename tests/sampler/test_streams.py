"""Random streams: one key for each part of each sweep of each chain."""

from itertools import product

import numpy as np

from bnmf.sampler import streams
from bnmf.sampler.streams import N_PARTS, Stream


def test_keys_differ_by_seed_chain_sweep_and_part():
    addresses = list(product(range(5), range(5), range(40), range(N_PARTS)))
    of_chain = {(seed, chain): Stream(seed, chain) for seed, chain in product(range(5), range(5))}
    keys = [of_chain[seed, chain].key(sweep, part) for seed, chain, sweep, part in addresses]
    # Of 5,000 random 64-bit words two are equal with probability 1e-12: each half of a key tells all of them apart.
    for half in range(2):
        assert len({key[half] for key in keys}) == len(addresses)
    assert Stream(4, 1).key(2, streams.NOISE) == of_chain[4, 1].key(2, streams.NOISE)


def test_generator_is_that_of_its_key():
    stream = Stream(1)
    key = stream.key(3, streams.NOISE)
    expected = np.random.Generator(np.random.Philox(key=np.array(key, np.uint64)))
    np.testing.assert_array_equal(stream.generator(key).random(10), expected.random(10))


def test_generator_restarts_whatever_was_drawn_before():
    stream = Stream(1)
    key, other = stream.key(3, streams.NOISE), stream.key(4, streams.NOISE)
    first = stream.generator(key).random(5)
    # Each leaves something behind in the generator: a part of a block of words, and half of a word.
    for draw in (lambda rng: rng.random(3), lambda rng: rng.integers(10, size=3, dtype=np.uint32), lambda rng: None):
        draw(stream.generator(other))
        np.testing.assert_array_equal(stream.generator(key).random(5), first)
    assert not np.array_equal(stream.generator(other).random(5), first)
