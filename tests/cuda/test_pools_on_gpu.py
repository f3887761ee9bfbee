"""Pooling and class layers on a GPU send the messages of the reference engine."""

import numpy as np
import pytest

from hcnet.engine.cuda.arrays import fetch, hold
from hcnet.engine.cuda.pools import CUDAPools
from hcnet.engine.reference import ReferenceEngine
from hcnet.factors import HUGE
from hcnet.grid import on_grid
from hcnet.hierarchy.network import perturbed_window
from hcnet.layers import ClassLayer, PoolLayer
from hcnet.messages import class_log_prior, pool_log_prior, start_pools

SHAPES = {
    "no pooling": (2, 1, (1, 1), (3, 4), "full"),
    "3x3": (2, 1, (3, 3), (5, 4), "full"),
    "2x3 same": (2, 3, (2, 3), (4, 3), "same"),
    "variants": (2, 4, (2, 1), (3, 3), "full", 2, "groups"),
    "line": (2, 3, (1, 2), (2, 3), "same", 2, "line"),
    "ring": (2, 4, (2, 1), (3, 2), "full", 3, "ring"),
}


def numbers(rng, shape):
    """Real numbers, whole ones (ties), and what is certain."""
    x = np.where(rng.random(shape) < 0.5, rng.normal(0, 3, shape), rng.integers(-2, 3, shape))
    return np.where(rng.random(shape) < 0.2, -HUGE, x).astype(np.float32)


def run_all_steps(shape, engine):
    n, features, window, below_size, *about = SHAPES[shape]
    layer, rng = PoolLayer(features, window, below_size, *about), np.random.default_rng(0)
    log_prior = on_grid(pool_log_prior(layer, perturbed_window(layer, 0.3, rng)))
    pools = start_pools(layer, n, log_prior, engine.hold)
    below = engine.hold(numbers(rng, (n, features, *below_size)))
    above = engine.hold(numbers(rng, (n, layer.n_channels, *layer.size)))
    found = []
    for damping in (1.0, 0.3):
        engine.or_to_U(pools, below)
        found.append(np.float32(engine.pool_to_R(pools, damping)))
        engine.pool_to_U(pools, above)
        found += [np.array(engine.fetch(x)) for x in (pools.to_U, pools.to_R, pools.from_pool)]
    return [*found, engine.fetch(engine.or_to_S(pools))]


@pytest.mark.parametrize("shape", SHAPES)
def test_steps_of_a_pooling_layer(shape):
    got, wanted = run_all_steps(shape, CUDAPools()), run_all_steps(shape, ReferenceEngine())
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("p_on", [None, 0.2])
def test_class_layer(p_on):
    layer, rng = ClassLayer((0, 1, 1), p_on), np.random.default_rng(0)
    up = numbers(rng, (4, 3, 2, 1))
    prior = on_grid(class_log_prior(layer, up.shape, rng.random((4, 3)) < 0.8))
    wanted = ReferenceEngine().class_to_S(prior, up, p_on is None)
    got = fetch(CUDAPools().class_to_S(hold(prior), hold(up), p_on is None))
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
