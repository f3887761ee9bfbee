"""A sweep visits every tree once, in lanes that do not disturb each other."""

import numpy as np
import pytest

from hcnet.engine.schedules import RUN, SCHEDULE_NAMES, Schedule

# Few trees; more than 64 runs, so that they are visited in runs; one image; images of very
# different sizes; an image without trees (all of its pixels missing).
OWNERS = {
    "few": np.array([0, 1, 0, 2, 1, 0, 2, 2, 1]),
    "many": np.random.default_rng(0).integers(0, 7, 64 * RUN + 5),
    "one image": np.zeros(30, np.int64),
    "uneven": np.repeat([0, 1, 2], [1, 200, 3]),
    "a hole": np.repeat([0, 2], [20, 20]),
    "none": np.zeros(0, np.int64),
}


def batches(name, owners, seed=0, **options):
    rng = np.random.default_rng(seed)
    return list(Schedule(name, **options).batches(OWNERS[owners].astype(np.int32), rng))


@pytest.mark.parametrize("name", SCHEDULE_NAMES)
@pytest.mark.parametrize("owners", OWNERS)
@pytest.mark.parametrize("options", [{}, {"rounds": 3, "block_size": 7}], ids=["default", "small"])
def test_a_sweep_visits_each_tree_once(name, owners, options):
    visited = np.concatenate(
        [batch.order for batch in batches(name, owners, **options)] + [np.zeros(0, np.int64)]
    )
    assert sorted(visited) == list(range(len(OWNERS[owners])))


@pytest.mark.parametrize("name", SCHEDULE_NAMES)
@pytest.mark.parametrize("owners", OWNERS)
def test_lanes_share_out_the_batch(name, owners):
    for batch in batches(name, owners):
        assert batch.lanes[0] == 0
        assert batch.lanes[-1] == len(batch.order)
        assert (np.diff(batch.lanes) >= 0).all()
        if batch.simultaneous:
            assert (np.diff(batch.lanes) == 1).all()


@pytest.mark.parametrize("owners", OWNERS)
def test_lanes_hold_disjoint_images(owners):
    several = 0
    for batch in batches("per-image", owners, rounds=3):
        images = [
            set(OWNERS[owners][batch.order[a:b]])
            for a, b in zip(batch.lanes[:-1], batch.lanes[1:], strict=True)
        ]
        assert sum(map(len, images)) == len(set().union(*images))
        several += len(images) > 1
    assert several or owners in ("one image", "none")


def test_a_block_is_no_larger_than_told():
    assert {len(batch.order) for batch in batches("blocks", "few", block_size=4)} == {4, 1}


@pytest.mark.parametrize("name", SCHEDULE_NAMES)
def test_the_seed_decides_the_order(name):
    def orders(seed):
        return [batch.order.tolist() for batch in batches(name, "many", seed)]

    assert orders(3) == orders(3)
    assert orders(3) != orders(4)


def test_every_sweep_has_a_new_order():
    rng = np.random.default_rng(0)
    owners = OWNERS["many"].astype(np.int32)
    first, second = (next(Schedule().batches(owners, rng)).order for _ in range(2))
    assert (first != second).any()


def test_what_is_kept_for_a_schedule_is_kept_once_whoever_has_chosen_it():
    assert {Schedule("per-image"): 1}[Schedule("per-image", preset=True)]
