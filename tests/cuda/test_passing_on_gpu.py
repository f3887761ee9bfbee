"""A feature layer on a GPU does what one in the memory of the machine does."""

import numpy as np
import pytest
from layers import make

from hcnet.engine.cpu import CPUEngine
from hcnet.engine.cuda.arrays import copy, fetch, hold
from hcnet.engine.cuda.engine import CUDAEngine
from hcnet.engine.cuda.passing import CUDAPassing, device_memory
from hcnet.engine.cuda.starts import Starts
from hcnet.engine.dense import DensePassing
from hcnet.engine.schedules import Schedule
from hcnet.factors import HUGE
from hcnet.layers import FeatureLayer
from hcnet.learning.passing import PassingOptions
from hcnet.learning.starting import ManyStarts
from hcnet.messages import Layout, trees_of
from hcnet.objective import Priors
from hcnet.solutions.canvas import Canvas
from hcnet.solutions.improver import Improver

STORED = Schedule("per-image", rounds=2, shuffle=False)


def both(start, weight_prior=None):
    what = start.layer, start.elements, start.evidence, -2.0
    prior = start.weight_prior if weight_prior is None else weight_prior
    return CUDAPassing(CUDAEngine(), *what, prior), DensePassing(CPUEngine(), *what, prior)


def assert_alike(got, wanted):
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("shape", ["over the border", "few placements"])
def test_a_layer_in_a_network(shape):
    """Sweeps, messages up and down, new evidence and expectations, certain ones among them."""
    start, rng = make(shape, missing=0.0), np.random.default_rng(1)
    gpu, cpu = both(start)
    for turn in range(3):
        evidence = (start.evidence + rng.normal(0, 1, start.evidence.shape)).astype(np.float32)
        gpu.hear(hold(evidence))
        cpu.hear(evidence)
        assert gpu.sweep(STORED, rng) == pytest.approx(cpu.sweep(STORED, rng), rel=1e-4)
        up = cpu.up()
        assert_alike(fetch(gpu.up()), up)
        expected = np.where(rng.random(up.shape) < 0.3, -HUGE, rng.normal(-3, 1, up.shape))
        if turn == 1:
            expected = rng.normal(-3, 1, up.shape)
        gpu.expect(hold(expected.astype(np.float32)))
        cpu.expect(expected.astype(np.float32))
        assert_alike(gpu.placement_beliefs(), cpu.placement_beliefs())
        assert_alike(gpu.weight_beliefs(), cpu.weight_beliefs())
        assert_alike(fetch(gpu.down()), cpu.down())
        np.testing.assert_array_equal(gpu.placements(), cpu.placements())


@pytest.mark.parametrize("name", ["per-image", "blocks"])
def test_the_same_seed_gives_the_same_bits(name):
    start = make("channels")
    found = []
    for _ in range(2):
        gpu, _ = both(start)
        rng = np.random.default_rng(3)
        for _ in range(2):
            gpu.sweep(Schedule(name, rounds=2), rng)
        found.append(gpu.placement_beliefs().tobytes() + gpu.weight_beliefs().tobytes())
    assert found[0] == found[1]


def test_every_tree_is_visited_once_in_an_order_of_its_own():
    gpu, _ = both(make("over the border"))
    order = gpu._order(Schedule("per-image"))
    rng = np.random.default_rng(0)
    seen = []
    for _ in range(3):
        (lanes, *_) = order.rounds_of(rng)
        seen.append(fetch(lanes.order))
        for first, last in zip(order.first[:-1], order.first[1:], strict=True):
            assert sorted(seen[-1][first:last]) == list(range(first, last))
    assert not (seen[0] == seen[1]).all()


def test_many_starts_are_each_what_it_would_be_alone():
    start, rng = make("channels", missing=0.0), np.random.default_rng(0)
    priors = [start.weight_prior, start.weight_prior[:, ::-1] - np.float32(0.25)]
    what = start.layer, start.images.observed, start.evidence
    together = Starts(CUDAEngine(), *what, np.array([-2.0, -3.0]), np.stack(priors), rng)
    n = start.images.n_images
    for _ in range(2):
        together.sweep(STORED, rng)
    for k, prior in enumerate(priors):
        mine = together._host.trees[together._host.images // n == k]
        elements = np.stack([mine[:, 0] - k * n, mine[:, 1] - k * 3, mine[:, 2], mine[:, 3]], 1)
        alone = CUDAPassing(
            CUDAEngine(), start.layer, elements, start.evidence, [-2.0, -3.0][k], prior
        )
        for _ in range(2):
            alone.sweep(STORED, rng)
        W, placements = together.decoded(k)
        assert_alike(together.weight_beliefs()[3 * k : 3 * k + 3], alone.weight_beliefs())
        np.testing.assert_array_equal(W, np.swapaxes(alone.weight_beliefs(), 0, 1) > 0)
        np.testing.assert_array_equal(placements, alone.placements())


@pytest.mark.parametrize("shape", ["over the border", "few placements"])
def test_what_starts_decode_to_is_counted_as_everybody_counts(shape):
    start, rng = make(shape), np.random.default_rng(0)
    priors = [Priors(p_S=0.2, p_W=p, p01=0.02, p10=0.05) for p in (0.4, 0.6)]
    improver = Improver(Canvas(start.layer, start.images), Priors())
    many = ManyStarts(
        start.layer, start.images, improver, priors, PassingOptions("cuda", STORED), rng, 2
    )
    for _ in range(2):
        many.step()
    wanted = [many._decoded(k).bits for k in range(2)]
    np.testing.assert_allclose(many._bits, wanted)
    assert many._decoded(0).counts.placed + many._decoded(1).counts.placed > 0
    assert many.state().bits == min(wanted) == many.leaders()[0].bits
    assert many.measure().objective == pytest.approx(-min(wanted) * np.log(2))


@pytest.mark.gpu
def test_memory_is_known_before_it_is_taken(free_memory):
    layer = FeatureLayer(12, 1, (9, 9), (100, 100), "full")
    rng = np.random.default_rng(0)
    observed = np.ones((3, 1, 100, 100), bool)
    prior = rng.normal(-1, 0.1, (20, 1, 12, 9, 9)).astype(np.float32)
    before = free_memory()
    what = layer, observed, np.where(observed, 5.0, -5.0).astype(np.float32)
    starts = Starts(CUDAEngine(), *what, np.full(20, -9.0), prior, rng)
    starts.sweep(Schedule("per-image"), rng)
    starts.tallies()
    taken = before - free_memory()
    known = device_memory(Layout(layer, 3, 20), 20 * observed.sum(), 3)
    assert 0.8 * taken < known < 1.3 * taken


@pytest.mark.gpu
@pytest.mark.parametrize("features", [3, 12, 40])
@pytest.mark.parametrize("border", ["full", "valid"])
def test_larger_layers(features, border):
    rng = np.random.default_rng(0)
    layer = FeatureLayer(features, 2, (9, 8), (24, 20), border)
    observed = rng.random((5, 2, 24, 20)) < 0.9
    evidence = np.where(rng.random(observed.shape) < 0.3, 4.0, -4.0).astype(np.float32)
    prior = rng.normal(-0.5, 0.3, (2, features, 9, 8)).astype(np.float32)
    elements = trees_of(observed, rng)
    elements = elements[np.argsort(elements[:, 0], kind="stable")]
    what = layer, elements, evidence, -6.0, prior
    gpu, cpu = CUDAPassing(CUDAEngine(), *what), DensePassing(CPUEngine(), *what)
    for _ in range(3):
        # From the same state: a sweep makes a difference of rounding a thousand times as large.
        for name, array in cpu._messages.state().items():
            copy(hold(array), gpu._messages.state()[name])
        gpu.sweep(STORED, rng)
        cpu.sweep(STORED, rng)
        np.testing.assert_allclose(gpu.weight_beliefs(), cpu.weight_beliefs(), atol=0.03)
