"""The content of a report, before it becomes a page: plain values that JSON can hold."""

from __future__ import annotations

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
    # Charts: title, HTML, and the same in words for readers who cannot see it.
    pictures: list[tuple[str, str, str]] = field(default_factory=list)
    code: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    live: str = ""  # the stage of learning, in a live report
    refresh: int = 0  # seconds after which a live report is read again

    def show_images(
        self,
        images: Images,
        made: BoolArray,
        names: Sequence[str] | None,
        nodes: list[list[list[Any]]],
        about: list[str],
    ) -> None:
        """Show the first images, with their reconstructions, nodes and remarks, and the errors."""
        n = len(made)
        self.channels = images.n_channels
        if n < images.n_images:
            self.images_note = f"The first {n} of {images.n_images:,} images."
        seen, observed = images.pixels[:n], images.observed[:n]
        missed = (seen & ~made & observed).any(axis=1)
        added = (made & ~seen & observed).any(axis=1)
        errors = np.where(missed, MISSED, np.where(added, ADDED, RIGHT))
        for k, name in enumerate(image_names(names, n)):
            hidden = ~observed[k].all(axis=0)
            view = ImageView(
                name=name,
                size=images.size,
                seen=runs(inks(seen[k] & observed[k])),
                made=runs(inks(made[k])),
                errors=runs(errors[k]),
                missing=runs(hidden) if hidden.any() else None,
                nodes=nodes[k],
                about=about[k],
            )
            self.images.append(view)
        wrong = (errors != RIGHT).sum()
        meaning = (
            f"{wrong / max(int(observed.sum()), 1):.3%} of those observed in the images shown: "
            f"{(errors == MISSED).sum():,} on that no part explains, "
            f"{(errors == ADDED).sum():,} off that a part covers"
        )
        self.facts.append(("Wrong pixels", f"{wrong:,}", meaning))


def runs(values: NDArray[Any]) -> str:
    """Small numbers, row by row, as runs: a character for the value, then the length in base 36."""
    flat = np.asarray(values).ravel().astype(np.int64)
    starts = np.flatnonzero(np.diff(flat, prepend=-1))  # no value is negative
    lengths = np.diff(starts, append=flat.size)
    return "".join(
        chr(FIRST_LETTER + value) + np.base_repr(length, 36).lower()
        for value, length in zip(flat[starts].tolist(), lengths.tolist(), strict=True)
    )


def inks(planes: BoolArray) -> NDArray[np.int64]:
    """A bit per channel (height, width); more than three channels are drawn as one."""
    if len(planes) > len(INKS):
        return np.asarray(planes.any(axis=0)).astype(np.int64)
    weights = 2 ** np.arange(len(planes))
    return np.asarray(np.tensordot(weights, planes.astype(np.int64), axes=1))


def shown_images(images: Images) -> Images:
    """The first images, as many as a report shows."""
    height, width = images.size
    n = max(1, min(images.n_images, MOST_IMAGES, MOST_PIXELS // (height * width)))
    return images[:n]


def image_names(names: Sequence[str] | None, n: int) -> list[str]:
    """Names as given, or numbers."""
    if names is None:
        return [f"image {k}" for k in range(n)]
    if isinstance(names, str) or not isinstance(names, Sequence | np.ndarray) or not np.ndim(names):
        raise TypeError(f"names must be a list of texts, one per image, or None, got {names!r}.")
    if len(names) < n:
        raise ValueError(f"names must have an entry per image, {n}, got {len(names)}.")
    return [str(name) for name in names[:n]]


def number_of(n: int, thing: str) -> str:
    """A number with its noun."""
    return f"{n:,} {thing}{'' if n == 1 else 's'}"
