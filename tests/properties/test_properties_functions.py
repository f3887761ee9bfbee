"""Data sets, preprocessing, metrics and commands, given anything: a right answer, or a sentence."""

import inspect
import shutil
from contextlib import suppress

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import about, anything, images, odd_parameters, outcome, pixels

from hcnet import datasets, metrics
from hcnet.cli import main
from hcnet.datasets import (
    BooleanMatrixData,
    Font,
    LabelledCharacters,
    LabelledDigits,
    MnistData,
    OmniglotData,
    OneShotTask,
    PartsData,
    ScannedText,
    ShapesData,
    WordsData,
)
from hcnet.preprocessing import LineRemover, OrientedEdges

FILES = [
    f"{part}-{what}-ubyte" for part in ("train", "t10k") for what in ("images-idx3", "labels-idx1")
]

# Small ones; what is left out is at its default.
SMALL = {
    "two_bars": {"size": (12, 12), "length": 4, "n_placements": 2},
    "symbols": {"size": (40, 40), "n_placements": 2},
    "letters": {"size": (40, 40), "n_placements": 3},
    "small_letters": {"n_images": 2, "per_image": 2},
    "text": {"size": (60, 80), "words": "a word"},
    "scanned_text": {"size": (90, 200), "text": "a word"},
    "deconvolution": {"n_images": 2},
    "shapes": {"n_images": 2, "feature_size": 9},
    "words": {"n_images": 2},
    "boolean_matrix": {"shape": (5, 4), "rank": 2},
}
ARGUMENTS = [
    (name, argument)
    for name in SMALL
    for argument in inspect.signature(getattr(datasets, name)).parameters
]


def check_data(data):
    """What holds of every data set."""
    if isinstance(data, BooleanMatrixData):
        assert data.table.shape == data.clean.shape == data.mask.shape
        return
    assert isinstance(data, PartsData | ScannedText | ShapesData | WordsData)
    assert data.images.dtype == data.clean.dtype == bool
    assert data.images.shape == data.clean.shape
    assert data.features.any(axis=(1, 2, 3)).all()
    if isinstance(data, PartsData):
        np.testing.assert_array_equal(data.render(), data.clean)


@given(st.sampled_from(ARGUMENTS), odd_parameters())
@about(
    *(f"hcnet.datasets.{name}" for name in SMALL),
    "hcnet.datasets.BooleanMatrixData",
    "hcnet.datasets.PartsData",
    "hcnet.datasets.ScannedText",
    "hcnet.datasets.ShapesData",
    "hcnet.datasets.WordsData",
    "hcnet.datasets.PartsData.render",
    examples=200,
)
def test_a_data_set_with_any_argument(where, value):
    name, argument = where
    options = {**SMALL[name], "random_state": 0, argument: value}
    data = outcome(getattr(datasets, name), **options)
    if data is not None:
        check_data(data)


@given(odd_parameters(), odd_parameters(), odd_parameters())
@about("hcnet.datasets.Font", examples=40)
def test_a_font_of_any_kind(path, points, slant):
    font = Font(path=path, points=points, slant=slant)
    data = outcome(datasets.scanned_text, fonts=font, **SMALL["scanned_text"])
    if data is not None:
        check_data(data)


@given(st.sampled_from(tuple(SMALL)), st.integers(0, 2**32))
@about(examples=20)
def test_the_same_seed_makes_the_same_data(name, seed):
    make = getattr(datasets, name)
    one, two = (make(**SMALL[name], random_state=seed) for _ in range(2))
    first = "table" if name == "boolean_matrix" else "images"
    np.testing.assert_array_equal(getattr(one, first), getattr(two, first))


# --- digits and edges -------------------------------------------------------------------------

DIGITS = MnistData(
    np.zeros((6, 4, 4), np.uint8), np.arange(6) % 2, np.zeros((1, 4, 4), np.uint8), np.zeros(1, int)
)


@given(odd_parameters(), odd_parameters())
@about(
    "hcnet.datasets.LabelledDigits",
    "hcnet.datasets.MnistData",
    "hcnet.datasets.MnistData.first",
    "hcnet.datasets.MnistData.beyond",
    examples=60,
)
def test_any_number_of_digits(per_class, n_images):
    first = outcome(DIGITS.first, per_class)
    if first is not None:
        assert isinstance(first, LabelledDigits)
        assert len(first.images) == len(first.labels) == 2 * per_class
    beyond = outcome(DIGITS.beyond, per_class, n_images)
    assert beyond is None or n_images is None or len(beyond.images) == n_images


@given(st.dictionaries(st.sampled_from(FILES), st.binary(max_size=40)), odd_parameters())
@about("hcnet.datasets.mnist", examples=30)
def test_digits_from_any_folder(tmp_path, files, download):
    for path in tmp_path.iterdir():
        path.unlink()
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with suppress(FileNotFoundError):
        assert outcome(datasets.mnist, tmp_path, download=download) is None


CHARACTERS = OmniglotData(
    (),
    {
        "Greek": LabelledCharacters(
            np.zeros((12, 4, 4), bool), np.arange(12) % 4, np.arange(12) // 4
        )
    },
)
OMNIGLOT_FILES = [
    "run01/class_labels.txt",
    "run01/training/class01.png",
    "Greek/character01/0001_01.png",
    "runs.zip",
]


@given(odd_parameters(), odd_parameters(), odd_parameters())
@about(
    "hcnet.datasets.LabelledCharacters",
    "hcnet.datasets.OmniglotData",
    "hcnet.datasets.OmniglotData.tasks",
    "hcnet.datasets.OneShotTask",
    examples=60,
)
def test_any_number_of_tasks(n_tasks, n_characters, seed):
    tasks = outcome(CHARACTERS.tasks, n_tasks, n_characters=n_characters, random_state=seed)
    if tasks is not None:
        assert all(isinstance(task, OneShotTask) for task in tasks)
        assert {len(task.images) for task in tasks} == {len(task.test_images) for task in tasks}


@given(st.dictionaries(st.sampled_from(OMNIGLOT_FILES), st.binary(max_size=40)))
@about("hcnet.datasets.omniglot", examples=30)
def test_characters_from_any_folder(tmp_path, files):
    folder = tmp_path / "data"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    with suppress(FileNotFoundError):
        assert outcome(datasets.omniglot, folder) is None


@given(
    st.sampled_from([OrientedEdges, LineRemover]),
    st.one_of(anything(), images(), images().map(lambda x: x.astype(float) / 3)),
    st.data(),
    odd_parameters(),
)
@about(
    *(
        f"hcnet.preprocessing.{kind}{method}"
        for kind in ("OrientedEdges", "LineRemover")
        for method in ("", ".fit", ".transform", ".fit_transform", ".set_params")
    ),
    examples=240,
)
def test_edges_and_lines_of_anything(kind, X, data, value):
    name = data.draw(st.sampled_from([*kind().get_params(), None]))
    model = kind(**({} if name is None else {name: value}))
    found = outcome(model.fit_transform, X)
    if found is None:
        return
    np.testing.assert_array_equal(found, model.transform(X))
    if kind is OrientedEdges:
        assert (found.dtype, found.shape[1]) == (bool, model.n_orientations)
    else:
        assert (found.dtype, found.shape) == (np.asarray(X).dtype, np.shape(X))


# --- metrics ----------------------------------------------------------------------------------

TWO = datasets.two_bars(size=(12, 12), length=4, n_placements=2, random_state=0)


@given(st.tuples(st.integers(1, 4), st.integers(1, 4)).flatmap(lambda s: pixels((1, *s))))
@about(examples=30)
def test_a_part_equals_itself_wherever_it_is_and_nothing_else(part):
    assert metrics.part_iou(part, part) == 1
    moved = np.pad(part, ((0, 0), (1, 2), (3, 0)))
    assert metrics.part_iou(part, moved) == 1
    other = ~part
    assert 0 <= metrics.part_iou(part, other) <= 1
    assert metrics.part_iou(part, other) == metrics.part_iou(other, part)
    np.testing.assert_array_equal(metrics.matched_iou(part[None], part[None]), [1])


@given(
    st.sampled_from(["part_iou", "matched_iou"]),
    st.one_of(anything(), images()),
    st.one_of(anything(), images()),
)
@about("hcnet.metrics.part_iou", "hcnet.metrics.matched_iou", examples=80)
def test_overlap_of_anything(name, a, b):
    answer = outcome(getattr(metrics, name), a, b)
    if answer is not None:
        assert ((np.asarray(answer) >= 0) & (np.asarray(answer) <= 1)).all()


@given(st.one_of(anything(), images()), st.one_of(anything(), images()), odd_parameters())
@about("hcnet.metrics.groups_found", examples=60)
def test_groups_of_anything(learned, true, variants):
    found = outcome(metrics.groups_found, learned, true, variants)
    if found is not None:
        assert 0 <= found <= len(true) // variants
    again = outcome(metrics.groups_found, learned, learned, 1)
    if again is not None and all(np.asarray(part).any() for part in learned):
        assert again == len(learned)


@given(st.one_of(st.text(), anything()), st.one_of(st.text(), anything()))
@about("hcnet.metrics.character_error_rate", examples=60)
def test_the_error_rate_of_anything(read, true):
    rate = outcome(metrics.character_error_rate, read, true)
    if rate is not None:
        assert (rate == 0) == (read == true)
        assert rate <= max(len(read), len(true)) / max(len(true), 1)


PAGE = datasets.scanned_text(**SMALL["scanned_text"], random_state=0)


@given(
    st.one_of(anything(), hnp.arrays(np.int64, (3, 4), elements=st.integers(-2, 99))),
    st.one_of(anything(), images(), st.just(PAGE.features)),
    st.sampled_from([PAGE, PAGE, PAGE, TWO, None]),
)
@about("hcnet.metrics.glyph_scores", examples=120)
def test_scores_of_any_placements(placements, features, truth):
    scores = outcome(metrics.glyph_scores, placements, features, truth)
    if scores is not None:
        assert 0 <= scores.in_pure_parts <= 1
        assert 0 <= scores.missing <= 1
        assert scores.part_shapes.shape == scores.part_purity.shape == (len(features),)


@given(odd_parameters(), st.sampled_from(["full", "valid", "odd", None, 1]))
@about("hcnet.metrics.true_compression", "hcnet.metrics.true_explanation")
def test_what_the_true_parts_reach(size, border):
    ratio = outcome(metrics.true_compression, TWO, size, border)
    found = outcome(metrics.true_explanation, TWO, size, border)
    assert (ratio is None) == (found is None)
    if ratio is not None:
        assert 0 < ratio < np.inf


# --- the command line -------------------------------------------------------------------------

WORDS = ["demo", "demos", "--seed", "--seed=-1", "--seed=1e3", "0", "-1", "x", "--bogus", "-h"]


@given(st.lists(st.sampled_from([*WORDS, "--version", "--output", "--output=a file"]), max_size=5))
@about(examples=60)
def test_any_words(tmp_path, capsys, monkeypatch, words):
    """An exit code and a line, never a traceback."""
    monkeypatch.chdir(tmp_path)
    # The folder that a demonstration would write to is a file in every case.
    for name in ("a file", "x", "0", "demo"):
        (tmp_path / name).write_text("mine")
    try:
        code = main(words)
    except SystemExit as stop:
        code = stop.code
    shown = capsys.readouterr()
    assert code in (0, 1, 2)
    assert "Traceback" not in shown.out + shown.err
    if code:
        assert "error:" in shown.err
        assert len(shown.err.strip().splitlines()) <= 4
    assert (tmp_path / "a file").read_text() == "mine"
