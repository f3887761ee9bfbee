"""Scores of parts against known glyphs, beside a definition in plain Python."""

from collections import Counter

import numpy as np
import pytest

from hcnet.datasets import scanned_text
from hcnet.metrics import glyph_scores, groups_found


def exact_placements(data):
    """The true shapes at the places of the glyphs."""
    placements = []
    for page, shape, box in zip(data.pages, data.shapes, data.boxes, strict=True):
        rows, columns = np.nonzero(data.features[shape, 0])
        placements.append((page, shape, box[0] - rows.min(), box[1] - columns.min()))
    return np.array(placements)


@pytest.fixture(scope="module")
def page():
    text = "noon on moon, no one soon. " * 4
    return scanned_text(text=text, size=(330, 460), random_state=0)


def by_definition(placements, features, data):
    """The docstring of `glyph_scores`, word by word."""
    pixels = {}
    for page, row, column in zip(*np.nonzero(data.owners >= 0), strict=True):
        pixels.setdefault(data.owners[page, row, column], set()).add((page, row, column))
    stands, covers = [], []
    for page, part, top, left in placements:
        ink = {(page, top + y, left + x) for _, y, x in np.argwhere(features[part])}
        cover = {g: len(ink & own) for g, own in pixels.items() if ink & own}
        half = [g for g, n in cover.items() if 2 * n >= len(pixels[g])]
        if cover and not half:
            half = [min(cover, key=lambda g: (-cover[g], g))]
        stands.append(half)
        covers.append(cover)
    shapes, purity = [], []
    for part in range(len(features)):
        votes = Counter()
        for k in np.flatnonzero(placements[:, 1] == part):
            votes.update([data.shapes[g] for g in stands[k]] or [-1])
        known = {shape: n for shape, n in votes.items() if shape >= 0}
        best = min(known, key=lambda s: (-known[s], s)) if known else -1
        shapes.append(best)
        purity.append(known[best] / votes.total() if known else 0)
    copies = Counter(placements[:, 1].tolist())
    occur = Counter(data.shapes.tolist())
    good, counted, missing = 0, 0, 0
    for g, shape in enumerate(data.shapes):
        standing = [k for k in range(len(placements)) if g in stands[k]]
        missing += not standing
        if occur[shape] < 2:
            continue
        counted += 1
        if standing:
            part = placements[max(standing, key=lambda k: (covers[k][g], -k)), 1]
            good += copies[part] >= 2 and purity[part] >= 0.99 and shapes[part] == shape
    represented = [s for part, s in enumerate(shapes) if copies[part] >= 2 and s >= 0]
    n = len(data.shapes)
    return (
        good / counted,
        len(represented) / max(len(set(represented)), 1),
        len(placements) / n,
        missing / n,
        shapes,
        purity,
    )


def values(scores):
    return [getattr(scores, name) for name in type(scores).__dataclass_fields__]


@pytest.mark.parametrize("seed", range(12))
def test_scores_equal_their_definition(page, seed):
    rng = np.random.default_rng(seed)
    true = exact_placements(page)
    placements = true[rng.random(len(true)) < 0.9]
    moved = rng.random(len(placements)) < 0.5
    placements[moved, 2:] += rng.integers(-6, 7, (moved.sum(), 2))
    wrong = rng.random(len(placements)) < 0.1
    placements[wrong, 1] = rng.integers(len(page.features), size=wrong.sum())
    placements[:3, 2] -= 500  # outside
    features = page.features.copy()
    features[0, :, :, : features.shape[3] // 2] = False
    found = values(glyph_scores(placements, features, page))
    for one, other in zip(found, by_definition(placements, features, page), strict=True):
        np.testing.assert_allclose(one, other)


def test_the_truth_scores_best(page):
    scores = glyph_scores(exact_placements(page), page.features, page)
    assert values(scores)[:4] == [1, 1, 1, 0]
    np.testing.assert_array_equal(scores.part_shapes, np.arange(len(page.features)))
    np.testing.assert_array_equal(scores.part_purity, 1)


def test_a_part_for_two_letters_a_split_and_a_duplicate_are_counted():
    data = scanned_text(text="no no no no on", size=(90, 500), strength=0, random_state=0)
    true = exact_placements(data)
    n, o = data.names.index("n"), data.names.index("o")

    # The first two letters as one part.
    top, left = true[0, 2:] - 5
    pair = np.isin(data.owners[None, :, top : top + 40, left : left + 80], [0, 1])
    corners = [(0, 0, *(true[k, 2:] - 5)) for k in range(0, 8, 2)]
    whole = glyph_scores(np.array(corners), pair, data)
    assert whole.part_purity == [0.5]
    assert whole.in_pure_parts == 0
    assert whole.missing == pytest.approx(0.2)

    doubled = true.copy()
    doubled[[0, 2], 1] = 2  # half of the copies of n in a second part of the same shape
    features = np.concatenate([data.features, data.features[n : n + 1]])
    scores = glyph_scores(doubled, features, data)
    assert scores.parts_per_shape == 1.5
    assert scores.in_pure_parts == 1

    halves = data.features[[n, o, n]].copy()
    middle = halves.shape[3] // 2
    halves[0, ..., :middle] = halves[2, ..., middle:] = False
    order = np.where(true[:, 1] == n, 0, 1)
    split = true.copy()
    split[:, 1] = order
    left_halves = split[order == 0] + [0, 2, 0, 0]
    scores = glyph_scores(np.concatenate([split, left_halves]), halves, data)
    assert scores.placements_per_glyph == 1.5
    assert scores.parts_per_shape == 1.5


def test_nothing_found_is_no_error(page):
    scores = glyph_scores(np.zeros((0, 4), int), np.zeros((0, 1, 3, 3), bool), page)
    assert values(scores)[:4] == [0, 0, 0, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"placements": [[0, 99, 0, 0]]}, r"must have parts from 0 to \d+ in column 1, got 99"),
        ({"placements": [[1, 0, 0, 0]]}, r"must have images from 0 to 0 in column 0, got 1 to 1"),
        ({"placements": [[0, 0, 0]]}, r"whole numbers of shape \(placements, 4\)"),
        ({"placements": [[0, 0, 0, 0.5]]}, r"whole numbers of shape \(placements, 4\)"),
        ({"truth": None}, r"pass the result of hcnet.datasets.scanned_text"),
    ],
)
def test_bad_input_gets_a_sentence(page, change, message):
    given = {"placements": [[0, 0, 0, 0]], "features": page.features, "truth": page, **change}
    with pytest.raises((TypeError, ValueError), match=message):
        glyph_scores(**given)


def test_groups_are_found_in_any_order():
    rng = np.random.default_rng(0)
    true = rng.random((6, 1, 6, 6)) < 0.4
    for variants, order, found in (
        (2, [3, 2, 0, 1, 5, 4], 3),
        (2, [3, 1, 0, 2, 5, 4], 1),
        (3, [5, 3, 4, 1, 2, 0], 2),
        (3, [0, 1, 3, 2, 4, 5], 0),
    ):
        assert groups_found(true[order], true, variants) == found
    damaged = true.copy()
    damaged[0] = True  # hardly like any part
    damaged[0, 0, 0] = False
    assert groups_found(damaged, true, 2) >= 2
    assert groups_found(true[:4], true, 2) == 2
    with pytest.raises(ValueError, match="true must hold groups of 4 variants each, got 6 parts"):
        groups_found(true, true, 4)
