"""``hcnet show`` and ``report`` for models; ``demo``, ``info`` and ``completion``."""

from __future__ import annotations

import argparse
import shutil
from typing import Any

from hcnet.commands import command

SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")


def _show_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_model(parser)
    command.add_output(parser, "also draw it into this picture (.png)", required=False)
    parser.add_argument(
        "--scale", type=int, metavar="N", help="screen pixels per pixel in the picture"
    )


def _report_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_model(parser)
    command.add_images(parser, required=False)
    parser.add_argument("--labels", metavar="FILE", help="true labels of a network, as in learn")
    command.add_output(parser, "the report to write (.html)")


@command.command("hcnet show letters.hcn -o parts.png", _show_arguments, output="picture")
def show(options: argparse.Namespace) -> int:
    """Show the parts, the hierarchy and a summary of a model."""
    model = command.load_model(options.model)
    from hcnet import FeatureLearner
    from hcnet.reporting import summary

    figures = summary(model)
    describe: Any = _parts_text if isinstance(model, FeatureLearner) else _network_text
    command.print_result(options, figures, describe(model, figures))
    if options.output is not None:
        command.save_drawing(options, options.output, "show_model", model, scale=options.scale)
        command.note(options, f"drawn into {options.output}.")
    return command.DONE


@command.command(
    "hcnet report letters.hcn page.png -o report.html", _report_arguments, output="report"
)
def report(options: argparse.Namespace) -> int:
    """Write one HTML file with parts, places, errors and settings."""
    from hcnet import FeatureLearner
    from hcnet.image_files import read_labels
    from hcnet.reporting import report

    model = command.load_model(options.model)
    about: dict[str, Any] = {}
    if options.images:
        images = command.read(options)
        about = {"X": images.X, "mask": images.mask, "names": images.names}
    if options.labels is not None:
        if isinstance(model, FeatureLearner):
            raise ValueError("Parts have no labels; leave --labels out.")
        if not options.images:
            raise ValueError("Labels belong to images; pass images, or leave --labels out.")
        about["y"] = read_labels(options.labels, images.files)
    path = report(model, options.output, **about, overwrite=options.force)
    size = path.stat().st_size
    text = f"{path}: {size / 1000:,.0f} kB"
    return command.print_result(options, {"report": str(path), "bytes": size}, text)


def _parts_text(model: Any, figures: dict[str, Any]) -> str:
    from hcnet.images import part_boxes

    h, w = figures["feature_size"]
    rows = [
        ("Parts", f"{figures['parts']} of at most {h}×{w} pixels, the most used first"),
        *_shared_rows(figures),
        ("Density", f"p_S {figures['p_S']:.2g}, p_W {figures['p_W']:.2g}"),
    ]
    boxes = part_boxes(model.features_).tolist()
    parts = [
        part[:, top : bottom or 1, left : right or 1]
        for part, (top, left, bottom, right) in zip(model.features_, boxes, strict=True)
    ]
    names = model.part_names_.tolist()
    return f"{command.aligned(rows)}\n\n{_sheet(parts, 'part', names)}".rstrip()


def _network_text(model: Any, figures: dict[str, Any]) -> str:
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
    return "\n".join([command.aligned(rows), "", *lines, "", _sheet(model.weights_[0], "feature")])


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


def _sheet(features: Any, name: str, names: list[str] | None = None) -> str:
    from hcnet.plotting.drawing import text_sheet

    names = names or [""] * len(features)
    captions = [f"{name} {f} {own}".rstrip() for f, own in enumerate(names)]
    return text_sheet(list(features), captions, shutil.get_terminal_size().columns)


def _demo_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_folder(parser, "folder for pictures and model")
    parser.add_argument(
        "--seed", type=command.seed, default=0, metavar="N", help="another picture (default: 0)"
    )
    command.add_force(parser)


def _completion_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


@command.command("hcnet demo --output demo-output", _demo_arguments)
def demo(options: argparse.Namespace) -> int:
    """Learn the letters of a noisy picture, and draw the result."""
    from hcnet.demo import run_demo

    found = run_demo(options.output, options.seed, command.on_a_terminal(options), options.force)
    return command.print_result(options, *found)


@command.command("hcnet info --json", lambda parser: None)  # no arguments
def info(options: argparse.Namespace) -> int:
    """Print versions, engines, processor, memory and graphics cards."""
    from hcnet.environment import environment

    found = environment()
    memory, default = found["memory"], found["default_engine"]
    engines = [f"{name} (default)" if name == default else name for name in found["engines"]]
    rows = [
        *found["versions"].items(),
        ("engines", ", ".join(engines)),
        ("system", found["system"]),
        ("processor", found["processor"]),
        ("cores", str(found["cores"])),
        ("memory", "unknown" if memory is None else f"{memory / 2**30:.1f} GiB"),
        ("gpu", "; ".join(found["gpus"]) or "none"),
        ("device=cuda", "ready" if found["cuda"] is None else f"not available: {found['cuda']}"),
    ]
    return command.print_result(options, found, command.aligned(rows))


@command.command(
    'eval "$(hcnet completion bash)"      # in ~/.bashrc; zsh: after compinit in ~/.zshrc\n'
    "  hcnet completion fish | source       # in ~/.config/fish/config.fish",
    _completion_arguments,
)
def completion(options: argparse.Namespace) -> int:
    """Print a script that completes hcnet's commands and options in a shell."""
    try:
        import shtab
    except ImportError:
        raise ImportError(
            "Completion scripts are made by the package shtab; install it with "
            "pip install 'hcnet[completion]'."
        ) from None
    for parser in options.parsers.values():
        for action in parser._actions:
            if action.type is command.path or action.metavar == "FILE":
                action.complete = shtab.FILE
    print(shtab.complete(options.parser, options.shell))
    return command.DONE


COMMANDS = (show, report, demo, info, completion)
