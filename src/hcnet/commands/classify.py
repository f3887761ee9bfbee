"""``hcnet classify`` and ``hcnet cluster``: the class, or the template, of every image."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hcnet.commands import arguments
from hcnet.commands.command import DONE, Command, note
from hcnet.commands.inputs import load_network, read
from hcnet.commands.outputs import save, write_table


def _shared_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_model(parser)
    arguments.add_images(parser)
    arguments.add_output(parser, "write the table to this file (.csv)", required=False)


def _classify_arguments(parser: argparse.ArgumentParser) -> None:
    _shared_arguments(parser)
    parser.add_argument(
        "--labels", metavar="FILE", help="true labels, as in learn: also print the accuracy"
    )
    parser.add_argument(
        "--confusion",
        type=Path,
        metavar="FILE",
        help="with --labels: draw the confusion matrix (.png; needs matplotlib)",
    )


def _classify(options: argparse.Namespace) -> int:
    from hcnet.image_files import read_labels

    if options.confusion is not None:
        if options.labels is None:
            raise ValueError("--confusion compares with true labels; pass them with --labels.")
        from hcnet.plotting.charts import load_pyplot

        load_pyplot()  # raises before the work if it is missing
    model = load_network(options.model, "classify")
    images = read(options)
    probabilities = model.predict_proba(images.X, images.mask)
    best = probabilities.argmax(axis=1)
    predicted = model.classes_[best]
    found = zip(predicted.tolist(), probabilities.max(axis=1).tolist(), strict=True)
    rows = [(*name, *row) for name, row in zip(_names(images), found, strict=True)]
    more: dict[str, Any] = {}
    if options.labels is not None:
        y = read_labels(options.labels, images.files)
        more["accuracy"] = model.score(images.X, y, images.mask)
        note(options, f"{more['accuracy']:.2%} of the labelled images are right.")
        if options.confusion is not None:
            from hcnet.plotting import plot_confusion

            save(options, plot_confusion(y, predicted, model.classes_), options.confusion)
    write_table(options, ("file", "page", "class", "probability"), rows, "images", more)
    return DONE


def _cluster(options: argparse.Namespace) -> int:
    model = load_network(options.model, "cluster")
    images = read(options)
    templates = model.cluster(images.X, images.mask).tolist()
    rows = [(*name, template) for name, template in zip(_names(images), templates, strict=True)]
    write_table(options, ("file", "page", "template"), rows, "images", {})
    return DONE


def _names(images: Any) -> list[tuple[str, int]]:
    """File and page of every image."""
    return [(str(file), page) for file, page in zip(images.files, images.pages, strict=True)]


COMMANDS = (
    Command(
        "classify",
        "print a table of the class of each image",
        "hcnet classify shapes.hcn new/ --labels folders --confusion confusion.png",
        _classify_arguments,
        _classify,
        {"output": "file", "confusion": "picture"},
    ),
    Command(
        "cluster",
        "print a table of the template of each image",
        "hcnet cluster shapes.hcn new/ -o clusters.csv",
        _shared_arguments,
        _cluster,
        {"output": "file"},
    ),
)
