"""Corruptions do what their names say, and nothing else."""

import hashlib

import numpy as np
import pytest

from hcnet.datasets.corruptions import CORRUPTIONS

noise, border, patches, grid, line_clutter, deletion = CORRUPTIONS.values()

BLACK = np.zeros((60, 28, 24), np.uint8)
WHITE = np.full((60, 28, 24), 255, np.uint8)

# A change of these means that published figures no longer belong to the data of the same seed.
DIGESTS = {
    "noise": "e3d5db5b5c0c15b7",
    "border": "12f693ef49d5f758",
    "patches": "f001c1aa956a807b",
    "grid": "81fb2e1db7f2e3ff",
    "line clutter": "06778cc7ea424379",
    "deletion": "6b1fb5a991acc33a",
}


def strokes(n=50):
    """Grey rings and bars, drawn without a random number."""
    row, column = np.mgrid[:28, :24]
    sizes = np.arange(n)[:, None, None] % 7
    ring = np.abs(np.hypot(row - 14, column - 12) - 3 - sizes) < 1.5
    bar = np.abs(column - 4 - 2 * sizes) < 2
    return np.where(np.arange(n)[:, None, None] % 2, ring * 255, bar * 200).astype(np.uint8)


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_seeds_give_the_stored_bits_and_the_images_stay_as_they_were(name):
    images = strokes()
    changed = CORRUPTIONS[name](images, random_state=0)
    assert hashlib.sha256(changed.tobytes()).hexdigest()[:16] == DIGESTS[name]
    if name in ("border", "patches", "grid", "line clutter"):
        assert (changed[changed != images] == 255).all()
    options = {"reach": 3} if name == "border" else {}  # at the edge there is nothing to decide
    first = CORRUPTIONS[name](images, random_state=1, **options)
    np.testing.assert_array_equal(images, strokes())
    again = CORRUPTIONS[name](images, random_state=np.random.default_rng(1), **options)
    np.testing.assert_array_equal(again, first)
    assert (CORRUPTIONS[name](images, random_state=2, **options) != first).any()
    assert all((first != images).any(axis=(1, 2)))


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_bytes_floats_booleans_and_a_channel_axis_stay_what_they_are(name):
    binary = strokes() > 100
    changed = CORRUPTIONS[name](binary, random_state=0)
    assert changed.dtype == bool
    for same in (binary.astype(np.uint8) * 255, binary.astype(np.float32), binary[:, None]):
        own = CORRUPTIONS[name](same, random_state=0)
        assert own.dtype == same.dtype
        assert own.shape == same.shape
        np.testing.assert_array_equal(own.reshape(binary.shape) > 0, changed)


def test_noise_flips_a_share_of_the_binarised_pixels():
    ink = strokes(400) >= 128
    changed = noise(strokes(400), flips=0.2, random_state=0)
    assert set(np.unique(changed)) == {0, 255}
    flipped = (changed == 255) != ink
    assert flipped[ink].mean() == pytest.approx(0.2, abs=0.01)
    assert flipped[~ink].mean() == pytest.approx(0.2, abs=0.01)
    np.testing.assert_array_equal(noise(strokes(), flips=0) == 255, strokes() >= 128)


@pytest.mark.parametrize("width", [1, 3])
def test_a_border_is_the_outermost_pixels(width):
    inside = np.zeros(BLACK.shape, bool)
    inside[:, width:-width, width:-width] = True
    np.testing.assert_array_equal(border(BLACK, width=width) == 0, inside)


def test_the_sides_of_a_border_move_by_themselves():
    found = border(BLACK, width=2, reach=4, random_state=0) > 0
    rows, columns = found[:, :, 12], found[:, 14]  # where the middle crosses the four sides
    begins = []
    for crossed in (rows, rows[:, ::-1], columns, columns[:, ::-1]):
        first = crossed.argmax(axis=1)
        begins.append(first)
        assert set(first) == {0, 1, 2, 3}
        assert all(crossed[k, first[k] : first[k] + 3].tolist() == [1, 1, 0] for k in range(60))
    assert (begins[0] != begins[1]).any()
    assert (begins[2] != begins[3]).any()
    assert (found.sum(axis=2).max(axis=1) == 24 - begins[2] - begins[3]).all()


@pytest.mark.parametrize("size", [1, 4])
def test_patches_are_squares_anywhere_in_the_image(size):
    found = patches(np.repeat(BLACK, 40, axis=0), n_patches=1, size=size, random_state=0) > 0
    tops = found.any(axis=2).argmax(axis=1)
    lefts = found.any(axis=1).argmax(axis=1)
    for image, top, left in zip(found, tops, lefts, strict=True):
        assert image[top : top + size, left : left + size].all()
        assert image.sum() == size**2
    assert set(tops) == set(range(28 - size + 1))
    assert set(lefts) == set(range(24 - size + 1))


@pytest.mark.parametrize(("spacing", "width"), [(5, 1), (7, 2)])
def test_a_grid_has_lines_at_equal_distances(spacing, width):
    found = grid(BLACK, spacing=spacing, width=width, random_state=0) > 0
    rows, columns = found.all(axis=2), found.all(axis=1)
    np.testing.assert_array_equal(found, rows[:, :, None] | columns[:, None])
    for lines in (rows, columns):
        np.testing.assert_array_equal(lines[:, spacing:], lines[:, :-spacing])
        assert (lines[:, :spacing].sum(axis=1) == width).all()
        assert len(np.unique(lines, axis=0)) == spacing  # it begins anywhere


def extent(image):
    """Largest distances of the pixels from their middle, along and across their main direction."""
    places = np.argwhere(image).astype(float)
    places -= (places.max(axis=0) + places.min(axis=0)) / 2
    _, axes = np.linalg.eigh(places.T @ places)
    return np.abs(places @ axes).max(axis=0)[::-1]


@pytest.mark.parametrize("width", [1, 2.5])
def test_lines_are_straight_and_as_thick_and_long_as_asked_for(width):
    canvas = np.zeros((200, 101, 101), bool)
    found = line_clutter(canvas, n_lines=1, length=31, width=width, random_state=0)
    whole = [image for image in found if not (image[[0, -1]].any() or image[:, [0, -1]].any())]
    assert len(whole) > 80
    for image in whole:
        along, across = extent(image)
        assert 13.5 <= along <= 15.5 + 1
        assert across <= width / 2 + 0.75


@pytest.mark.parametrize("size", [1, 6])
def test_a_hole_is_a_square_around_a_pixel_of_ink(size):
    images = strokes(200)
    changed = deletion(images, n_holes=1, size=size, random_state=0)
    erased = images != changed
    assert (changed[erased] == 0).all()
    assert erased.any(axis=(1, 2)).all()
    for image in erased:
        row, column = np.nonzero(image)
        assert np.ptp(row) < size
        assert np.ptp(column) < size
    holes = deletion(WHITE, n_holes=1, size=size, random_state=0) == 0
    assert holes.sum(axis=(1, 2)).max() == size**2


@pytest.mark.parametrize(
    ("corrupt", "arguments", "message"),
    [
        (noise, {"flips": 10}, r"flips must be a number from 0 to 0\.5, got 10"),
        (border, {"width": 0}, r"width must be a whole number of at least 1"),
        (border, {"reach": 0.5}, r"reach must be a whole number of at least 1"),
        (patches, {"n_patches": -1}, r"n_patches must be a whole number of at least 1"),
        (patches, {"size": 25}, r"size must be at most 24, the shorter side of the images"),
        (grid, {"spacing": 1}, r"spacing must be a whole number of at least 2"),
        (grid, {"width": 5}, r"width must be less than spacing, 5, got 5"),
        (line_clutter, {"n_lines": 0}, r"n_lines must be a whole number of at least 1"),
        (line_clutter, {"length": 0}, r"length must be a positive number, got 0"),
        (line_clutter, {"width": "thin"}, r"width must be a positive number"),
        (deletion, {"n_holes": 0}, r"n_holes must be a whole number of at least 1"),
        (deletion, {"size": 0}, r"size must be a whole number of at least 1"),
    ],
)
def test_bad_strengths_are_named_with_their_remedy(corrupt, arguments, message):
    with pytest.raises(ValueError, match=message):
        corrupt(BLACK, **arguments)


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_what_is_no_grey_image_is_refused(name):
    with pytest.raises(ValueError, match=r"grey images of shape .* got shape \(28, 28\)"):
        CORRUPTIONS[name](np.zeros((28, 28)))
    with pytest.raises(TypeError, match=r"got dtype int64"):
        CORRUPTIONS[name](np.zeros((1, 28, 28), int))
    with pytest.raises(ValueError, match=r"random_state must be None, a whole number"):
        CORRUPTIONS[name](BLACK, random_state=-1)
