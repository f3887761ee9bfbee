"""Image and array files, opened: what they declare is looked at before anything is decoded.

A file may come from anybody.  Whatever a decoder raises becomes one sentence with the name of the
file, and sizes are bounded, over all frames, pages and images of a file together.
"""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from hcnet.checks import in_short
from hcnet.zip_files import open_zip

ARRAY_SUFFIXES = frozenset({".npy", ".npz"})
# Formats of Pillow.  It knows others, some of which start programs.
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
# Those whose pages differ in size; MPO is what some cameras make of JPEG.
_OWN_SIZES = ("MPO", "TIFF")
# Pixels of all pages together, for each byte of a file: an empty page packed by Group 4 has more,
# and a book with text on some of its pages has less; arrays are packed less well.
PIXELS_PER_BYTE, ARRAY_PIXELS_PER_BYTE = 4096, 256
# Comments in an image that is a text; most have one.
MOST_COMMENTS = 10_000
REPAIR = "repair it, or leave it out"
SAVE = "write it with np.save or np.savez, without objects"

# Pixels as which the smallest image counts: every image takes some memory.
LEAST_PIXELS = 256

# Channels, height and width of an image.
Size = tuple[int, int, int]
# A number of images in a row that have the same size.
Declared = tuple[int, Size]
# Gets the declared shape and type of an array, and raises an error if they are not wanted.
Accept = Callable[[tuple[int, ...], np.dtype[Any]], None]


class RefusedFileError(ValueError):
    """What is wrong with a file, in a sentence that begins with its name."""


@contextmanager
def decoding(path: Path, wanted: str = "an image", remedy: str = REPAIR) -> Iterator[None]:
    """Whatever goes wrong within this block is said of the file.

    Too little memory is not: the file may be sound.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            yield
    except (RefusedFileError, MemoryError):
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise _too_large(path) from None
    except Exception as error:  # decoders raise what they like
        raise RefusedFileError(
            f"{path} cannot be read as {wanted} ({in_short(error)}); {remedy}."
        ) from error


@contextmanager
def opened(path: Path) -> Iterator[tuple[Image.Image, list[Declared]]]:
    """An image file that is open, and the size of every page; none is decoded yet."""
    with decoding(path):
        file = Image.open(path, formats=FORMATS)
    with file:
        with decoding(path):
            if [tile for tile in file.tile if tile[0] == "ppm_plain"]:
                _check_comments(path)
            n, (_, size) = int(getattr(file, "n_frames", 1)), _page(file)
            check_declared(path, [(n, size if file.format not in _OWN_SIZES else (1, 1, 1))])
            pages = [_page(file)] * n
            if file.format in _OWN_SIZES:
                for number in range(n):
                    file.seek(number)
                    pages[number] = _page(file)
                check_declared(path, pages)
        yield file, pages


def _check_comments(path: Path) -> None:
    """Pillow copies a block of a text for every comment in it: a megabyte of them takes seconds."""
    with path.open("rb") as text:
        n = sum(block.count(b"#") for block in iter(partial(text.read, 2**20), b""))
    if n > MOST_COMMENTS:
        raise RefusedFileError(f"{path} has {n:,} comments; remove them, or leave it out.")


def seek_page(path: Path, file: Image.Image, number: int, pages: list[Declared]) -> None:
    """Go to a page; frames of a GIF may turn out to be larger than its screen."""
    file.seek(number)
    if _page(file) != pages[number]:
        pages[number] = _page(file)
        check_declared(path, pages)


def _page(file: Image.Image) -> Declared:
    width, height = file.size
    return 1, (1, height, width)


def check_declared(path: Path, images: Iterable[Declared], per_byte: int = PIXELS_PER_BYTE) -> None:
    """Raise an error if an image of a file is enormous, or all of them together."""
    limit = Image.MAX_IMAGE_PIXELS or math.inf
    most, together = max(limit, per_byte * path.stat().st_size), 0
    for n, (channels, height, width) in images:
        if height * width > limit:
            raise _too_large(path)
        together += n * max(channels * height * width, LEAST_PIXELS)
    if together > most:
        raise RefusedFileError(
            f"{path} says that its images have {together:,} pixels together, which for a file of "
            f"its size is often made to fill the memory; cut it into several files."
        )


def _too_large(path: Path) -> RefusedFileError:
    return RefusedFileError(
        f"{path} says that it has more than {Image.MAX_IMAGE_PIXELS:,} pixels, which is often a "
        f"file made to fill the memory; cut it into several images."
    )


def read_array(path: Path, keys: Iterable[str], accept: Accept) -> NDArray[Any]:
    """The array of an ``.npy`` file, or the one of an ``.npz`` file that has one of these names.

    `accept` raises an error if it does not like what is declared, before anything is read.
    """
    with _array_file(path, keys, accept) as file:
        if path.suffix.lower() == ".npy":
            # Mapped, so that only the images that are looked at are read.
            return np.asanyarray(np.load(path, mmap_mode="r", allow_pickle=False))
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def array_shape(path: Path, keys: Iterable[str], accept: Accept) -> tuple[int, ...]:
    """The declared shape of the array that `read_array` would return, if it is accepted."""
    with _array_file(path, keys, accept) as file:
        return _declared(file)[0]


@contextmanager
def _array_file(path: Path, keys: Iterable[str], accept: Accept) -> Iterator[IO[bytes]]:
    """The beginning of an array that has been accepted."""
    with decoding(path, "an array", SAVE), ExitStack() as stack:
        file: IO[bytes] = stack.enter_context(path.open("rb"))
        room = path.stat().st_size
        if path.suffix.lower() != ".npy":
            archive = stack.enter_context(open_zip(file))
            info = _find(path, archive, keys)
            file, room = stack.enter_context(archive.open(info)), info.file_size
        shape, dtype = _declared(file)
        if file.tell() + math.prod(shape) * dtype.itemsize > room:
            raise ValueError("it is too short for its shape")
        accept(shape, dtype)
        file.seek(0)
        yield file


def _find(path: Path, archive: zipfile.ZipFile, keys: Iterable[str]) -> zipfile.ZipInfo:
    """The member of an archive that holds the array."""
    members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    names = [key for key in keys if key in members]
    if not names and len(members) != 1:
        found = ", ".join(members) or "nothing"
        raise RefusedFileError(
            f"{path} holds the arrays {found[:200]}; name one of them "
            f"{' or '.join(map(repr, keys))}."
        )
    return members[names[0]] if names else next(iter(members.values()))


def _declared(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of an array, from its first bytes."""
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:  # newer ones are for records, which are no images
        raise ValueError(f"its array has version {version}")
    shape, _, dtype = readers[version](file)
    if dtype.hasobject:
        raise ValueError("it holds objects")
    if any(side < 0 for side in shape):
        raise ValueError(f"its shape is {shape}")
    return shape, dtype
