"""hcnet learn and hcnet show, as processes."""

import csv
import json
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from running import Terminal, inside, one_sentence, run

from hcnet import HCN, FeatureLearner, Layer, TemplateClassifier
from hcnet.commands import running
from hcnet.datasets import letters
from hcnet.engine.driver import Status
from hcnet.image_files import read_images
from hcnet.images import part_boxes
from hcnet.plotting import show_parts

learn = partial(run, "learn")


def test_learn_gives_what_the_library_gives(parts, folder):
    path, told, said = parts
    learner = FeatureLearner(feature_size=(7, 7), n_init=1, random_state=0)
    learner.fit(read_images(folder / "scans").X)
    np.testing.assert_array_equal(FeatureLearner.load(path).features_, learner.features_)
    assert told["parts"] == len(learner.features_) == 2
    assert told["compression_ratio"] == learner.compression_ratio_
    assert told["model"] == str(path)
    line, choices, kept = said.splitlines()[:3]  # and no bar in a pipe
    assert line.startswith("hcnet: 2 images of 24×24 pixels from 2 files.")
    assert line.endswith("Dark pixels are the ink (inverted).")
    assert choices == "hcnet: windows are 7×7 (--feature-size), the algorithm is refined."
    assert kept.startswith(f"hcnet: {path}.ckpt keeps the state")
    assert not Path(f"{path}.ckpt").exists()  # it is finished


def test_learn_shows_progress_with_the_time_left_on_a_terminal(folder, tmp_path):
    with Terminal(
        "learn", folder / "bars0.npy", "--feature-size", 7, "--n-init", 1, "-o", tmp_path / "a.hcn"
    ) as terminal:
        printed, code = terminal.finish()
    assert code == 0
    assert b"Refining" in terminal.said
    assert b"<" in terminal.said  # tqdm: 00:01<00:03
    assert printed.startswith("Parts")
    with Terminal(
        "learn", folder / "bars0.npy", "--quiet", "--feature-size", 7, "--n-init", 1,
        "-o", tmp_path / "b.hcn",
    ) as quiet:  # fmt: skip
        assert quiet.finish()[1] == 0
    assert quiet.said == b""


def test_learn_keeps_what_it_has_when_interrupted(folder, tmp_path):
    path = tmp_path / "half.hcn"
    with Terminal(
        "learn", folder / "scans", "--feature-size", 7, "--n-init", 8, "-o", path, listening=True
    ) as terminal:
        terminal.wait_for(b"2 parts")
        terminal.process.send_signal(signal.SIGINT)
        printed, code = terminal.finish()
    assert code == 130
    assert "Interrupted from the keyboard" in printed
    assert FeatureLearner.load(path).features_.shape[2:] == (7, 7)


def test_progress_in_a_pipe_is_a_line_every_few_seconds(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "FIRST_LINE", 0.0)
    monkeypatch.setattr(running, "LINES", 0.01)
    words = folder / "scans", "--feature-size", 7, "--n-init", 2, "--random-state", 0
    said = learn(*words, "-o", tmp_path / "a.hcn").stderr
    assert re.search(
        r"hcnet: \d+ s, refining, step \d+ of about \d+, \d+ s left; \d parts, \d+ bits\.", said
    )
    assert learn(*words, "--quiet", "-o", tmp_path / "b.hcn").stderr == ""


LONG = "--feature-size", "20x20", "--n-init", "2", "--random-state", "0"


@pytest.fixture(scope="module")
def text_page(tmp_path_factory):
    """Letters that take half a minute on a fast machine, when code is compiled."""
    path = tmp_path_factory.mktemp("page") / "page.npy"
    np.save(
        path, letters(size=(600, 700), n_placements=1700, noise=0.05, random_state=0).images[0, 0]
    )
    return path


def start_learning(page, output, *more):
    # Tests in the background ignore Ctrl-C, and a child would inherit that.
    code = (
        "import runpy, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "sys.argv[0] = 'hcnet'; runpy.run_module('hcnet', run_name='__main__', alter_sys=True)"
    )
    words = ["learn", page, *LONG, "-o", output, *more]
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )


@pytest.mark.parametrize("presses", [1, 2])
@pytest.mark.parametrize("moment", [0.5, 3.0, 6.0])
def test_ctrl_c_is_answered_at_any_moment(text_page, tmp_path, moment, presses):
    with start_learning(text_page, tmp_path / "half.hcn") as process:
        time.sleep(moment)
        began = time.perf_counter()
        for _ in range(presses):
            process.send_signal(signal.SIGINT)
            time.sleep(0.1)
        printed, said = process.communicate(timeout=60)
        # Two seconds on an idle machine; tests share theirs.
        assert time.perf_counter() - began < 6
    # A second press may come after the last line, when the shell makes 130 of the signal itself.
    assert process.returncode in (130, -signal.SIGINT)[:presses], said
    assert "Traceback" not in said
    saved = (tmp_path / "half.hcn").exists()
    assert ("Interrupted from the keyboard" in printed) == saved
    assert saved <= (tmp_path / "half.hcn.ckpt").exists()  # the same command goes on


def test_a_command_that_was_killed_goes_on(folder, tmp_path):
    path = tmp_path / "parts.hcn"
    words = folder / "scans", "--feature-size", 7, "--n-init", 2, "--random-state", 0
    whole = learn(*words, "-o", tmp_path / "whole.hcn")
    with subprocess.Popen(
        [sys.executable, "-m", "hcnet", "learn", *map(str, words), "--every", "0", "-o", path],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        while not (kept := Path(f"{path}.ckpt")).exists() or kept.stat().st_size < 2000:
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
    result = learn(*words, "-o", path)
    assert f"goes on from {kept}" in result.stderr
    assert not kept.exists()
    assert _without_time(result.stdout) == _without_time(whole.stdout)


def _without_time(text):
    return [line for line in text.splitlines() if not line.startswith(("Time", "Model"))]


def test_a_model_saved_at_ctrl_c_is_replaced_when_the_command_goes_on(folder, tmp_path):
    path = tmp_path / "parts.hcn"
    words = folder / "scans", "--feature-size", 7, "--n-init", 1, "--random-state", 0
    learner = FeatureLearner(feature_size=(7, 7), n_init=1, random_state=0)
    learner.fit(read_images(folder / "scans").X)
    learner.status_ = Status.INTERRUPTED.value
    learner.save(path)
    assert one_sentence(inside("learn", *words, "-o", path), 3)  # without a checkpoint
    kept = Path(f"{path}.ckpt")
    with pytest.warns(UserWarning, match="raise max_seconds"):
        FeatureLearner(feature_size=7, n_init=1, random_state=0, max_seconds=1e-6).fit(
            read_images(folder / "scans").X, checkpoint=kept
        )
    assert learn(*words, "-o", path).returncode == 0
    assert FeatureLearner.load(path).status_ == Status.FINISHED.value
    assert not kept.exists()
    kept.write_text("something else")
    assert "choose another name" in one_sentence(inside("learn", *words, "--force", "-o", path))
    assert kept.read_text() == "something else"


def test_a_network_is_learned_from_a_settings_file(network):
    path, result = network
    model = HCN.load(path)
    assert [W.shape for W in model.weights_] == [(4, 1, 21, 21), (4, 4, 1, 1)]
    assert "Layers   4 → 4" in result.stdout
    assert "Classes  0, 1" in result.stdout


def test_the_command_line_wins_over_the_settings_file(folder, tmp_path):
    settings = tmp_path / "bars.toml"
    settings.write_text("n_features = 2\nfeature_size = 3\nmax_iter = 2\nquiet = true\njson = true")
    result = learn(
        folder / "bars0.npy", "--settings", settings, "--feature-size", "5x7",
        "-o", tmp_path / "a.hcn",
    )  # fmt: skip
    told = json.loads(result.stdout)
    assert told["feature_size"] == [5, 7]
    assert told["parts"] <= 2
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n_feature = 2", r"has the key 'n_feature', which hcnet learn does not have; it has "),
        ("n_features = ", "is not a TOML file"),
        ("quiet = 3", "quiet must be true or false, got 3"),
        ("n_features = true", "n_features cannot be True"),
        ('n_features = "many"', "argument --n-features: invalid int value: 'many'"),
    ],
)
def test_wrong_settings_are_explained(tmp_path, text, message):
    (tmp_path / "a.toml").write_text(text)
    result = inside("learn", "x.png", "-o", "x.hcn", "--settings", tmp_path / "a.toml")
    assert result.returncode == 2
    assert message in result.stderr


def test_a_stream_of_scans_says_what_is_ink_and_writes_reports(folder, tmp_path):
    result = learn(
        *[folder / "scans"] * 8, "--stream", "--mask", folder / "stain.png",
        "--n-features", 4, "--feature-size", 7, "--random-state", 0, "-o", tmp_path / "s.hcn",
        "--live", tmp_path / "live.html", "--report", tmp_path / "r.html",
    )  # fmt: skip
    assert "a stream that begins with 12 images of 24×24 pixels" in result.stderr
    assert "Dark pixels are the ink (inverted)." in result.stderr
    assert "Images  16 seen" in result.stdout
    X = read_images(folder / "scans").X.astype(float)
    X[:, :, 8:14, 8:14] = np.nan
    learner = FeatureLearner(n_features=4, feature_size=7, random_state=0)
    learner.fit_stream(np.concatenate([X] * 8))
    np.testing.assert_array_equal(
        FeatureLearner.load(tmp_path / "s.hcn").features_, learner.features_
    )
    for name in ("live.html", "r.html"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert text.count("page1.png") >= 6
        assert "Still learning" not in text


@pytest.mark.parametrize("kind", ["array", "table", "folders"])
def test_a_network_learns_from_a_stream_with_labels(folder, tmp_path, kind):
    with np.load(folder / "shapes.npz") as data:
        X, y = data["X"], data["y"].copy()
    words, labels = [folder / "shapes.npz"], folder / "shapes.npz"
    if kind != "array":
        for k, (x, label) in enumerate(zip(X, y, strict=True)):
            place = tmp_path / "files" / str(label)
            place.mkdir(parents=True, exist_ok=True)
            Image.fromarray(x[0]).save(place / f"{k:02d}.png")
        words, labels = [tmp_path / "files"], "folders"
        order = np.concatenate([np.flatnonzero(y == label) for label in (0, 1)])
        X, y = X[order], y[order]
    if kind == "table":
        labels = tmp_path / "labels.csv"
        y[::3] = -1
        rows = [f"{k:02d}.png,{label}" for k, label in zip(order, y, strict=True) if label >= 0]
        labels.write_text("\n".join(["file,label", *rows]))
    learn(
        *words, "--stream", "--labels", labels, "--layer", "n_features=4,size=21",
        "--layer", "templates", "--templates-per-class", 2, "--batch-size", 8, "--max-iter", 5,
        "--random-state", 0, "-o", tmp_path / "s.hcn", "--report", tmp_path / "r.html",
    )  # fmt: skip
    model = HCN(
        [Layer(4, size=21), Layer()], templates_per_class=2, max_iter=5, random_state=0
    ).fit_stream(zip(X, y.tolist(), strict=True), classes=[0, 1], batch_size=8)
    found = HCN.load(tmp_path / "s.hcn")
    assert found.classes_.tolist() == [0, 1]
    for ours, theirs in zip(found.weights_, model.weights_, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert "Right class" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_mask_keeps_pixels_out_of_learning(folder, tmp_path):
    result = learn(
        folder / "bars0.npy", "--mask", folder / "stain.png", "--feature-size", 7,
        "--n-init", 1, "--random-state", 0, "-o", tmp_path / "a.hcn", "--json",
    )  # fmt: skip
    X, mask = np.load(folder / "bars0.npy"), np.zeros((24, 24), bool)
    mask[8:14, 8:14] = True
    learner = FeatureLearner(feature_size=7, n_init=1, random_state=0).fit(X, mask=mask)
    assert json.loads(result.stdout)["log_joint"] == learner.log_joint_


def test_nothing_is_overwritten_without_force(parts, folder):
    before = parts[0].read_bytes()
    words = ["learn", folder / "bars1.npy", "--feature-size", 5, "--n-init", 1, "-o", parts[0]]
    said = one_sentence(inside(*words), 3)
    assert said == f"{parts[0]} exists already; choose another name, or pass --force to replace it."
    assert parts[0].read_bytes() == before
    copy = folder / "copy.hcn"
    copy.write_bytes(before)
    learn(*words[1:-1], copy, "--force")
    assert FeatureLearner.load(copy).features_.shape[2:] == (5, 5)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("nowhere.png -o a.hcn", "nowhere.png is not there"),
        ("{folder}/scans -o no/a.hcn", "no is not a folder"),
        ("{folder}/scans -o {folder}", "is a folder; name a file"),
        ("{folder}/scans -o a.hcn --feature-size 99", "larger than the images"),
        ("{folder}/scans -o a.hcn --n-classes 2", "n_classes is a parameter of HCN"),
        ("{folder}/scans -o a.hcn --labels folders", "Parts have no labels"),
        ("{folder}/scans -o a.hcn --layer templates --n-features 2", "n_features is a parameter"),
        ("{folder}/scans -o a.hcn --p01 0.1", "p01 and p10 must be given together"),
        ("{folder}/scans -o a.hcn --max-memory 1kB", "max_memory allows"),
        ("{folder}/bars.txt -o a.hcn", "cannot be read as an image"),
        (
            "{folder}/shapes.npz -o a.hcn --stream --layer templates --labels {folder}/y.txt",
            "2 labels for 24",
        ),
    ],
)
def test_what_cannot_be_learned_is_one_sentence(folder, tmp_path, monkeypatch, words, message):
    (folder / "bars.txt").write_text("no image")
    (folder / "y.txt").write_text("a\nb\n")
    monkeypatch.chdir(tmp_path)
    result = inside("learn", *words.format(folder=folder).split())
    assert message in one_sentence(result)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        "",
        "-o a.hcn --feature-size wide",
        "-o a.hcn --layer n_feature=3",
        "-o a.hcn --layer size=a",
        "-o a.hcn --engine steam",
        "-o a.hcn --max-memory lots",
        "-o a.hcn --random-state -1",
        "-o a.hcn --threshold half",
    ],
)
def test_wrong_arguments_are_explained(words):
    result = inside("learn", "x.png", *words.split())
    assert result.returncode == 2
    assert "usage: hcnet learn" in result.stderr
    assert "Traceback" not in result.stderr


def test_show_draws_the_parts_with_characters_and_as_a_picture(parts, tmp_path, hcnet):
    result = hcnet("show", parts[0], "-o", tmp_path / "parts.png")
    assert result.returncode == 0, result.stderr
    assert "Parts    2 of at most 7×7 pixels" in result.stdout
    assert "▀" in result.stdout or "█" in result.stdout
    assert "part 1" in result.stdout
    with Image.open(tmp_path / "parts.png") as picture:
        assert picture.width > 2 * 7
    assert json.loads(inside("show", parts[0], "--json").stdout)["parts"] == 2
    again = one_sentence(inside("show", parts[0], "-o", tmp_path / "parts.png"), 3)
    assert "exists already" in again


def test_show_says_what_templates_are_made_of(network, tmp_path):
    result = inside("show", network[0], "-o", tmp_path / "hierarchy.png")
    assert result.returncode == 0, result.stderr
    assert "class 0: template 0 = layer 1: " in result.stdout
    assert "Layer 1  4 features of 21×21" in result.stdout
    with Image.open(tmp_path / "hierarchy.png") as picture:
        picture.verify()


@pytest.mark.parametrize("content", [b"", b"no model", b"PK\x05\x06" + bytes(18)])
def test_files_that_are_no_models_are_one_sentence(tmp_path, content):
    (tmp_path / "a.hcn").write_bytes(content)
    assert "is not a model file" in one_sentence(inside("show", tmp_path / "a.hcn"))
    assert "is not there" in one_sentence(inside("show", tmp_path / "b.hcn"))


def test_templates_are_learned_from_labelled_images(folder, tmp_path):
    words = ["--labels", folder / "shapes.npz", "--templates", "--n-parts", 8, "--part-size", 9]
    words += ["--templates-per-class", 2, "--max-iter", 2, "--random-state", 0]
    learn(folder / "shapes.npz", *words, "-o", tmp_path / "t.hcn")
    with np.load(folder / "shapes.npz") as data:
        X, y = data["X"], data["y"]
    model = TemplateClassifier(8, 9, 2, max_iter=2, random_state=0).fit(X, y)
    loaded = TemplateClassifier.load(tmp_path / "t.hcn")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert inside("show", tmp_path / "t.hcn").returncode == 0
    both = inside("learn", "x", "--templates", "--layer", "templates", "-o", tmp_path / "u.hcn")
    assert "leave one of them out" in one_sentence(both)


def test_learn_draws_a_sheet_and_writes_a_table_of_places(folder, tmp_path):
    files = {name: tmp_path / f"a.{name}" for name in ("hcn", "png", "csv")}
    words = ["--feature-size", "7x7", "--n-init", 1, "--random-state", 0, "-o", files["hcn"]]
    words += ["--sheet", files["png"], "--table", files["csv"]]
    learn(folder / "scans", *words)
    X = read_images(folder / "scans").X
    learner = FeatureLearner(feature_size=7, n_init=1, random_state=0).fit(X)
    with Image.open(files["png"]) as picture:
        np.testing.assert_array_equal(np.asarray(picture), np.asarray(show_parts(learner)))
    with files["csv"].open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["page", "part", "row", "column", "bits_saved"]
    boxes = part_boxes(learner.features_)
    expected = sorted(
        (n, f, r + boxes[f, 0], c + boxes[f, 1]) for n, f, r, c in learner.placements_.tolist()
    )
    assert [
        (int(row["page"][4]), *(int(row[key]) for key in ("part", "row", "column"))) for row in rows
    ] == expected
    assert {row["page"] for row in rows} == {"page0.png", "page1.png"}
    assert min(float(row["bits_saved"]) for row in rows) > 0  # otherwise it would not be there
    assert "exists already" in one_sentence(inside("learn", folder / "scans", *words), 3)
    words[-1] = tmp_path / "b.csv"
    streamed = inside("learn", folder / "scans", "--stream", *words[:-4], "--force", *words[-2:])
    assert "A stream does not keep the places" in one_sentence(streamed)
    network = ["--layer", "n_features=2,size=5", "--layer", "templates", "-o", tmp_path / "n.hcn"]
    sheet = inside("learn", folder / "scans", *network, "--sheet", tmp_path / "b.png")
    assert "--sheet shows parts" in one_sentence(sheet)
    words[-1] = tmp_path / "scan.npz"  # might be an array of somebody's
    words[-1].write_bytes(b"scan")
    assert "ends with .csv" in one_sentence(inside("learn", folder / "scans", *words, "--force"))
    assert words[-1].read_bytes() == b"scan"


def test_a_device_that_is_missing_and_paper_taken_for_ink_are_said(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("hcnet.engine.engines.why_not_cuda", lambda: "there is no GPU")
    words = "learn", folder / "scans", "--feature-size", 7, "--n-init", 1, "-o", tmp_path / "a.hcn"
    said = one_sentence(inside(*words, "--device", "cuda"))
    assert said == "--device cuda cannot be used: there is no GPU; pass --device cpu."
    result = inside(*words, "--ink", "bright", "--max-seconds", 1)
    assert "of the pixels are on: is that paper? Try the other side of --ink." in result.stderr
