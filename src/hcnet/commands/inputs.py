"""Image files that a command works on: read, and said how."""

from __future__ import annotations

import argparse
from dataclasses import replace
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
    return images if mask is None else replace(images, mask=_missing(mask, images))


def _missing(path: Path, images: ImageSet):  # type: ignore[no-untyped-def]
    import numpy as np

    from hcnet.image_files import read_images

    found = read_images(path, ink="bright").X
    if len(found) not in (1, len(images)) or found.shape[-2:] != images.X.shape[-2:]:
        raise ValueError(
            f"{path} holds {len(found)} masks of {found.shape[-2]}×{found.shape[-1]} for "
            f"{len(images)} images of {images.X.shape[-2]}×{images.X.shape[-1]}; give one mask for "
            f"all or one per image, of the same size."
        )
    missing = np.broadcast_to(found, images.X.shape)
    return missing | images.mask if images.mask is not None else missing.copy()
