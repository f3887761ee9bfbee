"""A full disk: every command that writes says so, leaves old files alone, and no rubbish."""

import contextlib
import errno
import os
import resource
import subprocess

import numpy as np
import pytest
from running import inside, run

from hcnet import HCN, FeatureLearner, Layer
from hcnet.atomic_files import write_atomically
from hcnet.cli import COMMANDS, make_parser
from hcnet.datasets import shapes
from hcnet.image_files import write_images

# Bytes that are left on the disk: nothing, and room for the first block of a file.
LEFT = (0, 4096)
OLD = b"what was there before"


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    """A small disk of its own."""
    folder = tmp_path_factory.mktemp("disk")
    words = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder]
    try:
        done = subprocess.run(words, capture_output=True, check=False)
        mounted = done.returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("Only the administrator can mount a small disk.")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Images, models and other input, on another disk."""
    folder = tmp_path_factory.mktemp("work")
    rng = np.random.default_rng(0)
    page = np.kron(rng.random((8, 8)) < 0.3, np.ones((3, 3), bool))
    noise = rng.random((250, 250)) < 0.5  # does not compress
    write_images(folder / "page.png", [page], dark=True)
    write_images(folder / "noise.png", [noise], dark=True)
    write_images(folder / "mask.png", [np.eye(24)])
    write_images(folder / "noise-mask.png", [np.eye(250)])
    learner = FeatureLearner(2, 3, n_init=1, random_state=0, max_iter=2).fit(page)
    learner.save(folder / "parts.hcn")
    names = "\n".join(["part,name", *(f"{k},{k}" for k in range(len(learner.features_)))])
    (folder / "names.csv").write_text(names)
    data = shapes(feature_size=7, jitter=1, n_images=40, random_state=0)
    np.savez(folder / "shapes.npz", X=data.images, y=data.labels)
    network = HCN([Layer(3, size=4), Layer(pool_border="same")], 2, random_state=0, max_iter=1)
    network.partial_fit(data.images, data.labels, batch_size=20).save(folder / "network.hcn")
    run("name", folder / "parts.hcn", folder / "names.csv", "-o", folder / "named.hcn")
    run("encode", folder / "parts.hcn", folder / "page.png", "-o", folder / "codes.json")
    run("compress", folder / "noise.png", "--fast", "-o", folder / "noise.hcz")
    answers = np.random.default_rng(0).integers(0, 2, (300, 40)).astype(str)
    lines = [",".join(f"question {k}" for k in range(40)), *map(",".join, answers)]
    (folder / "answers.csv").write_text("\n".join(lines))
    return folder


LEARN = ("learn", "{page}", "--feature-size", "3x3", "--n-init", "1", "--max-iter", "2")
LEARN += ("--random-state", "0", "--checkpoint", "{work}/fit.ckpt")
NOISE = "{work}/noise.png"
INPAINT = ("inpaint", "{parts}", NOISE, "--mask", "{work}/noise-mask.png")
# Every command, and the file on the full disk that it is to write.
CASES = {
    "learn": ((*LEARN, "-o", "{out}"), "model.hcn"),
    "learn, its checkpoint": ((*LEARN[:-1], "{out}.x", "-o", "{work}/n.hcn"), "model.hcn"),
    "learn --sheet": ((*LEARN, "-o", "{work}/m.hcn", "--sheet", "{out}"), "sheet.png"),
    "learn --table": ((*LEARN, "-o", "{work}/m.hcn", "--table", "{out}"), "table.csv"),
    "learn --report": ((*LEARN, "-o", "{work}/m.hcn", "--report", "{out}"), "report.html"),
    "learn --live": ((*LEARN, "-o", "{work}/m.hcn", "--live", "{out}"), "live.html"),
    "learn --stream": (
        ("learn", NOISE, "--feature-size", "3x3", "--stream", "--max-iter", "1", "-o", "{out}"),
        "model.hcn",
    ),
    "show": (("show", "{parts}", "-o", "{out}", "--scale", "40"), "sheet.png"),
    "report": (("report", "{parts}", "{page}", "-o", "{out}"), "report.html"),
    "denoise": (("denoise", "{parts}", NOISE, "-o", "{out}"), "clean.png"),
    "denoise, an array": (("denoise", "{parts}", NOISE, "-o", "{out}"), "clean.npy"),
    "denoise, an archive": (("denoise", "{parts}", NOISE, "-o", "{out}"), "clean.npz"),
    "denoise, pages": (("denoise", "{parts}", NOISE, "-o", "{out}"), "clean.tif"),
    "denoise, a folder": (("denoise", "{parts}", NOISE, "-o", "{disk}"), "noise.png"),
    "denoise --picture": (
        ("denoise", "{parts}", NOISE, "-o", "{work}/c.png", "--picture", "{out}"),
        "errors.png",
    ),
    "inpaint": ((*INPAINT, "-o", "{out}"), "filled.png"),
    "inpaint --picture": ((*INPAINT, "-o", "{work}/f.png", "--picture", "{out}"), "errors.png"),
    "classify": (("classify", "{network}", "{shapes}", "-o", "{out}"), "classes.csv"),
    "classify --confusion": (
        ("classify", "{network}", "{shapes}", "--labels", "{shapes}", "--confusion", "{out}"),
        "confusion.png",
    ),
    "cluster": (("cluster", "{network}", "{shapes}", "-o", "{out}"), "clusters.csv"),
    "encode": (("encode", "{parts}", NOISE, "-o", "{out}"), "codes.csv"),
    "encode, JSON": (("encode", "{parts}", NOISE, "-o", "{out}"), "codes.json"),
    "encode --picture": (
        ("encode", "{parts}", NOISE, "-o", "{work}/c.csv", "--picture", "{out}"),
        "places.png",
    ),
    "render": (
        ("render", "{parts}", "{work}/codes.json", "-o", "{out}", "--image-size", "3000x3000"),
        "drawn.npy",
    ),
    "sample": (("sample", "{network}", "-n", "50", "-o", "{out}"), "drawn.npy"),
    "demo": (("demo", "-o", "{disk}"), "image.png"),
    "name": (("name", "{parts}", "{work}/names.csv", "-o", "{out}"), "named.hcn"),
    "read": (("read", "{page}", "--model", "{work}/named.hcn", "-o", "{out}"), "text.txt"),
    "compress": (("compress", NOISE, "--fast", "-o", "{out}"), "noise.hcz"),
    "compress --jbig2": (("compress", NOISE, "--fast", "--jbig2", "-o", "{out}"), "noise.jb2"),
    "compress --pdf": (("compress", NOISE, "--fast", "--pdf", "-o", "{out}"), "noise.pdf"),
    "decompress": (("decompress", "{work}/noise.hcz", "-o", "{disk}"), "noise.png"),
    "factor": (("factor", "{work}/answers.csv", "--rank", "2", "-o", "{disk}"), "components.csv"),
}
SEVERAL = ("demo", "factor")  # commands that write several files


def test_every_command_that_writes_is_here():
    _, parsers = make_parser()
    writing = {
        one.name for one in COMMANDS if "--force" in parsers[one.name]._option_string_actions
    }
    assert writing == {words[0] for words, _ in CASES.values()}
    for one in COMMANDS:
        found = {word for words, _ in CASES.values() if words[0] == one.name for word in words}
        for option in one.outputs:
            assert {"-o" if option == "output" else f"--{option}"} <= found, (one.name, option)


def fill(disk, left):
    """Write a file that leaves so many bytes."""
    with (disk / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(bytes(4096))
    os.truncate(disk / "filler", (disk / "filler").stat().st_size // 4096 * 4096 - left)


@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("case", CASES)
def test_a_full_disk_is_said_and_changes_nothing(disk, work, case, left):
    words, name = CASES[case]
    for file in disk.iterdir():
        file.unlink()
    (work / "fit.ckpt").unlink(missing_ok=True)
    out = disk / name
    out.write_bytes(OLD)
    fill(disk, left)
    places = {"disk": disk, "out": out, "work": work, "page": work / "page.png"}
    places |= {"parts": work / "parts.hcn", "network": work / "network.hcn"}
    places["shapes"] = work / "shapes.npz"
    result = inside(*(word.format(**places) for word in words), "--force")
    kept = {file.name for file in disk.iterdir()} - {"filler"}
    if result.returncode == 0:  # it was small enough
        assert out.stat().st_size <= left
        assert kept == {name} or case in SEVERAL
        return
    assert result.returncode == 1, (result.stdout, result.stderr)
    said = [line for line in result.stderr.splitlines() if line.startswith("hcnet: error: ")]
    assert len(said) == 1, result.stderr
    assert "space" in said[0]
    assert str(disk) in said[0]
    assert out.read_bytes() == OLD or case in SEVERAL
    # Of several files the first may have fitted, and a checkpoint that was written stays.
    assert kept - {f"{name}.x", f"{name}.ckpt"} == {name} or case in SEVERAL
    assert not list(disk.glob("*.part"))


@pytest.mark.parametrize("limit", [0, 1, 4096, 100_000])
@pytest.mark.parametrize("kind", [".npy", ".npz", ".png", ".tif", ".hcn"])
def test_a_file_that_may_not_grow_leaves_the_old_one(tmp_path, kind, limit):
    """The same without a disk of its own: the system lets no file grow beyond a limit."""
    path = tmp_path / f"file{kind}"
    path.write_bytes(OLD)
    pixels = np.random.default_rng(0).random((1, 1500, 1500)) < 0.5
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def save():
        if kind == ".hcn":
            write_atomically(path, lambda file: file.write(bytes(200_000)), overwrite=True)
        else:
            write_images(path, pixels, overwrite=True)

    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        with pytest.raises(OSError, match=rf"(?i)file{kind}") as caught:
            save()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.errno in (errno.EFBIG, None)
    assert path.read_bytes() == OLD
    assert list(tmp_path.iterdir()) == [path]
