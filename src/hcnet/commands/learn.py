"""``hcnet learn``: parts, a network or templates from image files."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hcnet.commands import arguments, command
from hcnet.commands.command import Command, aligned, note, print_result
from hcnet.commands.inputs import read
from hcnet.commands.learning_options import (
    NETWORK,
    PARTS,
    TEMPLATES,
    add_learning_options,
    parameters,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from hcnet.commands.inputs import Model
    from hcnet.image_files import ImageSet

# Images at the beginning of a stream that decide which side is the ink, and appear in reports.
FIRST_IMAGES = 12
# Options of a stream: type and help.
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
    arguments.add_mask(parser)
    parser.add_argument(
        "--stream", action="store_true", help="read each image once, in memory that does not grow"
    )
    for name, (kind, text) in STREAM_OPTIONS.items():
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=kind, metavar="N", help=f"with --stream: {text}")
    parser.add_argument(
        "--checkpoint",
        type=Path,
        metavar="FILE",
        help="save the state of learning now and then; the same command continues from there",
    )
    parser.add_argument(
        "--every", type=float, metavar="SECONDS", help="time between two checkpoints"
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="also write a report (.html)")
    parser.add_argument(
        "--live", type=Path, metavar="FILE", help="rewrite the report (.html) during learning"
    )
    add_learning_options(parser)


def _run(options: argparse.Namespace) -> int:
    from hcnet.engine.driver import Status
    from hcnet.image_files import files_of_images, read_labels
    from hcnet.reporting import summary

    kind, given = parameters(options)
    _check(options, kind)
    began = time.perf_counter()
    images = read(options, options.mask, first=FIRST_IMAGES if options.stream else None)
    y = None
    if options.labels is not None:  # of all images of a stream: labels fit into memory
        files = files_of_images(options.images) if options.stream else images.files
        y = read_labels(options.labels, files)
    model = _estimator(options, kind, given, images)
    _fit(options, model, images, y)
    model.save(options.output, overwrite=options.force)
    seconds = time.perf_counter() - began
    _write_reports(options, model, images, y)
    figures = summary(model) | {"seconds": round(seconds, 3), "model": str(options.output)}
    print_result(options, figures, _text(figures))
    interrupted = model.status_ == Status.INTERRUPTED.value
    return command.INTERRUPTED if interrupted else command.DONE


def _check(options: argparse.Namespace, kind: str) -> None:
    for name in _stream_options(options):
        if not options.stream:
            raise ValueError(f"{name} is an option of a stream; add --stream, or leave it out.")
    if options.stream and kind == TEMPLATES:
        raise ValueError("Templates are not learned from a stream; leave --stream out.")
    if options.labels is not None and kind == PARTS:
        raise ValueError(
            "Parts have no labels; leave --labels out, or learn a network with --layer, or "
            "templates with --templates."
        )


def _estimator(
    options: argparse.Namespace, kind: str, given: dict[str, Any], images: ImageSet
) -> Model:
    import hcnet

    given = given | {"verbose": command.on_a_terminal(options)}
    if options.live is not None:
        from hcnet.reporting import LiveReport

        live = LiveReport(options.live, images.X, images.mask, images.names, options.force)
        given["callback"] = live
        note(options, f"watch {options.live} in a browser.")
    if kind == NETWORK:
        given["layers"] = [hcnet.Layer(**layer) for layer in options.layers]
    model: Model = getattr(hcnet, kind)(**given)
    return model


def _stream_options(options: argparse.Namespace) -> dict[str, Any]:
    """The given options of a stream."""
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

    # The first images have decided which side is the ink.
    ink = "dark" if images.dark else "bright"
    stream: Iterable[Any] = stream_images(
        options.images, threshold=options.threshold, ink=ink, mask=options.mask
    )
    if y is not None:
        from hcnet.validation.network import check_labels

        keep["classes"] = check_labels(y, len(y), getattr(options, "n_classes", None)).classes
        stream = zip(stream, y.tolist(), strict=True)
    model.fit_stream(stream, **_stream_options(options), **keep)


def _write_reports(
    options: argparse.Namespace, model: Model, images: ImageSet, y: NDArray[Any] | None
) -> None:
    from hcnet.reporting import report

    labels = None if y is None else y[: len(images)]
    for path in {options.report, options.live} - {None}:
        overwrite = options.force or path == options.live  # this command has written the live one
        about: dict[str, Any] = {"mask": images.mask, "names": images.names}
        report(model, path, images.X, labels, **about, overwrite=overwrite)


def _text(figures: dict[str, Any]) -> str:
    rows = []
    if "layers" in figures:
        features = " → ".join(str(layer["features"]) for layer in figures["layers"])
        rows += [("Layers", features), ("Classes", ", ".join(map(str, figures["classes"])))]
    else:
        rows += [("Parts", f"{figures['parts']}")]
    if "placements" in figures:
        rows += [("Placements", f"{figures['placements']:,}")]
        rows += [("Compression", f"{figures['compression_ratio']:.2%} of the bits without parts")]
    if "n_images_seen" in figures:
        rows += [("Images", f"{figures['n_images_seen']:,} seen")]
    rows += [
        ("Time", f"{figures['seconds']:.1f} s"),
        ("Status", figures["status"]),
        ("Model", figures["model"]),
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
