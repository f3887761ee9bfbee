"""``hcnet encode`` and ``hcnet render``: images to placements of parts, and back."""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hcnet.commands import arguments
from hcnet.commands.command import DONE, Command, as_json, note, say

if TYPE_CHECKING:
    from hcnet.image_files import ImageSet

COLUMNS = ("file", "page", "part", "row", "column")


def _encode_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_model(parser)
    arguments.add_images(parser)
    arguments.add_output(
        parser, "write to this file, .csv or .json (default: a table to the terminal)", False
    )
    parser.add_argument(
        "--picture", type=Path, metavar="FILE", help="also draw them over the images (.png)"
    )


def _render_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_model(parser)
    parser.add_argument(
        "codes", type=Path, metavar="CODES", help="a .csv or .json file that encode wrote"
    )
    arguments.add_output(parser, arguments.IMAGES_OUT)
    parser.add_argument(
        "--image-size",
        type=arguments.size,
        metavar="HxW",
        help="size of the images (default: that in .json, or of the images learned from)",
    )
    parser.add_argument(
        "--ink",
        choices=("bright", "dark"),
        default="dark",
        help="how on pixels are drawn (default: dark on white)",
    )


def _encode(options: argparse.Namespace) -> int:
    from hcnet import HCN, TemplateClassifier
    from hcnet.commands.inputs import read
    from hcnet.commands.models import load_model
    from hcnet.commands.outputs import as_csv, check_free, check_picture, deliver

    check_free(options.force, options.output)
    check_picture(options.force, options.picture)
    model = load_model(options.model)
    images = read(options)
    placed = model.placements(images.X, images.mask)
    placed = placed[placed[:, 0].argsort(kind="stable")]
    layered = isinstance(model, HCN | TemplateClassifier)
    columns = ("file", "page", "layer", "part", "row", "column") if layered else COLUMNS
    rows = [(str(images.files[row[0]]), images.pages[row[0]], *row[1:]) for row in placed.tolist()]
    if options.picture is not None:
        _draw(options, model, images, placed)
    machine = options.json or (options.output is not None and options.output.suffix == ".json")
    if machine:
        told = {
            "image_size": list(images.X.shape[-2:]),
            "images": [
                {"file": str(file), "page": page}
                for file, page in zip(images.files, images.pages, strict=True)
            ],
            "placements": [dict(zip(columns, row, strict=True)) for row in rows],
        }
        text = as_json(told) + "\n"
    else:
        text = as_csv(columns, rows)
    deliver(text, options.output, options.force)
    if options.output is not None:
        note(options, f"{len(rows):,} placements written to {options.output}.")
    return DONE


def _draw(options: argparse.Namespace, model: Any, images: ImageSet, placed: Any) -> None:
    from hcnet.plotting import save_picture, show_explanation

    picture = show_explanation(model, images.X, images.mask)
    save_picture(picture, options.picture, overwrite=options.force)


def _render(options: argparse.Namespace) -> int:
    from hcnet.commands.models import load_parts
    from hcnet.commands.outputs import check_images
    from hcnet.image_files import write_images

    check_images(options.force, options.output)
    model = load_parts(options.model, "render")
    images, rows, size = _codes(options.codes)
    if options.image_size is not None:
        given = options.image_size
        size = given if isinstance(given, tuple) else (given, given)
    drawn = model.render(rows, n_images=len(images), image_size=size)
    files = write_images(
        options.output, list(drawn), dark=options.ink == "dark", overwrite=options.force
    )
    told = {"files": [str(file) for file in files], "placements": len(rows)}
    several = "image" if len(images) == 1 else "images"
    text = f"{len(rows):,} placements in {len(images)} {several} drawn into {options.output}"
    say(options, told, text)
    return DONE


def _codes(path: Path) -> tuple[list[Any], list[list[int]], tuple[int, int] | None]:
    """Images, rows of (image, part, row, column), and the size that the file names, if any."""
    try:
        text = path.read_text(encoding="utf-8")
        size = None
        if path.suffix.lower() == ".json":
            told = json.loads(text)
            images = [(one["file"], str(one["page"])) for one in told["images"]]
            table, size = told["placements"], (told["image_size"][0], told["image_size"][1])
        else:
            table = list(csv.DictReader(text.splitlines()))
            images = list(dict.fromkeys((row["file"], row["page"]) for row in table))
        numbers = {image: n for n, image in enumerate(images)}
        rows = [
            [numbers[row["file"], str(row["page"])], *(int(row[key]) for key in COLUMNS[2:])]
            for row in table
        ]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} does not hold placements of parts ({type(error).__name__}: {error}); pass a "
            f"file that hcnet encode wrote."
        ) from None
    if not images:
        raise ValueError(f"{path} names no image; pass a .json file to draw empty images.")
    return images, rows, size


COMMANDS = (
    Command(
        "encode",
        "say which part is where in each image, as CSV or JSON",
        "hcnet encode letters.hcn page.png -o placements.csv",
        _encode_arguments,
        _encode,
    ),
    Command(
        "render",
        "draw images from placements, the opposite of encode",
        "hcnet render letters.hcn placements.csv -o drawn.png",
        _render_arguments,
        _render,
    ),
)
