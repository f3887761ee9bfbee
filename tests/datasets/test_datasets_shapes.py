import numpy as np
import pytest
from scipy.stats import chi2

from hcnet.datasets import shapes

# Side of the parts and of the windows in which they move, odd and even.
SIZES = [(21, 3), (5, 1), (8, 2), (11, 4), (5, 5)]


def all_parts_images(data, template, jitter):
    """The OR of a template's two parts for every pair of shifts, and the pairs."""
    first, second = (data.features[f, 0] for f in np.flatnonzero(data.template_weights[template]))
    side = data.parts.shape[-1]

    def shifted(feature, down, right):
        rest_down = side - feature.shape[0] - down
        rest_right = side - feature.shape[1] - right
        return np.pad(feature, ((down, rest_down), (right, rest_right)))

    shifts = list(np.ndindex(jitter, jitter))
    pairs = [(a, b) for a in shifts for b in shifts]
    return [shifted(first, *a) | shifted(second, *b) for a, b in pairs], pairs


def sources(parts, jitter):
    """Whether each pixel of the clean image is reached from each offset: (offset, N, H, W)."""
    reach = jitter - 1
    return np.stack(
        [
            np.pad(parts[:, 0], ((0, 0), (down, reach - down), (right, reach - right)))
            for down, right in np.ndindex(jitter, jitter)
        ]
    )


@pytest.mark.parametrize(("side", "jitter"), SIZES)
def test_fields_have_the_documented_shapes_and_types(side, jitter):
    data = shapes(n_images=7, feature_size=side, jitter=jitter, random_state=0)
    before, after = side + jitter - 1, side + 2 * (jitter - 1)
    assert data.images.shape == data.clean.shape == (7, 1, after, after)
    assert data.parts.shape == (7, 1, before, before)
    assert data.features.shape == (4, 1, side, side)
    assert data.template_weights.shape == (4, 4, 1, 1)
    assert data.labels.shape == data.templates.shape == (7,)
    for bits in (data.images, data.clean, data.parts, data.features, data.template_weights):
        assert bits.dtype == np.bool_
    assert data.labels.dtype == data.templates.dtype == np.int64
    assert len(set(data.feature_names)) == len(set(data.template_names)) == 4


def test_parts_look_as_they_are_called():
    data = shapes(feature_size=7, random_state=0)
    drawn = {
        name: ["".join(".#"[int(pixel)] for pixel in row) for row in feature[0]]
        for name, feature in zip(data.feature_names, data.features, strict=True)
    }
    bar, hole = "#######", "#..#..#"
    assert drawn == {
        "square": [bar, hole, hole, bar, hole, hole, bar],
        "circle": ["..###..", ".#...#.", "#.....#", "#.....#", "#.....#", ".#...#.", "..###.."],
        "backward diagonal": ["." * k + "#" + "." * (6 - k) for k in range(7)],
        "forward diagonal": ["." * (6 - k) + "#" + "." * k for k in range(7)],
    }


def test_category_is_the_xor_of_the_two_traits():
    data = shapes(n_images=200, random_state=0)
    square, circle, backward, forward = data.template_weights[data.templates, :, 0, 0].T
    np.testing.assert_array_equal(square, ~circle)
    np.testing.assert_array_equal(backward, ~forward)
    np.testing.assert_array_equal(data.labels, circle ^ forward)
    for trait in (circle, forward):
        assert set(data.labels[trait]) == set(data.labels[~trait]) == {0, 1}


@pytest.mark.parametrize("jitter", [2, 3])
def test_templates_and_both_shifts_are_uniform_and_independent(jitter):
    n = 20_000
    data = shapes(n_images=n, feature_size=7, jitter=jitter, noise=0.0, random_state=2)
    cells = {}
    for template in range(4):
        images, pairs = all_parts_images(data, template, jitter)
        for image, pair in zip(images, pairs, strict=True):
            cells[image.tobytes()] = (template, *pair)
    assert len(cells) == 4 * jitter**4  # parts tell template and shifts
    counts = dict.fromkeys(cells.values(), 0)
    for parts, template in zip(data.parts, data.templates, strict=True):
        cell = cells[parts.tobytes()]
        assert cell[0] == template
        counts[cell] += 1
    expected = n / len(counts)
    statistic = sum((count - expected) ** 2 for count in counts.values()) / expected
    low, high = chi2.ppf([1e-4, 1 - 1e-4], len(counts) - 1)
    assert low < statistic < high
    for template in range(4):
        share = np.mean(data.templates == template)
        assert abs(share - 0.25) < 4 * np.sqrt(0.25 * 0.75 / n)


@pytest.mark.parametrize(("side", "jitter"), SIZES)
def test_pixels_move_no_further_than_the_window_and_none_is_lost(side, jitter):
    data = shapes(n_images=50, feature_size=side, jitter=jitter, random_state=3)
    reachable = sources(data.parts, jitter).any(axis=0)
    assert not (data.clean[:, 0] & ~reachable).any()
    windows = np.lib.stride_tricks.sliding_window_view(
        data.clean[:, 0], (jitter, jitter), axis=(1, 2)
    )
    assert windows.any(axis=(3, 4))[data.parts[:, 0]].all()
    before, after = (bits.sum(axis=(1, 2, 3)) for bits in (data.parts, data.clean))
    assert (after <= before).all()


@pytest.mark.parametrize("jitter", [2, 3])
def test_pixels_move_independently_and_uniformly(jitter):
    data = shapes(n_images=3000, feature_size=9, jitter=jitter, random_state=4)
    reached = sources(data.parts, jitter)
    n_sources = reached.sum(axis=0)
    # A pixel stays blank if each of its sources goes elsewhere, which happens independently.
    p_blank = (1 - 1 / jitter**2) ** n_sources
    surplus = ~data.clean[:, 0] - p_blank
    for offset in reached:
        # Pixels with a common source are correlated negatively, so the spread is at most this.
        spread = np.sqrt((p_blank * (1 - p_blank))[offset].sum())
        assert abs(surplus[offset].sum()) < 4 * spread
    for count in range(1, n_sources.max() + 1):
        chosen = n_sources == count
        if chosen.any():
            spread = np.sqrt((p_blank * (1 - p_blank))[chosen].sum())
            assert abs(surplus[chosen].sum()) < 4 * spread


def test_without_jitter_nothing_moves():
    data = shapes(n_images=20, jitter=1, noise=0.0, random_state=0)
    weights = data.template_weights[data.templates, :, 0, 0]
    expected = (weights[:, :, None, None] & data.features[:, 0]).any(axis=1)
    np.testing.assert_array_equal(data.parts[:, 0], expected)
    np.testing.assert_array_equal(data.clean, data.parts)
    np.testing.assert_array_equal(data.images, data.parts)
