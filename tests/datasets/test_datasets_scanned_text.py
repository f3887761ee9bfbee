"""Scanned pages: the truth about every glyph, and how copies differ."""

import itertools

import numpy as np
import pytest
from PIL import ImageFont
from scipy import ndimage

from hcnet.datasets import Font, scanned_text
from hcnet.datasets.scanned_text import _edge_distance
from hcnet.datasets.typefaces import look_alike

SMALL = {"size": (400, 700), "random_state": 3}


@pytest.fixture(scope="module")
def page():
    return scanned_text(**SMALL)


def glyph_pixels(data, images, k):
    row, column, height, width = data.boxes[k]
    return images[data.pages[k], 0, row : row + height, column : column + width]


def test_every_glyph_is_in_its_box_and_in_the_text_of_its_line(page):
    assert len(page.characters) > 60
    for k, (row, column, height, width) in enumerate(page.boxes):
        owned = np.argwhere(page.owners[page.pages[k]] == k)
        # A touching neighbour may have taken some of its pixels.
        assert (owned >= (row, column)).all()
        assert (owned < (row + height, column + width)).all()
        assert len(owned) > 5
        line = page.text[page.pages[k]][page.lines[k]]
        assert line[page.positions[k]] == page.characters[k]
        assert page.characters[k] in page.names[page.shapes[k]]
    np.testing.assert_array_equal(page.owners[:, None] >= 0, page.clean)
    n_letters = sum(len(line.replace(" ", "")) for line in page.text[0])
    assert n_letters == len(page.characters)
    assert (np.diff(page.lines) >= 0).all()


def test_the_scan_looks_like_the_clean_page_but_for_edges(page):
    differ = page.images ^ page.clean
    assert 0.01 < differ.sum() / page.clean.sum() < 0.25
    far = _edge_distance(page.clean[0, 0]) > 8
    assert differ[0, 0][far].mean() < 0.002


def test_without_degradation_all_copies_are_equal():
    data = scanned_text(**SMALL, strength=0)
    np.testing.assert_array_equal(data.images, data.clean)
    assert data.skew == [0]
    for shape, feature in enumerate(data.features):
        rows, columns = np.nonzero(feature[0])
        true = feature[0, rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
        for k in np.flatnonzero(data.shapes == shape):
            np.testing.assert_array_equal(glyph_pixels(data, data.images, k), true)


def test_a_stronger_scan_is_farther_from_the_clean_page():
    wrong = []
    for strength in (0, 0.5, 1, 2, 4):
        data = scanned_text(**SMALL, strength=strength)
        wrong.append((data.images ^ data.clean).mean())
    assert wrong[0] == 0
    assert wrong[1] < wrong[2] < wrong[4]


def test_the_same_seed_gives_the_same_pages_and_another_seed_others(page):
    again = scanned_text(**SMALL)
    np.testing.assert_array_equal(again.images, page.images)
    assert again.text == page.text
    assert scanned_text(**{**SMALL, "random_state": 4}).text != page.text


def test_given_text_is_set_once_and_flows_over_pages():
    words = [f"{k}th" for k in range(100)]
    data = scanned_text(text=" ".join(words), size=(200, 400), n_pages=20, random_state=0)
    lines = list(itertools.chain(*data.text))
    assert " ".join(lines).split() == words
    assert not data.images[-1].any()
    assert len(data.text) == len(data.images) == 20
    short = scanned_text(text=["one two", "", "three"], size=(200, 400), random_state=0)
    assert short.text == (("one two", "three"),)


def test_larger_fonts_set_headlines_and_others_single_words():
    fonts = [Font(points=6), Font(points=12), Font(points=6, slant=0.2)]
    data = scanned_text(fonts=fonts, size=(800, 800), random_state=0)
    assert set(data.fonts) == {0, 1, 2}
    for line in set(data.lines):
        used = set(data.fonts[data.lines == line])
        assert used == {1} or used <= {0, 2}
    heights = [data.boxes[data.fonts == font, 2].mean() for font in range(3)]
    assert 1.7 < heights[1] / heights[0] < 2.3
    # One shape per character and font.
    slanted = set(data.shapes[(data.characters == "h") & (data.fonts == 2)])
    assert slanted.isdisjoint(data.shapes[(data.characters == "h") & (data.fonts == 0)])


def test_touching_letters_are_one_component_and_broken_ones_several():
    def components(**options):
        given = {"touching": 0, "broken": 0, **options}
        data = scanned_text(text="noun " * 60, size=(500, 700), random_state=1, **given)
        labels, n = ndimage.label(data.images[0, 0], np.ones((3, 3)))
        n -= (ndimage.sum_labels(data.images[0, 0], labels, np.arange(1, n + 1)) < 5).sum()
        return n / len(data.characters)

    plain = components()
    assert 0.95 < plain < 1.05
    assert components(touching=1) < 0.5
    assert components(broken=1) > 1.1


def test_glyphs_that_look_alike_have_one_shape():
    data = scanned_text(fonts=[Font(), Font()], size=(700, 700), random_state=0)
    assert set(data.fonts) == {0, 1}  # the same font by two names
    assert len(set(data.names)) == len(data.names)
    for character in set(data.characters):
        assert len(set(data.shapes[data.characters == character])) == 1
    coarse = scanned_text(text="abcdefghijklm", dpi=72, size=(100, 200), random_state=0)
    assert len(coarse.names) == 13
    bar = np.ones((30, 4), bool)
    assert look_alike(bar, np.ones((31, 4), bool))
    assert look_alike(bar, np.ones((30, 5), bool))
    assert not look_alike(bar, np.ones((33, 4), bool))
    ring = np.ones((12, 12), bool)
    ring[4:8, 4:8] = False
    assert not look_alike(np.ones((12, 12), bool), ring)


def test_distance_to_the_edge_is_exact():
    page = np.random.default_rng(0).random((13, 17)) < 0.06
    squared = _edge_distance(page)
    pixels = list(itertools.product(range(13), range(17)))
    for y, x in pixels:
        other = [(y - v) ** 2 + (x - u) ** 2 for v, u in pixels if page[v, u] != page[y, x]]
        assert squared[y, x] == min(*other, 11)


def test_skew_is_measured_by_the_baseline():
    data = scanned_text(text="x" * 40, size=(200, 1000), random_state=5, touching=0)
    bottoms = data.boxes[:, 0] + data.boxes[:, 2]
    slope = np.polyfit(data.boxes[:, 1], bottoms, 1)[0]
    assert abs(np.degrees(np.arctan(slope)) - data.skew[0]) < 0.08
    assert abs(data.skew[0]) <= 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": (20, 20)}, r"No word fits on a page of 20 x 20 pixels at 300 dpi"),
        ({"text": "   "}, r"No word fits"),
        ({"text": 3}, r"text must be a string or a list of strings, got 3"),
        ({"fonts": []}, r"fonts must be a Font, a font file, or a list of them"),
        ({"fonts": [3]}, r"fonts must hold Font objects or font files, got 3"),
        ({"fonts": "missing.ttf"}, r"'missing.ttf' could not be read .* pass the path of a"),
        ({"fonts": Font(points=0)}, r"points of a font must be a number from 1 to 500"),
        ({"fonts": Font(slant="x")}, r"slant of a font must be a number from -1 to 1"),
        ({"strength": -1}, r"strength must be a number from 0 to 20"),
        ({"touching": 2}, r"touching must be a number from 0 to 1"),
        ({"dpi": 3}, r"dpi must be a whole number of at least 20"),
    ],
)
def test_bad_arguments_get_a_sentence(arguments, message):
    with pytest.raises(ValueError, match=message):
        scanned_text(**{**SMALL, **arguments})


def test_pillow_without_freetype_gets_a_sentence(monkeypatch):
    def missing(*args, **options):
        raise ImportError("The _imagingft C module is not installed")

    monkeypatch.setattr(ImageFont, "load_default", missing)
    with pytest.raises(ValueError, match="needs a Pillow with FreeType"):
        scanned_text(**SMALL)
