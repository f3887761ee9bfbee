"""Files from the network, checked and kept in a folder of the user."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import urllib.request
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path

from hcnet.datasets.idx import unpack

# Seconds without a byte after which a mirror counts as silent.
_PATIENCE = 30


def cache_folder(name: str) -> Path:
    """The folder of this system for files that programs can fetch again."""
    home = Path.home()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or home / ".cache"
    return Path(base) / "hcnet" / name


def fetch(name: str, sha256: str, mirrors: Sequence[str], folder: Path, most: int) -> Path:
    """A file from the first mirror that has the right one, stored in the folder.

    The checksum is that of the unpacked content, since mirrors pack it differently.  A file is in
    the folder either as a whole or not at all.

    Args:
        name: of the file, at the mirrors and in the folder.
        sha256: of what it holds.
        mirrors: addresses that end in a slash.
        folder: is made where there is none.
        most: bytes that a packed file may have; what is longer is something else.

    Raises:
        OSError: if no mirror has it, with what each of them did instead.

    """
    reasons = []
    for mirror in mirrors:
        try:
            with urllib.request.urlopen(mirror + name, timeout=_PATIENCE) as answer:
                content = answer.read(most + 1)
            if len(content) > most or _digest(content, name) != sha256:
                raise ValueError("sent something else than the file")
        except (OSError, HTTPException, ValueError) as error:
            reasons.append(f"{mirror}: {error}")
        else:
            return _store(content, folder, name)
    raise OSError("; ".join(reasons))


def _digest(content: bytes, name: str) -> str:
    return hashlib.sha256(unpack(content, name)).hexdigest()


def _store(content: bytes, folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    descriptor, partial = tempfile.mkstemp(dir=folder, prefix=f"{name}.", suffix=".partial")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(partial).replace(folder / name)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise
    return folder / name
