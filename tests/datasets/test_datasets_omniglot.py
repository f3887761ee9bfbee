"""Omniglot from small folders and archives that are written here."""

import shutil

import numpy as np
import pytest
from character_files import SIDE, draw, pack, write_alphabet, write_run

from hcnet.datasets import omniglot


def assert_same_run(run, written):
    found = run.images, run.test_images, run.test_labels
    for own, expected in zip(found, written, strict=True):
        np.testing.assert_array_equal(own, expected)
    np.testing.assert_array_equal(run.labels, np.arange(len(run.images)))
    assert run.images.dtype == run.test_images.dtype == bool


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


def test_runs_come_in_the_order_of_their_numbers(place):
    written = {k: write_run(place / f"run{k}", seed=k) for k in (10, 2, 1)}
    runs = omniglot(place).runs
    assert [run.name for run in runs] == ["run1", "run2", "run10"]
    for run, k in zip(runs, (1, 2, 10), strict=True):
        assert_same_run(run, written[k])


def test_archives_a_single_one_a_run_itself_and_deeper_folders_are_read_alike(place, tmp_path):
    written = write_run(place / "one-shot" / "all_runs" / "run07")
    packed = tmp_path / "packed"
    packed.mkdir()
    archive = pack(place, packed / "all_runs.zip")
    for source in (place, packed, archive, place / "one-shot" / "all_runs" / "run07"):
        (run,) = omniglot(source).runs
        assert run.name == "run07"
        assert_same_run(run, written)


def test_what_is_there_unpacked_and_packed_is_read_once(place):
    write_run(place / "run01")
    write_alphabet(place / "background" / "Greek")
    pack(place, place / "again.zip")
    data = omniglot(place)
    assert [run.name for run in data.runs] == ["run01"]
    assert data.alphabets["Greek"].images.shape == (12, SIDE, SIDE)


def test_an_alphabet_has_the_character_and_the_drawer_of_each_image(place):
    images = write_alphabet(place / "background" / "Greek")
    found = omniglot(place).alphabets["Greek"]
    for image, label, drawer in zip(*found, strict=True):
        np.testing.assert_array_equal(image, images[label, drawer])
    assert sorted(zip(found.labels, found.drawers, strict=True)) == [
        (label, drawer) for label in range(4) for drawer in range(3)
    ]


def test_tasks_take_an_example_from_one_drawer_and_a_test_from_another(place):
    images = {
        name: write_alphabet(place / "background" / name, seed)
        for seed, name in enumerate(("Greek", "Latin"))
    }
    tasks = omniglot(place).tasks(6, n_characters=3, random_state=0)
    assert [task.name.partition(",")[0] for task in tasks] == ["Greek", "Latin"] * 3
    for task in tasks:
        alphabet = images[task.name.partition(",")[0]]
        example, test = (int(word) - 1 for word in task.name.split() if word.isdigit())
        assert example != test
        for label, one, other in zip(task.labels, task.images, task.test_images, strict=True):
            character = next(k for k, own in enumerate(alphabet) if (own[example] == one).all())
            np.testing.assert_array_equal(other, alphabet[character, test])
            assert label == task.test_labels[label]


def test_the_same_seed_makes_the_same_tasks(place):
    write_alphabet(place / "background" / "Greek")
    data = omniglot(place)
    first, again = (data.tasks(2, n_characters=3, random_state=5) for _ in range(2))
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.test_images, other.test_images)


def test_tasks_need_alphabets_that_are_large_enough(place):
    write_run(place / "run01")
    with pytest.raises(ValueError, match=r"need an alphabet with 20 characters.* smaller"):
        omniglot(place).tasks(1)


def test_tasks_need_drawers_who_drew_all_characters(place):
    write_alphabet(place / "background" / "Greek", n_characters=2, n_drawers=2)
    (place / "background" / "Greek" / "character02" / "0601_02.png").unlink()
    with pytest.raises(ValueError, match="two drawers who drew each of 2 characters"):
        omniglot(place).tasks(1, n_characters=2)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda run: shutil.rmtree(run), "must hold runs"),
        (lambda run: (run / "class_labels.txt").write_text(""), "is empty"),
        (lambda run: (run / "class_labels.txt").write_text("what?"), "Line 1 of .* must name"),
        (lambda run: (run / "test" / "item02.png").unlink(), "Line 2 of .* must name"),
        (lambda run: (run / "test" / "item01.png").write_bytes(b"GIF"), "cannot be read as an ima"),
        (lambda run: (run / "test" / "item01.png").write_bytes(b"0" * 2**21), "2,097,152 bytes"),
        (lambda run: draw(run / "test" / "item01.png", np.eye(8) > 0), "8×8 pixels, but .* 9×9"),
        (lambda run: draw(run / "test" / "item03.png", np.ones((1, 1001)) > 0), "1×1001 pixels"),
        (lambda run: (run / "more.zip").write_bytes(b"PK"), "more.zip cannot be read as a zip"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(place, damage, message):
    (place / "kept").mkdir()
    write_run(place / "run01")
    damage(place / "run01")
    with pytest.raises((ValueError, FileNotFoundError), match=message) as caught:
        omniglot(place)
    assert str(caught.value).endswith(".")


def test_a_folder_that_is_not_there_is_said_to_be_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not there; pass the folder"):
        omniglot(tmp_path / "nowhere")


def test_a_table_cannot_lead_out_of_its_folder(place):
    write_run(place / "run01")
    draw(place / "other" / "item01.png", np.eye(SIDE) > 0)
    (place / "run01" / "class_labels.txt").write_text(
        "run01/../other/item01.png run01/training/class01.png"
    )
    with pytest.raises(ValueError, match="Line 1"):
        omniglot(place)
