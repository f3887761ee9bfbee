"""``hcnet denoise`` and ``hcnet inpaint``: images as a model explains them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hcnet.commands import arguments
from hcnet.commands.command import DONE, Command, aligned, print_result
from hcnet.commands.inputs import load_model, read
from hcnet.commands.outputs import save

if TYPE_CHECKING:
    from hcnet.image_files import ImageSet


def _shared_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_model(parser)
    arguments.add_images(parser)
    arguments.add_output(parser, arguments.IMAGES_OUT)
    arguments.add_picture(parser, "also draw the images before and after")


def _inpaint_arguments(parser: argparse.ArgumentParser) -> None:
    _shared_arguments(parser)
    arguments.add_mask(parser, "; without it, NaN in .npy files")


def _denoise(options: argparse.Namespace) -> int:
    model = load_model(options.model)
    images = read(options)
    clean = model.denoise(images.X, mask=images.mask)
    if options.picture is not None:
        from hcnet.plotting import show_errors

        save(options, show_errors(images.X, clean, images.mask), options.picture)
    changed = clean != images.X
    if images.mask is not None:
        changed &= ~images.mask
    return _write(options, images, clean, changed, "changed")


def _inpaint(options: argparse.Namespace) -> int:
    model = load_model(options.model)
    images = read(options, options.mask)
    if images.mask is None:
        raise ValueError(
            "No pixel is missing; mark the missing pixels with --mask, or with NaN in .npy."
        )
    filled = model.inpaint(images.X, images.mask)
    if options.picture is not None:
        import numpy as np

        from hcnet.plotting import show_images

        both, n = np.concatenate([images.X, filled]), len(filled)
        mask = np.concatenate([images.mask, np.zeros_like(images.mask)])
        captions = ["seen"] * n + ["filled in"] * n
        save(options, show_images(both, mask, captions, columns=n), options.picture)
    return _write(options, images, filled, images.mask, "filled in")


def _write(
    options: argparse.Namespace, images: ImageSet, restored: Any, changed: Any, word: str
) -> int:
    """Write the images in their own sizes, and print the number of changed pixels of each."""
    from hcnet.image_files import write_images

    counts = [int(pixels.sum()) for pixels in images.own_size(changed)]
    results = images.own_size(restored)
    files = write_images(
        options.output,
        results,
        dark=images.dark,
        names=[Path(name).stem if "[" not in name else name for name in images.names],
        overwrite=options.force,
    )
    found = list(zip(images.names, counts, [int(x.size) for x in results], strict=True))
    key = f"pixels_{word.replace(' ', '_')}"
    result = {
        "images": [{"image": name, key: count, "pixels": n} for name, count, n in found],
        "files": [str(file) for file in files],
    }
    rows = [(name, f"{count:,} of {n:,} pixels {word}") for name, count, n in found]
    print_result(options, result, f"{aligned(rows)}\n\nWritten to {options.output}")
    return DONE


COMMANDS = (
    Command(
        "denoise",
        "write images as their parts explain them, without the noise",
        "hcnet denoise letters.hcn page.png -o clean.png",
        _shared_arguments,
        _denoise,
        {"output": "images", "picture": "picture"},
    ),
    Command(
        "inpaint",
        "fill in missing pixels; all others stay as they are",
        "hcnet inpaint letters.hcn page.png --mask stain.png -o filled.png",
        _inpaint_arguments,
        _inpaint,
        {"output": "images", "picture": "picture"},
    ),
)
