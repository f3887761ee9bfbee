"""Learning from the image upwards: each step against its definition, all of it on known parts."""

import numpy as np
import pytest
from definition import layer, network

from hcnet.engine.driver import Limits, Status
from hcnet.hierarchy.convolution import _add_up
from hcnet.hierarchy.explaining import agreeing, all_allowed
from hcnet.images import Images
from hcnet.templates import part_search
from hcnet.templates.matching import match, shifted_windows
from hcnet.templates.part_search import PartImages, PartSearch, Placements
from hcnet.templates.template_kernels import count_shifts, explain_all, match_all
from hcnet.templates.template_learning import as_templates, choose, learn_templates, medoids

LIMITS = Limits()


def whole(X):
    return Images(X, np.ones_like(X))


def level(size=(3, 3), pool=(2, 3), border="full", channels=2, image=(8, 9), n=5):
    top = layer(1, None)
    first = layer(n, size, pool, border)
    return network(first, top, image_size=image, categories=(0,), channels=channels).levels[0]


LEVELS = {
    "full": level(),
    "same": level((2, 4), (3, 3), "same"),
    "no pool": level(pool=(1, 1), channels=1),
}


def window(level, r, c):
    """What lies below an element of R."""
    (h, w), (top, left) = level.pool.window, level.pool.offset
    rows = slice(max(r - top, 0), max(r - top + h, 0))
    return rows, slice(max(c - left, 0), max(c - left + w, 0))


def price(level, images, W, found):
    """The cost of an explanation, from its definition."""
    total = part_search.WEIGHT * W.sum()
    for n, places in enumerate(found.places):
        explained = np.zeros(images.pixels.shape[1:], bool)
        total += part_search.PLACEMENT * len(places)
        for f, r, c in places:
            for a, i, j in np.argwhere(W[f]):
                at = (a, *window(level, r + i, c + j))
                explained[at] = True
                there = images.pixels[n][at] | ~images.observed[n][at]
                total += part_search.LACKING * (not there.any())
        total += (images.pixels[n] & images.observed[n] & ~explained).sum()
    return total


@pytest.mark.parametrize("name", LEVELS)
@pytest.mark.parametrize("seen", [1.0, 0.8])
def test_cost_and_what_is_left(name, seen):
    where = LEVELS[name]
    rng = np.random.default_rng(1)
    shape = (6, where.pool.n_channels, *where.pool.below_size)
    images = Images(rng.random(shape) < 0.3, rng.random(shape) < seen)
    W = rng.random(where.weight_shape) < 0.3
    maps = PartImages(where, images)
    found = maps.explain(W)
    assert sum(map(len, found.places)) > 0
    assert maps.cost(W, found) == pytest.approx(price(where, images, W, found))


@pytest.mark.parametrize("name", LEVELS)
def test_every_placement_pays(name):
    """Greedy: each part lowers the cost by more than any other could have, and then none does."""
    where = LEVELS[name]
    rng = np.random.default_rng(2)
    images = whole(rng.random((2, where.pool.n_channels, *where.pool.below_size)) < 0.35)
    W = rng.random(where.weight_shape) < 0.25
    found = PartImages(where, images).explain(W)

    def cost(n, places):
        one = whole(images.pixels[n : n + 1])
        return price(where, one, W, Placements([np.array(places).reshape(-1, 3)], np.zeros(1)))

    rows, columns = where.features.placement_size
    everywhere = list(np.ndindex(len(W), rows, columns))
    for n, places in enumerate(found.places):
        so_far = []
        for place in [*places.tolist(), None]:
            before = cost(n, so_far)
            gains = {other: before - cost(n, [*so_far, other]) for other in everywhere}
            if place is None:
                assert max(gains.values()) <= 1e-6
            else:
                assert gains[tuple(place)] == pytest.approx(max(gains.values()))
                assert gains[tuple(place)] > 0
                so_far.append(tuple(place))


@pytest.mark.parametrize("name", LEVELS)
def test_fitting_never_costs(name):
    where = LEVELS[name]
    rng = np.random.default_rng(3)
    images = whole(rng.random((30, where.pool.n_channels, *where.pool.below_size)) < 0.2)
    maps = PartImages(where, images)
    W = rng.random(where.weight_shape) < 0.2
    found = maps.explain(W)
    new = maps.fit(W, found)
    use = np.bincount(np.concatenate(found.places)[:, 0], minlength=len(W))
    assert (use >= part_search.LEAST_USE).any()
    assert not new[use < part_search.LEAST_USE].any()
    for f in np.flatnonzero(use >= part_search.LEAST_USE):
        alone = Placements([p[p[:, 0] == f] for p in found.places], found.left)

        def cost(part, f=f, alone=alone):
            only = np.zeros_like(W)
            only[f] = part
            return price(where, images, only, alone)

        # No element more pays, and none of those that are on was chosen at a loss.
        fitted = cost(new[f])
        assert fitted <= cost(np.zeros_like(W[f])) + 1e-6
        for element in np.argwhere(~new[f]):
            more = new[f].copy()
            more[tuple(element)] = True
            assert cost(more) >= fitted - 1e-6


def jittered(rng, n, n_parts=3):
    """Images of some of three parts, each pixel of which moves by at most one; and which."""
    true = np.zeros((n_parts, 2, 6, 6), bool)
    true[0, 0, [0, 2, 4], 1] = True
    true[0, 0, 5, [3, 5]] = True
    true[1, 1, 0, [0, 2, 4]] = True
    true[1, 1, [2, 4], 5] = True
    true[2, 0, [0, 2, 4], [0, 2, 4]] = True
    true[2, 1, [4, 2], [0, 2]] = True
    X = np.zeros((n, 2, 30, 30), bool)
    shown = np.zeros((n, n_parts), bool)
    for k in range(n):
        for f in np.flatnonzero(rng.random(n_parts) < 0.7):
            shown[k, f] = True
            r, c = 1 + 10 * rng.integers(3), 1 + 10 * f
            for a, i, j in np.argwhere(true[f]):
                X[k, a, r + i + rng.integers(-1, 2), c + j + rng.integers(-1, 2)] = True
    return X, shown


def test_parts_that_jitter_are_found():
    rng = np.random.default_rng(0)
    X, shown = jittered(rng, 120)
    net = network(
        layer(5, (6, 6), (3, 3), "same"),
        layer(1, None, (3, 3), "same"),
        image_size=(30, 30),
        categories=(0,),
        channels=2,
    )
    process = PartSearch(net.levels[0], whole(X), rng)
    first = process.measure().objective
    for _ in range(10):
        process.step()
    last = process.measure()
    assert last.objective > first
    assert process.found.left.sum() < 0.2 * X.sum()
    # Every part found is one of the three, and each of the three is found.
    use = np.zeros((len(X), 5), bool)
    for n, places in enumerate(process.found.places):
        use[n, places[:, 0]] = True
    pure = np.array([[shown[use[:, g], f].mean() for f in range(3)] for g in range(5)])
    assert pure.max(axis=1).min() > 0.95
    assert set(pure.argmax(axis=1)) == {0, 1, 2}
    for f in range(3):
        own = use[:, pure.argmax(axis=1) == f].any(axis=1)
        assert (own == shown[:, f]).mean() > 0.9


def test_medoids_cover_the_others():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(at, 0.1, (10, 2)) for at in ((0, 0), (5, 0), (0, 5))])
    similarity = -np.linalg.norm(points[:, None] - points, axis=2)
    chosen = medoids(similarity, 3)
    assert sorted(chosen // 10) == [0, 1, 2]
    assert len(medoids(similarity, 99)) == 30
    # The first is the one that all others together are nearest to.
    assert chosen[0] == similarity.sum(axis=0).argmax()


def chosen_of(allowed, net, n=6):
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(n // 2), 2)
    similarity = np.where(group[:, None] == group, 0.0, -10.0) - 0.1 * ~np.eye(n, dtype=bool)
    return group[choose(similarity, allowed, net, rng)]


def test_templates_are_examples_of_their_class():
    net = network(layer(6, None), image_size=(4, 4), categories=(0, 0, 1, 1, 2, 2))
    labels = np.array([2, 2, 0, 0, 1, 1])
    assert chosen_of(agreeing(net, labels), net).tolist() == [1, 1, 2, 2, 0, 0]
    # Without a label: as the labelled image that it resembles.
    some = np.array([2, -1, 0, -1, -1, 1])
    assert chosen_of(agreeing(net, some), net).tolist() == [1, 1, 2, 2, 0, 0]
    # Without any: a cluster each.
    none = chosen_of(all_allowed(net, 6), net)
    assert (none[::2] == none[1::2]).all()
    assert len(set(none.tolist())) == 3


def test_maps_as_templates_at_the_centres_of_their_windows():
    for border in ("full", "same"):
        net = network(layer(1, None, (3, 5), border), image_size=(7, 8), categories=(0,))
        top = net.levels[-1]
        X = np.zeros((1, 1, 7, 8), bool)
        X[0, 0, 3, 4] = X[0, 0, 0, 0] = True
        W = as_templates(top, X)
        if border == "same":
            assert np.array_equal(W, X)
        else:
            assert np.argwhere(W[0, 0]).tolist() == [[0, 0], [2, 2]]


def test_learning_a_network_classifies_what_it_is_made_of():
    rng = np.random.default_rng(4)
    X, shown = jittered(rng, 150)
    some = shown.any(axis=1)
    X, y = X[some], shown[some] @ [4, 2, 1] - 1
    net = network(
        layer(6, (6, 6), (3, 3), "same"),
        layer(7 * 9, None, (3, 3), "same"),
        image_size=(30, 30),
        categories=np.repeat(np.arange(7), 9),
        channels=2,
    )
    rng = np.random.default_rng(0)
    found, weights, outcome = learn_templates(net, whole(X), agreeing(net, y), LIMITS, rng)
    assert outcome.status in (Status.PASSES_DONE, Status.FINISHED)
    assert [W.shape for W in weights] == [level.weight_shape for level in net.levels]
    # How far parts shift is learned; the pixels' own pools stay.
    assert found.levels[1].window.max() == 1
    assert np.array_equal(found.levels[0].window, net.levels[0].window)


def test_nothing_is_compiled_again_for_parts_of_few_weights():
    """Arrays of one element are laid out like no others, unless told."""
    net = network(layer(3, (3, 3), (3, 3)), layer(2, None), image_size=(9, 9), categories=(0, 1))
    X = np.random.default_rng(0).random((4, 1, 9, 9)) < 0.3
    allowed = agreeing(net, np.array([0, 1, 0, 1]))
    for images in (X, np.zeros_like(X)):
        rng = np.random.default_rng(0)
        _, weights, _ = learn_templates(net, whole(images), allowed, LIMITS, rng)
        match(net, weights, whole(X), allowed)
        shifted_windows(net, weights, whole(X), np.zeros(4, int))
    assert not any(W.any() for W in weights)  # nothing is learned from empty images
    # A loop over threads wraps what is compiled.
    loops = (loop.__wrapped__ for loop in (explain_all, match_all, _add_up))
    for compiled in (*loops, count_shifts):
        assert len(compiled.signatures) == 1
