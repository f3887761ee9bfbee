"""The CUDA engine sends the messages of the reference engine, in every schedule."""

import numpy as np
import pytest
from layers import SHAPES, make, messages

from hcnet.engine.base import rebuild
from hcnet.engine.cuda.arrays import fetch, hold
from hcnet.engine.cuda.engine import CUDAEngine, on_device
from hcnet.engine.cuda.orders import Lanes, colours
from hcnet.engine.cuda.trees import MOST_LEAVES, MOST_THREADS, threads_for
from hcnet.engine.reference import ReferenceEngine
from hcnet.engine.schedules import SCHEDULE_NAMES, Batch, Schedule

MOVING = ("to_field", "to_kernel", "field", "kernel")


def sweep(engine, m, name, damping=0.625, n=1):
    rng = np.random.default_rng(1)
    for _ in range(n):
        for batch in Schedule(name, rounds=2, block_size=7).batches(m.images, rng):
            engine.update(m, batch, damping)


def assert_alike(got, wanted, **tolerance):
    for name in MOVING:
        a, b = fetch(getattr(got, name)), getattr(wanted, name)
        np.testing.assert_allclose(a.reshape(b.shape), b, err_msg=name, **tolerance)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", SCHEDULE_NAMES)
def test_messages_are_those_of_the_reference(shape, name):
    start = make(shape)
    wanted, got = messages(start), on_device(messages(start))
    sweep(ReferenceEngine(), wanted, name)
    sweep(CUDAEngine(), got, name)
    assert np.abs(wanted.to_field).max() > 0.1
    assert_alike(got, wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("number", [1e6, 1e30])
def test_certain_evidence_and_priors(number):
    start = make("over the border")
    wanted, got = messages(start), None
    wanted.evidence[::3] = number
    wanted.evidence[1::3] = -number
    wanted.kernel[0, :4], wanted.kernel[0, 4:8] = number, -number
    got = on_device(wanted)
    sweep(ReferenceEngine(), wanted, "sequential", 1.0)
    sweep(CUDAEngine(), got, "sequential", 1.0)
    assert_alike(got, wanted, rtol=1e-5, atol=1e-4 if number < 1e7 else 1e24)
    assert np.isfinite(fetch(got.field)).all()


def test_blocks_of_colours_are_simultaneous_batches():
    """Everybody waits in the kernel for what the reference does batch by batch."""
    start = make("channels")
    wanted, got = messages(start), on_device(messages(start))
    found = colours(wanted, 3, np.random.default_rng(0))
    order, first = fetch(found.order), fetch(found.first)
    assert sorted(order) == list(range(wanted.n_trees))
    assert found.largest == np.diff(first).max() <= 3
    sequence = np.random.default_rng(1).permutation(found.n)
    for c in sequence:
        block = order[first[c] : first[c + 1]]
        trees = wanted.trees[block]
        assert len(set(trees[:, 1])) == 1  # one row of the kernel
        apart = np.abs(trees[:, None, :] - trees)
        near = (apart[..., 0] == 0) & (apart[..., 2] < 2) & (apart[..., 3] < 2)
        np.testing.assert_array_equal(near, np.eye(len(block), dtype=bool))
        ReferenceEngine().update(wanted, Batch(block, np.arange(len(block) + 1), True), 0.75)
    CUDAEngine().blocks(got, found, hold(sequence), 0.75)
    assert_alike(got, wanted, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("shape", ["over the border", "few placements"])
def test_lanes_that_add_at_the_same_time_lose_nothing(shape):
    start = make(shape)
    m, engine = on_device(messages(start)), CUDAEngine(deterministic=False)
    for _ in range(2):
        sweep(engine, m, "per-image")
    field, kernel = fetch(m.field), fetch(m.kernel)
    host = messages(start)
    for name in MOVING:
        getattr(host, name)[:] = fetch(getattr(m, name)).reshape(getattr(host, name).shape)
    rebuild(ReferenceEngine(), host)
    np.testing.assert_allclose(field, host.field.ravel(), rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(kernel, host.kernel.ravel(), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("lanes", [1, 3])
def test_sums_of_messages_and_messages_down(lanes):
    start = make("few placements")
    wanted, got = messages(start), on_device(messages(start))
    for engine, m in ((ReferenceEngine(), wanted), (CUDAEngine(), got)):
        sweep(engine, m, "sequential")
    np.testing.assert_allclose(
        fetch(CUDAEngine().trees_to_R(got)), ReferenceEngine().trees_to_R(wanted), atol=1e-4
    )
    ReferenceEngine().collect(wanted)
    # Lanes share weights, not placements: each is a number of whole images.
    firsts = np.searchsorted(wanted.images, np.linspace(0, start.images.n_images, lanes + 1))
    CUDAEngine().collect(got, Lanes.of(np.arange(wanted.n_trees), firsts))
    assert_alike(got, wanted, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("leaves", [1, 5, 31, 576, 1728, 3744, 4096, 4097, 100_000])
def test_threads_share_out_the_leaves_of_a_tree(leaves):
    threads, each = threads_for(leaves)
    assert 1 <= threads <= MOST_THREADS
    assert each <= MOST_LEAVES
    assert threads * each >= leaves or (each == 0 and leaves > MOST_THREADS * MOST_LEAVES)
