import numpy as np
import pytest

from hcnet.datasets import deconvolution, letters, shapes, small_letters, symbols, text, two_bars

GENERATORS = [two_bars, symbols, letters, text, small_letters, deconvolution]
SEEDS = range(3)


def draw_one_by_one(data):
    """The clean images, pixel by pixel; fails where ink leaves the image."""
    canvas = np.zeros(data.images.shape, dtype=bool)
    for image, feature, row, column in data.placements:
        for channel, i, j in np.argwhere(data.features[feature]):
            assert row + i >= 0
            assert column + j >= 0
            canvas[image, channel, row + i, column + j] = True
    return canvas


def ink_boxes(data, image):
    """First and last row and column of the ink of each part in one image."""
    boxes = []
    for _, feature, row, column in data.placements[data.placements[:, 0] == image]:
        _, rows, columns = np.nonzero(data.features[feature])
        boxes.append(
            (row + rows.min(), row + rows.max(), column + columns.min(), column + columns.max())
        )
    return np.array(boxes)


def smallest_gap(boxes):
    """The least number of blank pixels between two boxes, diagonals included."""
    top, bottom, left, right = boxes.T
    rows = np.maximum(top[:, None] - bottom[None], top[None] - bottom[:, None])
    columns = np.maximum(left[:, None] - right[None], left[None] - right[:, None])
    gaps = np.maximum(rows, columns) - 1
    return gaps[~np.eye(len(boxes), dtype=bool)].min()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("generate", GENERATORS)
def test_placements_and_features_give_the_clean_images(generate, seed):
    data = generate(random_state=seed)
    np.testing.assert_array_equal(data.render(), data.clean)
    np.testing.assert_array_equal(draw_one_by_one(data), data.clean)


@pytest.mark.parametrize("generate", GENERATORS)
def test_fields_have_the_documented_shapes_and_parts_are_centred(generate):
    data = generate(random_state=0)
    assert data.images.shape == data.clean.shape
    assert data.images.dtype == data.clean.dtype == data.features.dtype == np.bool_
    assert data.images.shape[1] == data.features.shape[1] == 1
    assert data.features.shape[2:] == data.feature_size
    assert data.placements.dtype == np.int64
    assert data.placements.shape[1] == 4
    assert len(data.names) == len(data.features) == len(set(data.names))
    assert set(data.placements[:, 1]) == set(range(len(data.features)))
    assert len(np.unique(data.placements, axis=0)) == len(data.placements)
    assert len({feature.tobytes() for feature in data.features}) == len(data.features)
    height, width = data.feature_size
    for feature in data.features:
        _, rows, columns = np.nonzero(feature)
        assert rows.min() == (height - (rows.max() - rows.min() + 1)) // 2
        assert columns.min() == (width - (columns.max() - columns.min() + 1)) // 2


@pytest.mark.parametrize("generate", [*GENERATORS, shapes])
def test_noise_flips_the_asked_share_of_pixels(generate):
    clean = generate(noise=0.0, random_state=1)
    np.testing.assert_array_equal(clean.images, clean.clean)
    noisy = generate(noise=0.1, random_state=1)
    np.testing.assert_array_equal(noisy.clean, clean.clean)
    flips = noisy.images != noisy.clean
    assert abs(flips.mean() - 0.1) < 4 * np.sqrt(0.1 * 0.9 / flips.size)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("generate", [symbols, letters, small_letters])
def test_characters_stay_one_pixel_apart(generate, seed):
    data = generate(random_state=seed)
    for image in range(len(data.images)):
        assert smallest_gap(ink_boxes(data, image)) >= 1


def test_as_many_as_fit_are_placed_when_the_image_is_full():
    data = letters(size=(40, 40), n_placements=10_000, random_state=0)
    assert smallest_gap(ink_boxes(data, 0)) >= 1
    assert 4 <= len(data.placements) < 16
    # No letter finds room any more: each free box of its size touches another letter.
    occupied = np.zeros((42, 42), dtype=bool)
    for top, bottom, left, right in ink_boxes(data, 0):
        occupied[top + 1 : bottom + 2, left + 1 : right + 2] = True
    boxes = np.lib.stride_tricks.sliding_window_view(occupied, (11, 9))
    assert boxes.any(axis=(2, 3)).all()


def test_letters_overlap_only_when_asked():
    data = letters(overlap=True, random_state=0)
    assert smallest_gap(ink_boxes(data, 0)) < 0
    assert len(data.placements) == 170


def test_parts_that_do_not_occur_are_left_out():
    data = letters(n_placements=2, random_state=0)
    assert 1 <= len(data.features) <= 2
    assert set(data.names) <= set("ACEGHKMT")


def test_small_letters_share_one_alphabet_for_any_number_of_images():
    few, many = small_letters(random_state=4), small_letters(n_images=90, random_state=4)
    assert few.names == many.names
    assert len(few.names) == 5
    assert small_letters(random_state=5).names != few.names


def test_text_letters_stand_one_pixel_apart_on_common_baselines():
    data = text(random_state=0)
    boxes = ink_boxes(data, 0)
    assert smallest_gap(boxes) == 1
    on_baseline = [data.names.index(letter) for letter in "aehimnrux"]
    bottoms = boxes[np.isin(data.placements[:, 1], on_baseline), 1]
    # Nine rows above the baseline, two below it and two blank ones.
    assert set(np.diff(np.unique(bottoms))) == {9 + 2 + 2}
    assert len(data.names) >= 20


def test_text_sets_the_words_that_it_is_given():
    for words in ("bad cab", ["bad", "cab"], ("bad cab",)):
        data = text(words=words, random_state=0)
        assert data.names == ("a", "b", "c", "d")
        spelled = "".join(data.names[feature] for feature in data.placements[:, 1])
        assert spelled.replace("bad", "").replace("cab", "") == ""


@pytest.mark.parametrize("patterns", ["fixed", "random"])
def test_deconvolution_places_enough_patterns_inside(patterns):
    data = deconvolution(patterns=patterns, random_state=0)
    assert np.bincount(data.placements[:, 0]).min() >= 3
    assert data.placements[:, 2:].min() >= 0
    assert data.placements[:, 2:].max() <= 14 - 5
    assert data.feature_size == (5, 5)
    for side in (np.s_[:, 0, 0], np.s_[:, 0, -1], np.s_[:, 0, :, 0], np.s_[:, 0, :, -1]):
        assert data.features[side].any(axis=1).all()
