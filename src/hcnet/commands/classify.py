"""``hcnet classify`` and ``hcnet cluster``: the class, or the template, of every image."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hcnet.commands import arguments
from hcnet.commands.command import DONE, Command, as_json, note


def _shared(parser: argparse.ArgumentParser) -> None:
    arguments.add_model(parser)
    arguments.add_images(parser)
    arguments.add_output(parser, "write the table to this file (.csv)", required=False)


def _classify_arguments(parser: argparse.ArgumentParser) -> None:
    _shared(parser)
    parser.add_argument(
        "--labels", metavar="FILE", help="true labels, as in learn: also say how many are right"
    )
    parser.add_argument(
        "--confusion",
        type=Path,
        metavar="FILE",
        help="with --labels: draw which class was taken for which (.png)",
    )


def _classify(options: argparse.Namespace) -> int:
    from hcnet.commands.inputs import read
    from hcnet.commands.models import load_network
    from hcnet.commands.outputs import check_free, check_picture
    from hcnet.image_files import read_labels

    if options.confusion is not None and options.labels is None:
        raise ValueError("--confusion compares with true labels; pass them with --labels.")
    check_free(options.force, options.output)
    check_picture(options.force, options.confusion)
    if options.confusion is not None:
        from hcnet.plotting.charts import load_pyplot

        load_pyplot()  # better missing now than after the work
    model = load_network(options.model, "classify")
    images = read(options)
    probabilities = model.predict_proba(images.X, images.mask)
    best = probabilities.argmax(axis=1)
    found = model.classes_[best]
    rows = [
        (str(images.files[n]), images.pages[n], label, float(probabilities[n, k]))
        for n, (label, k) in enumerate(zip(found.tolist(), best.tolist(), strict=True))
    ]
    told: dict[str, Any] = {}
    if options.labels is not None:
        y = read_labels(options.labels, images.files)
        told["accuracy"] = model.score(images.X, y, images.mask)
        note(options, f"{told['accuracy']:.2%} of the labelled images are right.")
        if options.confusion is not None:
            from hcnet.plotting import plot_confusion, save_picture

            chart = plot_confusion(y, found, model.classes_)
            save_picture(chart, options.confusion, overwrite=options.force)
    _table(options, ("file", "page", "class", "probability"), rows, told)
    return DONE


def _cluster(options: argparse.Namespace) -> int:
    from hcnet.commands.inputs import read
    from hcnet.commands.models import load_network
    from hcnet.commands.outputs import check_free

    check_free(options.force, options.output)
    model = load_network(options.model, "cluster")
    images = read(options)
    rows = [
        (str(file), page, template)
        for file, page, template in zip(
            images.files,
            images.pages,
            model.cluster(images.X, images.mask).tolist(),
            strict=True,
        )
    ]
    _table(options, ("file", "page", "template"), rows, {})
    return DONE


def _table(
    options: argparse.Namespace,
    header: tuple[str, ...],
    rows: list[Any],
    told: dict[str, Any],
) -> None:
    from hcnet.commands.outputs import as_csv, deliver

    if options.json:
        told = {"images": [dict(zip(header, row, strict=True)) for row in rows], **told}
        text = as_json(told) + "\n"
    else:
        text = as_csv(header, rows)
    deliver(text, options.output, options.force)
    if options.output is not None:
        note(options, f"{len(rows):,} rows written to {options.output}.")


COMMANDS = (
    Command(
        "classify",
        "say which class each image is of, as a table",
        "hcnet classify shapes.hcn new/ --labels folders --confusion confusion.png",
        _classify_arguments,
        _classify,
    ),
    Command(
        "cluster",
        "say which template each image shows, as a table",
        "hcnet cluster shapes.hcn new/ -o clusters.csv",
        _shared,
        _cluster,
    ),
)
