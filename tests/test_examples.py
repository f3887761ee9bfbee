"""Every example runs by itself, in any folder, and ends in a picture."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
# Those that take longest; the others take about 4 s each.
LONG = {
    "digits",
    "digits_by_messages",
    "inpainting",
    "touching_digits",
    "page_of_text",
    "pixel_art",
    "several_objects",
    "shapes_hierarchy",
    "two_fonts",
}
# What an example must say of its success.
SAYS = {
    "animals": "feathers, eggs, airborne, backbone, breathes, tail, up to 4 legs",
    "digits": "of 297 new digits recognised",
    "digits_by_messages": "of 297 new digits recognised",
    "inpainting": "of 838 that were ink 723 are back",
    "page_of_text": "10 parts, 9 of 10 letters exactly",
    "pixel_art": "0 in what was rebuilt",
    "scanned_page": "soft parts: ",
    "several_objects": "images with exactly the right classes: 100.0%",
    "shapes_hierarchy": "1000 of 1000 new images in the right cluster",
    "spike_raster": "3 of 3 right to the last spike",
    "stream": "600 images: 6 parts",
    "two_fonts": "4 of 4 letters are a group of their two fonts",
    "touching_digits": "of 6 lines read without an error",
    "yes_no_table": "of those that were missing 100.0%",
}


def run(name, folder, *arguments):
    # As a person would, who has installed hcnet: warnings in their own code are not our business.
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        [sys.executable, str(ROOT / "examples" / f"{name}.py"), *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name in LONG)) for name in EXAMPLES]
)
def test_an_example_ends_in_a_picture(name, tmp_path, digits_folder, monkeypatch):
    monkeypatch.setenv("HCNET_DATA", str(digits_folder))
    done = run(name, tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert SAYS[name] in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == [f"{name}.png"]
    with Image.open(tmp_path / f"{name}.png") as picture:
        assert min(picture.size) > 300
        assert len(picture.getcolors(1 << 20)) > 2


@pytest.mark.long
def test_a_picture_goes_where_told(tmp_path):
    (tmp_path / "pictures").mkdir()
    done = run("stream", tmp_path, "pictures/mine.png")
    assert done.returncode == 0, done.stderr[-2000:]
    assert [path.name for path in tmp_path.rglob("*.png")] == ["mine.png"]


def test_every_example_is_in_the_documentation():
    tasks = (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8")
    for name in EXAMPLES:
        assert f"`{name}.py`" in tasks
        assert f"images/gallery-{name.replace('_', '-')}.png" in tasks
