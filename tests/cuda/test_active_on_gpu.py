"""The active set on a GPU has the messages of the processor's."""

import itertools

import numpy as np
import pytest

from hcnet.archive.files import Reader, write
from hcnet.archive.kinds import restore, save
from hcnet.engine.active import geometry
from hcnet.engine.active.active_layer import ActivePassing
from hcnet.engine.active.edges import no_edges, rebuilt
from hcnet.engine.active.geometry import coordinates, geometry_of, tiles_of, tiling, to_placements
from hcnet.engine.cuda.active_set import ActiveCUDAPassing, active_device_memory
from hcnet.engine.cuda.arrays import fetch, hold
from hcnet.engine.cuda.orders import Colours, Lanes
from hcnet.engine.cuda.slots import assign_slots
from hcnet.engine.schedules import SCHEDULE_NAMES, Batch, Schedule
from hcnet.factors import HUGE
from hcnet.layers import FeatureLayer
from hcnet.messages import Layout
from tests.engine.dense_twin import dense_twin, stored_messages
from tests.engine.random_images import K, problem

# name: (layer, images)
LAYERS = {
    "page": (FeatureLayer(2, 1, (3, 3), (7, 8), "full"), 1),
    "small images": (FeatureLayer(3, 1, (3, 2), (6, 5), "valid"), 3),
    "two channels": (FeatureLayer(2, 2, (2, 3), (4, 5), "full"), 2),
    "large features": (FeatureLayer(3, 2, (4, 4), (5, 6), "valid"), 2),
    "templates": (FeatureLayer(4, 2, (3, 4), (3, 4), "valid"), 3),
    "table": (FeatureLayer(3, 9, (1, 1), (1, 1), "valid"), 5),
}


def both(start):
    return ActiveCUDAPassing(*start), ActivePassing(*start)


def assert_alike(got, wanted):
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-4)


def messages_on_gpu(gpu):
    """(placement, element of the board): messages to S and W."""
    g, to_S, to_W = gpu._g, fetch(gpu._to_S), fetch(gpu._to_W)
    observed = fetch(gpu._observed)
    found = {}
    for slot in np.flatnonzero(gpu._where >= 0):
        ((n, _, i, j),) = coordinates(g, gpu._where[slot : slot + 1])
        for e in range(g.edges):
            a, di, dj = np.unravel_index(e, (g.channels, g.window_height, g.window_width))
            line = (n * g.channels + a) * g.board_height + i + di
            element = line * g.board_width + j + dj
            at = slot * g.edges + e
            if observed[element]:
                found[gpu._where[slot], element] = to_S[at], to_W[at]
    return found


def assert_same_messages(gpu, cpu):
    assert gpu.n_active == cpu.n_active
    got, wanted = messages_on_gpu(gpu), stored_messages(cpu)
    assert got.keys() == wanted.keys()
    assert_alike([got[key] for key in wanted], [wanted[key] for key in wanted])


def on_cpu(gpu, start):
    """An active set of the processor in the state of one of the GPU."""
    cpu = ActivePassing(*start)
    where = np.sort(gpu._where[gpu._where >= 0])
    cpu._U, cpu._W = fetch(gpu._U), fetch(gpu._W)
    none = no_edges(len(cpu._observed))
    cpu._edges = edges = rebuilt(none, where, cpu._g, cpu._observed, cpu._U, cpu._W)
    found = messages_on_gpu(gpu)
    for k, tree in enumerate(edges.trees):
        for e in range(edges.begin[k], edges.begin[k + 1]):
            edges.to_S[e], edges.to_W[e] = found[where[edges.who[e]], tree]
    cpu._refresh()
    return cpu


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("schedule", sorted({*SCHEDULE_NAMES} - {"blocks"}))
def test_messages_are_those_of_the_processor(name, schedule):
    """Trees in the same order: the same placements are active, and have the same messages."""
    gpu, cpu = both(problem(*LAYERS[name], 6, 2.0))
    rng, order = np.random.default_rng(0), Schedule(schedule, rounds=2, shuffle=False)
    seen = 0
    for damping in (1.0, 0.5):
        change = cpu.sweep(order, rng, damping)
        assert gpu.sweep(order, rng, damping) == pytest.approx(change, rel=1e-4, abs=1e-4)
        assert_same_messages(gpu, cpu)
        seen += gpu.n_active
    assert seen > 0
    assert_alike(gpu.weight_beliefs(), cpu.weight_beliefs())
    assert_alike(gpu.placement_beliefs(), cpu.placement_beliefs())
    assert_alike(fetch(gpu.up()), cpu.up())
    np.testing.assert_array_equal(gpu.placements(), cpu.placements())


@pytest.mark.parametrize("name", ["page", "templates"])
@pytest.mark.parametrize("schedule", ["per-image", "blocks"])
def test_a_fixed_point_is_one_of_the_dense_engine(name, schedule, monkeypatch):
    monkeypatch.setattr(geometry, "PER_TILE", 10**4)
    monkeypatch.setattr(geometry, "SHARE", 1)
    start = problem(*LAYERS[name], 2, 20.0)
    gpu, _ = both(start)
    rng, order = np.random.default_rng(0), Schedule(schedule, rounds=2, block_size=1)
    assert any(gpu.sweep(order, rng) < 1e-4 for _ in range(30))
    cpu = on_cpu(gpu, start)
    assert 0 < gpu.n_active < cpu.placement_beliefs().size
    assert_alike(gpu.placement_beliefs(), cpu.placement_beliefs())
    assert_alike(gpu.weight_beliefs(), cpu.weight_beliefs())
    assert dense_twin(cpu).sweep(Schedule(), rng) < 2e-3


@pytest.mark.parametrize("name", ["two channels", "templates"])
def test_a_layer_in_a_network(name):
    """New evidence and expectations, certain ones among them; messages up and down."""
    layer, observed, evidence, prior, weights = problem(*LAYERS[name], 3, 2.0)
    everything, rng = np.ones_like(observed), np.random.default_rng(1)
    gpu, cpu = both((layer, everything, 0 * evidence, -HUGE, weights))
    stored = Schedule("per-image", rounds=2, shuffle=False)
    for turn in range(3):
        heard = (evidence + rng.normal(0, 1, evidence.shape)).astype(np.float32)
        gpu.set_evidence(hold(heard))
        cpu.set_evidence(heard)
        assert gpu.sweep(stored, rng) == pytest.approx(cpu.sweep(stored, rng), rel=1e-4, abs=1e-4)
        up = cpu.up()
        assert_alike(fetch(gpu.up()), up)
        expected = rng.normal(prior, 3, up.shape)
        expected[rng.random(up.shape) < 0.3] = -HUGE
        gpu.set_placement_prior(hold(expected.astype(np.float32)))
        cpu.set_placement_prior(expected.astype(np.float32))
        assert_alike(gpu.placement_beliefs(), cpu.placement_beliefs())
        for least in (-HUGE, -K):
            got, wanted = fetch(gpu.down(least)), cpu.down(least)
            assert_alike(got[wanted > least], wanted[wanted > least])
            assert (got[wanted <= least] <= least + 1e-4).all()
        assert gpu.n_active == cpu.n_active
        assert turn == 0 or gpu.n_active > 0


@pytest.mark.parametrize("name", ["per-image", "blocks"])
def test_the_same_seed_gives_the_same_bits_also_from_a_file(name, tmp_path):
    start = problem(*LAYERS["small images"], 4, 2.0)
    gpu, _ = both(start)
    rng, order = np.random.default_rng(3), Schedule(name, rounds=2, block_size=1)
    gpu.add_to_weights(np.full_like(start[-1], 0.25))
    for _ in range(2):
        gpu.sweep(order, rng)
    state = rng.bit_generator.state
    write(tmp_path / "state", "test", save(gpu))
    gpu.sweep(order, rng)
    again, _ = both(start)
    with Reader(tmp_path / "state", "test") as file:
        restore(again, file)
    rng.bit_generator.state = state
    again.sweep(order, rng)
    for what in ("placement_beliefs", "weight_beliefs"):
        np.testing.assert_array_equal(getattr(again, what)(), getattr(gpu, what)())


class ShuffledLanes:
    """The schedule "per-image" of a GPU, for the processor: the same trees in the same order."""

    rounds = 3

    def batches(self, owners, rng):
        count = np.bincount(owners, minlength=3)
        lanes = Lanes(np.concatenate([[0], np.cumsum(count)]), self.rounds)
        cuts, (step, ahead) = fetch(lanes.cuts), lanes.order(rng)
        parts = [(step * np.arange(n) + ahead * (k + 1)) % n for k, n in enumerate(count)]
        order = np.concatenate([part + cut for part, cut in zip(parts, cuts[0], strict=True)])
        assert sorted(order) == list(range(len(owners)))  # every tree once
        for begin, end in itertools.pairwise(cuts):
            parts = [order[a:b] for a, b in zip(begin, end, strict=True)]
            yield Batch(np.concatenate(parts), np.cumsum([0, *map(len, parts)]))


def test_lanes_are_updated_in_a_random_order():
    gpu, cpu = both(problem(*LAYERS["small images"], 6, 2.0))
    order = Schedule("per-image", rounds=ShuffledLanes.rounds)
    for seed in range(3):
        cpu.sweep(ShuffledLanes(), np.random.default_rng(seed))
        gpu.sweep(order, np.random.default_rng(seed))
        assert_same_messages(gpu, cpu)
    assert gpu.n_active > 0


@pytest.mark.parametrize("name", ["per-image", "blocks"])
def test_the_seed_decides_the_order(name):
    def learned(seed, shuffle):
        gpu, _ = both(problem(*LAYERS["small images"], 4, 2.0))
        order = Schedule(name, rounds=2, block_size=1, shuffle=shuffle)
        gpu.sweep(order, np.random.default_rng(seed))
        return gpu.weight_beliefs()

    assert (learned(0, True) != learned(1, True)).any()
    np.testing.assert_array_equal(learned(0, False), learned(1, False))


@pytest.mark.parametrize("wrong", [0, 10**6])
def test_a_file_with_impossible_placements_is_refused(wrong, tmp_path):
    gpu, _ = both(problem(*LAYERS["small images"], 4, 2.0))
    gpu.sweep(Schedule(), np.random.default_rng(0))
    contents = save(gpu)
    contents.arrays["where"][-1] = wrong
    write(tmp_path / "state", "test", contents)
    with (
        pytest.raises(ValueError, match="its active placements"),
        Reader(tmp_path / "state", "test") as file,
    ):
        restore(gpu, file)


@pytest.mark.parametrize("ties", [False, True])
def test_candidates_are_the_best_of_every_tile_and_of_ties_the_first(ties):
    layer, observed, evidence, prior, weights = problem(*LAYERS["small images"], 4, 2.0)
    weights = np.full_like(weights, -0.5) if ties else weights
    gpu, _ = both((layer, observed, evidence, prior, weights))
    belief = to_placements(gpu.placement_beliefs())
    image = belief.size // 3
    # All of the first image, a few of the second, none of the third.
    threshold = np.array([-HUGE, np.sort(belief[image : 2 * image])[-4], HUGE], np.float32)
    found, beliefs = gpu._candidates(threshold)
    tile = tiles_of(gpu._g, gpu._tiles, np.arange(belief.size))
    wanted = []
    for k in range(gpu._tiles.tiles):
        mine = np.flatnonzero((tile == k) & (belief > np.repeat(threshold, image)))
        wanted += mine[np.lexsort((mine, -belief[mine]))][: geometry.AT_ONCE].tolist()
    assert found.tolist() == wanted
    assert len(wanted) > gpu._tiles.tiles // 3 * geometry.AT_ONCE
    assert_alike(beliefs, belief[found])


def test_placements_that_stay_active_keep_their_slots():
    layer, n = LAYERS["page"]
    g, rng = geometry_of(layer), np.random.default_rng(0)
    tiles, every = tiling(g, n), np.arange(g.positions * g.features)
    slots = np.full(tiles.tiles * tiles.capacity, -1)
    for _ in range(20):
        belief = rng.random(len(every))
        chosen = geometry.admitted(g, tiles, np.ones(n), (every[:0], belief[:0]), (every, belief))
        active = np.sort(rng.permutation(chosen)[: rng.integers(len(chosen))])
        after, fresh = assign_slots(g, tiles, slots, active)
        np.testing.assert_array_equal(np.sort(after[after >= 0]), active)
        taken = np.flatnonzero(after >= 0)
        np.testing.assert_array_equal(tiles_of(g, tiles, after[taken]), taken // tiles.capacity)
        stays = np.setdiff1d(taken, fresh)
        np.testing.assert_array_equal(after[stays], slots[stays])
        slots = after


class BlocksOfColours:
    """The schedule "blocks" of a GPU, for the processor: the same trees at the same time."""

    def __init__(self, cpu, block_size):
        self._cpu, self._block_size = cpu, block_size

    def batches(self, owners, rng):
        g = self._cpu._g
        colours = Colours.of(g, self._cpu._n_images, self._block_size)
        h, w = g.window_height, g.window_width
        shape = (self._cpu._n_images, g.channels, g.board_height, g.board_width)
        n, a, row, column = np.unravel_index(self._cpu._edges.trees, shape)
        colour = (a * h + row % h) * w + column % w
        number = (n * colours.down + row // h) * colours.across + column // w
        block = colour * colours.chunks + number // colours.most
        for k in np.unique(block):
            order = np.flatnonzero(block == k)
            assert len(order) <= colours.most
            yield Batch(order, np.arange(len(order) + 1), simultaneous=True)


@pytest.mark.parametrize("name", ["page", "two channels", "table"])
@pytest.mark.parametrize("block_size", [1, 100])
def test_trees_of_a_block_are_updated_at_the_same_time(name, block_size):
    gpu, cpu = both(problem(*LAYERS[name], 6, 2.0))
    rng, order = np.random.default_rng(0), Schedule("blocks", block_size=block_size, shuffle=False)
    seen = 0
    for damping in (1.0, 0.5):
        cpu.sweep(BlocksOfColours(cpu, block_size), rng, damping)
        gpu.sweep(order, rng, damping)
        assert_same_messages(gpu, cpu)
        seen += gpu.n_active
    assert seen > 0


@pytest.mark.parametrize(
    ("size", "preset", "wanted"), [(12, True, 1), (12, False, 0), (8, True, 0)]
)
def test_large_images_are_updated_in_blocks_by_default(size, preset, wanted, monkeypatch):
    taken = []
    monkeypatch.setattr(ActiveCUDAPassing, "_update_blocks", lambda *_: taken.append(1))
    gpu, _ = both(problem(FeatureLayer(1, 1, (3, 3), (size, size), "valid"), 1, 0, 2.0))
    gpu.sweep(Schedule("per-image", preset=preset), np.random.default_rng(0))
    assert gpu.n_active > 0
    assert len(taken) == wanted


def test_a_tile_has_at_most_as_many_slots_as_placements():
    """Templates are as large as their images: each image has one position."""
    layer, n = FeatureLayer(2, 1, (20, 20), (20, 20), "valid"), 1000
    assert tiling(geometry_of(layer), 1).capacity == 2
    dense = Layout(layer, n).memory(n * 400)
    assert active_device_memory(layer, n) < 2 * dense


@pytest.mark.gpu
def test_memory_is_known_in_advance(free_memory):
    layer = FeatureLayer(20, 1, (20, 20), (600, 600))
    start = problem(layer, 2, 0, 1.0)
    gpu, _ = both(problem(*LAYERS["page"], 0, 1.0))  # what is compiled takes memory, too
    order = Schedule("blocks")
    gpu.sweep(order, np.random.default_rng(0))
    before = free_memory()
    gpu = ActiveCUDAPassing(*start)
    for k in range(3):
        gpu.sweep(order, np.random.default_rng(k))
    taken = before - free_memory()
    known = active_device_memory(layer, 2)
    assert 0.7 * known < taken < known


@pytest.mark.gpu
def test_larger_layers_have_the_beliefs_of_the_processor():
    """More placements than threads, tiles and blocks of threads can take at once."""
    layer = FeatureLayer(20, 2, (9, 8), (60, 70))
    _, observed, evidence, prior, weights = problem(layer, 30, 1, 20.0)
    # No two beliefs are the same, and none is at the threshold: there rounding would decide.
    evidence *= np.random.default_rng(0).uniform(0.9, 1.1, evidence.shape).astype(np.float32)
    gpu, cpu = both((layer, observed, evidence, prior, weights))
    rng, order = np.random.default_rng(0), Schedule("per-image", shuffle=False)
    for _ in range(3):
        assert gpu.sweep(order, rng) == pytest.approx(cpu.sweep(order, rng), rel=1e-3)
    assert gpu.n_active == cpu.n_active > 50
    np.testing.assert_allclose(gpu.weight_beliefs(), cpu.weight_beliefs(), atol=1e-2)
    np.testing.assert_allclose(gpu.placement_beliefs(), cpu.placement_beliefs(), atol=1e-2)
