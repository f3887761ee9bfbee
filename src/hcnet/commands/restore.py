"""``hcnet denoise`` and ``hcnet inpaint``: images as a model explains them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hcnet.commands import arguments
from hcnet.commands.command import DONE, Command, aligned, say

if TYPE_CHECKING:
    from hcnet.image_files import ImageSet


def _shared(parser: argparse.ArgumentParser) -> None:
    arguments.add_model(parser)
    arguments.add_images(parser)
    arguments.add_output(parser, arguments.IMAGES_OUT)
    parser.add_argument(
        "--picture", type=Path, metavar="FILE", help="also draw before and after (.png)"
    )


def _inpaint_arguments(parser: argparse.ArgumentParser) -> None:
    _shared(parser)
    parser.add_argument(
        "--mask",
        type=Path,
        metavar="FILE",
        help="image or array of the missing pixels, bright or 1; without it, NaN of .npy files",
    )


def _denoise(options: argparse.Namespace) -> int:
    from hcnet.commands.inputs import read
    from hcnet.commands.models import load_model
    from hcnet.commands.outputs import check_images, check_picture

    check_images(options.force, options.output)
    check_picture(options.force, options.picture)
    model = load_model(options.model)
    images = read(options)
    clean = model.denoise(images.X, mask=images.mask)
    if options.picture is not None:
        from hcnet.plotting import save_picture, show_errors

        picture = show_errors(images.X, clean, images.mask)
        save_picture(picture, options.picture, overwrite=options.force)
    return _finish(options, images, clean, "changed")


def _inpaint(options: argparse.Namespace) -> int:
    from hcnet.commands.inputs import read
    from hcnet.commands.models import load_model
    from hcnet.commands.outputs import check_images, check_picture

    check_images(options.force, options.output)
    check_picture(options.force, options.picture)
    model = load_model(options.model)
    images = read(options, options.mask)
    if images.mask is None:
        raise ValueError("No pixel is missing; say which ones with --mask, or with NaN in .npy.")
    filled = model.inpaint(images.X, images.mask)
    if options.picture is not None:
        from hcnet.plotting import save_picture, show_completion

        picture = show_completion(images.X, images.mask, filled)
        save_picture(picture, options.picture, overwrite=options.force)
    return _finish(options, images, filled, "filled in")


def _finish(options: argparse.Namespace, images: ImageSet, restored: Any, word: str) -> int:
    from hcnet.image_files import write_images

    own, before = images.own_size(restored), images.own_size(images.X)
    missing = None if images.mask is None else images.own_size(images.mask)
    counts = []
    for k, (old, new) in enumerate(zip(before, own, strict=True)):
        differs = old != new
        if missing is not None:
            differs = missing[k] if word == "filled in" else differs & ~missing[k]
        counts.append(int(differs.sum()))
    files = write_images(
        options.output,
        own,
        dark=images.dark,
        names=[Path(name).stem if "[" not in name else name for name in images.names],
        overwrite=options.force,
    )
    told = {
        "images": [
            {"image": name, f"pixels_{word.replace(' ', '_')}": count, "pixels": int(old.size)}
            for name, count, old in zip(images.names, counts, before, strict=True)
        ],
        "files": [str(file) for file in files],
    }
    rows = [
        (name, f"{count:,} of {old.size:,} pixels {word}")
        for name, count, old in zip(images.names, counts, before, strict=True)
    ]
    say(options, told, f"{aligned(rows)}\n\nWritten to {options.output}")
    return DONE


COMMANDS = (
    Command(
        "denoise",
        "write images as their parts explain them, without the noise",
        "hcnet denoise letters.hcn page.png -o clean.png",
        _shared,
        _denoise,
    ),
    Command(
        "inpaint",
        "fill in missing pixels; all others stay as they are",
        "hcnet inpaint letters.hcn page.png --mask stain.png -o filled.png",
        _inpaint_arguments,
        _inpaint,
    ),
)
