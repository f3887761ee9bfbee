"""The page of results: what it says of the paper's figures, and what it shows."""

import json
import os
import re
import sys
from datetime import date
from itertools import product

import numpy as np
import pytest
from PIL import Image

from benchmarks import alternatives, inpainting, mnist, noise, paper, semisupervised, shapes, table1
from benchmarks.figures import FIGURES, write
from benchmarks.harness import paper_value
from benchmarks.mnist_digits import CLEAN, SETS
from benchmarks.online import SETTINGS

WRITTEN = 1_600_000_000  # in 2020
MACHINE = {"machine": {"processor": "a processor"}}
PART = {"iou_paying_min": 1.0, "iou_clearly_paying_min": 1.0, "iou_mean": 1.0, "wrong_pixels": 0.0}
FIT = {"iou_mean": 0.9, "iou_min": 0.9, "w2_exact": True, "train_right": 100, "iou": 0.9}
COST = {"seconds": 2.0, "megabytes_peak": 10.0, "seconds_predict": 0.1, "n_test": 100}
TRUE_W = {"true_fast": 0.0, "true_passing": 0.0, "true_explain": 0.0}
UNDER_MASK = ("wrong", "missed", "made_up", "on")


def each(**fields):
    """A row for each combination of the values, and two seeds."""
    for values in product(*fields.values()):
        for seed in (8000, 8001):
            yield {**dict(zip(fields, values, strict=True)), "seed": seed, **FIT, **COST, **MACHINE}


def rows(name, error=0.02):
    """Rows as the benchmark stores them, with this error, or 20 times it as compression ratio."""
    wrong = {"wrong": error}
    if name == "table1":
        ratio = {"ratio": 20 * error, "ratio_true": 0.1, "relative": 1.0, **PART}
        found = [{**r, **ratio} for r in each(data=["symbols", "text"], mode=table1.MODES)]
    elif name == "online":
        ratio = {"ratio": 0.4 + error, "ratio_true": 0.4, "iou_min": 1 - error, "features": 5}
        found = [{**r, **ratio} for r in each(setting=SETTINGS, mode=["mpmp", "refined"])]
        stream = {"part": ["memory"], "n_images": [300, 3000], "ms_per_image": [1.0]}
        found += each(**stream)
    elif name == "shapes":
        errors = {f"wrong_{way}": error for way in ("fast", "passing", "explain")}
        both = each(size=[19, 21], supervised=[False, True])
        found = [{**r, **errors, **TRUE_W} for r in both]
    elif name == "alternatives":
        found = [{**r, **wrong} for r in each(size=[19, 21], method=alternatives.METHODS)]
    elif name == "semisupervised":
        few = each(labelled=semisupervised.LABELLED, method=semisupervised.METHODS)
        found = [{**r, **wrong} for r in few]
    elif name == "noise":
        found = [{**r, **wrong} for r in each(flips=noise.FLIPS, method=noise.METHODS)]
    elif name == "inpainting":
        under = dict.fromkeys(UNDER_MASK, error)
        kinds = each(mask=["block", "random"], method=inpainting.METHODS)
        found = [{**r, **under} for r in kinds]
    else:
        found = [*each(method=["HCN", "CNN, ReLU"], per_class=[mnist.PER_CLASS], corruption=SETS)]
        found += each(method=["HCN"], per_class=[1, 100], corruption=[CLEAN])
        found = [{**r, **wrong} for r in found]
    return [{"benchmark": name, **row} for row in found]


def test_what_is_worse_than_the_paper_is_not_reached():
    assert paper_value(0.28, 2, {"": [0.30, 0.32]}) == "0.28, not reached"
    assert paper_value(0.28, 2, {"": [0.10, 0.32]}) == "0.28"
    assert paper_value(0.9, 1, {"": [0.8]}, higher_is_better=True) == "0.9, not reached"
    assert paper_value(0.9, 1, {"": [0.96]}, higher_is_better=True) == "0.9"


def test_ours_is_rounded_as_the_paper_s_figure():
    assert paper_value(0.07, 2, {"": [0.074]}) == "0.07"
    assert paper_value(0.07, 2, {"": [0.076]}) == "0.07, not reached"


def test_it_is_said_where_the_paper_is_not_reached():
    ours = {"at 19×19": [0.5], "at 20×20": [0.6], "at 21×21": [0.0]}
    assert paper_value(0.07, 2, ours) == "0.07, not reached at 19×19 and at 20×20"


def test_nothing_measured_is_nothing_missed():
    assert paper_value(0.07, 2, {"": []}) == "0.07"


# Of the tables with figures of the paper; in the first case ours is better than all of them.
@pytest.mark.parametrize(
    ("module", "worse"),
    [
        (table1, 6),  # two images in three modes
        (shapes, 4),
        (alternatives, len(alternatives.PAPER)),
        (semisupervised, 1),
        (noise, 1),
        (mnist, 2 * len(SETS)),
    ],
    ids=lambda case: getattr(case, "__name__", None),
)
def test_tables_say_what_is_not_reached(module, worse, capsys):
    name = module.__name__.rpartition(".")[2]
    assert "not reached" not in module.report(rows(name, 0.0))
    assert module.report(rows(name, 0.99)).count("not reached") == worse


def pixels(path):
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB")).astype(int)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_shows_the_rows(name, tmp_path):
    pictures = []
    for k, error in enumerate((0.02, 0.03, None)):
        path = tmp_path / f"{k}.png"
        write(name, [] if error is None else rows(name, error), path)
        pictures.append(pixels(path))
    drawn, other, empty = pictures
    assert drawn.shape == other.shape
    assert 900 <= drawn.shape[1] <= 1200  # the width of a page
    assert (drawn != other).any()
    # A legend has colours, too: rows must add to them.
    coloured = [int((np.ptp(picture, axis=2) > 60).sum()) for picture in (drawn, empty)]
    assert coloured[0] > coloured[1] + 100
    assert (drawn[:2] == 255).all()  # light, and nothing is cut off at the top
    assert path.stat().st_size < 150_000


@pytest.fixture
def page(tmp_path, monkeypatch):
    """An empty place for the page; gives a function that makes it from rows."""
    folder = tmp_path / "docs"
    (folder / "images").mkdir(parents=True)
    monkeypatch.setattr(paper, "RESULTS", folder / "results.md")
    monkeypatch.setattr(paper, "IMAGES", folder / "images")

    def make(found, *options):
        stored = tmp_path / "rows.json"
        stored.write_text("".join(json.dumps(row) + "\n" for row in found))
        os.utime(stored, (WRITTEN, WRITTEN))
        monkeypatch.setattr(sys, "argv", ["paper", *options, "--rows", str(stored)])
        paper.main()
        return paper.RESULTS.read_text() if paper.RESULTS.exists() else None

    return make


def figures_of(text):
    return re.findall(r"\(images/(results-[^)]+)\)", text)


def test_the_page_has_figures_of_the_rows(page):
    text = page(rows("noise") + rows("table1"))
    assert figures_of(text) == ["results-table1.png", "results-noise.png"]
    assert all((paper.IMAGES / file).stat().st_size > 5000 for file in figures_of(text))
    assert f"{date.fromtimestamp(WRITTEN)}, a processor." in text  # the day of the rows


def test_sections_without_rows_keep_their_figures(page):
    before = page(rows("table1"))
    drawn = (paper.IMAGES / "results-table1.png").read_bytes()
    after = page(rows("noise"))
    assert after.startswith(before.rstrip())
    assert figures_of(after) == ["results-table1.png", "results-noise.png"]
    assert (paper.IMAGES / "results-table1.png").read_bytes() == drawn


def test_a_quick_run_writes_nothing(page):
    assert page(rows("noise"), "--quick") is None
    assert not list(paper.IMAGES.iterdir())


def test_without_matplotlib_there_is_a_sentence_and_no_figure(page, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    text = page(rows("noise"))
    assert "flips in training" in text
    assert figures_of(text) == []
    assert "No figure: it needs matplotlib" in capsys.readouterr().out


def test_our_page_has_every_figure():
    assert figures_of(paper.RESULTS.read_text()) == [
        f"results-{name}.png" for name in paper.ALL if name in FIGURES
    ]
    for pictures in paper.PICTURES.values():
        assert all((paper.IMAGES / file).exists() for file in pictures)
