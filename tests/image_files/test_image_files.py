"""What is in a file is what is read, and what cannot be read is said in a sentence."""

import re
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from hcnet.image_files import (
    binarise,
    files_of_images,
    otsu_threshold,
    read_images,
    stream_images,
    write_images,
)


def bits(*shape, seed=0, density=0.2):
    return np.random.default_rng(seed).random(shape) < density


def scan(on, seed=0, ink=60, paper=215, grain=12):
    """A grey picture of dark ink on paper, with grain."""
    noise = np.random.default_rng(seed).normal(0, grain, on.shape)
    return np.clip(np.where(on, ink, paper) + noise, 0, 255).astype(np.uint8)


def save_page(on, path):
    Image.fromarray(np.where(on, 0, 255).astype(np.uint8)).save(path)


@given(
    st.lists(st.integers(0, 255), min_size=2, max_size=60).filter(
        lambda shades: len(set(shades)) > 1
    )
)
def test_otsu_separates_by_the_largest_variance_between_the_sides(shades):
    """Against a search over all ways to cut."""
    array = np.array(shades, np.uint8)

    def between(bright):
        a, b = array[~bright].astype(float), array[bright].astype(float)
        return len(a) * len(b) * (a.mean() - b.mean()) ** 2 if len(a) and len(b) else 0.0

    best = max(between(array > cut) for cut in range(256))
    # Shades are counted in 256 steps between the darkest and the brightest: 1 % for rounding.
    assert between(array > otsu_threshold(array)) >= 0.99 * best


@pytest.mark.parametrize("kind", [".png", ".tif", ".bmp", ".pgm"])
def test_a_scan_is_cut_right_and_its_ink_is_dark(tmp_path, kind):
    on = bits(40, 50)
    Image.fromarray(scan(on)).save(tmp_path / f"page{kind}")
    found = read_images(tmp_path / f"page{kind}")
    assert (found.X[0, 0] == on).all()
    assert found.dark
    assert found.mask is None
    assert 100 < found.thresholds[0] < 180
    assert "inverted" in found.summary()


def test_bright_ink_is_not_inverted_unless_told(tmp_path):
    on = bits(30, 30)
    save_page(~on, tmp_path / "a.png")
    found = read_images(tmp_path / "a.png")
    assert (found.X[0, 0] == on).all()
    assert not found.dark
    assert found.thresholds == [None]  # two shades need no threshold
    assert "inverted" not in found.summary()
    assert (read_images(tmp_path / "a.png", ink="dark").X[0, 0] == ~on).all()


def test_a_threshold_can_be_given(tmp_path):
    ramp = np.arange(256, dtype=np.uint8).reshape(16, 16)
    Image.fromarray(ramp).save(tmp_path / "ramp.png")
    found = read_images(tmp_path / "ramp.png", threshold=200, ink="bright")
    assert (found.X[0, 0] == (ramp > 200)).all()
    assert found.thresholds == [200.0]


def test_sixteen_bits_are_not_cut_to_eight(tmp_path):
    on = bits(20, 20)
    Image.fromarray(np.where(on, 40_000, 60_000).astype(np.uint16)).save(tmp_path / "deep.tif")
    assert (read_images(tmp_path / "deep.tif").X[0, 0] == on).all()


def test_every_page_of_a_tiff_is_an_image(tmp_path):
    pages = bits(4, 12, 17)
    write_images(tmp_path / "book.tif", pages, dark=True)
    found = read_images(tmp_path / "book.tif")
    assert (found.X[:, 0] == pages).all()
    assert found.pages == [0, 1, 2, 3]
    assert found.names == ["book.tif[0]", "book.tif[1]", "book.tif[2]", "book.tif[3]"]


def test_a_folder_is_read_in_order_with_the_folders_in_it(tmp_path):
    (tmp_path / "b").mkdir()
    pages = bits(3, 9, 9)
    for page, name in zip(pages, ["a1.png", "a2.PNG", "b/c.png"], strict=True):
        save_page(page, tmp_path / name)
    (tmp_path / "notes.txt").write_text("mine")
    found = read_images(tmp_path)
    assert (found.X[:, 0] == pages).all()
    assert found.names == ["a1.png", "a2.PNG", "c.png"]


def test_blank_pages_stay_blank_in_a_set_and_in_a_stream(tmp_path):
    """Otsu's threshold alone would cut the grain of the paper in two."""
    Image.fromarray(scan(bits(40, 40))).save(tmp_path / "a.png")
    Image.fromarray(scan(np.zeros((40, 40), bool), seed=1)).save(tmp_path / "b.png")
    found = read_images(tmp_path)
    assert not found.X[1].any()
    assert found.X[0].any()
    assert (np.concatenate(list(stream_images(tmp_path))) == found.X).all()


def test_images_of_several_sizes_are_padded_with_missing_pixels(tmp_path):
    large, small = bits(20, 30), bits(12, 25, seed=1)
    for name, on in (("a", large), ("b", small)):
        save_page(on, tmp_path / f"{name}.png")
    found = read_images(tmp_path)
    assert found.X.shape == (2, 1, 20, 30)
    assert (found.X[1, 0, :12, :25] == small).all()
    assert found.mask[1, 0].sum() == 20 * 30 - 12 * 25
    assert not found.mask[0].any()
    assert [one.shape for one in found.own_size(found.X)] == [(1, 20, 30), (1, 12, 25)]


def test_arrays_of_zero_and_one_mean_what_they_say(tmp_path):
    on = bits(3, 8, 9, density=0.9)
    np.save(tmp_path / "a.npy", on)
    np.savez(tmp_path / "b.npz", X=on.astype(float), other=np.zeros(3))
    for name in ("a.npy", "b.npz"):
        found = read_images(tmp_path / name)
        assert (found.X[:, 0] == on).all()
        assert not found.dark


def test_arrays_may_have_channels_shades_and_missing_pixels(tmp_path):
    on = bits(2, 3, 8, 9)
    np.save(tmp_path / "channels.npy", on)
    found = read_images(tmp_path / "channels.npy")
    assert np.array_equal(found.X, on)
    grey = scan(on[0, 0]).astype(float)
    grey[2, 3] = np.nan
    np.save(tmp_path / "grey.npy", grey)
    found = read_images(tmp_path / "grey.npy")
    assert found.mask[0, 0, 2, 3]
    assert found.mask.sum() == 1
    known = ~found.mask[0, 0]
    assert (found.X[0, 0][known] == on[0, 0][known]).all()


def test_a_mask_is_one_for_all_images_or_one_for_each(tmp_path):
    on, hidden = bits(2, 8, 9), bits(2, 8, 9, seed=1)
    np.save(tmp_path / "images.npy", np.where(bits(2, 8, 9, seed=2), np.nan, on))
    write_images(tmp_path / "one.png", hidden[:1])
    write_images(tmp_path / "each.tif", hidden)
    path = tmp_path / "images.npy"
    missing = read_images(path).mask
    for name, expected in (("one.png", hidden[:1]), ("each.tif", hidden)):
        found = read_images(path, mask=tmp_path / name)
        np.testing.assert_array_equal(found.mask, missing | expected[:, None])
        first = read_images(path, mask=tmp_path / name, first=1)
        np.testing.assert_array_equal(first.mask, found.mask[:1])
        np.testing.assert_array_equal(first.X, found.X[:1])
    np.save(tmp_path / "three.npy", bits(3, 8, 9))
    with pytest.raises(ValueError, match="holds 3 masks for 2 images"):
        read_images(path, mask=tmp_path / "three.npy")


@pytest.mark.parametrize("name", ["one.png", "each.tif"])
def test_a_mask_hides_pixels_of_a_stream(tmp_path, name):
    write_images(tmp_path / "images.tif", bits(3, 8, 9))
    hidden = bits(1 if name == "one.png" else 3, 8, 9, seed=1)
    write_images(tmp_path / name, hidden)
    streamed = list(stream_images(tmp_path / "images.tif", ink="bright", mask=tmp_path / name))
    for k, image in enumerate(streamed):
        expected = np.where(hidden[k % len(hidden)], np.nan, bits(3, 8, 9)[k])
        np.testing.assert_array_equal(image[0, 0], expected)


@pytest.mark.parametrize(
    ("shape", "message"),
    [((2, 8, 9), "holds 2 masks for 3 images"), ((9, 8), "a mask of 9×8 for an image of 8×9")],
)
def test_a_mask_that_does_not_fit_a_stream_is_said_before_its_first_image(tmp_path, shape, message):
    np.save(tmp_path / "images.npy", bits(3, 8, 9))
    np.save(tmp_path / "masks.npy", bits(*shape))
    stream = stream_images(tmp_path / "images.npy", mask=tmp_path / "masks.npy")
    with pytest.raises(ValueError, match=message):
        next(stream)


def test_the_files_of_images_are_known_without_decoding_them(tmp_path):
    write_images(tmp_path / "a.tif", bits(3, 8, 9))
    write_images(tmp_path / "b.png", bits(1, 8, 9))
    np.savez(tmp_path / "c.npz", X=bits(2, 4, 4))
    paths = [tmp_path / "c.npz", tmp_path / "a.tif", tmp_path / "b.png"]
    assert files_of_images(paths) == read_images(paths).files
    (tmp_path / "d.png").write_bytes(b"no image")
    with pytest.raises(ValueError, match="cannot be read as an image"):
        files_of_images(tmp_path / "d.png")
    with pytest.raises(FileNotFoundError, match="is not there"):
        files_of_images(tmp_path / "e.png")


def _claiming(width, height):
    """A PNG that says that it is very large."""

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize(("width", "height"), [(10_000, 10_000), (100_000, 100_000)])
def test_a_file_that_says_it_is_enormous_is_not_decoded(tmp_path, width, height):
    (tmp_path / "bomb.png").write_bytes(_claiming(width, height))
    with pytest.raises(ValueError, match=r"bomb\.png says that it has more than 89,478,485 pixels"):
        read_images(tmp_path / "bomb.png")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.png", b"no image", "cannot be read as an image"),
        ("a.png", _claiming(20, 20), "cannot be read as an image"),
        ("a.txt", b"no image", "cannot be read as an image"),
        ("a.npy", b"no array", "cannot be read as an array"),
        ("a.npz", b"PK\x03\x04 no array", "cannot be read as an array"),
    ],
)
def test_damaged_files_are_named(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        read_images(tmp_path / name)
    assert name in str(caught.value)


def test_empty_folders_unnamed_arrays_and_transparent_images_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no image files"):
        read_images(tmp_path)
    np.savez(tmp_path / "two.npz", a=np.zeros((2, 2)), b=np.zeros((2, 2)))
    with pytest.raises(ValueError, match="holds the arrays a, b; name one of them 'X' or 'images'"):
        read_images(tmp_path / "two.npz")
    Image.new("RGBA", (5, 5), (0, 0, 0, 0)).save(tmp_path / "clear.png")
    with pytest.raises(ValueError, match="transparent in places"):
        read_images(tmp_path / "clear.png")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["out.tif", "out.npy", "out.npz", "out"])
def test_what_is_written_is_read_again(tmp_path, name, dark):
    images = bits(3, 11, 14)
    files = write_images(tmp_path / name, images, dark=dark)
    assert all(file.is_file() for file in files)
    found = read_images(tmp_path / name)
    assert (found.X[:, 0] == images).all()
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize("name", ["out.png", "out.tif", "out.npy", "out"])
def test_nothing_is_overwritten_unless_told(tmp_path, name):
    write_images(tmp_path / name, bits(1, 9, 9))
    with pytest.raises(FileExistsError, match="exists already"):
        write_images(tmp_path / name, bits(1, 9, 9, seed=1))
    assert (read_images(tmp_path / name).X[:, 0] == bits(1, 9, 9)).all()
    write_images(tmp_path / name, bits(1, 9, 9, seed=1), overwrite=True)
    assert (read_images(tmp_path / name).X[:, 0] == bits(1, 9, 9, seed=1)).all()


def test_kinds_that_cannot_hold_the_images_are_refused(tmp_path):
    with pytest.raises(ValueError, match="can hold one image, and there are 2"):
        write_images(tmp_path / "a.png", bits(2, 5, 5))
    with pytest.raises(ValueError, match="loses pixels"):
        write_images(tmp_path / "a.jpg", bits(1, 5, 5))
    with pytest.raises(ValueError, match="only images of one size"):
        write_images(tmp_path / "a.npy", [bits(5, 5), bits(6, 5)])
    assert list(tmp_path.iterdir()) == []


def test_binarise_takes_the_rarer_side_as_ink():
    on = bits(30, 30)
    assert (binarise(scan(on)) == on).all()
    assert (binarise(255 - scan(on)) == on).all()
    with pytest.raises(ValueError, match="'otsu' or a number"):
        binarise(scan(on), threshold="half")
    with pytest.raises(ValueError, match="ink must be one of"):
        binarise(scan(on), ink="blue")


def test_images_that_hold_no_parts_are_doubted(tmp_path):
    rng = np.random.default_rng(0)
    text = np.where(rng.random((60, 60)) < 0.15, 20, 235) + rng.normal(0, 8, (60, 60))
    photograph = np.add.outer(np.linspace(0, 120, 60), np.linspace(0, 130, 60))
    pages = {"text": text, "inverted": 255 - text, "photo": photograph, "blank": text * 0 + 250}
    said = {}
    for name, shades in pages.items():
        Image.fromarray(np.clip(shades, 0, 255).astype(np.uint8)).save(tmp_path / f"{name}.png")
        said[name] = read_images(tmp_path / f"{name}.png").doubts()
    assert said["text"] is said["inverted"] is None
    assert "as in a photograph" in said["photo"]
    assert "blank" in said["blank"]
    paper = read_images(tmp_path / "text.png", ink="bright").doubts()
    assert re.match("8.% of the pixels are on: is that paper", paper)
