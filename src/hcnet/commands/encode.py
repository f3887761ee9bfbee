"""``hcnet encode``, ``render`` and ``sample``: images to placements of parts, and back."""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path
from typing import Any

from hcnet.commands import arguments
from hcnet.commands.command import DONE, Command, print_result
from hcnet.commands.inputs import load_model, load_network, load_parts, read
from hcnet.commands.outputs import save, write_table

COLUMNS = ("part", "row", "column")


def _encode_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_model(parser)
    arguments.add_images(parser)
    arguments.add_output(
        parser, "write to this file, .csv or .json (default: a table to the terminal)", False
    )
    arguments.add_picture(parser, "also draw the parts over the images")


def _render_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_model(parser)
    parser.add_argument(
        "codes", type=Path, metavar="CODES", help="a .csv or .json file that encode wrote"
    )
    arguments.add_drawn_images(parser)
    parser.add_argument(
        "--image-size",
        type=arguments.size,
        metavar="HxW",
        help="size of the images (default: that in .json, or of the images learned from)",
    )


def _sample_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_model(parser)
    parser.add_argument("-n", type=int, default=1, metavar="N", help="images (default: 1)")
    parser.add_argument("--label", help="draw this class only")
    parser.add_argument(
        "--random-state", type=arguments.seed, metavar="N", help="seed: the same images again"
    )
    parser.add_argument(
        "--clean", action="store_true", help="without noise and shifts of single pixels"
    )
    arguments.add_drawn_images(parser)


def _encode(options: argparse.Namespace) -> int:
    from hcnet import FeatureLearner

    model = load_model(options.model)
    images = read(options)
    placed = model.placements(images.X, images.mask)
    placed = placed[placed[:, 0].argsort(kind="stable")]
    columns = COLUMNS if isinstance(model, FeatureLearner) else ("layer", *COLUMNS)
    rows = [(str(images.files[row[0]]), images.pages[row[0]], *row[1:]) for row in placed.tolist()]
    if options.picture is not None:
        from hcnet.plotting import show_explanation

        save(options, show_explanation(model, images.X, images.mask), options.picture)
    more = {
        "image_size": list(images.X.shape[-2:]),
        "images": [
            {"file": str(file), "page": page}
            for file, page in zip(images.files, images.pages, strict=True)
        ],
    }
    write_table(options, ("file", "page", *columns), rows, "placements", more)
    return DONE


def _render(options: argparse.Namespace) -> int:
    model = load_parts(options.model, "render")
    n_images, rows, size = _read_codes(options.codes)
    if options.image_size is not None:
        from hcnet.checks import check_pair

        size = check_pair("image_size", options.image_size)
    drawn = model.render(rows, n_images=n_images, image_size=size)
    return _write(options, list(drawn), {"placements": len(rows)})


def _sample(options: argparse.Namespace) -> int:
    model = load_network(options.model, "sample")
    by_name = {str(name): name for name in model.classes_.tolist()}
    label = by_name.get(options.label, options.label)
    drawn, classes = model.sample(options.n, label, options.random_state, options.clean)
    return _write(options, list(drawn), {"classes": classes.tolist()})


def _write(options: argparse.Namespace, images: list[Any], result: dict[str, Any]) -> int:
    from hcnet.image_files import write_images

    files = write_images(
        options.output, images, dark=options.ink == "dark", overwrite=options.force
    )
    result["files"] = [str(file) for file in files]
    number = f"{len(images)} image{'' if len(images) == 1 else 's'}"
    print_result(options, result, f"{number} written to {options.output}")
    return DONE


def _read_codes(path: Path) -> tuple[int, list[list[int]], tuple[int, int] | None]:
    """Number of images, rows of (image, part, row, column), and the size in the file, if any."""
    try:
        text = path.read_text(encoding="utf-8")
        size = None
        if path.suffix.lower() == ".json":
            content = json.loads(text)
            images = [(image["file"], str(image["page"])) for image in content["images"]]
            table = content["placements"]
            size = content["image_size"][0], content["image_size"][1]
        else:
            table = list(csv.DictReader(text.splitlines()))
            images = list(dict.fromkeys((row["file"], row["page"]) for row in table))
        numbers = {image: n for n, image in enumerate(images)}
        rows = [
            [numbers[row["file"], str(row["page"])], *(int(row[key]) for key in COLUMNS)]
            for row in table
        ]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} does not hold placements of parts ({type(error).__name__}: {error}); pass a "
            f"file that hcnet encode wrote."
        ) from None
    if not images:
        raise ValueError(f"{path} names no image; pass a .json file to draw empty images.")
    return len(images), rows, size


COMMANDS = (
    Command(
        "encode",
        "print a table of the parts in each image, as CSV or JSON",
        "hcnet encode letters.hcn page.png -o placements.csv",
        _encode_arguments,
        _encode,
        {"output": "file", "picture": "picture"},
    ),
    Command(
        "render",
        "draw images from placements, the opposite of encode",
        "hcnet render letters.hcn placements.csv -o drawn.png",
        _render_arguments,
        _render,
        {"output": "images"},
    ),
    Command(
        "sample",
        "draw new images from a network",
        "hcnet sample shapes.hcn -n 16 --random-state 0 -o samples.tif",
        _sample_arguments,
        _sample,
        {"output": "images"},
    ),
)
