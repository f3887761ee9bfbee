"""Matching both ways, against its definition in plain loops."""

from functools import cache

import numpy as np
import pytest
from definition import features_below, layer, members, network, random_images, random_weights
from scipy.special import logsumexp

from hcnet.hierarchy.explaining import agreeing, all_allowed
from hcnet.images import Images, Noise
from hcnet.templates import matching
from hcnet.templates.matching import channel_costs, match, shifted_windows


def nets():
    single = network(layer(3, (4, 4), (2, 2)), image_size=(5, 6), categories=(0, 1, 1))
    yield "one level", single, [5]
    yield (
        "two levels",
        network(
            layer(4, (2, 3), (3, 3), "same", 0.4),
            layer(3, (3, 3), (2, 3), "full", 0.6),
            image_size=(6, 7),
            categories=(0, 1, 1),
            channels=2,
        ),
        [4, 5],
    )
    yield (
        "three levels, several positions",
        network(
            layer(3, (2, 2), (3, 1), "same"),
            layer(4, (2, 2), (2, 2), "full", 0.5),
            layer(2, (2, 2), (3, 3), "same", 0.3),
            image_size=(7, 6),
            categories=(0, 1),
        ),
        [3, 4, 3],
    )
    yield (
        "ring and variants",
        network(
            layer(4, (2, 3), (3, 3), "same", 0.4, depth=3, order="ring"),
            layer(3, (3, 3), (2, 3), "full", 0.6, depth=2),
            image_size=(6, 7),
            categories=(0, 1, 1),
            channels=4,
        ),
        [4, 5],
    )


NETS = {name: (net, on) for name, net, on in nets()}


def choices(level, a, r, c):
    """All members of a pool, with relative log-probabilities."""
    found = members(level, a, r, c)
    best = max(p for *_, p in found)
    return [(m, b, y, x, p - best) for m, b, y, x, p in found]


def expected(net, weights, pixels, observed, lacking):
    """What a feature at a place lacks, and all that it could lack; by recursion."""

    @cache
    def placement(k, f, r, c):
        return sum(element(k, a, r + i, c + j) for a, i, j in np.argwhere(weights[k][f]).tolist())

    @cache
    def everything(k, f):
        if k < 0:
            return -lacking[f]
        return sum(hidden(k, a) for a, _, _ in np.argwhere(weights[k][f]).tolist())

    @cache
    def hidden(k, a):
        """All that an element of R could lack, whatever it chooses."""
        return max(everything(k - 1, b) for b in features_below(net.levels[k].pool, a))

    @cache
    def element(k, a, r, c):
        options = []
        for _, b, y, x, prior in choices(net.levels[k], a, r, c):
            if k == 0:
                there = pixels[b, y, x] or not observed[b, y, x]
                value = 0.0 if there else -lacking[b]
            else:
                value = placement(k - 1, b, y, x)
            options.append(value + prior)
        best = max(options)
        return best if k == 0 else max(best, matching.HIDDEN * hidden(k, a))

    return placement, hidden


def explained(net, weights, placement, hidden, t, r, c, shape, shifts=None):
    """Pixels that a template may explain, its parts where they lack least."""
    marked = np.zeros(shape, bool)

    def work(k, f, r, c):
        for a, i, j in np.argwhere(weights[k][f]).tolist():
            places = choices(net.levels[k], a, r + i, c + j)
            if k == 0:
                for _, b, y, x, _ in places:
                    marked[b, y, x] = True
                continue
            values = [placement(k - 1, b, y, x) + prior for _, b, y, x, prior in places]
            best = int(np.argmax(np.round(values, 6)))  # the first of equals
            if values[best] > matching.HIDDEN * hidden(k, a) + 1e-6:
                if shifts is not None:
                    shifts[k][places[best][0]] += 1
                work(k - 1, *places[best][1:4])

    work(len(weights) - 1, t, r, c)
    return marked


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("seen", [1.0, 0.7])
def test_match_is_what_its_definition_says(name, seen):
    net, on = NETS[name]
    rng = np.random.default_rng(3)
    for _ in range(4):
        weights = random_weights(net, rng, on)
        images = random_images(net, 3, rng, on=0.2, observed=seen)
        got = match(net, weights, images, all_allowed(net, 3))
        lacking, unexplained = channel_costs(net, images)
        categories = np.array(net.classes.categories)
        height, width = net.top_size
        got = got.reshape(3, len(categories), height, width)
        for n in range(3):
            pixels, observed = images.pixels[n], images.observed[n]
            placement, hidden = expected(net, weights, pixels, observed, lacking[n])
            for t, r, c in np.ndindex(len(categories), height, width):
                marked = explained(net, weights, placement, hidden, t, r, c, pixels.shape)
                left = (pixels & observed & ~marked).sum(axis=(1, 2)) @ unexplained[n]
                prior = -np.log(net.classes.n_classes * height * width)
                prior -= np.log((categories == categories[t]).sum())
                want = matching.PIXEL * (placement(len(weights) - 1, t, r, c) - left) + prior
                assert got[n, t, r, c] == pytest.approx(want, abs=1e-3)


def test_shifts_are_counted_where_parts_are():
    net, on = NETS["two levels"]
    rng = np.random.default_rng(5)
    weights = random_weights(net, rng, on)
    images = random_images(net, 6, rng, on=0.3)
    templates = rng.integers(3, size=6)
    windows = shifted_windows(net, weights, images, templates)
    lacking, _ = channel_costs(net, images)
    shifts = [np.ones(level.pool.n_members) for level in net.levels]
    for n, t in enumerate(templates):
        pixels, observed = images.pixels[n], images.observed[n]
        placement, hidden = expected(net, weights, pixels, observed, lacking[n])
        explained(net, weights, placement, hidden, t, 0, 0, pixels.shape, shifts)
    assert shifts[1].sum() > 12
    assert np.array_equal(windows[0], net.levels[0].window)
    assert np.allclose(windows[1], shifts[1].reshape(1, 1, 2, 3) / shifts[1].max())


def test_templates_that_a_label_rules_out_are_not_chosen():
    net, on = NETS["two levels"]
    rng = np.random.default_rng(0)
    weights, images = random_weights(net, rng, on), random_images(net, 20, rng)
    codes = rng.integers(2, size=20)
    score = match(net, weights, images, agreeing(net, codes))
    assert np.array_equal(net.entry_categories[score.argmax(axis=1)], codes)


def test_all_templates_of_a_class_count_together():
    net = network(layer(3, (4, 5), (2, 2)), image_size=(5, 6), categories=(0, 1, 1))
    score = np.log(np.array([[0.2, 0.15, 0.15]]))
    assert np.allclose(np.exp(net.by_class(score, logsumexp)), [[0.2, 0.3]])


def test_what_is_left_unexplained_counts():
    """A template that expects little does not win by that."""
    net = network(layer(2, (4, 4), (1, 1)), image_size=(4, 4), categories=(0, 1))
    W = np.zeros((2, 1, 4, 4), bool)
    W[0, 0, 1, 1] = True  # a dot
    W[1, 0, 1] = True  # a bar that holds the dot
    bar = Images(W[1:], np.ones_like(W[1:]))
    assert match(net, [W], bar, all_allowed(net, 1)).argmax() == 1
    dot = Images(W[:1], np.ones_like(W[:1]))
    assert match(net, [W], dot, all_allowed(net, 1)).argmax() == 0


def test_lacking_pixels_cost_less_where_ink_often_fails():
    """The noise decides whether half a bar is a bar of which half is missing, or a dot and more."""
    W = np.zeros((2, 1, 4, 4), bool)
    W[0, 0, 1, 1] = True  # a dot
    W[1, 0, 1] = True  # a bar
    half = np.zeros((1, 1, 4, 4), bool)
    half[0, 0, 1, :2] = True
    images = Images(half, np.ones_like(half))
    costs, best = [], []
    for noise in (Noise(1e-4, 1e-4), Noise(0.4, 1e-4)):
        net = network(layer(2, (4, 4), (1, 1)), image_size=(4, 4), categories=(0, 1), noise=noise)
        costs.append([cost.item() for cost in channel_costs(net, images)])
        best.append(int(match(net, [W], images, all_allowed(net, 1)).argmax()))
    assert best == [0, 1]
    assert costs[1][0] == pytest.approx(costs[0][0] * np.log(1 / 0.4) / np.log(0.6e4), rel=1e-3)
    assert costs[1][1] == costs[0][1]
