"""Image files that a command works on: read, and said how."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from hcnet.commands.command import note

if TYPE_CHECKING:
    from hcnet.image_files import ImageSet


def read(options: argparse.Namespace, mask: Path | None = None) -> ImageSet:
    """The images of a command, with the pixels that a mask file says are missing."""
    from hcnet.image_files import read_images

    images = read_images(options.images, threshold=options.threshold, ink=options.ink)
    note(options, images.summary())
    return images if mask is None else images.with_mask(mask)
