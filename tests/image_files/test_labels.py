"""Every image gets its own label, or a sentence says why it cannot be told."""

import numpy as np
import pytest

from hcnet.image_files import read_labels


@pytest.fixture
def files(tmp_path):
    return [tmp_path / name for name in ("cat/1.png", "dog/1.png", "dog/2.png")]


def table(folder, *rows, name="table.csv", header="file,label"):
    (folder / name).write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return folder / name


def test_labels_come_from_lines_tables_arrays_and_folders(tmp_path):
    files = [tmp_path / "cat" / "1.png", tmp_path / "dog" / "2.png", tmp_path / "cat" / "3.png"]
    (tmp_path / "lines.txt").write_text("4\n-1\n7\n")
    assert read_labels(tmp_path / "lines.txt", files).tolist() == [4, -1, 7]
    path = table(tmp_path, "dog,2.png", "cat,1.png", header="label,file")
    assert read_labels(path, files).tolist() == ["cat", "dog", -1]
    np.savez(tmp_path / "both.npz", X=np.zeros((3, 2, 2)), y=[1, 2, 3])
    assert read_labels(tmp_path / "both.npz", files).tolist() == [1, 2, 3]
    np.save(tmp_path / "words.npy", np.array(["a", "b", "a"]))
    assert read_labels(tmp_path / "words.npy", files).tolist() == ["a", "b", "a"]
    assert read_labels("folders", files).tolist() == ["cat", "dog", "cat"]


@pytest.mark.parametrize(
    "rows",
    [
        ("cat/1.png,a", "dog/1.png,b", "2.png,c"),
        ("./cat/1.png,a", "dog//1.png,b", "dog/2.png,c"),
        ("{folder}/cat/1.png,a", "{folder}/dog/1.png,b", "{folder}/dog/2.png,c"),
        ("../{folder.name}/cat/1.png,a", "dog/../dog/1.png,b", "2.png,c"),
        ("\ufeffcat/1.png,a", "dog/1.png,b", "2.png,c"),  # the mark of a spreadsheet
    ],
)
def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path, files, rows):
    rows = [row.format(folder=tmp_path) for row in rows]
    mark = rows[0].startswith("\ufeff")
    rows[0] = rows[0].removeprefix("\ufeff")
    path = table(tmp_path, *rows, header="\ufefffile,label" if mark else "file,label")
    assert read_labels(path, files).tolist() == ["a", "b", "c"]
    # Pages of a file have its label, and the order of rows does not matter.
    several = [files[1], files[1], files[0], files[2]]
    path = table(tmp_path, *reversed(rows))
    assert read_labels(path, several).tolist() == ["b", "b", "a", "c"]


def test_paths_may_be_relative(tmp_path, files, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = table(tmp_path, "cat/1.png,a", "dog/1.png,b")
    relative = [file.relative_to(tmp_path) for file in files]
    assert read_labels(path, relative).tolist() == ["a", "b", -1]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            ("1.png,a",),
            r"'1\.png' in line 2, which may be .*cat/1\.png or .*dog/1\.png; write more",
        ),
        (("cat/1.png,a", "dog/3.png,b"), r"'dog/3\.png' in line 3, which is none of the images"),
        (("at/1.png,a",), "none of the images"),  # the end of a name is no name
        (("2.PNG,a",), "none of the images"),
        (("2.png,a", "dog/2.png,b"), "in line 3 for the second time, with another label"),
        (("cat/1.png",), "1 column in line 2 instead of 2"),
        (("2.png,a,b",), "3 columns in line 2 instead of 2"),
        (("2.png, ",), "no label in line 2; write -1"),
        ((",a",), "none of the images"),
        (('"2.png,a',), "not a table of labels"),
    ],
)
def test_rows_that_are_unclear_are_refused(tmp_path, files, rows, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_labels(table(tmp_path, *rows), files)
    assert str(caught.value).startswith(str(tmp_path / "table.csv"))


def test_labels_that_do_not_fit_are_explained(tmp_path, files):
    (tmp_path / "a.txt").write_text("1\n2\n")
    with pytest.raises(ValueError, match="2 labels for 3 images"):
        read_labels(tmp_path / "a.txt", files)
    (tmp_path / "b.txt").write_text("1\n2\n3,4\n")
    with pytest.raises(ValueError, match="2 columns in line 3 instead of 1"):
        read_labels(tmp_path / "b.txt", files)
    with pytest.raises(ValueError, match="needs the columns file and label"):
        read_labels(table(tmp_path, "x,y", header="name,what"), files)
    with pytest.raises(ValueError, match=r"columns fi le, label;") as caught:
        read_labels(table(tmp_path, "x,y", header='"fi\nle",label'), files)
    assert "\n" not in str(caught.value)
    for shape in ((), (3, 1), (2,)):
        np.save(tmp_path / "c.npy", np.zeros(shape))
        with pytest.raises(ValueError, match="labels for 3 images"):
            read_labels(tmp_path / "c.npy", files)
    np.save(tmp_path / "d.npy", np.zeros(3, complex))
    with pytest.raises(ValueError, match="labels of complex128; give numbers or words"):
        read_labels(tmp_path / "d.npy", files)
    for content in (b"\xff\xfe1\n2\n3\n", b"1\n\0\n3\n", b'"1\n2\n3\n'):
        (tmp_path / "e.txt").write_bytes(content)
        try:
            assert len(set(read_labels(tmp_path / "e.txt", files).tolist())) == 3
        except ValueError as error:
            assert "e.txt is not a table of labels" in str(error)  # noqa: PT017


def test_different_words_are_different_labels(tmp_path, files):
    for lines, expected in {
        "1\n01\n2\n": ["1", "01", "2"],
        "9223372036854775807\n9223372036854775808\n-1\n": [
            "9223372036854775807",
            "9223372036854775808",
            -1,
        ],
        "\ufeff4\n5\n6\n": [4, 5, 6],
        '"a, b"\nc\n"d ""e"""\n': ["a, b", "c", 'd "e"'],
    }.items():
        (tmp_path / "lines.txt").write_text(lines, encoding="utf-8")
        assert read_labels(tmp_path / "lines.txt", files).tolist() == expected


def test_a_link_has_the_label_of_its_own_folder(tmp_path, files):
    """Data sets are often folders of links into one pool."""
    (tmp_path / "pool").mkdir()
    for k, file in enumerate(files):
        file.parent.mkdir(exist_ok=True)
        (tmp_path / "pool" / f"{k}.png").write_bytes(b"")
        file.symlink_to(tmp_path / "pool" / f"{k}.png")
    assert read_labels("folders", files).tolist() == ["cat", "dog", "dog"]
    assert read_labels(table(tmp_path, "cat/1.png,a"), files).tolist() == ["a", -1, -1]
