"""A yes/no table in a CSV file, its factors and its picture."""

import csv
import json

import numpy as np
import pytest
from PIL import Image
from running import inside, one_sentence, run

from hcnet import BooleanMatrixFactorization
from hcnet.datasets import boolean_matrix

DATA = boolean_matrix(shape=(30, 8), rank=2, flips=0.02, random_state=1)


def write(path, rows, mark=","):
    path.write_text("\n".join(mark.join(map(str, row)) for row in rows) + "\n")
    return path


def table(path, named=True, mark=","):
    header = [f"question {k}" for k in range(8)]
    rows = [[*map(int, row)] for row in DATA.table]
    rows[4][2] = ""
    if named:
        return write(path, [["who", *header], *([f"p{k}", *r] for k, r in enumerate(rows))], mark)
    return write(path, [header, *rows], mark)


def read(path):
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    return header, [row[0] for row in rows], np.array([row[1:] for row in rows], int)


@pytest.mark.parametrize(("named", "mark"), [(True, ","), (False, ";"), (True, "\t")])
def test_factors_are_written_with_names_and_a_picture(tmp_path, named, mark):
    path, out = table(tmp_path / "answers.csv", named, mark), tmp_path / "found"
    said = run("factor", path, "--rank", 2, "--random-state", 0, "-o", out, "--json")
    told = json.loads(said.stdout)
    header, numbers, components = read(out / "components.csv")
    assert header == ["component", *(f"question {k}" for k in range(8))]
    assert numbers == ["0", "1"]
    _, names, codes = read(out / "rows.csv")
    assert names == [f"p{k}" if named else str(k) for k in range(30)]
    mask = np.zeros((30, 8), bool)
    mask[4, 2] = True
    wrong = ((codes @ components > 0) != DATA.table) & ~mask
    assert told["errors"] == wrong.sum()
    assert told["observed"] == 239
    model = BooleanMatrixFactorization(2, objective="error", random_state=0)
    model.fit(DATA.table, mask=mask)
    np.testing.assert_array_equal(model.components_, components)
    first = [f"question {k}" for k in np.flatnonzero(components[0])]
    assert told["components"][0]["columns"] == ", ".join(first)
    with Image.open(out / "table.png") as picture:
        assert min(picture.size) > 8 * 10


def test_the_rank_is_chosen_and_the_folder_is_named_after_the_table(tmp_path, hcnet):
    table(tmp_path / "answers.csv")
    done = hcnet("factor", "answers.csv", "--random-state", 0, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "30 rows, 8 columns, 1 entries missing" in done.stdout
    assert "of 239 entries" in done.stdout
    folder = tmp_path / "answers-factors"
    assert {file.name for file in folder.iterdir()} == {"components.csv", "rows.csv", "table.png"}
    again = hcnet("factor", "answers.csv", "--objective", "probability", cwd=tmp_path)
    assert "exists already" in one_sentence(again, 3)
    assert hcnet("factor", "answers.csv", "--rank", 1, "--force", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([["a", "b"], [1, "often"], [0, 1]], "line 2, column 'b' holds 'often', and cells must be"),
        ([["a", "b"], [1, 0], [0, 2]], "line 3, column 'b' holds '2'"),
        ([["a", "b"], [1, 0], [], [0, "x" * 9999]], "line 4, column 'b' holds 'xxxxxxxxxxxx...xxx"),
        ([["a", "b"], [1, 0, 1]], "line 2 has 3 cells and the header 2"),
        ([["a", "b"]], "must have a header with the names of the columns and at least one row"),
        ([[0, 1], [1, 0]], "has no header"),
        ([["a", "b"], ["", ""]], "Every entry of X is missing"),
    ],
)
def test_bad_tables_get_a_sentence(tmp_path, rows, sentence):
    path = write(tmp_path / "bad.csv", rows)
    assert sentence in one_sentence(inside("factor", path, "-o", tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_names_may_hold_line_breaks(tmp_path):
    path = write(
        tmp_path / "a.csv", [["who", '"a\nb"', "c\u2028d"], ["x\u2028y", 1, 0], ["z", 0, 1]]
    )
    run("factor", path, "--rank", 1, "--random-state", 0, "-o", tmp_path / "out")
    assert read(tmp_path / "out" / "components.csv")[0] == ["component", "a\nb", "c\u2028d"]
    assert read(tmp_path / "out" / "rows.csv")[1] == ["x\u2028y", "z"]


def test_bad_arguments_get_a_sentence(tmp_path):
    path = table(tmp_path / "answers.csv")
    said = one_sentence(inside("factor", path, "--rank", 9, "-o", tmp_path / "out"))
    assert "n_components is 9, but X has 30 rows and 8 columns" in said
    assert "is not there" in one_sentence(inside("factor", tmp_path / "none.csv"))
    (tmp_path / "image.csv").write_bytes(bytes(range(128, 256)))
    said = one_sentence(inside("factor", tmp_path / "image.csv", "-o", tmp_path / "out"))
    assert "is no text in UTF-8" in said
