"""Names of parts."""

import numpy as np
import pytest

from hcnet import FeatureLearner, load
from hcnet.model import PartsModel
from hcnet.objective import Priors
from hcnet.reading import name_parts, read_names


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
