"""The command: its exit codes and arguments, the models and images it reads, and its results."""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hcnet.names import INKS

if TYPE_CHECKING:
    from hcnet import HCN, FeatureLearner, TemplateClassifier
    from hcnet.image_files import ImageSet

    Model = FeatureLearner | HCN | TemplateClassifier

DONE = 0
FAILED = 1
WRONG_ARGUMENTS = 2
FILE_IN_THE_WAY = 3
INTERRUPTED = 130  # as a shell reports a program that Ctrl-C has ended
READER_GONE = 141  # and one whose output nobody reads any more

# Endings of files of tables, by the kind of an option.
TABLES = {"table": (".csv",), "rows": (".csv", ".json")}
IMAGES_OUT = ".png for one image, .tif, .npy or .npz for several, or a folder"
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}


@dataclass(frozen=True)
class Command:
    """A word after ``hcnet``.  Its module imports the library only when it runs."""

    name: str
    summary: str
    example: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    # Options that name a file to write, and its kind: checked before the command runs.
    outputs: Mapping[str, str]


def command(
    example: str, add_arguments: Callable[[argparse.ArgumentParser], None], **outputs: str
) -> Callable[[Callable[[argparse.Namespace], int]], Command]:
    """A decorator: the function becomes a command of its name, with its docstring as summary."""

    def make(run: Callable[[argparse.Namespace], int]) -> Command:
        summary = run.__doc__ or run.__name__  # python -OO has no docstrings
        return Command(run.__name__, summary, example, add_arguments, run, outputs)

    return make


def note(options: argparse.Namespace, text: str) -> None:
    """Print something beside the result."""
    if not options.quiet:
        print(f"hcnet: {text}", file=sys.stderr)


def on_a_terminal(options: argparse.Namespace) -> bool:
    """Whether to show progress."""
    return sys.stderr.isatty() and not options.quiet


def print_result(options: argparse.Namespace, result: Mapping[str, Any], text: str) -> int:
    """Print the result, as JSON with --json, otherwise the text; the exit code of success."""
    print(as_json(result) if options.json else text)
    return DONE


def as_json(result: Any) -> str:
    """Standard JSON, in which no number is NaN or infinite."""
    return json.dumps(result, indent=1, ensure_ascii=False, allow_nan=False)


def aligned(rows: Iterable[Sequence[str]]) -> str:
    """Two columns of text; the first is padded."""
    table = list(rows)
    width = max((len(name) for name, _ in table), default=0)
    return "\n".join(f"{name:<{width}}  {value}".rstrip() for name, value in table)


def load_model(path: Path, command: str = "", kind: str = "") -> Any:
    """The estimator in a file; `command` may need the kind "network" or "parts"."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there; pass a model that hcnet learn wrote.")
    from hcnet import BooleanMatrixFactorization, FeatureLearner, load

    model = load(path)
    if isinstance(model, BooleanMatrixFactorization):
        raise ValueError(
            f"{path} holds the factors of a table, and hcnet works with images; use it in Python "
            f"with hcnet.load."
        )
    found = "parts" if isinstance(model, FeatureLearner) else "network"
    if kind == "network" != found:
        raise ValueError(
            f"{command} needs a network, and {path} holds parts without layers; learn one with "
            f"hcnet learn --layer …"
        )
    if kind == "parts" != found:
        raise ValueError(
            f"{command} needs parts, and {path} holds a network; learn parts with hcnet learn "
            f"without --layer and --templates; or use hcnet denoise for images as the network "
            f"explains them, hcnet sample for new ones."
        )
    return model


def read(
    options: argparse.Namespace, mask: Path | None = None, first: int | None = None
) -> ImageSet:
    """The images of a command, or the `first` of them, with the missing pixels of a mask file."""
    from hcnet.image_files import read_images

    how = {"threshold": options.threshold, "ink": options.ink}
    images = read_images(options.images, **how, mask=mask, first=first)
    begins = "" if first is None else "a stream that begins with "
    note(options, f"{begins}{images.summary()}")
    if doubts := images.doubts():
        note(options, doubts.replace("Choose the other ink.", "Try the other side of --ink."))
    return images


def checkpoint_path(options: argparse.Namespace) -> Path:
    """The checkpoint of ``hcnet learn``: as given, or beside the model."""
    return options.checkpoint or Path(f"{options.output}.ckpt")


def goes_on(options: argparse.Namespace) -> bool:
    """Whether the model to write is there because learning was cut short, and now goes on."""
    if not (checkpoint_path(options).is_file() and options.output.is_file()):
        return False
    from hcnet import load
    from hcnet.engine.driver import Status

    try:
        status = getattr(load(options.output), "status_", None)
    except ValueError:  # no model
        return False
    return any(one.cut_short and one.value == status for one in Status)


def check_outputs(options: argparse.Namespace) -> None:
    """Raise if a file to write is in the way, has a wrong ending, or cannot be written."""
    for option, kind in options.outputs.items():
        path = getattr(options, option)
        if path is None:
            continue
        if kind == "images":
            from hcnet.image_files import images_path

            if not images_path(path).suffix:
                continue  # a folder: its files are checked when their names are known
        elif kind == "picture":
            from hcnet.plotting.drawing import picture_path

            picture_path(path)
        elif kind == "report":
            from hcnet.reporting.page import report_path

            report_path(path)
        elif kind in TABLES and path.suffix.lower() not in TABLES[kind]:
            raise ValueError(
                f"{path} cannot hold a table; choose a name that ends with "
                f"{' or '.join(TABLES[kind])}."
            )
        from hcnet.atomic_files import refuse_existing
        from hcnet.checks import check_path

        overwrite = options.force or (kind == "model" and goes_on(options))
        refuse_existing(check_path(option, path), overwrite)
        if not os.access(path.parent, os.W_OK):
            raise PermissionError(f"{path.parent} cannot be written to; choose another folder.")


def save_drawing(
    options: argparse.Namespace, path: Path | None, function: str, *arguments: Any, **more: Any
) -> None:
    """Write a picture by a function of `hcnet.plotting`, if there is a path for it."""
    if path is not None:
        from hcnet import plotting

        picture = getattr(plotting, function)(*arguments, **more)
        plotting.save_picture(picture, path, options.force)


def as_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as CSV."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([header, *rows])
    return file.getvalue()


def write_table(
    options: argparse.Namespace,
    header: Sequence[str],
    rows: Sequence[Sequence[object]],
    name: str,
    more: dict[str, Any],
) -> int:
    """A table as CSV, or as JSON under its `name` with `more`; to a file or to the terminal."""
    path = options.output
    is_json = options.json or (path is not None and path.suffix.lower() == ".json")
    if is_json:
        content = more | {name: [dict(zip(header, row, strict=True)) for row in rows]}
        text = as_json(content) + "\n"
    else:
        text = as_csv(header, rows)
    if path is None:
        sys.stdout.write(text)
        return DONE
    write_text(path, text, options.force, is_json)
    note(options, f"{len(rows):,} rows written to {path}.")
    return DONE


def write_text(path: Path, text: str, overwrite: bool, is_json: bool = False) -> None:
    """Write a file of text.

    Names of files may hold bytes that are no text.  They are written as they are, and in JSON as
    escapes.
    """
    from hcnet.atomic_files import write_atomically

    data = text.encode(errors="backslashreplace" if is_json else "surrogateescape")
    write_atomically(path, lambda file: file.write(data), overwrite)


def add_images(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """The images of a command, and how they become binary."""
    parser.add_argument(
        "images",
        nargs="+" if required else "*",
        type=path,
        metavar="IMAGES",
        help="image files, TIFF files with many pages, .npy or .npz arrays, folders",
    )
    parser.add_argument(
        "--threshold",
        type=threshold,
        default="otsu",
        metavar="N",
        help="shade above which a pixel is bright (default: otsu, chosen for each image)",
    )
    parser.add_argument(
        "--ink",
        choices=INKS,
        default="auto",
        help="pixels that are on (default: auto, the rarer ones)",
    )


def add_model(parser: argparse.ArgumentParser, images: bool = False) -> None:
    """The model of a command, and the `images` that it is used on."""
    parser.add_argument("model", type=path, metavar="MODEL", help="a file that learn wrote (.hcn)")
    if images:
        add_images(parser)


def add_output(parser: argparse.ArgumentParser, help: str, required: bool = True) -> None:
    """The file of the result."""
    parser.add_argument("--output", "-o", type=path, required=required, metavar="PATH", help=help)
    add_force(parser)


def add_folder(parser: argparse.ArgumentParser, help: str) -> None:
    """The folder of the results."""
    parser.add_argument("--output", "-o", type=path, required=True, metavar="DIR", help=help)


def add_force(parser: argparse.ArgumentParser) -> None:
    """Permission to replace files."""
    parser.add_argument("--force", action="store_true", help="replace existing files")


def add_drawn_images(parser: argparse.ArgumentParser) -> None:
    """The file of images that a command draws, and the look of their ink."""
    add_output(parser, IMAGES_OUT)
    parser.add_argument(
        "--ink", choices=INKS[1:], default="dark", help="look of on pixels (default: dark on white)"
    )


def add_file(parser: argparse.ArgumentParser, name: str, help: str) -> None:
    """An optional file."""
    parser.add_argument(name, type=path, metavar="FILE", help=help)


def add_mask(parser: argparse.ArgumentParser, more: str = "") -> None:
    """The missing pixels of the images."""
    add_file(parser, "--mask", f"image or array in which missing pixels are bright or 1{more}")


def threshold(text: str) -> float | str:
    """The word otsu, or a number."""
    if text == "otsu":
        return text
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be otsu or a number, got {text!r}") from None


def seed(text: str) -> int:
    """A whole number of at least 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0, got {text!r}")
    return int(text)


def path(text: str) -> Path:
    """A file or folder.  Nothing would be this folder: a variable of a script that is not set."""
    if not text:
        raise argparse.ArgumentTypeError("must be a path, got nothing; . is this folder")
    return Path(text)


def size(text: str) -> int | tuple[int, int]:
    """One side, or height and width as 12x8."""
    sides = text.lower().replace("×", "x").split("x")
    if len(sides) > 2 or not all(side.isdecimal() for side in sides):
        raise argparse.ArgumentTypeError(
            f"must be one whole number, or height and width as in 12x8, got {text!r}"
        )
    return int(sides[0]) if len(sides) == 1 else (int(sides[0]), int(sides[1]))


def amount(text: str) -> int:
    """Bytes, with or without a unit: 500MB, 2GiB."""
    word = text.strip().lower().removesuffix("b")
    digits = word.rstrip("kmgi ")
    unit = word[len(digits) :].strip()
    try:
        return int(float(digits) * _UNITS[unit])
    except (KeyError, ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"must be a number of bytes, such as 500MB or 2GiB, got {text!r}"
        ) from None
