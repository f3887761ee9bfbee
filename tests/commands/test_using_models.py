"""What models are used for, each command as a process at least once."""

import csv
import io
import json

import numpy as np
import pytest
from PIL import Image
from running import inside, one_sentence, run

from hcnet import HCN, FeatureLearner
from hcnet.image_files import read_images
from hcnet.plotting import show_explanation
from hcnet.plotting.drawing import PALE


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_denoise_gives_what_the_library_gives_in_the_look_of_the_scan(
    parts, folder, tmp_path, hcnet
):
    scan = folder / "scans" / "page0.png"
    result = hcnet("denoise", parts[0], scan, "-o", tmp_path / "clean.png", "--json")
    assert result.returncode == 0, result.stderr
    X = read_images(scan).X
    clean = FeatureLearner.load(parts[0]).denoise(X)
    with Image.open(tmp_path / "clean.png") as picture:
        assert (np.asarray(picture) == ~clean[0, 0]).all()  # dark ink on white, as it came
    told = json.loads(result.stdout)
    assert told["images"] == [
        {"image": "page0.png", "pixels_changed": int((clean != X).sum()), "pixels": 576}
    ]


@pytest.mark.parametrize("name", ["out.tif", "out.npz", "out"])
def test_denoise_writes_many_images_in_several_ways(parts, folder, tmp_path, name):
    run(
        "denoise", parts[0], folder / "scans", "-o", tmp_path / name, "--picture",
        tmp_path / "errors.png",
    )  # fmt: skip
    expected = FeatureLearner.load(parts[0]).denoise(read_images(folder / "scans").X)
    assert (read_images(tmp_path / name).X.reshape(expected.shape) == expected).all()
    assert (tmp_path / "errors.png").is_file()
    again = inside("denoise", parts[0], folder / "scans", "-o", tmp_path / name)
    assert "exists already" in one_sentence(again, 3)


@pytest.mark.parametrize("command", ["denoise", "inpaint"])
def test_an_image_in_the_way_is_said_before_anything_is_written(parts, folder, tmp_path, command):
    (tmp_path / "mine.png").write_text("mine")
    words = [parts[0], folder / "scans" / "page0.png", "-o", tmp_path / "mine.png"]
    result = inside(command, *words, "--picture", tmp_path / "errors.png")
    assert "exists already" in one_sentence(result, 3)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.png"]


def test_inpaint_fills_in_under_the_mask_and_nowhere_else(parts, folder, tmp_path, hcnet):
    scan, mask = folder / "scans" / "page0.png", np.zeros((24, 24), bool)
    mask[8:14, 8:14] = True
    result = hcnet(
        "inpaint", parts[0], scan, "--mask", folder / "stain.png", "-o", tmp_path / "a.npy",
        "--picture", tmp_path / "triptych.png",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "36 of 576 pixels filled in" in result.stdout
    X, filled = read_images(scan).X, np.load(tmp_path / "a.npy")
    assert (filled[0] == FeatureLearner.load(parts[0]).inpaint(X, mask)[0]).all()
    assert (filled[0, 0][~mask] == X[0, 0][~mask]).all()
    assert (tmp_path / "triptych.png").is_file()
    none = inside("inpaint", parts[0], scan, "-o", tmp_path / "b.npy")
    assert "No pixel is missing" in one_sentence(none)
    run("inpaint", parts[0], scan, "--mask", scan, "-o", tmp_path / "b.npy", "--json")
    half = folder / "half.npy"
    np.save(half, np.ones((3, 5)))
    wrong = inside("inpaint", parts[0], scan, "--mask", half, "-o", tmp_path / "c.npy")
    assert "holds a mask of 3×5 for an image of 24×24" in one_sentence(wrong)


def test_encode_and_render_are_each_other_s_opposite(parts, folder, tmp_path, hcnet):
    scans = folder / "scans"
    result = hcnet("encode", parts[0], scans)
    assert result.returncode == 0, result.stderr
    placed = FeatureLearner.load(parts[0]).placements(read_images(scans).X)
    placed = placed[placed[:, 0].argsort(kind="stable")]  # image by image
    found = rows(result.stdout)
    assert [(int(r["part"]), int(r["row"]), int(r["column"])) for r in found] == [
        tuple(row[1:]) for row in placed.tolist()
    ]
    assert {r["file"] for r in found} == {str(scans / "page0.png"), str(scans / "page1.png")}
    (tmp_path / "codes.csv").write_text(result.stdout)
    drawn = hcnet("render", parts[0], tmp_path / "codes.csv", "-o", tmp_path / "drawn.npy")
    assert drawn.returncode == 0, drawn.stderr
    clean = FeatureLearner.load(parts[0]).denoise(read_images(scans).X)
    assert (np.load(tmp_path / "drawn.npy") == clean).all()
    array = inside("encode", parts[0], scans, "-o", tmp_path / "drawn.npy", "--force")
    assert "ends with .csv or .json" in one_sentence(array)
    assert (np.load(tmp_path / "drawn.npy") == clean).all()


def test_codes_as_json_carry_the_size_and_empty_images(parts, tmp_path):
    np.save(tmp_path / "blank.npy", np.zeros((2, 10, 13), bool))
    run(
        "encode", parts[0], tmp_path / "blank.npy", "-o", tmp_path / "c.json", "--picture",
        tmp_path / "p.png",
    )  # fmt: skip
    told = json.loads((tmp_path / "c.json").read_text())
    assert told["placements"] == []
    run("render", parts[0], tmp_path / "c.json", "-o", tmp_path / "d.npy")
    assert np.load(tmp_path / "d.npy").shape == (2, 1, 10, 13)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "file,page,part\nx,0,1\n", "does not hold placements"),
        ("a.csv", "file,page,part,row,column\nx,0,99,0,0\n", "placements must be rows of image"),
        ("a.csv", "file,page,part,row,column\n", "names no image"),
        ("a.json", "{}", "does not hold placements"),
        ("a.json", "nothing", "does not hold placements"),
    ],
)
def test_codes_that_cannot_be_drawn_are_one_sentence(parts, tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    result = inside("render", parts[0], tmp_path / name, "-o", tmp_path / "d.png")
    assert message in one_sentence(result)
    assert not (tmp_path / "d.png").exists()


def test_classify_gives_classes_probabilities_and_how_many_are_right(
    network, folder, tmp_path, hcnet
):
    result = hcnet(
        "classify", network[0], folder / "shapes.npz", "--labels", folder / "shapes.npz",
        "--confusion", tmp_path / "confusion.png", "--json",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    with np.load(folder / "shapes.npz") as data:
        X, y = data["X"], data["y"]
    model, told = HCN.load(network[0]), json.loads(result.stdout)
    assert [one["class"] for one in told["images"]] == model.predict(X).tolist()
    assert told["accuracy"] == model.score(X, y)
    assert f"{told['accuracy']:.2%} of the labelled images are right" in result.stderr
    assert (tmp_path / "confusion.png").is_file()
    table = inside("classify", network[0], folder / "shapes.npz", "-o", tmp_path / "t.csv")
    assert table.stdout == ""
    assert len(rows((tmp_path / "t.csv").read_text())) == 24
    assert "24 rows written to" in table.stderr


def test_cluster_gives_templates(network, folder, hcnet):
    result = hcnet("cluster", network[0], folder / "shapes.npz")
    assert result.returncode == 0, result.stderr
    with np.load(folder / "shapes.npz") as data:
        expected = HCN.load(network[0]).cluster(data["X"]).tolist()
    assert [int(row["template"]) for row in rows(result.stdout)] == expected


def test_encode_draws_what_explains_the_images_of_a_network(network, folder, tmp_path):
    with np.load(folder / "shapes.npz") as data:
        X = data["X"][:4]
    np.save(tmp_path / "four.npy", X)
    run("encode", network[0], tmp_path / "four.npy", "--picture", tmp_path / "p.png", "--quiet")
    model = HCN.load(network[0])
    with Image.open(tmp_path / "p.png") as picture:
        assert (np.asarray(picture) == np.asarray(show_explanation(model, X))).all()
    one = np.asarray(show_explanation(model, X[:1], scale=3))[2:-1:3, 2:-1:3].astype(int)
    made, seen = model.denoise(X[:1])[0, 0], X[0, 0]
    coloured = np.ptp(one, axis=-1) > 0
    # Boxes are drawn around parts, through paper and over ink that nothing explains.
    assert coloured[made].all()
    grey = (one == PALE).all(axis=-1)
    assert not (grey & ~(seen & ~made)).any()
    assert grey.any()


def test_sample_draws_images_of_a_class(network, tmp_path, hcnet):
    words = ["sample", network[0], "-n", 5, "--label", 1, "--random-state", 3, "--json"]
    result = hcnet(*words, "-o", tmp_path / "s.tif")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["classes"] == [1] * 5
    drawn = HCN.load(network[0]).sample(5, 1, 3)[0]
    assert (drawn == read_images(tmp_path / "s.tif").X).all()
    unknown = inside("sample", network[0], "--label", "cat", "-o", tmp_path / "t.tif")
    assert "cat" in one_sentence(unknown)


@pytest.mark.parametrize("command", ["classify", "cluster", "sample", "render"])
def test_commands_that_need_another_model_say_so(parts, network, folder, tmp_path, command):
    (tmp_path / "a.csv").write_text("file,page,part,row,column\nx,0,0,0,0\n")
    words = {"sample": [], "render": [tmp_path / "a.csv"]}.get(command, [folder / "scans"])
    model = network[0] if command == "render" else parts[0]
    output = tmp_path / ("a.json" if command.startswith("cl") else "a.png")
    said = one_sentence(inside(command, model, *words, "-o", output))
    assert f"{command} needs {'parts' if command == 'render' else 'a network'}" in said


def test_report_is_one_file_about_the_model_and_the_images(parts, folder, tmp_path, hcnet):
    result = hcnet("report", parts[0], folder / "scans", "-o", tmp_path / "r.html", "--json")
    assert result.returncode == 0, result.stderr
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert json.loads(result.stdout)["bytes"] == len(text.encode())
    assert "page1.png" in text
    assert "exists already" in one_sentence(
        inside("report", parts[0], folder / "scans", "-o", tmp_path / "r.html"), 3
    )


def test_a_report_needs_no_images(parts, network, tmp_path):
    for k, (model, *_) in enumerate((parts, network)):
        result = inside("report", model, "-o", tmp_path / f"{k}.html")
        assert result.returncode == 0, result.stderr
        assert "<html" in (tmp_path / f"{k}.html").read_text(encoding="utf-8")
    labels = inside("report", network[0], "--labels", "folders", "-o", tmp_path / "a.html")
    assert "Labels belong to images" in one_sentence(labels)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["report", "{model}", "{scan}", "-o", "a.pdf"], "a.pdf does not end in .html"),
        (["learn", "{scan}", "-o", "a.hcn", "--report", "a.txt"], "a.txt does not end in .html"),
        (["learn", "{scan}", "-o", "a.hcn", "--live", "a.txt"], "a.txt does not end in .html"),
        (["show", "{model}", "-o", "a.jpg"], "a.jpg does not end in .png"),
        (["encode", "{model}", "{scan}", "--picture", "a.jpg"], "a.jpg does not end in .png"),
        (["denoise", "{model}", "{scan}", "-o", "a.jpg"], "a.jpg ends in .jpg, which loses pixels"),
        (["inpaint", "{model}", "{scan}", "-o", "a.tif", "--picture", "a.jpg"], "not end in .png"),
        (["classify", "{net}", "{scan}", "--labels", "folders", "--confusion", "a.gif"], ".png"),
        (["sample", "{net}", "-o", "a.jpg"], "a.jpg ends in .jpg, which loses pixels"),
    ],
)
def test_names_that_cannot_be_written_to_are_refused_before_the_work(
    parts, network, folder, tmp_path, monkeypatch, words, message
):
    monkeypatch.chdir(tmp_path)
    names = {"model": parts[0], "net": network[0], "scan": folder / "scans" / "page0.png"}
    result = inside(*(word.format(**names) for word in words))
    assert message in one_sentence(result)
    assert result.stderr.count("\n") == 1  # no image was read
    assert list(tmp_path.iterdir()) == []


def test_learn_writes_a_report_while_and_after_it_learns(folder, tmp_path):
    result = run(
        "learn", folder / "scans", "--feature-size", 7, "--n-init", 1, "-o", tmp_path / "a.hcn",
        "--live", tmp_path / "live.html", "--report", tmp_path / "r.html",
    )  # fmt: skip
    assert "watch" in result.stderr
    for name in ("live.html", "r.html"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert 'http-equiv="refresh"' not in text  # it is over
        assert "Still learning" not in text


def test_a_model_without_parts_is_no_reason_to_fail(tmp_path):
    """Of a blank image nothing can be learned, and the ratio of its bits is none."""
    np.save(tmp_path / "blank.npy", np.zeros((9, 9), bool))
    model = tmp_path / "a.hcn"
    words = ["--feature-size", 3, "--n-init", 1, "--max-iter", 1, "-o", model, "--json"]
    result = run("learn", tmp_path / "blank.npy", *words)
    told = json.loads(result.stdout, parse_constant=pytest.fail)
    assert told["parts"] == 0
    run("show", model)
    assert run("encode", model, tmp_path / "blank.npy").stdout == "file,page,part,row,column\n"
    run("report", model, tmp_path / "blank.npy", "-o", tmp_path / "r.html")
    run("denoise", model, tmp_path / "blank.npy", "-o", tmp_path / "b.png")
