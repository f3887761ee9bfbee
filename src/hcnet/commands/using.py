"""Commands that use a model on images.

``denoise`` and ``inpaint`` write images as the model explains them; ``encode`` and ``render`` turn
images into placements of parts and back; ``sample`` draws new images; ``classify`` and ``cluster``
print the class, or the template, of every image.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hcnet.commands import command

if TYPE_CHECKING:
    from hcnet.image_files import ImageSet

COLUMNS = ("part", "row", "column")


def _restore_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_model(parser, images=True)
    command.add_output(parser, command.IMAGES_OUT)
    command.add_file(parser, "--picture", "also draw the images before and after (.png)")


def _inpaint_arguments(parser: argparse.ArgumentParser) -> None:
    _restore_arguments(parser)
    command.add_mask(parser, "; without it, NaN in .npy files")


def _encode_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_model(parser, images=True)
    command.add_output(
        parser, "write to this file, .csv or .json (default: a table to the terminal)", False
    )
    command.add_file(parser, "--picture", "also draw the parts over the images (.png)")


def _render_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_model(parser)
    parser.add_argument(
        "codes", type=command.path, metavar="CODES", help="a .csv or .json file that encode wrote"
    )
    command.add_drawn_images(parser)
    parser.add_argument(
        "--image-size",
        type=command.size,
        metavar="HxW",
        help="size of the images (default: that in .json, or of the images learned from)",
    )


def _sample_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_model(parser)
    parser.add_argument("-n", type=int, default=1, metavar="N", help="images (default: 1)")
    parser.add_argument("--label", help="draw this class only")
    parser.add_argument(
        "--random-state", type=command.seed, metavar="N", help="seed: the same images again"
    )
    parser.add_argument(
        "--clean", action="store_true", help="without noise and shifts of single pixels"
    )
    command.add_drawn_images(parser)


def _cluster_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_model(parser, images=True)
    command.add_output(parser, "write the table to this file (.csv)", required=False)


def _classify_arguments(parser: argparse.ArgumentParser) -> None:
    _cluster_arguments(parser)
    parser.add_argument(
        "--labels", metavar="FILE", help="true labels, as in learn: also print the accuracy"
    )
    help = "with --labels: draw the confusion matrix (.png; needs matplotlib)"
    command.add_file(parser, "--confusion", help)


@command.command(
    "hcnet denoise letters.hcn page.png -o clean.png",
    _restore_arguments,
    output="images",
    picture="picture",
)
def denoise(options: argparse.Namespace) -> int:
    """Write images as their parts explain them, without the noise."""
    model = command.load_model(options.model)
    images = command.read(options)
    _check_folder(options, images)
    clean = model.denoise(images.X, mask=images.mask)
    drawn = images.X, clean, images.mask
    command.save_drawing(options, options.picture, "show_errors", *drawn)
    changed = clean != images.X
    if images.mask is not None:
        changed &= ~images.mask
    return _write_restored(options, images, clean, changed, "changed")


@command.command(
    "hcnet inpaint letters.hcn page.png --mask stain.png -o filled.png",
    _inpaint_arguments,
    output="images",
    picture="picture",
)
def inpaint(options: argparse.Namespace) -> int:
    """Fill in missing pixels; all others stay as they are."""
    import numpy as np

    model = command.load_model(options.model)
    images = command.read(options, options.mask)
    if images.mask is None:
        raise ValueError(
            "No pixel is missing; mark the missing pixels with --mask, or with NaN in .npy."
        )
    _check_folder(options, images)
    filled = model.inpaint(images.X, images.mask)
    both, n = np.concatenate([images.X, filled]), len(filled)
    mask = np.concatenate([images.mask, np.zeros_like(images.mask)])
    captions = ["seen"] * n + ["filled in"] * n
    command.save_drawing(options, options.picture, "show_images", both, mask, captions, columns=n)
    return _write_restored(options, images, filled, images.mask, "filled in")


def _stems(images: ImageSet) -> list[str]:
    """Names of the files of results in a folder."""
    named = zip(images.names, images.files, strict=True)
    return [file.stem if name == file.name else name for name, file in named]


def _check_folder(options: argparse.Namespace, images: ImageSet) -> None:
    """Raise if results are files in a folder, and one of them is in the way."""
    from hcnet.atomic_files import refuse_existing
    from hcnet.image_files.writing import folder_files

    if not options.output.suffix:
        for file in folder_files(options.output, len(images), _stems(images)):
            refuse_existing(file, options.force)


def _write_restored(
    options: argparse.Namespace, images: ImageSet, restored: Any, changed: Any, word: str
) -> int:
    """Write the images in their own sizes, and print the number of changed pixels of each."""
    from hcnet.image_files import write_images

    counts = [int(pixels.sum()) for pixels in images.own_size(changed)]
    results = images.own_size(restored)
    files = write_images(
        options.output, results, dark=images.dark, names=_stems(images), overwrite=options.force
    )
    found = list(zip(images.names, counts, [int(x.size) for x in results], strict=True))
    key = f"pixels_{word.replace(' ', '_')}"
    result = {
        "images": [{"image": name, key: count, "pixels": n} for name, count, n in found],
        "files": [str(file) for file in files],
    }
    rows = [(name, f"{count:,} of {n:,} pixels {word}") for name, count, n in found]
    return command.print_result(
        options, result, f"{command.aligned(rows)}\n\nWritten to {options.output}"
    )


@command.command(
    "hcnet encode letters.hcn page.png -o placements.csv",
    _encode_arguments,
    output="rows",
    picture="picture",
)
def encode(options: argparse.Namespace) -> int:
    """Print a table of the parts in each image, as CSV or JSON."""
    from hcnet import FeatureLearner

    model = command.load_model(options.model)
    images = command.read(options)
    placed = model.placements(images.X, images.mask)
    placed = placed[placed[:, 0].argsort(kind="stable")].tolist()
    columns = COLUMNS if isinstance(model, FeatureLearner) else ("layer", *COLUMNS)
    names = _names(images)
    drawn = model, images.X, images.mask
    command.save_drawing(options, options.picture, "show_explanation", *drawn)
    more = {
        "image_size": list(images.X.shape[-2:]),
        "images": [{"file": file, "page": page} for file, page in names],
    }
    rows = [(*names[row[0]], *row[1:]) for row in placed]
    return command.write_table(options, ("file", "page", *columns), rows, "placements", more)


@command.command(
    "hcnet render letters.hcn placements.csv -o drawn.png", _render_arguments, output="images"
)
def render(options: argparse.Namespace) -> int:
    """Draw images from placements, the opposite of encode."""
    model = command.load_model(options.model, "render", "parts")
    n_images, rows, size = _read_codes(options.codes)
    if options.image_size is not None:
        size = options.image_size
    drawn = model.render(rows, n_images=n_images, image_size=size)
    return _write_drawn(options, list(drawn), {"placements": len(rows)})


@command.command(
    "hcnet sample shapes.hcn -n 16 --random-state 0 -o samples.tif",
    _sample_arguments,
    output="images",
)
def sample(options: argparse.Namespace) -> int:
    """Draw new images from a network."""
    model = command.load_model(options.model, "sample", "network")
    by_name = {str(name): name for name in model.classes_.tolist()}
    label = by_name.get(options.label, options.label)
    drawn, classes = model.sample(options.n, label, options.random_state, options.clean)
    return _write_drawn(options, list(drawn), {"classes": classes.tolist()})


def _write_drawn(options: argparse.Namespace, images: list[Any], result: dict[str, Any]) -> int:
    from hcnet.image_files import write_images

    files = write_images(
        options.output, images, dark=options.ink == "dark", overwrite=options.force
    )
    result["files"] = [str(file) for file in files]
    number = f"{len(images)} image{'' if len(images) == 1 else 's'}"
    return command.print_result(options, result, f"{number} written to {options.output}")


def _read_codes(path: Path) -> tuple[int, list[list[int]], Any]:
    """Number of images, rows of (image, part, row, column), and the size in the file, if any."""
    from hcnet.checks import in_short

    try:
        with path.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
            text = file.read()
        size = None
        if path.suffix.lower() == ".json":
            content = json.loads(text)
            images = [(image["file"], str(image["page"])) for image in content["images"]]
            table, size = content["placements"], content["image_size"]
        else:
            table = list(csv.DictReader(io.StringIO(text, newline="")))
            images = list(dict.fromkeys((row["file"], row["page"]) for row in table))
        numbers = {image: n for n, image in enumerate(images)}
        rows = [
            [numbers[row["file"], str(row["page"])], *(int(row[key]) for key in COLUMNS)]
            for row in table
        ]
    except (
        LookupError,
        TypeError,
        ValueError,
        ArithmeticError,
        RecursionError,
        csv.Error,
    ) as error:
        why = f"{type(error).__name__}: {in_short(error)}"
        raise ValueError(
            f"{path} does not hold placements of parts ({why}); pass a file that hcnet encode "
            f"wrote."
        ) from None
    if not images:
        raise ValueError(f"{path} names no image; pass a .json file to draw empty images.")
    return len(images), rows, size


@command.command(
    "hcnet classify shapes.hcn new/ --labels folders --confusion confusion.png",
    _classify_arguments,
    output="rows",
    confusion="picture",
)
def classify(options: argparse.Namespace) -> int:
    """Print a table of the class of each image."""
    from hcnet.image_files import read_labels

    if options.confusion is not None:
        if options.labels is None:
            raise ValueError("--confusion compares with true labels; pass them with --labels.")
        from hcnet.plotting.charts import load_pyplot

        load_pyplot()  # raises before the work if it is missing
    model = command.load_model(options.model, "classify", "network")
    images = command.read(options)
    probabilities = model.predict_proba(images.X, images.mask)
    predicted = model.classes_[probabilities.argmax(axis=1)]
    found = zip(predicted.tolist(), probabilities.max(axis=1).tolist(), strict=True)
    rows = [(*name, *row) for name, row in zip(_names(images), found, strict=True)]
    more: dict[str, Any] = {}
    if options.labels is not None:
        y = read_labels(options.labels, images.files)
        more["accuracy"] = model.score(images.X, y, images.mask)
        command.note(options, f"{more['accuracy']:.2%} of the labelled images are right.")
        compared = y, predicted, model.classes_
        command.save_drawing(options, options.confusion, "plot_confusion", *compared)
    return command.write_table(
        options, ("file", "page", "class", "probability"), rows, "images", more
    )


@command.command("hcnet cluster shapes.hcn new/ -o clusters.csv", _cluster_arguments, output="rows")
def cluster(options: argparse.Namespace) -> int:
    """Print a table of the template of each image."""
    model = command.load_model(options.model, "cluster", "network")
    images = command.read(options)
    templates = model.cluster(images.X, images.mask).tolist()
    rows = [(*name, template) for name, template in zip(_names(images), templates, strict=True)]
    return command.write_table(options, ("file", "page", "template"), rows, "images", {})


def _names(images: ImageSet) -> list[tuple[str, int]]:
    """File and page of every image."""
    return [(str(file), page) for file, page in zip(images.files, images.pages, strict=True)]


COMMANDS = (denoise, inpaint, classify, cluster, encode, render, sample)
