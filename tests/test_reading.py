"""Names of parts, and text read from them."""

import re

import numpy as np
import pytest
from PIL import ImageFont

from hcnet import FeatureLearner, load
from hcnet.datasets import text
from hcnet.images import part_boxes
from hcnet.metrics import character_error_rate
from hcnet.model import PartsModel
from hcnet.objective import Priors
from hcnet.reading import PLACEHOLDER, name_parts, read_names, read_pages, read_text
from hcnet.reading.words import page_lines


def model_of(features, size):
    """A learner that has these parts (parts, height, width), without having learned them."""
    features = np.asarray(features, bool)[:, None]
    learner = FeatureLearner(feature_size=features.shape[2:])
    priors = Priors(1e-4, 0.4, 1e-3, 1e-3)
    return learner._publish(PartsModel(features, priors, "full", size))


@pytest.fixture
def model():
    return model_of(np.random.default_rng(0).random((4, 5, 5)) < 0.5, (20, 30))


def names_in(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_names(path)


def test_names_are_kept_in_the_file_and_can_be_changed(model, tmp_path):
    unnamed = model.save(tmp_path / "unnamed.hcn")
    assert load(unnamed).part_names_.tolist() == [""] * 4
    name_parts(model, {0: "fi", 2: "e\u0301", 3: "  "})
    named = load(model.save(tmp_path / "named.hcn"))
    assert named.part_names_.tolist() == ["fi", "", "é", " "]
    name_parts(named, {0: "ffi", 3: ""})
    assert named.part_names_.tolist() == ["ffi", "", "é", ""]
    name_parts(named, dict.fromkeys(range(4), ""))
    assert named.save(tmp_path / "again.hcn").read_bytes() == unnamed.read_bytes()


def test_wrong_names_are_explained_and_change_nothing(model, tmp_path):
    name_parts(model, {0: "a"})
    for part in (4, -1, "1", 1.5):
        with pytest.raises(ValueError, match="the model has 4 parts, numbered from 0"):
            name_parts(model, {1: "b", part: "x"})
    for name, kind in ((3, TypeError), ("a\nb", ValueError), ("\ud800", ValueError)):
        with pytest.raises(kind, match="The name of part 2"):
            name_parts(model, {1: "b", 2: name})
    with pytest.raises(ValueError, match="has 41 characters, and 40 are allowed"):
        name_parts(model, {0: "x" * 41})
    assert model.part_names_.tolist() == ["a", "", "", ""]
    model.part_names_ = ["a", "b"]
    with pytest.raises(ValueError, match="must be a list of 4 texts"):
        model.save(tmp_path / "a.hcn")
    model.part_names_ = np.array(["a", "b", "c", "d"])  # as people write it
    assert load(model.save(tmp_path / "a.hcn")).part_names_.tolist() == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("part,name\n0,e\n12,fi\n", {0: "e", 12: "fi"}),
        ("part,name\r\n0,é\r\n", {0: "é"}),
        ("\ufeffPart , Name\n0,ﷲ\n", {0: "ﷲ"}),  # as a spreadsheet writes it
        ("part;name\n0;,\n1;a\n", {0: ",", 1: "a"}),
        ('part,name\n0,","\n1,""""\n2," "\n3,\n', {0: ",", 1: '"', 2: " ", 3: ""}),
        ("part,name\n\n 7 , a \n7,a\n,\n", {7: "a"}),
        ("part,name", {}),
    ],
)
def test_names_files_that_people_and_programs_write(content, names, tmp_path):
    assert names_in(tmp_path / "names.csv", content) == names


HOSTILE = {
    "": "its first line is ''",
    "0,e\n": "its first line is '0,e'",
    "part,name\ne,0\n": "line 2 has 'e' instead of the number",
    "part,name\n-1,e\n": "line 2 has '-1'",
    "part,name\n1.5,e\n": "line 2 has '1.5'",
    "part,name\n٣,e\n": "line 2 has",
    "part,name\n99999999999,e\n": "line 2 has '99999999999'",
    "part,name\n1\n": "line 2 has 1 columns",
    "part,name\n1,,\n": "line 2 has 3 columns; a name that holds a comma stands in quotation marks",
    "part,name\n1,a\n2,b\n1,c\n": "line 4 names part 1 for the second time",
    'part,name\n1,"\n2,a\n': "unexpected end of data",
    'part,name\n1,"a\nb"\n': "does not fit on one line",
    "part,name\n1,a\0b\n": "line",
    f"part,name\n1,{'x' * 500}\n": "the name in line 2 has 500 characters",
    f"part,name\n1,{'x' * 200_000}\n": "field larger than field limit",
    "part,name\n" + "1,a\n" * 300_000: "it has more than 1,048,576 bytes",
    b"part,name\n1,\xe9\n": "can't decode",
    b"\x89PNG\r\n\x1a\n\0\0": "can't decode",
}


@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_files_end_in_a_sentence(content, tmp_path):
    with pytest.raises(ValueError, match=r"names\.csv is not a file of names \(") as caught:
        names_in(tmp_path / "names.csv", content)
    assert HOSTILE[content] in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400 + len(str(tmp_path))


PROSE = (
    "Every spring he paints the heavy door dark green, and puts a jar of flowers on the bench. "
    "Visitors often ask: how long does one piece take? He only smiles; wood has (he says) its own "
    "mind. If you do not believe it, ask Jim of Oxford - he knows 375 of 1,024 jokes!"
)
# Pieces of characters, from the top: their shares of the height, and their names.
PIECES = {
    "i": [(0, 0.17, "."), (0.3, 1, "ı")],
    "j": [(0, 0.14, "."), (0.25, 1, "ȷ")],
    ":": [(0, 0.2, "."), (0.8, 1, ".")],
    ";": [(0, 0.2, "."), (0.65, 1, ",")],
    "!": [(0, 0.75, "!"), (0.87, 1, ".")],
    "?": [(0, 0.75, "?"), (0.87, 1, ".")],
}


class Typeset:
    """Boxes and names of the characters of a page."""

    def __init__(self, size=40):
        self.size, self.boxes, self.names = size, [], []

    def line(self, words, y, x=0, width=None, larger=1, pieces=False):
        """A line with its baseline at y; with a width, spaces are as wide as it takes."""
        font = ImageFont.load_default(self.size * larger)
        lengths = [font.getlength(word) for word in words]
        space = font.getlength(" ")
        if width is not None and len(words) > 1:
            space = (width - sum(lengths)) / (len(words) - 1)
        for word, length in zip(words, lengths, strict=True):
            for k, character in enumerate(word):
                left, top, right, bottom = font.getbbox(character, anchor="ls")
                at = x + font.getlength(word[: k + 1]) - font.getlength(character)
                for a, b, name in (PIECES if pieces else {}).get(character, [(0, 1, character)]):
                    high = bottom - top
                    rows = y + top + a * high, y + top + b * high
                    self.boxes.append([rows[0], at + left, rows[1], at + right])
                    self.names.append(name)
            x += length + space

    def paragraph(self, words, y, x=0, width=1000, leading=1.2, **options):
        """Justified lines, and the position below them."""
        font, lines, line = ImageFont.load_default(self.size), [], []
        for word in words:
            if line and font.getlength(" ".join([*line, word])) > width:
                lines.append(line)
                line = []
            line.append(word)
        for k, words_of_line in enumerate([*lines, line]):
            full = width if k < len(lines) else None
            self.line(words_of_line, y + k * leading * self.size, x, full, **options)
        self.lines = [" ".join(one) for one in [*lines, line]]
        return y + (len(lines) + 1) * leading * self.size

    def read(self, slope=0.0, seed=0):
        """The lines that are read of the scanned page: turned, moved by a pixel, in any order."""
        rng = np.random.default_rng(seed)
        boxes = np.array(self.boxes)
        y, x = (boxes[:, :2] + boxes[:, 2:]).T / 2
        boxes += np.stack([slope * x, -slope * y] * 2, axis=1) + rng.uniform(-1, 1, boxes.shape)
        order = rng.permutation(len(boxes))
        return page_lines(np.rint(boxes[order]).astype(int), np.array(self.names, object)[order])


@pytest.mark.parametrize("slope", [0.0, 0.0087, -0.0087])
@pytest.mark.parametrize("pieces", [False, True])
@pytest.mark.parametrize("leading", [1.05, 1.3])
def test_a_page_with_a_headline_is_read_line_by_line(slope, pieces, leading):
    page = Typeset()
    page.line(["An", "initial", "headline"], 100, 300, larger=2, pieces=pieces)
    page.paragraph(PROSE.split() * 3, 220, 50, 1500, leading, pieces=pieces)
    assert page.read(slope) == ["An initial headline", *page.lines]


@pytest.mark.parametrize("slope", [0.0, 0.006])
def test_columns_are_read_one_after_the_other_below_a_line_across_them(slope):
    page = Typeset(30)
    page.line(PROSE.split()[:12], 40, width=1250)
    end = page.paragraph(PROSE.split() * 2, 120, 0, 600)
    first = page.lines
    page.paragraph(PROSE.split()[::-1] * 2, 133, 650, 600)  # baselines differ
    second = page.lines
    page.line(["The", "end"], end + 100, 570)
    top = " ".join(PROSE.split()[:12])
    assert page.read(slope) == [top, *first, *second, "The end"]


def test_initials_quotation_marks_and_the_edge_of_the_next_page_keep_their_lines():
    page = Typeset()
    words = [f'"{word}"' if len(word) > 6 else word for word in PROSE.split()]
    page.paragraph(words * 2, 100, 80, 700)
    first = page.lines
    page.paragraph(PROSE.split() * 2, 93, 900, 700)
    second = page.lines
    for k in range(40):  # letters at the edge of a scan
        page.line(["r"], 110 + 35 * k, 1900)
    read = page.read(0.005)
    text = [re.sub(" r+$", "", line) for line in read if line.strip("r ")]
    assert text == [*first, *second]
    page = Typeset(30)
    page.line(["I"], 136, 0, larger=2.6)
    page.line(["well", "remember", "my", "arrival"], 100, 40)
    page.line(["at", "Caltech", "on", "a", "sunny"], 136, 40)
    page.line(["morning", "in", "the", "autumn"], 172, 0)
    assert page.read() == [
        "I well remember my arrival", "at Caltech on a sunny", "morning in the autumn",
    ]  # fmt: skip


def test_a_table_is_read_row_by_row_and_one_word_has_no_gaps():
    page = Typeset()
    for k in range(12):
        page.line(["Name"], 50 + 60 * k)
        page.line([f"{k}75"], 50 + 60 * k, 600)
    assert page.read() == [f"Name {k}75" for k in range(12)]
    page = Typeset()
    page.line(["Unwidersprechlich"], 50)
    assert page.read() == ["Unwidersprechlich"]
    assert page_lines(np.zeros((0, 4), int), np.array([], object)) == []
    assert page_lines(np.array([[3, 3, 3, 3]]), np.array(["a"], object)) == []
    assert page_lines(np.array([[3, 3, 9, 9]]), np.array([" "], object)) == []


@pytest.mark.parametrize("pieces", ["e´é", "e.ė", "cxcx", ".l!", ",cç", "--=", "ı ı"])
def test_pieces_above_each_other_become_a_character_where_there_is_one(pieces):
    lower, upper, text = pieces[0], pieces[1], pieces[2:]
    stacks = {
        ".": [[57, 12, 60, 16], [32, 12, 52, 16]],
        ",": [[58, 4, 62, 12], [40, 0, 56, 16]],
        "-": [[52, 0, 55, 16], [45, 0, 48, 16]],
    }
    stack = stacks.get(lower, [[40, 0, 60, 16], [30, 4, 36, 12]])
    boxes = np.array([*stack, [40, 20, 60, 36], [40, 40, 60, 56]])
    names = np.array([lower, upper, "n", "n"], object)
    assert page_lines(boxes, names) == [f"{text}nn"]


def test_blank_pieces_are_ink_and_blank_specks_are_not():
    boxes = np.array([[0, 20 * k, 20, 20 * k + 17] for k in range(12)])
    names = np.array(list("abcdefghijkl"), object)
    boxes[6:, [1, 3]] += 20  # a space
    speck = np.vstack([boxes, [[9, 125, 11, 131]]])
    assert page_lines(speck, np.array([*names, " "], object)) == ["abcdef ghijkl"]
    names[3] = " "  # the right half of an m
    assert page_lines(boxes, names) == ["abcef ghijkl"]


def test_scripts_that_run_to_the_left_are_read_from_the_right():
    left = np.r_[0:100:20, 115:190:20]
    boxes = np.stack([left * 0, left, left * 0 + 20, left + 17], axis=1)
    assert page_lines(boxes, np.array(list("םלועהםולש"), object)) == ["שלום העולם"]


@pytest.fixture(scope="module")
def page():
    """A page of text, and a learner with its true parts and their names."""
    data = text(random_state=0)
    learner = model_of(data.features[:, 0], data.images.shape[2:])
    name_parts(learner, dict(enumerate(data.names)))
    return data, learner


def test_text_is_read_from_an_image(page):
    data, learner = page
    (lines,) = read_text(learner, data.images)
    boxes = part_boxes(data.features)[data.placements[:, 1]]
    boxes += np.hstack([data.placements[:, 2:]] * 2)
    names = np.array(data.names, object)[data.placements[:, 1]]
    true = page_lines(boxes, names)
    assert "evenings" in true[1]
    assert character_error_rate("\n".join(lines), "\n".join(true)) < 0.01
    two = read_text(learner, np.concatenate([data.images, np.zeros_like(data.images)]))
    assert two == [lines, []]


def test_unnamed_parts_and_unknown_ink_are_seen_and_counted(page):
    data, _ = page
    known = [k for k, name in enumerate(data.names) if name != "m"]
    other = model_of(data.features[known, 0], data.images.shape[2:])
    names = [data.names[k] for k in known]
    name_parts(other, {k: name for k, name in enumerate(names) if name != "e"})
    (found,) = read_pages(other, data.images)
    assert list(found.unnamed) == [names.index("e")]
    marks = sum(line.count(PLACEHOLDER) for line in found.lines)
    assert marks == found.unnamed.total() + found.unexplained
    assert not any("e" in line for line in found.lines)


def test_the_error_rate_counts_edits():
    assert character_error_rate("kitten", "sitting") == 3 / 7
    assert character_error_rate("", "abc") == 1
    assert character_error_rate("abc", "") == 3
    assert character_error_rate("naïve ﷲ", "naïve ﷲ") == 0
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = ("".join(rng.choice(list("abc"), rng.integers(0, 8))) for _ in range(2))
        assert character_error_rate(a, b) * max(len(b), 1) == _edits(a, b)
    with pytest.raises(TypeError, match="read must be a text, got list"):
        character_error_rate(["a"], "a")


def _edits(a, b):
    """By the definition."""
    if not a or not b:
        return len(a) + len(b)
    kept = _edits(a[1:], b[1:]) + (a[0] != b[0])
    return min(kept, _edits(a[1:], b) + 1, _edits(a, b[1:]) + 1)
