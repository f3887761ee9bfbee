"""Files that are written completely or not at all, and never replace another by accident."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def file_path(path: str | os.PathLike[str]) -> Path:
    """The path of a file that a user has named."""
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(name, str):
        raise TypeError(f"A file is named by a str or a Path, got {path!r}; pass one of these.")
    try:
        possible = b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise ValueError(f"{name!r} holds characters that no file name has; choose another name.")
    return Path(name)


def write_atomically(
    path: str | os.PathLike[str], save: Callable[[IO[bytes]], object], overwrite: bool
) -> Path:
    """Let `save` write a file, which gets its name when it is complete and on the disk.

    If anything fails, a file that was there before stays as it was.
    """
    with open_atomically(path, overwrite) as target:
        save(target)
    return file_path(path)


@contextmanager
def open_atomically(path: str | os.PathLike[str], overwrite: bool) -> Iterator[IO[bytes]]:
    """A file to write within this block; it gets its name when the block ends without an error."""
    path = file_path(path)
    refuse_existing(path, overwrite)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} is not a folder; create it, or choose another.")
    # A random name in the same folder is no other file's.  A file of `tempfile` would be readable
    # for its owner only.
    part = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    try:
        with part.open("x+b") as target:
            yield target
            target.flush()
            os.fsync(target.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    _sync_folder(path.parent)


def refuse_existing(path: Path, overwrite: bool = False) -> None:
    """Raise an error if the path is a folder, or a file that may not be replaced."""
    if not isinstance(overwrite, bool):  # "no" would count as True
        raise TypeError(f"overwrite must be True or False, got {overwrite!r}; pass one of these.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file to write to.")
    if not overwrite and path.exists():
        raise FileExistsError(
            f"{path} exists already; choose another name, or pass overwrite=True to replace it."
        )


def remove_unfinished(path: Path) -> None:
    """Remove what processes that were killed while they wrote this file have left."""
    pattern = re.compile(re.escape(path.name) + r"\.[0-9a-f]{16}\.part")
    for other in path.parent.iterdir():
        if pattern.fullmatch(other.name):
            other.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Write a folder to the disk: only then a new name in it is there."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows, where folders cannot be opened
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
