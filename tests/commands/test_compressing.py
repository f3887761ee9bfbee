"""Image files that are compressed come back as they were, and replace no others."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image
from running import inside, one_sentence, run

from hcnet.codec import PageInfo, Reader, Resolution, Writer
from hcnet.image_files.bilevel import read_pages, write_pages


def page(seed=0, shape=(40, 50)):
    return np.random.default_rng(seed).random(shape) < 0.2


@pytest.fixture(scope="module")
def scans(tmp_path_factory):
    """A TIFF file of three pages, a PNG and a PBM file."""
    folder = tmp_path_factory.mktemp("scans")
    resolutions = [
        Resolution((300, 1), (301, 7)),
        None,
        Resolution((118, 1), (118, 1), "centimetre"),
    ]
    book = [
        (page(k, (40 + k, 50)), PageInfo("book.tif", f"Seite {k} é", k > 0, k != 1, resolutions[k]))
        for k in range(3)
    ]
    write_pages(folder / "book.tif", book)
    one = PageInfo(
        "page.png", "", False, False, Resolution((11811, 100), (5906, 100), "centimetre")
    )
    write_pages(folder / "page.png", [(page(7), one)])
    write_pages(folder / "old.pbm", [(page(8, (9, 17)), PageInfo())])
    return folder


@pytest.fixture(scope="module")
def packed(scans, tmp_path_factory):
    path = tmp_path_factory.mktemp("packed") / "pages.hcz"
    told = run("compress", scans / "book.tif", scans / "page.png", scans / "old.pbm", "-o", path)
    return path, told


def content(path):
    return list(read_pages(path))


def assert_same(path, other):
    for (a, about), (b, there) in zip(content(path), content(other), strict=True):
        np.testing.assert_array_equal(a, b)
        assert about == there


def test_files_come_back_with_pixels_names_resolution_and_polarity(scans, packed, tmp_path):
    path, told = packed
    before = sum((scans / name).stat().st_size for name in ("book.tif", "page.png", "old.pbm"))
    assert f"5 pages, {path.stat().st_size:,} bytes" in told.stdout
    assert f"{before:,} bytes of the image files" in told.stdout
    told = run("decompress", path, "-o", tmp_path / "new" / "folder", "--json")
    assert json.loads(told.stdout)["pages"] == 5
    for name in ("book.tif", "page.png", "old.pbm"):
        assert_same(tmp_path / "new" / "folder" / name, scans / name)
    with Image.open(tmp_path / "new" / "folder" / "book.tif") as file:
        assert file.n_frames == 3
        assert file.tag_v2[262] == 0
        assert file.tag_v2[285] == "Seite 0 é"
        assert (file.tag_v2[283].numerator, file.tag_v2[283].denominator) == (301, 7)
    with Image.open(tmp_path / "new" / "folder" / "page.png") as file:
        assert file.info["dpi"] == pytest.approx((300, 150), rel=1e-3)


def test_single_pages_have_files_of_their_own(scans, packed, tmp_path):
    run("decompress", packed[0], "-o", tmp_path, "--page", 2, "--page", 3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["book-2.tif", "page.png"]
    ((pixels, info),) = content(tmp_path / "book-2.tif")
    np.testing.assert_array_equal(pixels, page(2, (42, 50)))
    assert info.name == "Seite 2 é"
    sentence = one_sentence(inside("decompress", packed[0], "-o", tmp_path / "x", "--page", 5))
    assert "5 pages, counted from 0" in sentence
    assert not (tmp_path / "x").exists()


def test_nothing_is_overwritten_unless_told(scans, packed, tmp_path):
    sentence = one_sentence(inside("compress", scans / "old.pbm", "-o", packed[0]), 3)
    assert "--force" in sentence
    (tmp_path / "page.png").write_text("mine")
    sentence = one_sentence(inside("decompress", packed[0], "-o", tmp_path), 3)
    assert "--force" in sentence
    assert [path.name for path in tmp_path.iterdir()] == ["page.png"]  # nor was anything else
    assert (tmp_path / "page.png").read_text() == "mine"
    run("decompress", packed[0], "-o", tmp_path, "--force")
    assert_same(tmp_path / "page.png", scans / "page.png")


def test_names_do_not_lead_out_of_the_folder(tmp_path):
    names = ["../../evil.tif", "/etc/evil.png", "C:\\evil.tif", "..", "", "a/b/../c.pbm",
             "x\0y.png", "evil.tif", "EVIL.tif", ".", "x" * 900 + ".tif", "page.gif",
             "con<>|.png"]  # fmt: skip
    path = tmp_path / "pages.hcz"
    with Writer(path) as writer:
        for k, name in enumerate(names):
            writer.add(page(k, (5, 5)), PageInfo(name))
    told = json.loads(run("decompress", path, "-o", tmp_path / "in" / "here", "--json").stdout)
    found = sorted((tmp_path / "in" / "here").iterdir())
    assert sorted(told["files"]) == [str(one) for one in found]
    assert len(found) == len({one.name.casefold() for one in found}) == len(names)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["in", "pages.hcz"]
    assert [one.name for one in (tmp_path / "in").iterdir()] == ["here"]
    assert "evil-2.tif" in {one.name for one in found}
    with Reader(path) as reader:
        for k, name in enumerate(told["files"]):
            np.testing.assert_array_equal(content(name)[0][0], reader[k])


@pytest.mark.parametrize("mode", ["grey", "colour", "clear", "array", "damaged"])
def test_what_is_not_black_and_white_is_refused(mode, tmp_path):
    path = tmp_path / ("x.npy" if mode == "array" else "x.png")
    bits = page()
    if mode == "grey":
        Image.fromarray(np.where(bits, 10, 240).astype(np.uint8)).save(path)
    elif mode == "colour":
        Image.fromarray(np.where(bits[..., None], [255, 0, 0], 255).astype(np.uint8)).save(path)
    elif mode == "clear":
        Image.fromarray(np.where(bits, 0, 255).astype(np.uint8)).convert("RGBA").save(path)
    elif mode == "array":
        np.save(path, bits)
    else:
        path.write_bytes(b"\x89PNG\r\n\x1a\n rubbish")
    sentence = one_sentence(inside("compress", path, "-o", tmp_path / "x.hcz", "--quiet"))
    assert str(path) in sentence
    assert {"array": "hcnet.codec.compress", "damaged": "cannot be read"}.get(
        mode, "neither black nor white"
    ) in sentence
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB"])
def test_black_and_white_is_taken_in_any_form(mode, tmp_path):
    bits = page()
    Image.fromarray(~bits).convert(mode).save(tmp_path / "x.png")
    run("compress", tmp_path / "x.png", "-o", tmp_path / "x.hcz", "--no-verify", "--fast")
    run("decompress", tmp_path / "x.hcz", "-o", tmp_path / "out")
    np.testing.assert_array_equal(content(tmp_path / "out" / "x.png")[0][0], bits)


def test_complete_pages_of_a_damaged_file_can_be_salvaged(packed, scans, tmp_path):
    data = packed[0].read_bytes()
    cut = tmp_path / "cut.hcz"
    cut.write_bytes(data[:-30])  # the index and a piece of the last page
    sentence = one_sentence(inside("decompress", cut, "-o", tmp_path / "out"))
    assert "4 complete pages" in sentence
    assert "--salvage" in sentence
    assert not (tmp_path / "out").exists()
    told = inside("decompress", cut, "-o", tmp_path / "out", "--salvage")
    assert told.returncode == 1
    assert "4 complete pages" in told.stderr
    assert_same(tmp_path / "out" / "book.tif", scans / "book.tif")
    assert_same(tmp_path / "out" / "page.png", scans / "page.png")
    with Reader(packed[0]) as reader:
        first = reader._starts[1]
    broken = tmp_path / "broken.hcz"
    broken.write_bytes(data[: first - 1] + bytes([data[first - 1] ^ 1]) + data[first:])
    told = inside("decompress", broken, "-o", tmp_path / "rest", "--salvage")
    assert told.returncode == 1
    assert "Page 0 of" in told.stderr
    assert not list((tmp_path / "rest").glob("book*"))  # all its pages depend on the first
    for sentence, path in (("is not there", tmp_path / "no.hcz"), ("not a file of", __file__)):
        assert sentence in one_sentence(inside("decompress", path, "-o", tmp_path / "y"))


def test_a_killed_process_leaves_no_half_file(tmp_path):
    write_pages(tmp_path / "a.tif", [(page(k, (400, 400)), PageInfo()) for k in range(30)])
    words = [
        sys.executable,
        "-m",
        "hcnet",
        "compress",
        tmp_path / "a.tif",
        "-o",
        tmp_path / "a.hcz",
    ]
    for number in (signal.SIGINT, signal.SIGKILL):
        code = (
            "import signal, sys, runpy; signal.signal(signal.SIGINT, signal.default_int_handler); "
        )
        code += "runpy.run_module('hcnet', run_name='__main__')"
        process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, words[3:])], stderr=subprocess.PIPE
        )
        while process.poll() is None and not list(tmp_path.glob("*.part")):
            time.sleep(0.02)
        time.sleep(0.5)
        os.kill(process.pid, number)
        said = process.communicate(timeout=100)[1]
        assert not (tmp_path / "a.hcz").exists()
        if number == signal.SIGINT:
            assert process.returncode == 130
            assert b"Traceback" not in said
            assert [path.name for path in tmp_path.iterdir()] == ["a.tif"]


@pytest.mark.parametrize("form", ["--jbig2", "--pdf"])
def test_pages_become_files_for_other_programs(form, scans, tmp_path):
    path = tmp_path / "out"
    told = run("compress", scans / "book.tif", scans / "page.png", form, "-o", path, "--json")
    result = json.loads(told.stdout)
    assert (result["pages"], result["bytes"]) == (4, path.stat().st_size)
    assert ("300 dpi" in told.stderr) == (form == "--pdf")  # a page has no resolution
    begins = b"%PDF-" if form == "--pdf" else b"\x97JB2\r\n\x1a\n"
    assert path.read_bytes().startswith(begins)
    assert one_sentence(inside("compress", scans / "book.tif", form, "-o", path), 3)
