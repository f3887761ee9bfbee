"""Arguments that several commands share, and how their texts become values."""

from __future__ import annotations

import argparse
from pathlib import Path

THRESHOLDS = "otsu or a number"
INKS = ("auto", "bright", "dark")
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}


def add_images(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """The images that a command works on, and how they become binary."""
    parser.add_argument(
        "images",
        nargs="+" if required else "*",
        type=Path,
        metavar="IMAGES",
        help="image files, TIFF files with many pages, .npy or .npz arrays, folders",
    )
    parser.add_argument(
        "--threshold",
        type=threshold,
        default="otsu",
        metavar="N",
        help="the shade above which a pixel is bright; otsu finds it for each image (default)",
    )
    parser.add_argument(
        "--ink",
        choices=INKS,
        default="auto",
        help="which pixels are on; auto (default): the rarer ones",
    )


def add_model(parser: argparse.ArgumentParser) -> None:
    """The model that a command uses."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="a file that learn wrote (.hcn)")


def add_output(parser: argparse.ArgumentParser, help: str, required: bool = True) -> None:
    """Where the result goes."""
    parser.add_argument("--output", "-o", type=Path, required=required, metavar="PATH", help=help)
    add_force(parser)


def add_force(parser: argparse.ArgumentParser) -> None:
    """Leave to replace files."""
    parser.add_argument("--force", action="store_true", help="replace files that are there")


IMAGES_OUT = ".png for one image, .tif, .npy or .npz for several, or a folder"


def threshold(text: str) -> float | str:
    """The word otsu, or a number."""
    if text == "otsu":
        return text
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be {THRESHOLDS}, got {text!r}") from None


def seed(text: str) -> int:
    """A whole number of at least 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0, got {text!r}")
    return int(text)


def size(text: str) -> int | tuple[int, int]:
    """One side, or height and width as 12x8."""
    sides = text.lower().replace("×", "x").split("x")
    if len(sides) > 2 or not all(side.isdecimal() for side in sides):
        raise argparse.ArgumentTypeError(
            f"must be one whole number, or height and width as in 12x8, got {text!r}"
        )
    return int(sides[0]) if len(sides) == 1 else (int(sides[0]), int(sides[1]))


def amount(text: str) -> int:
    """Bytes, with a unit if one likes: 500MB, 2GiB."""
    word = text.strip().lower().removesuffix("b")
    digits = word.rstrip("kmgi ")
    unit = word[len(digits) :].strip()
    try:
        return int(float(digits) * _UNITS[unit])
    except (KeyError, ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"must be a number of bytes, such as 500MB or 2GiB, got {text!r}"
        ) from None
