"""Image files that a command works on: read, and said how."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from hcnet.commands.command import note

if TYPE_CHECKING:
    from hcnet.image_files import ImageSet


def read(
    options: argparse.Namespace, mask: Path | None = None, first: int | None = None
) -> ImageSet:
    """The images of a command, or the `first` of them, with the missing pixels of a mask file."""
    from hcnet.image_files import read_images

    given = {"threshold": options.threshold, "ink": options.ink}
    images = read_images(options.images, **given, first=first)
    told = images.summary()
    note(options, told if first is None else f"a stream that begins with {told}")
    return images if mask is None else images.with_mask(mask, of_more=first is not None)
