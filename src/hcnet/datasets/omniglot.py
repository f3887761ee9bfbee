"""Omniglot: handwritten characters of many alphabets, and tasks of one example per character."""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from hcnet.checks import check_count, check_random_state
from hcnet.datasets.parts_data import IntArray
from hcnet.image_files.opening import decoding
from hcnet.images import BoolArray
from hcnet.memory import check_memory
from hcnet.zip_files import open_zip

# The table of a run, and the folders of its images.
_LABELS, _EXAMPLES = "class_labels.txt", "training"
# The names of background images: alphabet/character01/0671_08.png, of the eighth drawer.
_CHARACTER, _DRAWING = re.compile(r"character(\d{1,4})"), re.compile(r"\d{1,9}_(\d{1,4})\.png")
# The whole of Omniglot has 32,460 images of 105×105 and at most 2,000 bytes, in folders four deep.
_MOST_FILES, _MOST_BYTES, _MOST_SIDE, _DEEPEST = 200_000, 1 << 20, 1000, 6
# Characters of a run.
_PER_TASK = 20


class LabelledCharacters(NamedTuple):
    """Images bool (n, height, width), the character and the drawer of each, int64 (n,)."""

    images: BoolArray
    labels: IntArray
    drawers: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class OneShotTask:
    """One example of each character, and other images to be told apart by these examples.

    Attributes:
        name: "run01" for the first run, or the alphabet and two drawers.
        images: bool (characters, height, width), the examples; True is ink.
        labels: int64 (characters,), 0, 1, 2 and so on.
        test_images: bool (n, height, width), of another drawer.
        test_labels: int64 (n,), the label of the example with the same character.

    """

    name: str
    images: BoolArray
    labels: IntArray
    test_images: BoolArray
    test_labels: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class OmniglotData:
    """The runs and the alphabets that were found.

    Attributes:
        runs: the published tasks, in the order of their names.
        alphabets: the characters of each alphabet of a background set, by its name.

    """

    runs: tuple[OneShotTask, ...]
    alphabets: Mapping[str, LabelledCharacters]

    def tasks(
        self,
        n_tasks: int,
        *,
        n_characters: int = _PER_TASK,
        random_state: int | np.random.Generator | None = None,
    ) -> tuple[OneShotTask, ...]:
        """Tasks like the runs, made of the alphabets in turn, to choose settings by.

        Characters and the two drawers of each task are drawn at random.

        Args:
            n_tasks: how many tasks.
            n_characters: characters of each task, all of one alphabet.
            random_state: seed or generator.

        """
        n_tasks = check_count("n_tasks", n_tasks)
        n_characters = check_count("n_characters", n_characters, 2)
        rng = np.random.default_rng(check_random_state(random_state))
        large = {
            name: found
            for name, found in sorted(self.alphabets.items())
            if len(np.unique(found.labels)) >= n_characters
        }
        if not large:
            raise ValueError(
                f"tasks need an alphabet with {n_characters} characters, but there are "
                f"{len(self.alphabets)} alphabets, none of them so large; read a folder with a "
                f"background set, or pass a smaller n_characters."
            )
        names = list(large)
        return tuple(
            _task(names[k % len(names)], large[names[k % len(names)]], n_characters, rng)
            for k in range(n_tasks)
        )


def omniglot(folder: str | os.PathLike[str]) -> OmniglotData:
    """The characters of Omniglot, from files that you have.

    The folder, its subfolders and the zip archives in them may hold runs (a folder with
    "class_labels.txt", "training" and "test") and background sets (alphabet, character, drawings);
    the path of a single zip archive will do, too.  What is there unpacked and packed is read once.

    Args:
        folder: where the files are; nothing is ever downloaded.

    Returns:
        The runs and the alphabets.

    Raises:
        FileNotFoundError: if neither runs nor alphabets are there.
        ValueError: if files are damaged, or do not belong together.

    """
    place = Path(folder)
    if not place.exists():
        raise FileNotFoundError(f"{place} is not there; pass the folder of the Omniglot files.")
    with ExitStack() as stack:
        files: dict[PurePosixPath, _File] = {}
        for path, file in _files(place, stack):
            files.setdefault(path, file)
            if len(files) > _MOST_FILES:
                raise ValueError(
                    f"{place} must hold at most {_MOST_FILES:,} files; pass the folder of the "
                    f"Omniglot files itself."
                )
        runs = {path.parent.name: path for path in sorted(files, reverse=True) if _is_table(path)}
        tasks = tuple(_run(runs[name], files) for name in sorted(runs, key=_by_number))
        alphabets = _alphabets(files)
    if not tasks and not alphabets:
        raise FileNotFoundError(
            f"{place} must hold runs (folders with {_LABELS}) or alphabets (as "
            f"Greek/character01/0394_01.png), unpacked or in zip archives, but neither is there; "
            f"pass another folder."
        )
    return OmniglotData(tasks, MappingProxyType(alphabets))


class _File(NamedTuple):
    """A file on the disk or in an archive: what to call it, its bytes, and how it is opened."""

    name: Path
    size: int
    open: Callable[[], IO[bytes]]

    def read(self) -> bytes:
        if self.size > _MOST_BYTES:
            raise ValueError(
                f"{self.name} has {self.size:,} bytes, and no file of Omniglot has more than "
                f"{_MOST_BYTES:,}; take it away."
            )
        with decoding(self.name, "a file of Omniglot", "fetch it again"), self.open() as file:
            content = file.read(_MOST_BYTES + 1)
            if len(content) != self.size:
                raise ValueError(f"{self.size:,} bytes are declared, and there are others")
            return content


def _files(place: Path, stack: ExitStack) -> Iterator[tuple[PurePosixPath, _File]]:
    """All files below a folder or in an archive, by their paths; those in archives come last."""
    archives = [place] if place.is_file() else []
    if place.is_dir():
        # A folder may itself be a run, whose name counts.
        root = place.resolve()
        for folder, folders, names in os.walk(root):
            folders.sort()
            if len(Path(folder).relative_to(root).parts) >= _DEEPEST:
                folders.clear()
            for name in sorted(names):
                path = Path(folder, name)
                if path.suffix.lower() == ".zip":
                    archives.append(path)
                elif path.is_file():
                    inner = PurePosixPath(root.name, path.relative_to(root).as_posix())
                    yield inner, _File(path, path.stat().st_size, _opener(path))
    for path in archives:
        with decoding(path, "a zip archive", "fetch it again"):
            archive = stack.enter_context(open_zip(stack.enter_context(path.open("rb"))))
        for info in archive.infolist():
            if not info.is_dir():
                inner = PurePosixPath(info.filename)
                yield inner, _File(path / inner, info.file_size, _member(archive, info))


def _opener(path: Path) -> Callable[[], IO[bytes]]:
    return lambda: path.open("rb")


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Callable[[], IO[bytes]]:
    return lambda: archive.open(info)


def _is_table(path: PurePosixPath) -> bool:
    return path.name == _LABELS and bool(path.parent.name)


def _by_number(name: str) -> tuple[Any, ...]:
    """run2 comes before run10."""
    return tuple(int(piece) if piece.isdecimal() else piece for piece in re.split(r"(\d+)", name))


def _run(table: PurePosixPath, files: Mapping[PurePosixPath, _File]) -> OneShotTask:
    """The task of a folder, by its table: "run01/test/item01.png run01/training/class08.png"."""
    folder, where = table.parent, files[table].name
    examples = sorted(
        path
        for path in files
        if path.parent == folder / _EXAMPLES and path.suffix.lower() == ".png"
    )
    tests, labels = [], []
    for number, line in enumerate(files[table].read().decode("utf-8", "replace").splitlines(), 1):
        if not line.strip():
            continue
        paths = [folder.joinpath(*PurePosixPath(word).parts[1:]) for word in line.split()]
        if len(paths) != 2 or paths[0] not in files or paths[1] not in examples:
            raise ValueError(
                f"Line {number} of {where} must name an image to test and the image of the same "
                f"character in {_EXAMPLES}, both in its folder, as in "
                f'"run01/test/item01.png run01/training/class08.png", but it is {line[:80]!r}; '
                f"copy the whole folder again."
            )
        tests.append(paths[0])
        labels.append(examples.index(paths[1]))
    if not tests:
        raise ValueError(f"{where} must name the images to test, but it is empty; copy it again.")
    pictures = _pictures([files[path] for path in (*examples, *tests)])
    n = len(examples)
    numbers = np.arange(n), np.array(labels, np.int64)
    return OneShotTask(folder.name, pictures[:n], numbers[0], pictures[n:], numbers[1])


def _alphabets(files: Mapping[PurePosixPath, _File]) -> dict[str, LabelledCharacters]:
    """The alphabets of a background set; one that is there twice is taken from the first place."""
    found: dict[str, dict[PurePosixPath, list[tuple[int, int, _File]]]] = {}
    for path, file in files.items():
        character, drawing = _CHARACTER.fullmatch(path.parent.name), _DRAWING.fullmatch(path.name)
        if character and drawing and len(path.parts) > 2:
            places = found.setdefault(path.parts[-3], defaultdict(list))
            places[path.parents[1]].append((int(character[1]), int(drawing[1]), file))
    alphabets = {}
    for name, places in sorted(found.items()):
        own = sorted(next(iter(places.values())), key=lambda one: one[:2])
        labels, drawers = np.array([one[:2] for one in own], np.int64).T
        pictures = _pictures([one[2] for one in own])
        # From 0, as in a run.
        alphabets[name] = LabelledCharacters(pictures, labels - 1, drawers - 1)
    return alphabets


def _pictures(files: list[_File]) -> BoolArray:
    """Images of one size: True where there is ink, which is dark."""
    first = _picture(files[0])
    check_memory(
        str(files[0].name.parent), len(files) * first.size, None, "read a part of the folder"
    )
    pictures = np.zeros((len(files), *first.shape), bool)
    for picture, file in zip(pictures, files, strict=True):
        one = _picture(file)
        if one.shape != first.shape:
            raise ValueError(
                f"{file.name} has {one.shape[0]}×{one.shape[1]} pixels, but {files[0].name} has "
                f"{first.shape[0]}×{first.shape[1]}; images of a run or an alphabet must have one "
                f"size: fetch them again."
            )
        picture[:] = one
    return pictures


def _picture(file: _File) -> NDArray[np.bool_]:
    content = file.read()
    with (
        decoding(file.name, "an image", "fetch it again"),
        Image.open(io.BytesIO(content), formats=("PNG",)) as image,
    ):
        if max(image.size) > _MOST_SIDE:
            width, height = image.size
            raise ValueError(
                f"it has {height}×{width} pixels, and at most {_MOST_SIDE} in each direction are "
                f"allowed"
            )
        return np.asarray(image.convert("L")) < 128


def _task(
    name: str, found: LabelledCharacters, n_characters: int, rng: np.random.Generator
) -> OneShotTask:
    """A task of an alphabet: some of its characters, by two drawers who drew all of these."""
    images, labels, drawers = found
    characters = np.sort(rng.choice(np.unique(labels), n_characters, replace=False))
    own = np.isin(labels, characters)
    numbers = [
        drawer
        for drawer in np.unique(drawers[own])
        if len(np.unique(labels[own & (drawers == drawer)])) == n_characters
    ]
    if len(numbers) < 2:
        raise ValueError(
            f"Tasks of {name} need two drawers who drew each of {n_characters} characters, but "
            f"there are {len(numbers)}; pass a smaller n_characters, or add the missing images."
        )
    pair = rng.choice(numbers, 2, replace=False)
    first, second = (_first(labels, drawers == drawer, characters) for drawer in pair)
    numbers_ = np.arange(n_characters)
    return OneShotTask(
        f"{name}, drawers {pair[0] + 1} and {pair[1] + 1}",
        images[first],
        numbers_,
        images[second],
        numbers_.copy(),
    )


def _first(labels: IntArray, own: NDArray[np.bool_], characters: Iterable[int]) -> IntArray:
    """The first of a drawer's images of each character."""
    return np.array([np.flatnonzero(own & (labels == k))[0] for k in characters])
