"""The command as a person runs it: a process of its own."""

import os
from pathlib import Path

import pytest
from PIL import Image
from running import hcnet, inside, one_sentence

from hcnet import FeatureLearner

PICTURES = ["image.png", "parts.png", "placements.png", "reconstruction.png", "overview.png"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    (folder / "image.png").write_text("left over from before")
    refused = inside("demo", "--output", folder)
    assert (folder / "image.png").read_text() == "left over from before"
    return hcnet("demo", "--output", folder, "--force"), folder, refused


def test_demo_finds_every_letter_and_writes_pictures_and_model(demo):
    result, folder, refused = demo
    assert "image.png exists already" in one_sentence(refused, 3)
    assert result.returncode == 0, result.stderr
    assert "8 of 8" in result.stdout
    rows = [line for line in result.stdout.splitlines() if line.startswith("Wrong pixels")]
    assert rows[0].split()[2] == "0"
    for name in PICTURES:
        with Image.open(folder / name) as picture:
            picture.verify()
    assert FeatureLearner.load(folder / "letters.hcn").features_.shape == (8, 1, 12, 12)


@pytest.mark.parametrize("below", ["", "folder"])
def test_file_in_the_way_is_one_sentence(tmp_path, below):
    (tmp_path / "file").write_text("mine")
    said = one_sentence(inside("demo", "--output", tmp_path / "file" / below))
    assert str(tmp_path / "file") in said
    assert (tmp_path / "file").read_text() == "mine"


def test_folder_without_permission_is_one_sentence(tmp_path):
    tmp_path.chmod(0o500)
    # The superuser may write there all the same, but nobody may make files in /proc.
    folder = Path("/proc") if os.access(tmp_path, os.W_OK) else tmp_path
    assert str(folder) in one_sentence(inside("demo", "--output", folder))
