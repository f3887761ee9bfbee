"""Features that take each other's place become a group, and are shifted to the same places."""

import numpy as np
import pytest
from definition import layer, network
from scipy.ndimage import maximum_filter

from hcnet.datasets import words
from hcnet.hierarchy import grouping
from hcnet.hierarchy.grouping import (
    aligned,
    clustered,
    exchanges,
    grouped,
    levels_with_variants,
    next_priors,
    per_cluster,
    present,
    reborn,
    round_passes,
)
from hcnet.images import Images
from hcnet.metrics import groups_found, part_iou
from hcnet.validation.images import check_images

WORDS = ("AC", "CH", "HT", "TA")


@pytest.fixture(scope="module")
def page():
    """Words, the network that makes them, and its features in a wrong order."""
    data = words(WORDS, n_images=80, random_state=0)
    features, _, height, width = data.features.shape
    net = network(
        layer(features, (height, width)),
        layer(4, None, (3, 3), depth=2),
        image_size=data.images.shape[2:],
        categories=(0, 1, 2, 3),
    )
    order = np.random.default_rng(1).permutation(features)
    return data, net, data.features[order], order


def test_features_are_found_where_they_are_whatever_their_group(page):
    data, net, W, order = page
    seen, _ = present(net, [W], check_images(data.images, None).images)
    where = np.argsort(order)  # of a true feature in W
    for n in range(20):
        letters = [data.letters.index(one) for one in data.words[data.labels[n]]]
        wanted = {int(where[2 * k + form]) for k, form in zip(letters, data.forms[n], strict=True)}
        assert set(np.flatnonzero(seen[n].any(axis=(1, 2))).tolist()) >= wanted
    assert seen.sum() <= 2.1 * len(seen)


def test_images_of_a_word_are_a_cluster_and_its_fonts_a_group(page):
    data, net, W, _ = page
    seen, _ = present(net, [W], check_images(data.images, None).images)
    wide = maximum_filter(seen, size=(1, 1, 3, 3)).reshape(80, len(W), -1)
    found = clustered(wide.reshape(80, -1), np.ones((80, 4), bool), np.random.default_rng(0))
    for label in range(4):
        assert len(np.unique(found[data.labels == label])) == 1
    groups = grouped(exchanges(wide, found), 2, np.random.default_rng(0))
    assert groups_found(W[np.argsort(groups, kind="stable")], data.features, 2) == 4


def test_the_next_round_starts_from_the_features_in_their_groups(page):
    data, net, W, _ = page
    images, allowed = check_images(data.images, None).images, np.ones((80, 4), bool)
    weights = [W, np.zeros(net.levels[1].weight_shape, bool)]
    first, second = next_priors(net, weights, images, allowed, 0, np.random.default_rng(0))
    assert groups_found(first > 0, data.features, 2) == 4
    assert set(np.abs(first).ravel().tolist()) == {grouping.CONFIDENCE}
    assert second.shape == net.levels[1].weight_shape
    assert (second < 0).all()  # nothing is known of the templates


def test_a_feature_that_is_lacking_is_cut_from_where_the_others_are_wrong(page):
    data, net, W, _ = page
    images = check_images(data.images, None).images
    less = W.copy()
    less[3] = False
    seen, wrong = present(net, [less], images)
    found = reborn(net.levels[0], less, np.array([3]), images, seen, wrong)
    np.testing.assert_array_equal(np.delete(found, 3, axis=0), np.delete(W, 3, axis=0))
    assert part_iou(found[3], W[3]) > 0.8


def test_a_label_decides_about_a_cluster():
    rng = np.random.default_rng(0)
    seen = np.repeat(rng.random((1, 30)) < 0.5, 20, axis=0)  # all alike
    labels = np.arange(20) % 2
    allowed = labels[:, None] == np.array([0, 0, 1])
    found = clustered(seen, allowed, rng)
    assert ((found == 2) == (labels == 1)).all()


@pytest.mark.parametrize("variants", [2, 3])
def test_groups_have_the_most_exchanges(variants):
    """Compared with all groupings of six features."""
    rng = np.random.default_rng(variants)
    for _ in range(10):
        x = rng.random((6, 6))
        x = x + x.T
        np.fill_diagonal(x, 0)

        def value(groups, x=x):
            return x[groups[:, None] == groups].sum()

        def partitions(left):
            if not left:
                yield []
                return
            for rest in _subsets(left[1:], variants - 1):
                others = [one for one in left[1:] if one not in rest]
                for more in partitions(others):
                    yield [[left[0], *rest], *more]

        best = 0.0
        for parts in partitions(list(range(6))):
            groups = np.empty(6, int)
            for k, part in enumerate(parts):
                groups[part] = k
            best = max(best, value(groups))
        found = grouped(x, variants, rng)
        assert np.bincount(found).tolist() == [variants] * (6 // variants)
        assert value(found) == pytest.approx(best)


def _subsets(items, size):
    if size == 0:
        yield []
        return
    for k, one in enumerate(items):
        for rest in _subsets(items[k + 1 :], size - 1):
            yield [one, *rest]


def test_features_together_in_an_image_do_not_exchange():
    wide = np.zeros((4, 3, 5), bool)
    wide[[0, 1], 0, 2] = wide[[2, 3], 1, 2] = True  # 0 and 1 alternate at a place
    wide[:, 2, 4] = True
    wide[[0, 1], 2, 2] = True  # 2 is there together with 0
    found = exchanges(wide, np.zeros(4, int))
    assert found[0, 1] > 0
    assert found[0, 2] < 0 < found[0, 1]
    assert (found == found.T).all()


def test_variants_are_shifted_to_the_same_place():
    seen = np.zeros((6, 2, 6, 9), bool)
    seen[:4, 0, 2, 5] = True
    seen[4:, 1, 3, 3] = True  # one row lower, two columns further left
    W = np.zeros((2, 1, 4, 6), bool)
    W[0, 0, 1:3, 2:4] = True
    W[1, 0, 1:3, 2:5] = True
    counts = per_cluster(seen, np.zeros(6, int))
    found = aligned(W, np.zeros(2, int), counts, np.array([4, 2]))
    np.testing.assert_array_equal(found[0], W[0])
    wanted = np.zeros((4, 6), bool)
    wanted[2:4, 0:3] = True
    np.testing.assert_array_equal(found[1, 0], wanted)
    # Without room the feature that is used most moves instead.
    W[1, 0] = True
    found = aligned(W, np.zeros(2, int), counts, np.array([4, 2]))
    np.testing.assert_array_equal(found[1], W[1])
    wanted = np.zeros((4, 6), bool)
    wanted[0:2, 4:6] = True
    np.testing.assert_array_equal(found[0, 0], wanted)


@pytest.mark.parametrize("passes", [1, 3, 4, 10, 121])
def test_rounds_share_the_passes(passes):
    assert sum(round_passes(passes)) == passes
    assert min(round_passes(passes)) >= 1


def test_only_groups_are_variants():
    layers = [layer(4, (2, 2)), layer(4, (2, 2), depth=2), layer(2, (1, 1), depth=3, order="ring")]
    net = network(*layers, image_size=(5, 5), categories=(0, 1))
    assert levels_with_variants(net) == [0]


def test_nothing_in_the_images_is_no_error():
    net = network(layer(4, (2, 2)), layer(2, None, depth=2), image_size=(4, 4), categories=(0, 1))
    images = Images(np.zeros((3, 1, 4, 4), bool), np.ones((3, 1, 4, 4), bool))
    weights = [np.zeros(level.weight_shape, bool) for level in net.levels]
    priors = next_priors(net, weights, images, np.ones((3, 2), bool), 0, np.random.default_rng(0))
    assert all(np.isfinite(prior).all() for prior in priors)


def test_three_variants_are_shifted_together():
    """One of them has no room, so that the others follow it."""
    seen = np.zeros((3, 3, 6, 5), bool)
    seen[0, 0, 1, 2] = seen[1, 1, 2, 2] = seen[2, 2, 2, 2] = True
    W = np.zeros((3, 1, 5, 5), bool)
    W[0, 0, 1:3] = W[1, 0, 1:3] = W[2, 0, 3:5] = True
    counts = per_cluster(seen, np.zeros(3, int))
    found = aligned(W, np.zeros(3, int), counts, np.array([3, 2, 1]))
    # The ink begins on rows 2, 3 and 5 of the page, and all are now placed on row 2.
    assert found.any(axis=(1, 3)).argmax(axis=1).tolist() == [0, 1, 3]
    assert found.sum(axis=(1, 2, 3)).tolist() == [10, 10, 10]


def test_features_that_are_nowhere_start_anew():
    """With equal log-odds for all of them they would stay alike for ever."""
    net = network(layer(4, (2, 2)), layer(2, None, depth=2), image_size=(4, 4), categories=(0, 1))
    images = Images(np.zeros((3, 1, 4, 4), bool), np.ones((3, 1, 4, 4), bool))
    weights = [np.zeros(level.weight_shape, bool) for level in net.levels]
    priors = next_priors(net, weights, images, np.ones((3, 2), bool), 0, np.random.default_rng(0))
    assert len(np.unique(priors[0])) > 4
