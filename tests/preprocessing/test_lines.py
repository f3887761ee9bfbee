"""Lines removed from images: against all lines one by one, and on digits."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_digits

from hcnet.datasets import corruptions
from hcnet.preprocessing import LineRemover


def digits(n=60):
    """Scikit-learn's digits, four times as large, within a margin as MNIST has it."""
    small = load_digits().images[:n] / 16
    return np.pad(np.kron(small, np.ones((1, 3, 3))), ((0, 0), (4, 4), (4, 4)))


@cache
def lines(height, width):
    """Pixels (row, column) of all lines whose ends are at halves of a pixel."""
    steep = flat_lines(width, height)
    return [*flat_lines(height, width), *([(r, c) for c, r in line] for line in steep)]


def flat_lines(height, width):
    """Those that run through columns."""
    for a in range(-2 * width, 2 * (height + width) + 1):
        for b in range(a - 2 * (width - 1), a + 2 * (width - 1) + 1):
            pixels = []
            for x in range(width):
                y = Fraction(a, 2) + Fraction(b - a, 2) * Fraction(x, width - 1)
                row = (y + Fraction(1, 2)).__floor__()
                if 0 <= row < height:
                    pixels.append((row, x))
            yield pixels


def by_definition(image, bright, share, shortest):
    """All lines, and then all pixels on them, one by one."""
    hidden = np.zeros(image.shape, bool)
    for line in lines(*image.shape):
        on = [image[r, c] >= bright for r, c in line]
        if line and len(on) >= shortest * min(image.shape) and sum(on) >= share * len(on):
            for r, c in line:
                hidden[r, c] |= image[r, c] >= bright
    if hidden.all():
        return image
    result = np.where(hidden, np.nan, image)
    while np.isnan(result).any():
        before = np.pad(result, 1, constant_values=np.nan)
        for r, c in np.argwhere(np.isnan(result)):
            around = before[r : r + 3, c : c + 3]
            if not np.isnan(around).all():
                result[r, c] = np.nanmean(around)
    return result


@pytest.mark.parametrize("size", [(7, 7), (9, 6), (4, 8), (2, 5)])
@pytest.mark.parametrize(
    ("bright", "share", "shortest"), [(0.5, 0.9, 0.5), (0.3, 0.75, 0.9), (0.6, 1, 0)]
)
def test_lines_are_removed_as_defined(size, bright, share, shortest):
    rng = np.random.default_rng(0)
    images = rng.random((12, *size)) * rng.uniform(0.7, 1.3, (12, 1, 1)) / 1.3
    images[::3, size[0] // 2] = 0.95
    images[::4, :, 1] = 0.8
    remover = LineRemover(bright=bright, share=share, shortest=shortest)
    expected = [by_definition(image, bright, share, shortest) for image in images]
    assert not np.array_equal(images, expected)
    np.testing.assert_allclose(remover.transform(images), expected, atol=1e-6)


@pytest.mark.parametrize("name", ["grid", "border", "line clutter"])
def test_digits_come_out_from_below_lines(name):
    clean = digits()
    covered = corruptions.CORRUPTIONS[name](clean, random_state=0)
    free = LineRemover().transform(covered)
    assert np.abs(free - clean).mean() < 0.25 * np.abs(covered - clean).mean()


def test_strokes_that_end_in_the_image_stay():
    image = np.zeros((1, 20, 20))
    image[0, 3:17, 8:11] = 1
    image[0, 5, 2:20] = 1  # two pixels short of the other side: a tenth is dark
    image[0, 10, 3:20] = 1  # three
    free = LineRemover().transform(image)[0]
    assert free[5, 15] == 0
    assert free[10, 15] == 1
    assert free[5, 9] == 1  # the stroke goes on below the line


def test_images_keep_their_shape_and_their_kind_of_numbers():
    grey = (255 * corruptions.grid(digits(), random_state=1)).astype(np.uint8)
    before = grey.copy()
    free = LineRemover().transform(grey)
    np.testing.assert_array_equal(grey, before)
    assert free.dtype == np.uint8
    for same in (grey / 255, (grey / 255).astype(np.float32), (grey / 255)[:, None]):
        other = LineRemover().transform(same)
        assert (other.dtype, other.shape) == (same.dtype, same.shape)
        np.testing.assert_allclose(255 * other.reshape(free.shape), free, atol=0.51)
    binary = grey > 127
    assert LineRemover().transform(binary).dtype == bool


def test_images_that_would_take_too_long_are_refused():
    with pytest.raises(ValueError, match=r"at most 1000 pixels, .* got 8×1001; cut the images"):
        LineRemover().transform(np.zeros((1, 8, 1001)))
