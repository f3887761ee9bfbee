"""``hcnet report``: everything about a model and some images in one HTML file."""

from __future__ import annotations

import argparse
from typing import Any

from hcnet.commands import arguments
from hcnet.commands.command import DONE, Command, say


def _arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_model(parser)
    arguments.add_images(parser, required=False)
    parser.add_argument("--labels", metavar="FILE", help="true labels of a network, as in learn")
    arguments.add_output(parser, "the report to write (.html)")


def _run(options: argparse.Namespace) -> int:
    from hcnet import HCN, TemplateClassifier
    from hcnet.commands.inputs import read
    from hcnet.commands.models import load_model
    from hcnet.commands.outputs import check_report
    from hcnet.image_files import read_labels
    from hcnet.reporting import report

    check_report(options.force, options.output)
    model = load_model(options.model)
    about: dict[str, Any] = {}
    if options.images:
        images = read(options)
        about = {"X": images.X, "mask": images.mask, "names": images.names}
    if options.labels is not None:
        if not isinstance(model, HCN | TemplateClassifier):
            raise ValueError("Parts have no labels; leave --labels out.")
        if not options.images:
            raise ValueError("Labels are of images; pass these, too, or leave --labels out.")
        about["y"] = read_labels(options.labels, images.files)
    path = report(model, options.output, **about, overwrite=options.force)
    size = path.stat().st_size
    say(options, {"report": str(path), "bytes": size}, f"{path}: {size / 1000:,.0f} kB")
    return DONE


COMMANDS = (
    Command(
        "report",
        "write one HTML file with parts, places, errors and settings",
        "hcnet report letters.hcn page.png -o report.html",
        _arguments,
        _run,
    ),
)
