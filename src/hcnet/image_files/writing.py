"""Binary images to files without loss."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from hcnet.atomic_files import cut_name, file_path, refuse_existing, write_atomically
from hcnet.checks import as_numbers
from hcnet.image_files.opening import ARRAY_SUFFIXES

_ONE = frozenset({".bmp", ".gif", ".pbm", ".png", ".webp"})
_MANY = frozenset({".tif", ".tiff"})


def write_images(
    path: str | os.PathLike[str],
    images: Sequence[ArrayLike],
    *,
    dark: bool = False,
    names: Sequence[str] | None = None,
    overwrite: bool = False,
) -> list[Path]:
    """Write binary images in the format that the ending of `path` names.

    ``.png`` and the like hold one image, ``.tif`` a page per image, ``.npy`` and ``.npz`` (`X`) an
    array; without an ending it is a folder that gets a ``.png`` per image.  Each file appears whole
    or not at all.

    Args:
        path: the file or folder.
        images: each (height, width) or (channels, height, width); channels are put below each
            other in image files.
        dark: whether pixels that are on are drawn dark on white instead of bright on black.
        names: of the files in a folder.
        overwrite: whether existing files may be replaced.

    Returns:
        The written files.

    """
    path, planes = images_path(path), [_planes(k, one) for k, one in enumerate(images)]
    if not planes:
        raise ValueError("There is no image to write; pass at least one.")
    kind = path.suffix.lower()
    if kind in ARRAY_SUFFIXES:
        if len({one.shape for one in planes}) > 1:
            raise ValueError(
                f"{path} can hold only images of one size, and these differ; write them to a "
                f"folder or to a .tif file."
            )
        stack = np.stack(planes)
        save = (
            partial(np.save, arr=stack) if kind == ".npy" else partial(np.savez_compressed, X=stack)
        )
        return [write_atomically(path, save, overwrite)]
    pictures = [_picture(one, dark) for one in planes]
    if not kind:
        return _write_folder(path, pictures, names, overwrite)
    how: dict[str, Any] = {"format": Image.registered_extensions()[kind]}
    if kind in _MANY:
        how |= {"save_all": True, "append_images": pictures[1:], "compression": "group4"}
    elif len(pictures) > 1:
        raise ValueError(
            f"{path} can hold one image, and there are {len(pictures)}; choose a folder, a .tif or "
            f"an .npz file."
        )
    return [write_picture(path, pictures[0], overwrite, **how)]


def write_picture(
    path: str | os.PathLike[str], picture: Image.Image, overwrite: bool, **how: Any
) -> Path:
    """Write a picture of Pillow, which is packed in memory first.

    Its encoders would write to the disk by themselves, and do not say when it is full.
    """
    packed = io.BytesIO()
    picture.save(packed, **how)
    return write_atomically(path, lambda file: file.write(packed.getvalue()), overwrite)


def _planes(number: int, image: ArrayLike) -> NDArray[np.bool_]:
    """An image of one or several channels."""
    array = as_numbers(f"images[{number}]", image)
    if array.ndim not in (2, 3) or not array.size:
        raise ValueError(
            f"images[{number}] must be (height, width) or (channels, height, width), none of them "
            f"0, got shape {array.shape}; pass a list of such images."
        )
    return array.astype(bool)


def images_path(path: str | os.PathLike[str]) -> Path:
    """A path that images can be written to, by its ending."""
    path = file_path(path)
    if path.suffix and path.suffix.lower() not in _ONE | _MANY | ARRAY_SUFFIXES:
        raise ValueError(
            f"{path} ends in {path.suffix}, which loses pixels or is unknown; choose .png, .tif, "
            f".npy, .npz or a folder."
        )
    return path


def folder_files(folder: Path, n: int, names: Sequence[str] | None) -> list[Path]:
    """The files of so many images in a folder; names that are too long are cut."""
    digits = len(str(n - 1))
    stems = [f"{k:0{digits}d}" for k in range(n)] if names is None else list(names)
    if len(stems) != n:
        raise ValueError(
            f"names must have an entry per image, {n}, got {len(stems)}; pass as many."
        )
    for stem in stems:
        if Path(f"{stem}.png").name != f"{stem}.png":
            raise ValueError(
                f"names must be those of files in a folder, got {stem!r}; pass others."
            )
    room = len(".png") + digits + 1
    stems = [cut_name(str(stem), room) for stem in stems]
    if len(set(stems)) < n:
        stems = [f"{k:0{digits}d}-{stem}" for k, stem in enumerate(stems)]
    return [folder / file_path(f"{stem}.png") for stem in stems]


def _write_folder(
    folder: Path, pictures: list[Image.Image], names: Sequence[str] | None, overwrite: bool
) -> list[Path]:
    files = folder_files(folder, len(pictures), names)
    for file in files:
        refuse_existing(file, overwrite)
    folder.mkdir(parents=True, exist_ok=True)
    for file, picture in zip(files, pictures, strict=True):
        write_picture(file, picture, overwrite, format="PNG")
    return files


def _picture(planes: NDArray[np.bool_], dark: bool) -> Image.Image:
    flat = planes.reshape(-1, planes.shape[-1])
    return Image.fromarray(np.where(flat ^ dark, 255, 0).astype(np.uint8)).convert("1")
