"""Files that appear whole or not at all, and never in place of another by accident."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import IO


def write_whole(path: Path, save: Callable[[IO[bytes]], object], overwrite: bool) -> Path:
    """Let `save` write into a file that appears when it is complete."""
    if not overwrite:
        refuse_existing(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} is not a folder; create it, or choose another.")
    # A name of its own in the same folder: nothing of the user's is in the way of it.  A file of
    # `tempfile` would stay readable for its owner only.
    part = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    try:
        with part.open("x+b") as target:
            save(target)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return path


def refuse_existing(path: Path) -> None:
    """Raise if a file is in the way."""
    if path.exists():
        raise FileExistsError(
            f"{path} exists already; choose another name, or pass overwrite=True to replace it."
        )
