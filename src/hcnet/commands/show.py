"""``hcnet show`` and ``hcnet report``: a model on the terminal, as a picture, and as a page."""

from __future__ import annotations

import argparse
import shutil
from typing import TYPE_CHECKING, Any

from hcnet.commands import arguments
from hcnet.commands.command import DONE, Command, aligned, note, print_result
from hcnet.commands.inputs import load_model, read
from hcnet.commands.outputs import save

if TYPE_CHECKING:
    from hcnet import FeatureLearner
    from hcnet.commands.inputs import Network


def _show_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_model(parser)
    arguments.add_output(parser, "also draw it into this picture (.png)", required=False)
    parser.add_argument(
        "--scale", type=int, metavar="N", help="screen pixels per pixel in the picture"
    )


def _report_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_model(parser)
    arguments.add_images(parser, required=False)
    parser.add_argument("--labels", metavar="FILE", help="true labels of a network, as in learn")
    arguments.add_output(parser, "the report to write (.html)")


def _show(options: argparse.Namespace) -> int:
    model = load_model(options.model)
    from hcnet import FeatureLearner
    from hcnet.reporting import summary

    figures = summary(model)
    describe: Any = _parts_text if isinstance(model, FeatureLearner) else _network_text
    print_result(options, figures, describe(model, figures))
    if options.output is not None:
        from hcnet.plotting import show_model

        save(options, show_model(model, scale=options.scale), options.output)
        note(options, f"drawn into {options.output}.")
    return DONE


def _report(options: argparse.Namespace) -> int:
    from hcnet import FeatureLearner
    from hcnet.image_files import read_labels
    from hcnet.reporting import report

    model = load_model(options.model)
    about: dict[str, Any] = {}
    if options.images:
        images = read(options)
        about = {"X": images.X, "mask": images.mask, "names": images.names}
    if options.labels is not None:
        if isinstance(model, FeatureLearner):
            raise ValueError("Parts have no labels; leave --labels out.")
        if not options.images:
            raise ValueError("Labels belong to images; pass images, or leave --labels out.")
        about["y"] = read_labels(options.labels, images.files)
    path = report(model, options.output, **about, overwrite=options.force)
    size = path.stat().st_size
    print_result(options, {"report": str(path), "bytes": size}, f"{path}: {size / 1000:,.0f} kB")
    return DONE


def _parts_text(model: FeatureLearner, figures: dict[str, Any]) -> str:
    h, w = figures["feature_size"]
    rows = [
        ("Parts", f"{figures['parts']} of at most {h}×{w} pixels, the most used first"),
        *_shared_rows(figures),
        ("Density", f"p_S {figures['p_S']:.2g}, p_W {figures['p_W']:.2g}"),
    ]
    return f"{aligned(rows)}\n\n{_sheet(model.features_, 'part')}".rstrip()


def _network_text(model: Network, figures: dict[str, Any]) -> str:
    from hcnet.hierarchy.decoding import children

    rows = [*_shared_rows(figures), ("Classes", ", ".join(map(str, figures["classes"])))]
    last = len(figures["layers"])
    for k, layer in enumerate(figures["layers"], 1):
        h, w = layer["size"]
        pool = "×".join(map(str, layer["pool"]))
        name = "templates" if k == last else "features"
        rows.append((f"Layer {k}", f"{layer['features']} {name} of {h}×{w}, pools of {pool}"))
    lines = []
    for k in range(last, 1, -1):
        for f, parts in enumerate(children(model.weights_[k - 1])):
            name = f"layer {k} feature {f}"
            if k == last:
                name = f"class {model.template_classes_[f]}: template {f}"
            below = ", ".join(f"{part} at {r},{c}" for part, r, c in parts) or "nothing"
            lines.append(f"{name} = layer {k - 1}: {below}")
    return "\n".join([aligned(rows), "", *lines, "", _sheet(model.weights_[0], "feature")])


def _shared_rows(figures: dict[str, Any]) -> list[tuple[str, str]]:
    height, width = figures["image_size"]
    channels = "" if figures["channels"] == 1 else f", {figures['channels']} channels"
    rows = [
        ("Images", f"{height}×{width} pixels{channels}"),
        ("Noise", f"p01 {figures['p01']:.2g}, p10 {figures['p10']:.2g}"),
    ]
    if figures.get("n_images_seen") is not None:
        rows.append(("Stream", f"{figures['n_images_seen']:,} images so far"))
    return rows


def _sheet(features: Any, name: str) -> str:
    from hcnet.plotting.drawing import text_sheet

    captions = [f"{name} {f}" for f in range(len(features))]
    return text_sheet(list(features), captions, shutil.get_terminal_size().columns)


COMMANDS = (
    Command(
        "show",
        "show the parts, the hierarchy and a summary of a model",
        "hcnet show letters.hcn -o parts.png",
        _show_arguments,
        _show,
        {"output": "picture"},
    ),
    Command(
        "report",
        "write one HTML file with parts, places, errors and settings",
        "hcnet report letters.hcn page.png -o report.html",
        _report_arguments,
        _report,
        {"output": "report"},
    ),
)
