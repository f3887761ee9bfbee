"""The joint log-probability of a network is the same on the processor and on a GPU."""

from types import SimpleNamespace

import numpy as np
import pytest

from hcnet.engine.cuda.arrays import fetch, hold
from hcnet.engine.cuda.pools import DeviceLevel
from hcnet.engine.planes import OFF, UNDECIDED, settle_block
from hcnet.hierarchy.convolution import bconv, correlate
from hcnet.hierarchy.explaining import DeviceJoint, host_joint, joint_memory
from hcnet.hierarchy.network import CheckedLayer, build_network
from hcnet.images import Images, Noise
from hcnet.layers import ClassLayer


def layer(n_features, size, pool=(1, 1), pool_border="full", depth=1, order="groups"):
    return CheckedLayer(n_features, size, pool, pool_border, 0.1, 0.3, 0.5, depth, order)


NETWORKS = {
    # layers, image size, channels
    "one level": ([layer(3, (4, 4), (2, 2), "valid")], (5, 5), 2),
    "two levels": ([layer(3, (2, 3), (2, 2)), layer(4, (4, 4), (2, 2), "same")], (6, 7), 1),
    "three levels, several positions": (
        [layer(2, (2, 2)), layer(3, (2, 2), (3, 1), "same"), layer(3, (2, 2), (2, 2))],
        (6, 6),
        1,
    ),
    "ring and variants": (
        [
            layer(4, (2, 3), (2, 2), depth=3, order="ring"),
            layer(3, (3, 3), (2, 2), "same", depth=2),
        ],
        (6, 7),
        4,
    ),
}


def build(name, n_images=4, seed=0, scale=1):
    layers, size, channels = NETWORKS[name]
    rng = np.random.default_rng(seed)
    classes = ClassLayer(tuple(k % 2 for k in range(layers[-1].n_features)))
    size = tuple(scale * z for z in size)
    network = build_network(layers, classes, Noise(0.01, 0.03), channels, size, rng)
    shape = (n_images, channels, *size)
    images = Images(rng.random(shape) < 0.4, rng.random(shape) < 0.9)
    weights = [rng.random(level.weight_shape) < 0.4 for level in network.levels]
    allowed = rng.random((n_images, classes.n_templates)) < 0.7
    allowed[:, 0] = True
    return network, images, allowed, weights


@pytest.mark.parametrize("name", NETWORKS)
def test_configurations_have_the_same_probability(name):
    network, images, allowed, weights = build(name)
    on_device = DeviceJoint(network, images, allowed)
    for more in (weights, [~W for W in weights], [W & False for W in weights]):
        wanted = host_joint(network, images, allowed, more)
        assert on_device(more) == pytest.approx(wanted, rel=1e-9)


def test_one_level_up_and_down():
    """Messages up, what is placed, and where it moves to."""
    network, images, _, weights = build("two levels", seed=3)
    level, W, rng = network.levels[0], weights[0], np.random.default_rng(4)
    n = images.n_images
    device = DeviceLevel(level.pool, level.features, level.log_prior, n)
    device.weigh(W)
    evidence = images.evidence(network.noise)
    up = fetch(device.forward(hold(evidence)))
    np.testing.assert_array_equal(up, correlate(fetch(device.to_R), W))
    S = rng.random(up.shape) < 0.1
    taken = fetch(device.decide(hold(S.view(np.uint8)), hold(evidence)))
    R = bconv(S, W)
    np.testing.assert_array_equal(fetch(device.R), R)
    choice = np.where(R, UNDECIDED, OFF)
    wanted, scratch = np.zeros_like(taken), np.empty((2, R[0, 0].size), int)
    for k in range(n):
        own = choice[k], evidence[k], level.log_prior, level.pool.reach, wanted[k]
        settle_block(*own, *scratch)
    np.testing.assert_array_equal(fetch(device.choice), choice)
    np.testing.assert_array_equal(taken, wanted)


@pytest.mark.gpu
def test_larger_networks():
    network, images, allowed, weights = build("two levels", n_images=50, scale=5)
    wanted = host_joint(network, images, allowed, weights)
    assert DeviceJoint(network, images, allowed)(weights) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.gpu
def test_memory_is_known_in_advance(free_memory):
    network, images, allowed, weights = build("two levels", n_images=500, scale=10)
    DeviceJoint(network, images, allowed)(weights)  # what is compiled takes memory, too
    before = free_memory()
    joint = DeviceJoint(network, images, allowed)
    joint(weights)
    taken = before - free_memory()
    known = joint_memory(SimpleNamespace(gpu=True), network, images.n_images)
    # A third of it is needed; the driver reuses what other tests gave back.
    assert 0.2 * known < taken < known
