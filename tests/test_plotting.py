"""Pictures show exactly the pixels that they are given."""

import dataclasses
import itertools
import math
import sys

import numpy as np
import pytest
from matplotlib import pyplot
from PIL import Image

from hcnet import HCN, FeatureLearner, Layer
from hcnet.datasets import two_bars
from hcnet.engine.driver import Record
from hcnet.layers import PoolLayer
from hcnet.plotting import (
    plot_confusion,
    plot_history,
    save_picture,
    show_comparison,
    show_errors,
    show_features,
    show_images,
    show_model,
    show_parts,
)
from hcnet.plotting.drawing import (
    ADDED,
    LINE,
    MISSED,
    MISSING,
    PALE,
    PALETTE,
    choices_of,
    draw_places,
    drawn_features,
    text_image,
    text_sheet,
)

WHITE = (255, 255, 255)
BLACK = (0, 0, 0)


def small(picture, scale):
    """A framed picture back at its own size; fails unless every pixel is one clean square."""
    large = np.asarray(picture)[1:-1, 1:-1]
    once = large[::scale, ::scale]
    assert (once.repeat(scale, axis=0).repeat(scale, axis=1) == large).all()
    return once


def random_bits(*shape, seed=0, density=0.4):
    return np.random.default_rng(seed).random(shape) < density


@pytest.mark.parametrize("scale", [1, 2, 5])
@pytest.mark.parametrize("shape", [(7, 9), (1, 7, 9), (1, 1, 7, 9)])
def test_images_are_black_on_white_and_crisp_with_missing_pixels_in_amber(shape, scale):
    bits, mask = random_bits(*shape), random_bits(*shape, seed=1)
    for missing in (None, mask):
        colours = small(show_images(bits, missing, scale=scale), scale)
        hidden = (mask & (missing is not None)).reshape(7, 9, 1)
        expected = np.where(hidden, MISSING, np.where(bits.reshape(7, 9, 1), BLACK, WHITE))
        assert (colours == expected).all()


@pytest.mark.parametrize("channels", [2, 3])
def test_every_combination_of_channels_has_its_own_colour(channels):
    combinations = np.array(list(itertools.product([False, True], repeat=channels)))
    colours = small(show_images(combinations.T[None, :, None, :], scale=4), 4)
    assert len(np.unique(colours.reshape(-1, 3), axis=0)) == 2**channels


def test_most_used_part_comes_first():
    parts = np.zeros((3, 1, 6, 6), bool)
    parts[0, :, :1], parts[1, :, :2], parts[2, :, :3] = True, True, True
    sheet = show_features(parts, counts=[2, 1, 9], columns=3, scale=2)
    first = np.asarray(sheet)[1 : 1 + 12, 1 : 1 + 12]
    assert (first == 0).all(axis=2).sum() == 4 * parts[2].sum()


def test_placements_have_the_colour_of_their_part():
    image = np.zeros((12, 12), bool)
    image[2, 1:4] = image[5:8, 7] = image[11, 11] = True
    dash, bar = (np.array([2, 2, 2]), np.array([1, 2, 3])), (np.array([5, 6, 7]), np.full(3, 7))
    scale = 6
    # The box lies around the ink; the middle of a pixel is free of it.
    nowhere = dash[0][:0], dash[1][:0]
    picture = draw_places(image[None], [(0, *dash), (1, *bar), (2, *nowhere)], scale)
    centre = np.asarray(picture)[1:-1, 1:-1][scale // 2 :: scale, scale // 2 :: scale]
    assert (centre[2, 1:4] == PALETTE[0]).all()
    assert (centre[5:8, 7] == PALETTE[1]).all()
    assert (centre[11, 11] == PALE).all()  # explained by no part
    assert (centre[9] == WHITE).all()


@pytest.mark.filterwarnings("ignore:No part was found")
@pytest.mark.parametrize("channels", [1, 2, 5])
@pytest.mark.parametrize("parts", [False, True])
def test_comparison_takes_any_number_of_parts_and_channels(parts, channels):
    bars = two_bars(size=(24, 24), length=6, n_placements=14, random_state=0).images
    X = np.repeat(bars, channels, axis=1) & parts
    learner = FeatureLearner(4, 7, n_init=1, random_state=0).fit(X)
    assert (len(learner.features_) > 0) == parts
    picture = show_comparison(learner, X, scale=4)
    assert picture.mode == "RGB"
    assert picture.width > 4 * 24 * 4


@pytest.mark.parametrize("shape", [(5,), (1, 2, 3, 4, 5), (0, 5)])
def test_wrong_shapes_are_explained(shape):
    with pytest.raises(ValueError, match=r"X must have shape|X holds no pixel"):
        show_images(np.zeros(shape))


def _linear(colours):
    scaled = np.asarray(colours) / 255
    return np.where(scaled <= 0.04045, scaled / 12.92, ((scaled + 0.055) / 1.055) ** 2.4)


# Red-green blindness as linear maps of RGB (Machado, Oliveira and Fernandes 2009).
EYES = {
    "all cones": np.eye(3),
    "no green cones": np.array(
        [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]
    ),
    "no red cones": np.array(
        [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]
    ),
}


@pytest.mark.parametrize("eye", EYES)
def test_colours_stay_apart_for_everybody(eye):
    seen = np.cbrt(np.clip(_linear(PALETTE) @ EYES[eye].T, 0, 1))  # about as bright as it looks
    distances = np.linalg.norm(seen[:, None] - seen, axis=2) + 9 * np.eye(len(seen))
    assert distances.min() > 0.08


def test_errors_are_marked_by_their_kind():
    seen, made, mask = random_bits(9, 11), random_bits(9, 11, seed=1), random_bits(9, 11, seed=2)
    scale = 20  # wide enough that the words below are no wider than the picture
    picture = np.asarray(show_errors(seen, made, mask, scale=scale))
    colours = picture[1 : 1 + 9 * scale : scale, 1 : 1 + 11 * scale : scale]
    for at in np.ndindex(9, 11):
        wanted = BLACK if made[at] else MISSING if mask[at] else WHITE
        if not mask[at] and seen[at] != made[at]:
            wanted = MISSED if seen[at] else ADDED
        assert tuple(colours[at]) == wanted, at
    assert picture.shape[0] == 9 * scale + 2 + LINE


def test_a_network_has_a_row_per_layer_and_is_drawn_down_to_the_pixels():
    """Two features of 2×2: the second one stands an element further right in the layer above."""
    W1 = np.zeros((2, 1, 2, 2), bool)
    W1[0, 0, 0], W1[1, 0, :, 0] = True, True  # a dash and a bar
    W2 = np.zeros((1, 2, 1, 2), bool)
    W2[0, 0, 0, 0] = W2[0, 1, 0, 1] = True
    # R² is 1×2; its pools put S¹ on a 3×4 grid, features on row 1, columns 1 and 2.
    (top,) = drawn_features([W1, W2], [PoolLayer(2, (3, 3), (9, 9))] * 2)
    wanted = [[0, 0, 0, 0, 0], [0, 1, 3, 0, 0], [0, 0, 2, 0, 0], [0, 0, 0, 0, 0]]
    np.testing.assert_array_equal(top, wanted)
    model = HCN([Layer(2, size=2), Layer(size=(1, 2))], 1).set_weights([W1, W2], (8, 9))
    picture = np.asarray(show_model(model, ["all"], scale=10))
    for f in range(2):
        share = (picture == PALETTE[f]).all(axis=2).sum()
        assert share == 100 * (W1[f].sum() + (top == f + 1).sum())


def test_variants_share_a_tile_and_templates_are_drawn_with_the_first():
    W1 = np.zeros((4, 1, 2, 2), bool)
    for f, pixels in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        W1[(f, 0, *pixels)] = True
    W2 = np.zeros((2, 2, 1, 1), bool)
    W2[0, 0] = W2[1, 1] = True  # the first template is made of the first group
    layers = [Layer(4, size=2, pool=1, variants=2), Layer(size=1, pool=1)]
    model = HCN(layers, n_classes=2).set_weights([W1, W2], (2, 2))
    pools = [level.pool for level in model._model.network.levels]
    drawn = drawn_features([W1, W2], pools)
    np.testing.assert_array_equal(drawn, [[[1, 0], [0, 0]], [[0, 0], [3, 0]]])
    assert [choices_of(pools[1], one) for one in W2] == [["0|1"], ["2|3"]]
    picture = np.asarray(show_model(model, scale=10))
    for f in range(4):
        assert (picture == PALETTE[f]).all(axis=2).sum() == 100 * (1 + (f % 2 == 0))


@pytest.fixture
def ax():
    figure, ax = pyplot.subplots()
    yield ax
    pyplot.close(figure)


def records(*values):
    return [Record(k + 1, float(k), value, 0, None) for k, value in enumerate(values)]


@pytest.mark.parametrize("values", [[], [5.0], [-9e5, -3e4, -2e4], [-math.inf, 2.0]])
def test_a_curve_holds_every_finite_step(values, ax):
    assert plot_history(records(*values), ax) is ax
    (line,) = ax.lines
    finite = [(k + 1, value) for k, value in enumerate(values) if math.isfinite(value)]
    np.testing.assert_array_equal(line.get_xydata(), np.array(finite).reshape(-1, 2))
    assert ax.get_ylabel() == "joint log-probability"


def test_confusion_counts_pairs_and_leaves_out_images_without_a_label(ax):
    y = ["cat", "dog", "cat", -1, "dog"]
    found = ["cat", "cat", "cat", "dog", "dog"]
    plot_confusion(y, found, ["cat", "dog"], ax)
    assert [text.get_text() for text in ax.texts] == ["2", "0", "1", "1"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["cat", "dog"]
    with pytest.raises(ValueError, match="predicted must hold one of the classes"):
        plot_confusion([0, 1], [0], [0, 1], ax)


def test_charts_without_matplotlib_end_in_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'hcnet\[plot\]'"):
        plot_history(records(1.0))


def test_charts_and_pictures_are_saved_as_png(ax, tmp_path):
    for picture in (plot_history(records(1.0, 2.0), ax), show_images(random_bits(4, 4))):
        path = save_picture(picture, tmp_path / "a.png", overwrite=True)
        with Image.open(path) as again:
            assert again.format == "PNG"
    with pytest.raises(FileExistsError, match="exists already"):
        save_picture(picture, path)
    with pytest.raises(ValueError, match=r"does not end in \.png"):
        save_picture(picture, tmp_path / "a.jpg")
    with pytest.raises(ValueError, match=r"mode 'I' .* convert it first"):  # not in PNG any more
        save_picture(picture.convert("I"), tmp_path / "b.png")


def test_characters_show_every_pixel():
    on = random_bits(5, 7)
    lines = text_image(on[None])
    back = [[char in "▀█" for char in line] for line in lines]
    low = [[char in "▄█" for char in line] for line in lines]
    whole = np.array([row for pair in zip(back, low, strict=True) for row in pair])
    assert (whole[:5] == on).all()
    assert not whole[5:].any()


def test_a_sheet_of_characters_keeps_to_its_width():
    sheet = text_sheet(list(random_bits(9, 1, 6, 12)), [f"part {k}" for k in range(9)], width=40)
    assert max(map(len, sheet.splitlines())) <= 40
    assert [word for word in sheet.split() if word.isdecimal()] == list("012345678")
    assert text_sheet([], [], 40) == ""


def test_a_sheet_has_every_part_in_its_own_size_the_most_used_first(monkeypatch):
    parts = np.zeros((3, 1, 9, 9), bool)
    parts[0, 0, 4, 2:8] = parts[1, 0, 1:8, 4] = parts[2, 0, 3:5, 3:5] = True
    X = two_bars(size=(24, 24), length=6, n_placements=8, noise=0, random_state=0).images
    learner = FeatureLearner(feature_size=9, n_init=1, random_state=0).fit(X)
    learner._publish(dataclasses.replace(learner._model, features=parts))
    learner.placements_ = np.array([(0, f, 3, 3) for f in (1, 1, 2)])
    sheet = np.asarray(show_parts(learner, scale=4))
    (ink,) = np.unique(sheet[(sheet == sheet[..., :1]).all(axis=2)].min(axis=-1))[:1]
    assert ink == 0
    # Frames around 7×1, 2×2 and 1×6 pixels, in this order.
    frames = (sheet == 176).all(axis=2)
    tall, square, flat = (28, 4), (8, 8), (4, 24)
    found = []
    for x in range(sheet.shape[1] - 2):
        for y in range(sheet.shape[0] - 2):
            corner = frames[y, x] and frames[y + 1, x] and frames[y, x + 1]
            if corner and not frames[max(y - 1, 0), x] and not frames[y, max(x - 1, 0)]:
                high = int((~frames[y:, x]).argmax()) - 2
                wide = int((~frames[y, x:]).argmax()) - 2
                found.append((high, wide))
    assert found == [tall, square, flat]
    assert min(show_parts(FeatureLearner(2, 3).fit(np.zeros((8, 8)))).size) > 0
    shades = property(lambda self: np.where(parts, 0.75, 0.0))
    monkeypatch.setattr(FeatureLearner, "feature_probabilities_", shades)
    assert (np.asarray(show_parts(learner, scale=4)) == 64).all(axis=2).sum() == 16 * parts.sum()
