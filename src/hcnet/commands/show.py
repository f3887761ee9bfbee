"""``hcnet show``: what is in a model, on the terminal and as a picture."""

from __future__ import annotations

import argparse
import shutil
from typing import TYPE_CHECKING, Any

from hcnet.commands import arguments
from hcnet.commands.command import DONE, Command, aligned, note, say

if TYPE_CHECKING:
    from hcnet import HCN, FeatureLearner, TemplateClassifier


def _arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_model(parser)
    arguments.add_output(parser, "also draw it into this picture (.png)", required=False)
    parser.add_argument(
        "--scale", type=int, metavar="N", help="screen pixels per pixel in the picture"
    )


def _run(options: argparse.Namespace) -> int:
    from hcnet.commands.models import load_model
    from hcnet.commands.outputs import check_picture

    check_picture(options.force, options.output)
    model = load_model(options.model)
    from hcnet import FeatureLearner
    from hcnet.reporting import summary

    told = summary(model)
    parts = isinstance(model, FeatureLearner)
    text = _parts_text(model, told) if parts else _network_text(model, told)
    say(options, told, text)
    if options.output is not None:
        from hcnet.plotting import save_picture, show_model

        picture = show_model(model, options.scale)
        save_picture(picture, options.output, overwrite=options.force)
        note(options, f"drawn into {options.output}.")
    return DONE


def _width() -> int:
    return shutil.get_terminal_size().columns


def _parts_text(model: FeatureLearner, told: dict[str, Any]) -> str:
    from hcnet.plotting.terminal import text_sheet

    h, w = told["feature_size"]
    rows = [
        ("Parts", f"{told['parts']} of at most {h}×{w} pixels, the most used first"),
        ("Images", _images(told)),
        ("Noise", f"p01 {told['p01']:.2g}, p10 {told['p10']:.2g}"),
        ("Density", f"p_S {told['p_S']:.2g}, p_W {told['p_W']:.2g}"),
        *_stream(told),
    ]
    captions = [f"part {f}" for f in range(len(model.features_))]
    return f"{aligned(rows)}\n\n{text_sheet(list(model.features_), captions, _width())}".rstrip()


def _network_text(model: HCN | TemplateClassifier, told: dict[str, Any]) -> str:
    from hcnet.hierarchy.composition import children
    from hcnet.plotting.terminal import text_sheet

    rows = [("Images", _images(told)), ("Classes", ", ".join(map(str, told["classes"])))]
    for k, layer in enumerate(told["layers"], 1):
        h, w = layer["size"]
        pool = "×".join(map(str, layer["pool"]))
        name = "templates" if k == len(told["layers"]) else "features"
        rows.append((f"Layer {k}", f"{layer['features']} {name} of {h}×{w}, pools of {pool}"))
    rows += [("Noise", f"p01 {told['p01']:.2g}, p10 {told['p10']:.2g}"), *_stream(told)]
    first = text_sheet(
        list(model.weights_[0]),
        [f"feature {f}" for f in range(len(model.weights_[0]))],
        _width(),
    )
    lines = []
    for k in range(len(model.weights_) - 1, 0, -1):
        for f, parts in enumerate(children(model.weights_[k])):
            name = f"class {model.template_classes_[f]}: template {f}"
            if k < len(model.weights_) - 1:
                name = f"layer {k + 1} feature {f}"
            below = ", ".join(f"{part} at {r},{c}" for part, r, c in parts) or "nothing"
            lines.append(f"{name} = layer {k}: {below}")
    return "\n".join([aligned(rows), "", *lines, "", first])


def _images(told: dict[str, Any]) -> str:
    height, width = told["image_size"]
    channels = "" if told["channels"] == 1 else f", {told['channels']} channels"
    return f"{height}×{width} pixels{channels}"


def _stream(told: dict[str, Any]) -> list[tuple[str, str]]:
    seen = told.get("n_images_seen")
    return [] if seen is None else [("Stream", f"{seen:,} images so far")]


COMMANDS = (
    Command(
        "show",
        "show the parts, the hierarchy and a summary of a model",
        "hcnet show letters.hcn -o parts.png",
        _arguments,
        _run,
    ),
)
