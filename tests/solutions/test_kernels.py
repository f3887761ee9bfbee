"""The compiled loops of the refinement against slow ones written from their definition."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from hcnet.images import Images
from hcnet.layers import FeatureLayer
from hcnet.objective import Priors, estimate
from hcnet.solutions import kernels
from hcnet.solutions.explanation import (
    NOWHERE,
    Canvas,
    Feature,
    concatenate_candidates,
    concatenate_offsets,
)
from hcnet.solutions.improver import Improver

# images, channels, image size, window, border, share of missing pixels
SHAPES = {
    "full": (2, 1, (7, 9), (3, 4), "full", 0.0),
    "valid": (2, 1, (7, 9), (3, 4), "valid", 0.0),
    "channels and missing pixels": (2, 3, (6, 7), (3, 2), "full", 0.3),
    "valid channels and missing pixels": (2, 2, (6, 7), (2, 3), "valid", 0.3),
    "one position": (3, 2, (4, 3), (4, 3), "valid", 0.2),
    "matrix": (6, 5, (1, 1), (1, 1), "valid", 0.2),
    "flat window": (2, 1, (5, 12), (1, 6), "full", 0.1),
}
K1, K0 = 2.5, 1.5
EVERY_PROBLEM = pytest.mark.parametrize(
    ("shape", "seed"), list(itertools.product(SHAPES, range(3)))
)


class Problem:
    """Random images, features and distinct placements."""

    def __init__(self, shape, seed, F=3, density=0.15):
        n, channels, size, window, border, missing = SHAPES[shape]
        self.rng = np.random.default_rng(seed)
        pixels = self.rng.random((n, channels, *size)) < 0.4
        observed = self.rng.random(pixels.shape) >= missing
        self.canvas = Canvas(
            FeatureLayer(F, channels, window, size, border), Images(pixels, observed)
        )
        self.improver = Improver(self.canvas, Priors())
        self.W = self.rng.random((F, channels, *window)) < 0.6
        self.W[:, 0, 0, 0] = True  # no feature is empty
        self.features = [self.improver.feature(w) for w in self.W]
        S = self.rng.random((n, F, *self.canvas.layer.placement_size)) < density
        self.placements = self.rng.permutation(np.argwhere(S)).astype(np.int64)
        self.sign = self.canvas.sign.reshape(-1)
        self.geometry = self.canvas.geometry
        self.offsets = concatenate_offsets(self.features)

    def cover(self, placements, W=None):
        """How many placements lie over each pixel, by adding windows."""
        W = self.W if W is None else W
        cover = np.zeros(self.canvas.sign.shape, int)
        h, w = self.canvas.layer.feature_size
        for n, f, r, c in placements:
            cover[n, :, r : r + h, c : c + w] += W[f]
        return cover

    def gain(self, cover, n, f, r, c, k1=K1, k0=K0):
        """What one more placement gains."""
        h, w = self.canvas.layer.feature_size
        below = self.canvas.sign[n, :, r : r + h, c : c + w]
        bare = self.W[f] & (cover[n, :, r : r + h, c : c + w] == 0)
        return k1 * np.sum(bare & (below > 0)) - k0 * np.sum(bare & (below < 0))

    def value(self, placements, cost):
        """All that placements gain, less what they cost."""
        on = self.cover(placements) > 0
        sign = self.canvas.sign
        gained = K1 * np.sum(on & (sign > 0)) - K0 * np.sum(on & (sign < 0))
        return gained - cost * len(placements)

    def make_cover(self, placements):
        return kernels.make_cover(placements, *self.offsets, self.geometry, self.sign.size)

    def candidates(self):
        """Positions, owners and bounds of all candidates."""
        positions, fits, owned, *_ = concatenate_candidates(self.weighted())
        return positions, np.repeat(np.arange(len(self.W)), np.diff(owned)), K1 * fits

    def weighted(self):
        """The features, for the evidence K1 and K0."""
        return [Feature(self.canvas, w, K0 / K1) for w in self.W]

    def place(self, cost):
        """Greedy placement from scratch: placements and cover."""
        found = concatenate_candidates(self.weighted())[:3]
        cover = self.make_cover(NOWHERE)
        model = *self.offsets, self.geometry, K1, K0, cost
        return kernels.place_greedily(self.sign, cover, *found, model), cover

    def exchange(self, placements, cost, passes=1, again=False):
        """Some passes; with `again`, all placements are looked at in each."""
        positions, fits, _, begin, best = concatenate_candidates(self.weighted())
        tiled = positions, fits, begin, best
        cover = self.make_cover(placements)
        after = placements.copy()
        visited, changed = np.zeros(len(after), np.int64), np.zeros(begin.shape[1] - 1, np.int64)
        model = *self.offsets, self.geometry, K1, K0, cost
        for _ in range(passes):
            if again:
                visited[:] = 0
            turn = self.rng.permutation(len(after))
            keep, changes = kernels.exchange(
                self.sign, cover, after, turn, tiled, visited, changed, model
            )
            after, visited = after[keep], visited[keep]
        return after, changes, cover


@EVERY_PROBLEM
@pytest.mark.parametrize("ratio", [0.5, 1.0])
def test_candidates_are_where_a_feature_fits(shape, seed, ratio):
    p = Problem(shape, seed)
    layer, sign = p.canvas.layer, p.canvas.sign
    h, w = layer.feature_size
    wanted = []
    grid = itertools.product(range(len(sign)), *map(range, layer.placement_size))
    for at, (n, r, c) in enumerate(grid):
        below = sign[n, :, r : r + h, c : c + w][p.W[0]]
        on, off = np.sum(below > 0), np.sum(below < 0)
        if on > ratio * off:
            wanted.append((at, on - ratio * off))
    found = Feature(p.canvas, p.W[0], ratio).candidates[:2]
    assert sorted(zip(*found, strict=True)) == wanted


@EVERY_PROBLEM
def test_tiles_hold_all_candidates_the_best_first(shape, seed):
    p = Problem(shape, seed)
    hs, ws = p.canvas.layer.placement_size
    h, w = p.canvas.layer.feature_size
    cols = -(-ws // w)
    rows = -(-hs // h)
    for feature in p.features:
        positions, fits, begin, bests = feature.candidates
        assert len(begin) == len(bests) + 1 == p.canvas.n_images * rows * cols + 1
        for t, best in enumerate(bests):
            here = slice(begin[t], begin[t + 1])
            n, r, c = kernels.locate.py_func(positions[here], p.geometry)
            assert ((n * rows + r // h) * cols + c // w == t).all()
            assert (np.diff(fits[here]) <= 0).all()
            assert best == max(fits[here], default=0)


@EVERY_PROBLEM
def test_greedy_placement_is_what_it_says(shape, seed):
    p = Problem(shape, seed)
    cost = 1.1 * K1
    placed, cover = p.place(cost)
    np.testing.assert_array_equal(cover, p.make_cover(placed))
    assert len(np.unique(placed, axis=0)) == len(placed)
    for k in range(len(placed)):  # every placement paid for itself when it was made
        assert p.gain(p.cover(placed[:k]), *placed[k]) > cost


@EVERY_PROBLEM
def test_greedy_placement_takes_the_best_first(shape, seed):
    """Without off pixels gains only fall, so the lazy queue is exact, to within a bucket."""
    p = Problem(shape, seed)
    p.sign[p.sign < 0] = 0
    cost = 0.5 * K1
    placed, _ = p.place(cost)
    positions, owners, bounds = p.candidates()
    assert len(placed)
    width = (bounds.max() - cost) / (kernels.BUCKETS - 1)
    n, r, c = kernels.locate.py_func(positions, p.geometry)
    everywhere = list(zip(n, owners, r, c, strict=True))
    for k in range(len(placed) + 1):
        cover = p.cover(placed[:k])
        best = max(p.gain(cover, *where) for where in everywhere)
        if k < len(placed):
            assert p.gain(cover, *placed[k]) >= best - width - 1e-9
        else:
            assert best <= cost + 1e-6


@EVERY_PROBLEM
def test_exchange_never_loses(shape, seed):
    p = Problem(shape, seed, density=0.05)
    cost = 1.1 * K1
    after, changed, cover = p.exchange(p.placements, cost)
    np.testing.assert_array_equal(cover, p.make_cover(after))
    assert p.value(after, cost) >= p.value(p.placements, cost) - 1e-9
    same = len(after) == len(p.placements) and (after == p.placements).all()
    assert same == (changed == 0)


@EVERY_PROBLEM
def test_exchange_looks_again_only_where_it_matters(shape, seed):
    """Passing over placements around which nothing has changed changes nothing."""
    problems = Problem(shape, seed, density=0.05), Problem(shape, seed, density=0.05)
    few, all_again = (
        p.exchange(p.placements, 1.1 * K1, passes=4, again=again)[0]
        for p, again in zip(problems, (False, True), strict=True)
    )
    np.testing.assert_array_equal(few, all_again)


@EVERY_PROBLEM
def test_supplanting_never_loses(shape, seed):
    p = Problem(shape, seed, density=0.05)
    cost = 0.8 * K1
    positions, owners, bounds = p.candidates()
    order = np.argsort(-bounds, kind="stable")
    cover = p.make_cover(p.placements)
    model = *p.offsets, p.geometry, K1, K0, cost
    what = p.sign, cover, p.placements, positions[order], owners[order]
    after = kernels.supplant(*what, model)
    np.testing.assert_array_equal(cover, p.make_cover(after))
    before = p.value(p.placements, cost)
    changed = sorted(map(tuple, after)) != sorted(map(tuple, p.placements))
    assert p.value(after, cost) > before + 1e-9 if changed else len(after) == len(p.placements)


def test_supplanting_puts_one_in_place_of_two():
    """What two placements explain together, but for a pixel that an exchange would lose."""
    pixels = np.zeros((1, 1, 3, 16), bool)
    pixels[0, 0, 1, :8] = True
    layer = FeatureLayer(2, 1, (1, 9), (3, 16), "valid")
    improver = Improver(Canvas(layer, Images(pixels, np.ones_like(pixels))), Priors())
    half, whole = np.arange(9) < 4, np.arange(9) < 9
    pair = [improver.feature(weights[None, None]) for weights in (half, whole)]
    start = np.array([[0, 0, 1, 0], [0, 0, 1, 4]])
    priors = Priors(p_S=0.05, p_W=0.3, p01=0.2, p10=0.2)
    rng = np.random.default_rng(0)
    stuck = improver.place(pair, start, priors, rng)
    assert sorted(map(tuple, stuck)) == sorted(map(tuple, start))
    now = improver.evaluate(pair[:1], start)
    found = improver.place(pair, start, priors, rng, now=now)
    assert found.tolist() == [[0, 1, 1, 0]]


@pytest.mark.parametrize("shape", ["full", "channels and missing pixels", "flat window"])
@pytest.mark.parametrize("seed", range(6))
def test_exchange_puts_the_best_neighbour_in_place(shape, seed):
    p = Problem(shape, seed)
    cost = 0.6 * K1
    h, w = p.canvas.layer.feature_size
    start = p.placements[:1]
    n, _, r0, c0 = start[0]
    after, _, _ = p.exchange(start, cost)
    positions, owners, bounds = p.candidates()
    bare = p.cover(NOWHERE)
    gains = [p.gain(bare, *start[0])]
    where = kernels.locate.py_func(positions, p.geometry)
    for i, r, c, f, bound in zip(*where, owners, bounds, strict=True):
        if i == n and abs(r - r0) < h and abs(c - c0) < w and bound > cost:
            gains.append(p.gain(bare, i, f, r, c))
    if max(gains) <= cost:
        assert len(after) == 0
    else:
        assert p.gain(bare, *after[0]) == pytest.approx(max(gains))


def slow_fit(p, W, placements, prior, sweeps):
    """Every weight in turn, by trying both values and counting."""
    W = W.astype(int)
    sign = p.canvas.sign
    for _, (f, a, i, j) in itertools.product(range(sweeps), np.ndindex(W.shape)):
        mine = placements[placements[:, 1] == f]
        if not len(mine):
            continue
        scores = []
        for value in (0, 1):
            W[f, a, i, j] = value
            on = p.cover(placements, W) > 0
            good = K1 * np.sum(on & (sign > 0)) - K0 * np.sum(on & (sign < 0))
            scores.append(good + prior * value)
        W[f, a, i, j] = scores[1] > scores[0] + 1e-9
    return W


@EVERY_PROBLEM
def test_fitted_weights_are_the_better_ones(shape, seed):
    p = Problem(shape, seed, F=2)
    W = p.W.astype(np.int8)
    cover = p.make_cover(p.placements)
    touched = kernels.fit_weights(p.sign, cover, W, p.placements, p.geometry, K1, K0, -0.7, 2)
    np.testing.assert_array_equal(W, slow_fit(p, p.W, p.placements, -0.7, 2))
    np.testing.assert_array_equal(
        cover.reshape(p.canvas.sign.shape), p.cover(p.placements, W.astype(bool))
    )
    np.testing.assert_array_equal(touched, (W != p.W).any(axis=(1, 2, 3)) | touched)


@EVERY_PROBLEM
def test_neighbours_are_counted_by_offset(shape, seed):
    p = Problem(shape, seed, F=3)
    placements = p.placements[np.lexsort(p.placements.T[[3, 2, 0]])]
    h, w = p.canvas.layer.feature_size
    times = {}
    for (n, f, r, c), (m, g, y, x) in itertools.combinations(placements.tolist(), 2):
        if n != m or abs(y - r) >= h or abs(x - c) >= w:
            continue
        key = (f, g, y - r, x - c) if f <= g else (g, f, r - y, c - x)
        times[key] = times.get(key, 0) + 1
    wanted = {key: value for key, value in times.items() if value > 1}
    got = kernels.neighbours(placements, p.geometry, 3)
    assert {tuple(row[:4]): row[4] for row in got.tolist()} == wanted
    assert len(got) == len(wanted)


@EVERY_PROBLEM
def test_evaluation_counts_the_cost_of_what_it_keeps(shape, seed):
    p = Problem(shape, seed)
    unused = p.placements[p.placements[:, 1] != 1]
    found = p.improver.evaluate(p.features, unused)
    layer = p.canvas.layer
    F = len(np.unique(unused[:, 1]))
    np.testing.assert_array_equal(found.cover.reshape(p.canvas.sign.shape), p.cover(unused))
    assert len(found.features) == F
    assert found.counts.placed == len(unused)
    assert found.counts.positions == F * layer.n_positions * p.canvas.n_images
    assert found.counts.weights_on == sum(feature.weights.sum() for feature in found.features)
    on, sign, counts = p.cover(unused) > 0, p.canvas.sign, found.counts
    assert (counts.hit, counts.false) == (np.sum(on & (sign > 0)), np.sum(on & (sign < 0)))
    assert (counts.missed, counts.empty) == (np.sum(~on & (sign > 0)), np.sum(~on & (sign < 0)))
    everything = p.improver.evaluate(p.features, unused, prune=False)
    assert len(everything.features) == 3


@EVERY_PROBLEM
def test_improvement_is_never_worse_than_its_first_round(shape, seed):
    p = Problem(shape, seed)
    start = p.improver.evaluate(p.features, p.placements)
    known = start.features, start.placements, start
    one, three = (p.improver.improve(*known, np.random.default_rng(0), rounds) for rounds in (1, 3))
    assert three.bits <= one.bits
    for found in (one, three):
        again = p.improver.evaluate(found.features, found.placements)
        np.testing.assert_array_equal(again.cover, found.cover)
        assert again.bits == found.bits


@pytest.mark.parametrize(
    ("bits", "best"), [([10, 12, 8], 10), ([10, 8, 9], 8), ([10, 9, 8], 8), ([10, 10, 1], 10)]
)
def test_improvement_stops_before_it_gets_worse(bits, best, monkeypatch):
    p = Problem("full", 0)
    start = p.improver.evaluate(p.features, p.placements)
    rounds = iter([replace(start, bits=float(x)) for x in bits])
    monkeypatch.setattr(p.improver, "evaluate", lambda *_: next(rounds))
    now = replace(start, bits=99.0)
    assert p.improver.improve(p.features, p.placements, now, p.rng).bits == best


@EVERY_PROBLEM
def test_recentring_changes_no_pixel(shape, seed):
    p = Problem(shape, seed)
    W = np.zeros_like(p.W)
    W[:, :, 0, :2] = True  # in a corner of the window
    features = [p.improver.feature(w) for w in W]
    before = p.improver.evaluate(features, p.placements, prune=False)
    after = p.improver.evaluate(*p.improver.recentre(features, p.placements), prune=False)
    observed = p.sign != 0
    np.testing.assert_array_equal(before.cover[observed], after.cover[observed])


def test_nothing_can_be_improved_from_nothing():
    p = Problem("full", 0)
    nothing = p.improver.improve([], NOWHERE, p.improver.evaluate([], NOWHERE), p.rng)
    assert nothing.features == ()
    assert p.improver.place([], NOWHERE, estimate(nothing.counts, Priors()), p.rng) is NOWHERE
