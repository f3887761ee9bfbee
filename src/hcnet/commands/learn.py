"""``hcnet learn``: parts, or a network, from image files."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hcnet.commands import arguments
from hcnet.commands.command import (
    DONE,
    INTERRUPTED,
    Command,
    aligned,
    note,
    on_a_terminal,
    print_result,
)
from hcnet.commands.inputs import read
from hcnet.commands.learning_options import NETWORK, add_learning_options, parameters

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from hcnet.commands.inputs import Model
    from hcnet.image_files import ImageSet

# Images at the beginning of a stream by which is decided what is ink, and which reports show.
LOOKED_AT = 12
# Options of a stream: how they are read, and what they are.
STREAM_OPTIONS = {
    "batch_size": (int, "images of a minibatch"),
    "epochs": (int, "read all images into memory, and learn from each so many times"),
    "forgetting": (float, "share of the beliefs that is kept from minibatch to minibatch"),
}


def _arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_images(parser)
    arguments.add_output(parser, "the model file to write, for example letters.hcn")
    parser.add_argument(
        "--labels",
        metavar="FILE",
        help="labels of a network: a line per image, a table of file and label, an array, or the "
        "word folders for the names of the folders that the images are in; -1 is no label",
    )
    parser.add_argument(
        "--mask", type=Path, metavar="FILE", help="image or array; missing pixels are bright or 1"
    )
    parser.add_argument(
        "--stream",
        action="store_true",
        help="read one image after the other, once, in memory that does not grow",
    )
    for name, (kind, text) in STREAM_OPTIONS.items():
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=kind, metavar="N", help=f"with --stream: {text}"
        )
    parser.add_argument(
        "--checkpoint",
        type=Path,
        metavar="FILE",
        help="write down now and then how far learning is; the same command goes on from there",
    )
    parser.add_argument(
        "--every",
        type=float,
        metavar="SECONDS",
        help="how often the checkpoint is written",
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="also write a report (.html)")
    parser.add_argument(
        "--live",
        type=Path,
        metavar="FILE",
        help="write the report (.html) while learning goes on, again and again",
    )
    add_learning_options(parser)


def _run(options: argparse.Namespace) -> int:
    from hcnet.engine.driver import Status
    from hcnet.reporting import summary

    kind, given = parameters(options)
    _check(options, kind)
    began = time.perf_counter()
    images = read(options, options.mask, first=LOOKED_AT if options.stream else None)
    y = _labels(options, images)
    model = _estimator(options, kind, given, images)
    _fit(options, model, images, y)
    model.save(options.output, overwrite=options.force)
    seconds = time.perf_counter() - began
    _reports(options, model, images, y)
    told = summary(model) | {"seconds": round(seconds, 3), "model": str(options.output)}
    print_result(options, told, _text(told))
    return INTERRUPTED if model.status_ == Status.INTERRUPTED.value else DONE


def _check(options: argparse.Namespace, kind: str) -> None:
    for name in _reading(options):
        if not options.stream:
            raise ValueError(f"{name} is an option of a stream; add --stream, or leave it out.")
    if options.labels is not None and kind != NETWORK:
        raise ValueError(
            "Parts have no labels; leave --labels out, or learn a network with --layer."
        )


def _labels(options: argparse.Namespace, images: ImageSet) -> NDArray[Any] | None:
    """Of all images, those of a stream included: unlike pixels they fit into memory."""
    from hcnet.image_files import files_of_images, read_labels

    if options.labels is None:
        return None
    files = files_of_images(options.images) if options.stream else images.files
    return read_labels(options.labels, files)


def _estimator(
    options: argparse.Namespace, kind: str, given: dict[str, Any], images: ImageSet
) -> Model:
    from hcnet import HCN, FeatureLearner, Layer

    given = given | {"verbose": on_a_terminal(options)}
    if options.live is not None:
        from hcnet.reporting import LiveReport

        live = LiveReport(options.live, images.X, images.mask, images.names, options.force)
        given["callback"] = live
        note(options, f"watch {options.live} in a browser.")
    if kind == NETWORK:
        return HCN([Layer(**layer) for layer in options.layers], **given)
    return FeatureLearner(**given)


def _reading(options: argparse.Namespace) -> dict[str, Any]:
    """How a stream is to be read, as far as it was given."""
    given = {name: getattr(options, name) for name in STREAM_OPTIONS}
    return {name: value for name, value in given.items() if value is not None}


def _fit(
    options: argparse.Namespace, model: Model, images: ImageSet, y: NDArray[Any] | None
) -> None:
    keep: dict[str, Any] = {"checkpoint": options.checkpoint}
    if options.every is not None:
        keep["every"] = options.every
    if not options.stream:
        model.fit(images.X, y, mask=images.mask, **keep)
        return
    from hcnet.image_files import stream_images

    # Which side is the ink was decided, and said, by more than the first image.
    ink = "dark" if images.dark else "bright"
    stream: Iterable[Any] = stream_images(
        options.images, threshold=options.threshold, ink=ink, mask=options.mask
    )
    if y is not None:
        from hcnet.validation.network import check_labels

        keep["classes"] = check_labels(y, len(y), getattr(options, "n_classes", None)).classes
        stream = zip(stream, y.tolist(), strict=True)
    model.fit_stream(stream, **_reading(options), **keep)


def _reports(
    options: argparse.Namespace, model: Model, images: ImageSet, y: NDArray[Any] | None
) -> None:
    from hcnet.reporting import report

    about: dict[str, Any] = {"mask": images.mask, "names": images.names}
    if y is not None:
        about["y"] = y[: len(images)]
    for path in {options.report, options.live} - {None}:
        # The live report is this command's own by now.
        overwrite = options.force or path == options.live
        report(model, path, images.X, **about, overwrite=overwrite)


def _text(told: dict[str, Any]) -> str:
    rows = []
    if told["kind"] == NETWORK:
        features = " → ".join(str(layer["features"]) for layer in told["layers"])
        rows += [("Layers", features), ("Classes", ", ".join(map(str, told["classes"])))]
    else:
        rows += [("Parts", f"{told['parts']}")]
    if "placements" in told:
        rows += [("Placements", f"{told['placements']:,}")]
        rows += [("Compression", f"{told['compression_ratio']:.2%} of the bits without parts")]
    if "n_images_seen" in told:
        rows += [("Images", f"{told['n_images_seen']:,} seen")]
    rows += [
        ("Time", f"{told['seconds']:.1f} s"),
        ("Status", told["status"]),
        ("Model", told["model"]),
    ]
    return aligned(rows)


COMMANDS = (
    Command(
        "learn",
        "learn the parts of images, or a network of them, and write a model file",
        "hcnet learn scans/ --feature-size 12x12 --random-state 0 -o letters.hcn\n"
        "  hcnet learn shapes.npz --labels shapes.npz --layer n_features=4,size=21 "
        "--layer templates \\\n      --templates-per-class 2 -o shapes.hcn",
        _arguments,
        _run,
        {"output": "file", "report": "report", "live": "report"},
    ),
)
