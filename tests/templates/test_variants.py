"""Deformed variants of examples, and matching with them, against plain NumPy."""

import numpy as np
import pytest

from hcnet import Deformations
from hcnet.images import Images
from hcnet.templates import placing
from hcnet.templates import variants as matching
from hcnet.templates.deformations import vary
from hcnet.templates.placing import shifted
from hcnet.templates.variants import BESIDE, LACKING, NEAR, REACH, Variants

STILL = Deformations(0, 0, 0, 0, stroke=0)
SHAPE = (4, 9, 10)


@pytest.fixture
def examples():
    return np.random.default_rng(0).random((5, *SHAPE)) < 0.05


def drawn(elements, n, shape=SHAPE):
    images = np.zeros((n, np.prod(shape)), bool)
    for k, image in enumerate(images):
        image[elements.where[elements.start[k] : elements.start[k + 1]]] = True
    return images.reshape(n, *shape)


def near(image, how=np.float32):
    """How near each place is to an element: by distance, and by direction."""
    result = np.zeros(image.shape, how)
    for k, y, x in np.argwhere(image):
        for channel in range(len(image)):
            turn = min((channel - k) % len(image), (k - channel) % len(image))
            if turn > 1:
                continue
            for i, j in np.ndindex(image.shape[1:]):
                if max(abs(i - y), abs(j - x)) <= REACH:
                    value = np.exp(-((i - y) ** 2 + (j - x) ** 2) / (2 * NEAR**2))
                    value *= BESIDE if turn else 1
                    result[channel, i, j] = max(result[channel, i, j], value)
    return result


def test_without_deformations_variants_are_the_examples(examples):
    for directions in (True, False):
        how = Deformations(0, 0, 0, 0, stroke=0, directions=directions)
        found = drawn(vary(examples, 2, how, np.random.default_rng(0)), 15)
        assert np.array_equal(found, np.concatenate([examples] * 3))


def test_a_quarter_turn_moves_elements_and_directions():
    image = np.zeros((1, 4, 9, 9), bool)
    image[0, 0, 4, 6] = image[0, 1, 2, 4] = True
    turned = {tuple(at) for at in np.argwhere(np.rot90(image[0], axes=(1, 2)))}
    # Directions turn with the shape: from to the right (0) to upwards (3), from downwards (1) to
    # the right (0).
    wanted = {((k - 1) % 4, y, x) for k, y, x in turned}
    how = Deformations(90, 0, 0, 0, stroke=0)
    seen = set()
    for seed in range(200):
        rng = np.random.default_rng(seed)
        variant = drawn(vary(image, 1, how, rng), 2, image.shape[1:])[1]
        seen.add(frozenset(map(tuple, np.argwhere(variant).tolist())))
    assert frozenset(wanted) in seen


def test_variants_differ_by_as_much_as_they_may():
    image = np.zeros((1, 1, 41, 41), bool)
    image[0, 0, 20, 10:31] = True
    how = Deformations(0, 0, 0.5, 0)
    wide = [
        np.ptp(np.nonzero(variant[0].any(axis=0))[0])
        for variant in drawn(vary(image, 100, how, np.random.default_rng(0)), 101, (1, 41, 41))
    ]
    assert wide[0] == 20
    assert 13 <= min(wide) < 15
    assert 28 < max(wide) <= 30


def test_the_cost_counts_both_sides(examples):
    """The class whose examples cost less wins, by the votes of all of them."""
    codes = np.array([0, 0, 1, 1, 1])
    variants = Variants(examples, codes, 0, STILL, 0, np.zeros((0, 2), np.float32))
    images = np.random.default_rng(1).random((3, *SHAPE)) < 0.05
    given = Images(images, np.ones_like(images))
    scores = variants.class_scores(given, 2)
    weights = variants._weights(given)
    for n, image in enumerate(images):
        far = 1 - near(image)
        cost = [
            (weights[n, 0][:, None, None] * (1 - near(example)) * image).sum()
            + LACKING * (weights[n, 1][:, None, None] * far * example).sum()
            for example in examples
        ]
        nats = -matching.VOTE / variants._unit * np.array(cost)
        wanted = [np.logaddexp.reduce(nats[codes == k]) for k in range(2)]
        # Nearness is stored in steps of 1/255.
        assert np.diff(scores[n]) == pytest.approx(np.diff(wanted), abs=0.3)


def test_an_unobserved_pixel_is_neither_lacking_nor_unexplained(examples):
    variants = Variants(examples, np.arange(5), 0, STILL, 0, np.zeros((0, 5), np.float32))
    pixels = examples[:1].copy()
    hidden = np.zeros_like(pixels)
    hidden[..., 5:] = True
    without = Images(pixels & ~hidden, ~hidden)
    scribbled = Images(pixels | hidden, ~hidden)
    first, second = (variants.class_scores(given, 5) for given in (without, scribbled))
    assert np.array_equal(first, second)
    assert first.argmax() == 0


def test_learned_influence_tells_the_examples_apart(examples):
    codes = np.array([0, 1, 0, 1, 0])
    variants = Variants(examples, codes, 6, Deformations(), 3, np.zeros((0, 2), np.float32))
    learned = variants.learned(2)
    assert learned.influence.shape == (35, 2)
    given = Images(examples, np.ones_like(examples))
    votes, both = variants.class_scores(given, 2), learned.class_scores(given, 2)
    assert np.array_equal(both.argmax(axis=1), codes)
    own = np.arange(5), codes
    assert ((both - votes)[own] > (both - votes)[own[0], 1 - codes]).all()


def test_variants_without_weights_are_learned_from_too(examples, monkeypatch):
    monkeypatch.setattr(matching, "MOST_LEARNED", 12)
    codes = np.array([0, 1, 0, 1, 0])
    nothing = np.zeros((0, 2), np.float32)
    variants = Variants(examples, codes, 6, Deformations(rotation=5), 3, nothing)
    learned = variants.learned(2)
    assert learned.influence.shape == (12, 2)
    # More than the 12 that have weights is told apart by these.
    which, elements = np.arange(35), variants._tables[0]
    pixels = learned._drawn(elements, which)
    given = Images(pixels, np.ones_like(pixels))
    gain = learned.class_scores(given, 2) - variants.class_scores(given, 2)
    assert np.mean(gain.argmax(axis=1) == variants._codes) > 0.9
    monkeypatch.setattr(matching, "_BATCH", 8)
    pieces = variants.learned(2).influence
    assert pieces == pytest.approx(learned.influence, abs=0.02)


def test_an_object_is_moved_to_where_it_costs_least(examples, monkeypatch):
    """All shifts by up to three pixels, against the costs in plain NumPy."""
    least = 0.03  # of an example's elements; these stand close to each other
    monkeypatch.setattr(placing, "STEP", 1)
    monkeypatch.setattr(placing, "LEAST_GAIN", least)
    variants = Variants(examples, np.arange(5), 0, STILL, 0, np.zeros((0, 5), np.float32))
    rng = np.random.default_rng(2)
    which, by = rng.integers(0, 5, 12), rng.integers(-3, 4, (12, 2))
    everywhere = np.ones((12, *SHAPE), bool)
    images = shifted(Images(examples[which], everywhere), by).pixels
    given = Images(images | (rng.random(images.shape) < 0.01), everywhere)
    weights, moved = variants._weights(given), variants.placed(given, 3)

    def cost(apart, elements, weights, shift):
        """Of elements at a distance from something, after a shift; it is 1 outside."""
        padded = np.pad(apart, ((0, 0), (3, 3), (3, 3)), constant_values=1)
        k, y, x = np.nonzero(elements)
        return (weights[k] * padded[k, y + 3 + shift[0], x + 3 + shift[1]]).sum()

    around = [1 - near(example) for example in examples]
    shifts = np.array(sorted(np.ndindex(7, 7), key=lambda s: s != (3, 3))) - 3
    n_moved = 0
    for n, image in enumerate(given.pixels):
        far = 1 - near(image)
        costs = [
            min(
                cost(apart, image, weights[n, 0], shift)
                + LACKING * cost(far, example, weights[n, 1], -shift)
                for example, apart in zip(examples, around, strict=True)
            )
            for shift in shifts
        ]
        gain = (costs[0] - min(costs)) / variants._unit
        if abs(gain - least) > 0.01:  # nearness is stored in steps of 1/255
            wanted = shifts[[np.argmin(costs)]] if gain > least else shifts[:1]
            n_moved += wanted.any()
            assert np.array_equal(moved.pixels[n], shifted(given[n : n + 1], wanted).pixels[0])
    assert n_moved > 4


def test_a_shift_moves_what_is_observed_as_well():
    pixels = np.zeros((1, 1, 4, 5), bool)
    pixels[0, 0, 1, 2] = True
    observed = ~pixels
    moved = shifted(Images(pixels, observed), np.array([[2, -1]]))
    assert np.argwhere(moved.pixels).tolist() == np.argwhere(~moved.observed).tolist()
    assert np.argwhere(moved.pixels).tolist() == [[0, 0, 3, 1]]
