"""The benchmark of scanned pages: components, coverage and page files."""

from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from benchmarks.pages import explained, main, page_files, read_page


def test_components_count_from_twenty_pixels_and_half_covered_ones_are_explained():
    page = np.zeros((1, 1, 30, 60), bool)
    page[0, 0, 2:7, 2:12] = True  # 50 pixels, covered by two placements that touch
    page[0, 0, 10:14, 2:7] = True  # 20 pixels, 8 of them covered
    page[0, 0, 10:14, 20:25] = True  # 20 pixels, 10 of them covered
    page[0, 0, 20:24, 30:34] = True  # 16 pixels
    page[0, 0, 24:28, 34:35] = True  # joined to them by a corner
    features = np.zeros((2, 1, 5, 5), bool)
    features[0] = True
    features[1, 0, :2, :5] = True
    places = [(0, 0, 2, 2), (0, 0, 2, 7), (0, 1, 10, 3), (0, 1, 10, 20), (0, 0, -3, 58)]
    learner = SimpleNamespace(features_=features, placements_=np.array(places))
    assert explained(page, learner) == (4, 0.5, 68 / 110)


def test_page_files_are_read_with_ink_on(tmp_path):
    bits = np.zeros((2376, 1728), bool)
    bits[5, 9] = True
    (tmp_path / "ptt5.raw").write_bytes(np.packbits(bits).tobytes())
    Image.fromarray(~bits[:20, :30]).save(tmp_path / "a.png")
    (tmp_path / "notes.txt").write_text("no page")
    files = page_files(tmp_path)
    assert [path.name for path in files] == ["a.png", "ptt5.raw"]
    for path, size in zip(files, [(20, 30), (2376, 1728)], strict=True):
        pages = read_page(path)
        assert pages.shape == (1, 1, *size)
        assert [x.tolist() for x in np.nonzero(pages)] == [[0], [0], [5], [9]]


def test_an_empty_folder_gets_a_sentence(tmp_path):
    with pytest.raises(SystemExit, match=r"put \.tif"):
        page_files(tmp_path)


class Known:
    """A learner that finds nothing."""

    def __init__(self, algorithm, random_state):
        self.placements_ = np.zeros((0, 4), int)
        self.features_ = np.zeros((0, 1, 3, 3), bool)
        self.compression_ratio_ = 1.0

    def fit(self, X):
        return self


def test_both_tables_are_made(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.pages.FeatureLearner", Known)
    made_up = main(["--quick", "--json", str(tmp_path / "rows.jsonl")])
    assert [row["strength"] for row in made_up.rows] == [0, 1, 2]
    assert "| 0/1 " in capsys.readouterr().out
    Image.fromarray(np.ones((50, 60), bool) & (np.arange(60) > 9)).save(tmp_path / "feyn.png")
    folder = main(["--pages", str(tmp_path)])
    assert folder.rows[0]["components"] == 1
    assert "59790" in capsys.readouterr().out
