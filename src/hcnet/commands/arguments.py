"""Arguments that several commands share, and the conversion of their texts."""

from __future__ import annotations

import argparse
from pathlib import Path

from hcnet.names import INKS

THRESHOLDS = "otsu or a number"
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}


def add_images(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """The images of a command, and how they become binary."""
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
        help="shade above which a pixel is bright (default: otsu, chosen for each image)",
    )
    parser.add_argument(
        "--ink",
        choices=INKS,
        default="auto",
        help="pixels that are on (default: auto, the rarer ones)",
    )


def add_model(parser: argparse.ArgumentParser) -> None:
    """The model of a command."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="a file that learn wrote (.hcn)")


def add_output(parser: argparse.ArgumentParser, help: str, required: bool = True) -> None:
    """The file of the result."""
    parser.add_argument("--output", "-o", type=Path, required=required, metavar="PATH", help=help)
    add_force(parser)


def add_force(parser: argparse.ArgumentParser) -> None:
    """Permission to replace files."""
    parser.add_argument("--force", action="store_true", help="replace existing files")


IMAGES_OUT = ".png for one image, .tif, .npy or .npz for several, or a folder"


def add_drawn_images(parser: argparse.ArgumentParser) -> None:
    """The file of images that a command draws, and the look of their ink."""
    add_output(parser, IMAGES_OUT)
    parser.add_argument(
        "--ink", choices=INKS[1:], default="dark", help="look of on pixels (default: dark on white)"
    )


def add_file(parser: argparse.ArgumentParser, name: str, help: str) -> None:
    """An optional file."""
    parser.add_argument(name, type=Path, metavar="FILE", help=help)


def add_mask(parser: argparse.ArgumentParser, more: str = "") -> None:
    """The missing pixels of the images."""
    add_file(parser, "--mask", f"image or array in which missing pixels are bright or 1{more}")


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
    """Bytes, with or without a unit: 500MB, 2GiB."""
    word = text.strip().lower().removesuffix("b")
    digits = word.rstrip("kmgi ")
    unit = word[len(digits) :].strip()
    try:
        return int(float(digits) * _UNITS[unit])
    except (KeyError, ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"must be a number of bytes, such as 500MB or 2GiB, got {text!r}"
        ) from None
