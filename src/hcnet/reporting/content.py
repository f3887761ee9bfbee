"""The content of a report, before it becomes a page: plain values that JSON can hold."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcnet.images import BoolArray, Images
from hcnet.plotting.drawing import INKS

# The most images of a report, and the most pixels of all of them: a page must open at once.
MOST_IMAGES = 60
MOST_PIXELS = 4_000_000
# Marks of a reconstruction's errors.
RIGHT, MISSED, ADDED = 0, 1, 2

# Values are characters from here on, which are no digits in base 36.
FIRST_LETTER = 0x100
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class PartView:
    """A part, drawn down to the pixels."""

    number: int
    name: str
    size: tuple[int, int]
    pixels: str  # runs: 0 paper, k + 1 part k of the first layer, the largest number several parts
    count: int | None = None  # placements in all images
    made_of: str = ""


@dataclass(frozen=True)
class LayerView:
    """The parts of a layer, in the order in which they are shown."""

    name: str
    parts: list[PartView]


@dataclass(frozen=True)
class ImageView:
    """An image, its reconstruction, and the part that explains each pixel."""

    name: str
    size: tuple[int, int]
    seen: str  # runs: a bit per channel that is on
    made: str
    errors: str  # runs of RIGHT, MISSED, ADDED
    missing: str | None  # runs of 0 and 1
    nodes: list[list[Any]]  # layer, part, row, column, runs of pixels (None: those of the part)
    about: str = ""


@dataclass(frozen=True)
class Picture:
    """A chart, with the same in words for readers who cannot see it."""

    title: str
    chart: str  # HTML
    text: str


@dataclass
class Content:
    """A whole report."""

    title: str
    summary: str
    layers: list[LayerView]
    facts: list[tuple[str, str, str]]  # name, value, meaning
    images: list[ImageView] = field(default_factory=list)
    images_note: str = ""
    channels: int = 1
    pictures: list[Picture] = field(default_factory=list)
    code: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    fingerprint: str = ""
    live: str = ""  # the stage of learning, in a live report
    refresh: int = 0  # seconds after which a live report is read again


def runs(values: NDArray[Any]) -> str:
    """Small numbers, row by row, as runs: a character for the value, then the length in base 36."""
    flat = np.asarray(values).ravel().astype(np.int64)
    if not flat.size:
        return ""
    starts = np.flatnonzero(np.r_[True, flat[1:] != flat[:-1]])
    lengths = np.diff(np.r_[starts, flat.size])
    words = []
    for value, length in zip(flat[starts].tolist(), lengths.tolist(), strict=True):
        words.append(chr(FIRST_LETTER + value) + _base36(length))
    return "".join(words)


def _base36(number: int) -> str:
    word = ""
    while True:
        number, digit = divmod(number, 36)
        word = _DIGITS[digit] + word
        if not number:
            return word


def inks(planes: BoolArray) -> NDArray[np.int64]:
    """A bit per channel (height, width); more than three channels are drawn as one."""
    if len(planes) > len(INKS):
        return np.asarray(planes.any(axis=0)).astype(np.int64)
    weights = 2 ** np.arange(len(planes))
    return np.asarray(np.tensordot(weights, planes.astype(np.int64), axes=1))


def error_marks(seen: BoolArray, made: BoolArray, observed: BoolArray) -> NDArray[np.int64]:
    """RIGHT, MISSED or ADDED for each pixel (height, width)."""
    missed = (seen & ~made & observed).any(axis=0)
    added = (made & ~seen & observed).any(axis=0)
    return np.where(missed, MISSED, np.where(added, ADDED, RIGHT))


def image_view(
    images: Images, made: BoolArray, n: int, name: str, nodes: list[list[Any]], about: str = ""
) -> ImageView:
    """Image `n` with its reconstruction (images, channels, height, width)."""
    seen, observed = images.pixels[n], images.observed[n]
    hidden = ~observed
    return ImageView(
        name=name,
        size=images.size,
        seen=runs(inks(seen & observed)),
        made=runs(inks(made[n])),
        errors=runs(error_marks(seen, made[n], observed)),
        missing=runs(hidden.any(axis=0)) if hidden.any() else None,
        nodes=nodes,
        about=about,
    )


def error_facts(images: Images, made: BoolArray) -> tuple[str, str, str]:
    """The number of pixels that the reconstruction has wrong."""
    marks = np.array(
        [error_marks(*planes) for planes in zip(images.pixels, made, images.observed, strict=True)]
    )
    missed, added = int((marks == MISSED).sum()), int((marks == ADDED).sum())
    share = (missed + added) / max(images.n_observed, 1)
    return (
        "Wrong pixels",
        f"{missed + added:,}",
        f"{share:.3%} of those observed in the images shown: {missed:,} on that no part "
        f"explains, {added:,} off that a part covers",
    )


def shown_images(images: Images) -> Images:
    """The first images, as many as a report shows."""
    height, width = images.size
    n = max(1, min(images.n_images, MOST_IMAGES, MOST_PIXELS // (height * width)))
    return Images(images.pixels[:n], images.observed[:n])


def image_names(names: Sequence[str] | None, n: int) -> list[str]:
    """Names as given, or numbers."""
    if names is None:
        return [f"image {k}" for k in range(n)]
    if isinstance(names, str) or not isinstance(names, Sequence | np.ndarray) or not np.ndim(names):
        raise TypeError(f"names must be a list of texts, one per image, or None, got {names!r}.")
    if len(names) < n:
        raise ValueError(f"names must have an entry per image, {n}, got {len(names)}.")
    return [str(name) for name in names[:n]]


def left_out(shown: int, images: Images) -> str:
    """A note, if a report does not show all images."""
    if shown == images.n_images:
        return ""
    return f"The first {shown} of {images.n_images:,} images."


def fingerprint(images: Images) -> str:
    """A fingerprint of images and missing pixels: the first 16 digits of a SHA-256."""
    digest = hashlib.sha256(repr(images.pixels.shape).encode())
    digest.update(np.packbits(images.pixels & images.observed).tobytes())
    digest.update(np.packbits(images.observed).tobytes())
    return digest.hexdigest()[:16]


def number_of(n: int, thing: str) -> str:
    """A number with its noun."""
    return f"{n:,} {thing}{'' if n == 1 else 's'}"
