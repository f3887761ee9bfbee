"""Files that are made to fill the memory are refused by their first bytes."""

import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from crafted import BOMBS, bmp, gif, npz, pbm, png, tiff

from hcnet.image_files import (
    binarise,
    files_of_images,
    otsu_threshold,
    read_images,
    read_labels,
    stream_images,
    write_images,
)
from hcnet.image_files.bilevel import read_pages

# Address space that a bomb may take, beyond what the program has at first.  The decoder of WebP
# asks for 8 bytes a pixel, 648 MB, and does not use them.
ROOM = 800 * 2**20
READERS = (
    read_images,
    files_of_images,
    lambda path: list(stream_images(path)),
    lambda path: list(read_pages(path)),
    lambda path: read_labels(path, [path] * 3) if path.suffix.startswith(".np") else None,
)


def refuse_all(folder):
    """Read all files of a folder in every way, in little memory."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
    for path in sorted(folder.iterdir()):
        for read in READERS:
            began = time.perf_counter()
            try:
                print(f"{path.name}: {'nothing' if read(path) is None else 'read'}")
            except ValueError as error:
                print(error)
            except Exception as error:
                print(f"{path.name}: {type(error).__name__}: {error}")
            if time.perf_counter() - began > 2:
                print(f"{path.name}: slow")


def test_bombs_are_refused_by_what_they_declare(tmp_path):
    for name, content in BOMBS.items():
        (tmp_path / name).write_bytes(content)
    command = [sys.executable, __file__, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    allowed = re.compile(
        f"{re.escape(str(tmp_path))}/.*(pixels|too short|labels for 3 images|arrays, and only|"
        r"holds the arrays)|.*: nothing|grows.gif: read"
    )
    assert not [line for line in lines if not allowed.match(line)]
    assert len(lines) == len(READERS) * len(BOMBS)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.png", png(9400, 9400)),
        ("a.pbm", pbm(9400, 9400)),
        ("a.bmp", bmp(9400, 9400)),
        ("a.tif", tiff(2480, 3508, 10)),  # as many empty A4 pages are no bomb
        ("a.gif", gif(1000, 1000, *[(0, 0, 1000, 1000)] * 80)),
    ],
)
def test_large_files_are_counted(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    assert len(files_of_images(tmp_path / name)) >= 1


def test_sets_that_do_not_fit_into_memory_are_refused_before_they_are_read(tmp_path):
    (tmp_path / "wide.png").write_bytes(png(80_000_000, 1))
    (tmp_path / "tall.png").write_bytes(png(1, 80_000_000))
    with pytest.raises(MemoryError, match="2 images of up to 80,000,000×80,000,000 pixels would"):
        read_images(tmp_path)
    # The second is not looked at.
    with pytest.raises(ValueError, match=r"tall\.png cannot be read as an image"):
        read_images(tmp_path, first=1)


def test_many_small_images_of_a_packed_array_are_no_bomb(tmp_path):
    (tmp_path / "a.npz").write_bytes(npz((70_000, 28, 28), n_bytes=70_000 * 784))
    assert len(files_of_images(tmp_path / "a.npz")) == 70_000


def test_extra_fields_of_archives_take_no_time(tmp_path):
    fields = b"\x99\x99\0\0" * (2**16 // 4 - 1)
    (tmp_path / "a.npz").write_bytes(npz((2, 2), n_bytes=4, extra=fields[:200]))
    assert read_images(tmp_path / "a.npz").X.shape == (1, 1, 2, 2)
    (tmp_path / "b.npz").write_bytes(npz((2, 2), n_bytes=4, extra=fields))
    with pytest.raises(ValueError, match="65,532 bytes of extra fields"):
        read_images(tmp_path / "b.npz")


@pytest.mark.parametrize("header", [b"P1\n900 900\n", b"P2\n900 900\n255\n"])
def test_comments_take_no_time(tmp_path, header):
    (tmp_path / "a.pgm").write_bytes(header + b"1 #a\n" * 9000 + b"1 " * 801_000)
    assert read_images(tmp_path / "a.pgm").X.shape == (1, 1, 900, 900)
    (tmp_path / "a.pgm").write_bytes(header + b"1 #a\n" * 400_000 + b"1 " * 410_000)
    began = time.process_time()
    with pytest.raises(ValueError, match=r"a\.pgm has 400,000 comments; remove them"):
        read_images(tmp_path / "a.pgm")
    assert time.process_time() - began < 1


def test_formats_that_are_not_promised_are_not_opened(tmp_path):
    """Pillow would start Ghostscript for this one."""
    (tmp_path / "a.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EOF\n")
    with pytest.raises(ValueError, match=r"a\.png cannot be read as an image \(cannot identify"):
        read_images(tmp_path / "a.png")


@pytest.mark.parametrize("scale", [1e-320, 1e-30, 1, 1e25])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_shades_of_any_float_are_split(dtype, scale):
    on = np.random.default_rng(0).random((30, 30)) < 0.2
    with np.errstate(over="ignore"):
        shades = (np.where(on, 3.0, 1.0) * scale).astype(dtype)
    if np.isfinite(shades).all() and len(np.unique(shades)) == 2:
        np.testing.assert_array_equal(binarise(shades), on)


def test_shades_next_to_each_other_are_split():
    on = np.random.default_rng(0).random((30, 30)) < 0.2
    low = 1.0
    for _ in range(3):
        high = np.nextafter(low, 2)
        np.testing.assert_array_equal(binarise(np.where(on, high, low)), on)
        three = np.where(on, np.nextafter(high, 2), np.where(on[::-1], high, low))
        assert three.min() <= otsu_threshold(three) < three.max()
        low = high


@pytest.mark.parametrize("value", [1e200, np.inf, -np.inf, 1e31])
def test_numbers_that_are_no_shades_are_refused(tmp_path, value):
    shades = np.array([[0.0, 1.0], [value, 0.5]])
    for call in (binarise, otsu_threshold):
        with pytest.raises(ValueError, match="shades must lie from"):
            call(shades)
    np.save(tmp_path / "a.npy", shades)
    with pytest.raises(ValueError, match=r"a\.npy cannot be read as images \(shades must lie"):
        read_images(tmp_path / "a.npy")


@pytest.mark.parametrize("shades", [[], 3, "abc", [["a"]], [[1j]], [[None]], np.zeros((0, 3))])
def test_what_is_no_image_is_not_split(shades):
    with pytest.raises(ValueError, match="must be an array of numbers or booleans"):
        binarise(shades)


@pytest.mark.parametrize("threshold", [np.nan, "nan", "half", None, [1, 2], 10**400, 1j])
def test_thresholds_are_numbers(tmp_path, threshold):
    with pytest.raises(ValueError, match="threshold must be 'otsu' or a number"):
        binarise(np.eye(3), threshold)
    np.save(tmp_path / "a.npy", np.eye(3))
    with pytest.raises(ValueError, match="threshold must be 'otsu' or a number"):
        read_images(tmp_path / "a.npy", threshold=threshold)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        ([3], r"images\[0\] must be \(height, width\)"),
        ([[1, 0]], r"images\[0\] must be \(height, width\)"),
        ([np.eye(2), np.zeros((1, 1, 2, 2))], r"images\[1\] must be \(height, width\)"),
        ([np.zeros((0, 3))], "none of them 0"),
        (["abc"], "must hold numbers or booleans"),
        ([[[1, 2], [3]]], "rows differ in size"),
        ([], "no image to write"),
    ],
)
@pytest.mark.parametrize("name", ["a.png", "a.npz", "a.tif", "folder"])
def test_what_is_no_image_is_not_written(tmp_path, images, message, name):
    with pytest.raises((ValueError, TypeError), match=message):
        write_images(tmp_path / name, images)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a"], "an entry per image, 2, got 1"),
        ([], "an entry per image, 2, got 0"),
        (["a", "b/c"], "got 'b/c'"),
        (["a", "../b"], "got '../b'"),
        (["a", "/b"], "got '/b'"),
        (["a", "b\0"], "no file name has"),
    ],
)
def test_names_that_no_file_can_have_are_refused_before_anything_is_written(
    tmp_path, names, message
):
    with pytest.raises((ValueError, OSError), match=message):
        write_images(tmp_path / "folder", [np.eye(2)] * 2, names=names)
    assert not list(tmp_path.rglob("*.png"))


def test_long_names_in_a_folder_are_cut_and_stay_different(tmp_path):
    names = ["b" * 300 + end for end in "xy"] + ["é" * 200]
    files = write_images(tmp_path / "folder", [np.eye(2)] * 3, names=names)
    assert len(set(files)) == len(list((tmp_path / "folder").iterdir())) == 3
    write_images(tmp_path / "folder", [np.eye(2)] * 3, names=names, overwrite=True)


if __name__ == "__main__":
    refuse_all(Path(sys.argv[1]))
