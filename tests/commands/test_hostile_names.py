"""Names that few people give to files: commands work with them, from the image to the result."""

import csv
import json
import os

import numpy as np
import pytest
from running import inside, run

from hcnet import FeatureLearner
from hcnet.image_files import read_images, write_images

PAGE = np.kron(np.random.default_rng(0).random((8, 8)) < 0.3, np.ones((3, 3), bool))
NAMES = {
    "no UTF-8": os.fsdecode(b"\xff\xe9"),
    "a line separator": "a\u2028b\u0085c",
    "line ends": "a\nb\r\nc",
    "commas and quotes": 'a,"b";c',
    "long": "a" * 241,
    "long, of two bytes": "é" * 120,
    "markup": "<!--<script>",
    "brackets": "a[3]",
    "a dash": "--force",
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    learner = FeatureLearner(2, 3, n_init=1, random_state=0, max_iter=2).fit(PAGE)
    return learner.save(tmp_path_factory.mktemp("model") / "parts.hcn")


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_names_of_images_are_kept(tmp_path, model, name):
    image = tmp_path / f"{name}.png"
    write_images(image, [PAGE], dark=True)
    for kind in (".csv", ".json"):
        codes, drawn = tmp_path / f"codes{kind}", tmp_path / f"drawn{kind}.png"
        run("encode", model, image, "-o", codes)
        with codes.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
            table = csv.DictReader(file) if kind == ".csv" else json.load(file)["placements"]
            assert {row["file"] for row in table} == {str(image)}
        run("render", model, codes, "-o", drawn, "--image-size", "24x24")
        assert read_images(drawn).X.shape == (1, 1, 24, 24)
    run("denoise", model, image, "-o", tmp_path / "clean")
    assert [file.name for file in (tmp_path / "clean").iterdir()] == [f"{name}.png"]
    run("report", model, image, "-o", tmp_path / "report.html")
    run("compress", image, "--fast", "-o", tmp_path / "page.hcz")
    run("decompress", tmp_path / "page.hcz", "-o", tmp_path / "pages")
    assert (read_images(tmp_path / "pages").X == read_images(image).X).all()


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_names_of_results_are_possible(tmp_path, model, name):
    write_images(tmp_path / "page.png", [PAGE], dark=True)
    run("encode", model, tmp_path / "page.png", "-o", tmp_path / f"{name}.csv")
    run("denoise", model, tmp_path / "page.png", "-o", tmp_path / f"{name}.png")
    run("report", model, "-o", tmp_path / f"{name}.html")
    assert len(list(tmp_path.iterdir())) == 4


def test_names_that_are_too_long_are_refused_before_the_work(tmp_path, model):
    write_images(tmp_path / "page.png", [PAGE], dark=True)
    for ending, words in (
        (".hcn", ("learn", tmp_path / "page.png")),
        (".png", ("denoise", model, tmp_path / "page.png")),
        (".csv", ("encode", model, tmp_path / "page.png")),
    ):
        result = inside(*words, "-o", tmp_path / f"{'a' * 252}{ending}")
        assert result.returncode == 1
        assert "too long" in result.stderr
        assert "24×24" not in result.stderr  # the images were not read


def test_results_that_are_in_the_way_are_said_before_the_work(tmp_path, model):
    write_images(tmp_path / "page.png", [PAGE], dark=True)
    run("denoise", model, tmp_path / "page.png", "-o", tmp_path / "clean")
    before = (tmp_path / "clean" / "page.png").read_bytes()
    result = inside("denoise", model, tmp_path / "page.png", "-o", tmp_path / "clean")
    assert result.returncode == 3
    assert (tmp_path / "clean" / "page.png").read_bytes() == before
