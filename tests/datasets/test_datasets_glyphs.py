import ast
from pathlib import Path

import numpy as np
import pytest

import hcnet.datasets
from hcnet.datasets.glyphs import available_characters, available_sizes, load_glyphs


def test_sizes_and_characters_are_the_documented_ones():
    assert available_sizes() == (8, 9, 10, 11, 12, 13, 16, 20, 24)
    for needed in ("AZaz09", "@&%$#?!+*="):
        assert set(needed) <= set(available_characters())
    assert len(available_characters()) == 72


@pytest.mark.parametrize("size", available_sizes())
def test_bitmaps_are_cropped_read_only_and_not_larger_than_the_size_suggests(size):
    for character in available_characters():
        (glyph,) = load_glyphs(character, size)
        bitmap = glyph.bitmap
        assert bitmap.dtype == np.bool_
        assert not bitmap.flags.writeable
        assert all(side.any() for side in (bitmap[0], bitmap[-1], bitmap[:, 0], bitmap[:, -1]))
        assert max(bitmap.shape) <= 1.2 * size


def test_capitals_stand_on_the_baseline_and_descenders_below():
    for glyph in load_glyphs("AEHKMTahx", 13):
        assert glyph.top == glyph.bitmap.shape[0]
    for glyph in load_glyphs("gjpqy", 13):
        assert glyph.top < glyph.bitmap.shape[0]


def test_one_glyph_is_the_known_one():
    (glyph,) = load_glyphs("E", 8)
    drawn = ["".join(".#"[int(pixel)] for pixel in row) for row in glyph.bitmap]
    assert drawn == ["####", "#...", "####", "#...", "#...", "####"]


def test_datasets_draw_no_font_and_plot_nothing():
    for path in Path(hcnet.datasets.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.split(".")[0] for name in names} & {"PIL", "matplotlib"}, path
