"""MNIST, the handwritten digits of the paper's experiment with real data."""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import os
import sys
import urllib.request
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcnet.atomic_files import write_atomically
from hcnet.checks import check_count, check_flag
from hcnet.datasets.parts_data import IntArray
from hcnet.memory import check_memory

GreyArray = NDArray[np.uint8]

# The names of the files, and the SHA-256 of what they hold unpacked.
_TRAIN_IMAGES, _TRAIN_LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
_TEST_IMAGES, _TEST_LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"
_SHA256 = {
    _TRAIN_IMAGES: "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    _TRAIN_LABELS: "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    _TEST_IMAGES: "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    _TEST_LABELS: "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
_MIRRORS = (
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
)
# The largest of the packed files has 9.9 million bytes.
_MOST_BYTES = 20_000_000
# Bytes of any of the files as it is unpacked, and those that a byte can become.
_MOST_UNPACKED, _MOST_PACKED = 2**30, 1032
_VARIABLE = "HCNET_DATA"
# Seconds without a byte after which a mirror counts as silent.
_PATIENCE = 30
# The header of an IDX file: two zeros, the type of the numbers, the number of axes; then four bytes
# for each axis.
_UNSIGNED_BYTES = 8
_TYPE_AND_AXES, _AXIS = 4, 4


class LabelledDigits(NamedTuple):
    """Images uint8 (n, height, width) and their labels int64 (n,)."""

    images: GreyArray
    labels: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class MnistData:
    """Grey images of digits, to train on and to test on.

    Attributes:
        images: uint8 (60000, 28, 28), the training images; 0 is paper, 255 is ink.
        labels: int64 (60000,), the digit that each of them shows.
        test_images: uint8 (10000, 28, 28).
        test_labels: int64 (10000,).

    """

    images: GreyArray
    labels: IntArray
    test_images: GreyArray
    test_labels: IntArray

    def first(self, per_class: int) -> LabelledDigits:
        """The first so many training digits of every class, in the order of the file.

        The paper learns from `first(40)`.

        Args:
            per_class: how many of each.

        """
        chosen = self._is_first(per_class)
        return LabelledDigits(self.images[chosen], self.labels[chosen])

    def beyond(self, per_class: int, n_images: int | None = None) -> LabelledDigits:
        """Training digits that are not among `first(per_class)`, to choose settings by.

        Args:
            per_class: how many of each class are left out.
            n_images: how many images, the first ones of the file; None for all.

        """
        others = np.flatnonzero(~self._is_first(per_class))
        if n_images is not None and check_count("n_images", n_images) > len(others):
            raise ValueError(
                f"n_images must be at most {len(others)}, the training digits beyond the first "
                f"{per_class} of every class, got {n_images}; pass fewer, or None for all."
            )
        others = others[:n_images]
        return LabelledDigits(self.images[others], self.labels[others])

    def _is_first(self, per_class: int) -> NDArray[np.bool_]:
        per_class = check_count("per_class", per_class)
        chosen = np.zeros(len(self.labels), bool)
        for label in np.unique(self.labels):
            own = np.flatnonzero(self.labels == label)
            if len(own) < per_class:
                raise ValueError(
                    f"per_class must be at most {len(own)}, the number of training digits of class "
                    f"{label}, got {per_class}; pass fewer."
                )
            chosen[own[:per_class]] = True
        return chosen


def mnist(folder: str | os.PathLike[str] | None = None, *, download: bool = True) -> MnistData:
    """The 70,000 digits of MNIST, as they are.

    The four files, packed (.gz) or not, are looked for in the folder that is given; else in the
    one that the environment variable HCNET_DATA names, or its subfolder "mnist"; else in the
    user's cache folder, into which they are downloaded (11 MB, checked by SHA-256) if they are
    not there.  Other data in the same files, as Fashion-MNIST, can be read from a folder, too.

    Args:
        folder: where the files are.
        download: whether files may be fetched from the network.

    Returns:
        Training and test images with their labels.

    Raises:
        FileNotFoundError: if files are missing and cannot be downloaded.
        ValueError: if a file is damaged, or files do not belong together.

    """
    download = check_flag("download", download)
    given = folder or os.environ.get(_VARIABLE)
    files = _local_files(Path(given)) if given else _cached_files(download)
    return MnistData(
        *_read_pair(files[_TRAIN_IMAGES], files[_TRAIN_LABELS]),
        *_read_pair(files[_TEST_IMAGES], files[_TEST_LABELS]),
    )


def _find(folder: Path) -> dict[str, Path]:
    """Those of the files that are in a folder."""
    return {
        name: path
        for name in _SHA256
        for path in (folder / f"{name}.gz", folder / name)
        if path.is_file()
    }


def _local_files(folder: Path) -> dict[str, Path]:
    """All files from a folder of the user, into which nothing is ever written."""
    found = max(_find(folder / "mnist"), _find(folder), key=len)
    missing = [f"{name}.gz" for name in _SHA256 if name not in found]
    if missing:
        raise FileNotFoundError(
            f"{folder} must hold the four files of MNIST, but {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not there: copy them, pass another folder, or "
            f"have them downloaded with no folder and without {_VARIABLE} set."
        )
    return found


def _cached_files(download: bool) -> dict[str, Path]:
    folder = cache_folder("mnist")
    found = _find(folder)
    missing = [name for name in _SHA256 if name not in found]
    reason = "download=False"
    if download:
        try:
            for name in missing:
                found[name] = fetch(f"{name}.gz", _SHA256[name], _MIRRORS, folder, _MOST_BYTES)
            return found
        except OSError as error:
            reason = str(error)
    if missing:
        names = ", ".join(f"{name}.gz" for name in _SHA256)
        raise FileNotFoundError(
            f"MNIST is not on this machine and was not downloaded ({reason}): put {names} into "
            f"{folder}, or into any folder that you pass or name in {_VARIABLE}."
        )
    return found


def _read_pair(images: Path, labels: Path) -> LabelledDigits:
    pair = LabelledDigits(read_idx(images, 3), read_idx(labels, 1).astype(np.int64))
    if len(pair.images) != len(pair.labels):
        raise ValueError(
            f"{images} holds {len(pair.images)} images, but {labels} holds {len(pair.labels)} "
            f"labels; fetch both again from the same place."
        )
    return pair


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

    The checksum is that of the unpacked content, since mirrors pack it differently.  A packed file
    of more than `most` bytes is another file.  Mirrors are addresses that end in a slash; if none
    has the file, an OSError says what each of them did instead.  The folder is made if it is not
    there, and the file is in it completely or not at all.
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
            break
    else:
        raise OSError("; ".join(reasons))
    folder.mkdir(parents=True, exist_ok=True)
    return write_atomically(folder / name, lambda file: file.write(content), overwrite=True)


def read_idx(path: Path, n_axes: int) -> NDArray[np.uint8]:
    """The array of a file, as a writable copy; gzip is undone where the name ends in .gz."""
    with path.open("rb") as packed, _unpacked(packed, str(path)) as content:
        magic = content.read(_TYPE_AND_AXES)
        expected = bytes([0, 0, _UNSIGNED_BYTES, n_axes])
        if magic != expected:
            raise ValueError(
                f"{path} must begin with the bytes {expected.hex(' ')}, which stand for an IDX "
                f"file of bytes with {n_axes} axes, but it begins with "
                f"{magic.hex(' ') or 'nothing'}; check that images and labels are not mixed up."
            )
        header = content.read(_AXIS * n_axes)
        shape = tuple(
            int.from_bytes(header[k : k + _AXIS], "big") for k in range(0, _AXIS * n_axes, _AXIS)
        )
        # Nothing is taken on trust: there may be fewer bytes, or more.
        declared, most = math.prod(shape), path.stat().st_size * _MOST_PACKED
        check_memory(str(path), 2 * min(declared, most), None, "take another file")
        found = content.read(min(declared, most) + 1)
    if len(found) != declared or len(header) < _AXIS * n_axes:
        follow = f"more than {declared}" if len(found) > declared else str(len(found))
        raise ValueError(
            f"{path} says that it holds {' × '.join(map(str, shape))} bytes, but {follow} follow "
            f"its header; it is damaged or was not copied to its end: fetch it again."
        )
    return np.frombuffer(found, np.uint8).reshape(shape).copy()


@contextmanager
def _unpacked(file: IO[bytes], name: str) -> Iterator[IO[bytes]]:
    """The content of a file by its name: that of a .gz is unpacked as it is read."""
    try:
        yield gzip.GzipFile(fileobj=file) if name.endswith(".gz") else file  # type: ignore[misc]
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(
            f"{name} cannot be unpacked ({error}); it is damaged or was not copied to its end: "
            f"fetch it again."
        ) from None


def _digest(content: bytes, name: str) -> str:
    """The checksum of a file as it is unpacked."""
    with _unpacked(io.BytesIO(content), name) as file:
        digest, left = hashlib.sha256(), _MOST_UNPACKED
        while left > 0 and (chunk := file.read(min(left, 2**20))):
            digest.update(chunk)
            left -= len(chunk)
        return digest.hexdigest() if left else "too long"
