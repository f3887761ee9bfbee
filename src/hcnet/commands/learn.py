"""``hcnet learn``: parts, a network or templates from image files.

Options that are parameters of the estimators have the same names.  Defaults and checks stay with
the estimators: an option that is not given is not passed on.
"""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from hcnet import names
from hcnet.commands import command, running

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from hcnet import FeatureLearner
    from hcnet.commands.command import Model
    from hcnet.image_files import ImageSet

PARTS, NETWORK, TEMPLATES = "FeatureLearner", "HCN", "TemplateClassifier"
PASSING = (PARTS, NETWORK)  # estimators that pass messages
CLASSES = (NETWORK, TEMPLATES)
ALL = (PARTS, NETWORK, TEMPLATES)
# Titles of the options in the help, by the estimators that have them.
TITLES = {
    (PARTS,): "parts (without --layer and --templates)",
    (NETWORK,): "networks (with --layer)",
    (TEMPLATES,): "templates (with --templates)",
    CLASSES: "networks and templates",
    PASSING: "parts and networks",
    ALL: "all models",
}
# Keys of a layer, as the parameters of `hcnet.Layer`, and the conversion of their texts.
LAYER_KEYS: dict[str, Callable[[str], Any]] = {
    "n_features": int,
    "size": command.size,
    "pool": command.size,
    "pool_border": str,
    "perturbation": float,
    "p_W": float,
    "damping": float,
    "variants": int,
    "pool_features": int,
    "feature_order": str,
    "pool_prior": str,
}
LAST_LAYER = "templates"
# Options that together make up the parameter `engine`.
ENGINE_OPTIONS = ("schedule", "damping")
# Images at the beginning of a stream that decide which side is the ink, and appear in reports.
FIRST_IMAGES = 12
# Columns of the table of places.
PLACES = ("page", "part", "row", "column", "bits_saved")
# Options of a stream: type and help.
STREAM_OPTIONS = {
    "batch_size": (int, "images of a minibatch"),
    "epochs": (int, "read all images into memory, and learn from each so many times"),
    "forgetting": (float, "share of the beliefs that is kept from minibatch to minibatch"),
}


class Option(NamedTuple):
    """A parameter of some estimators; its kind converts the text, None is a switch."""

    name: str
    kind: Callable[[str], Any] | None
    help: str
    of: tuple[str, ...]
    choices: tuple[str, ...] | None = None


OPTIONS = (
    Option("n_features", int, "largest number of parts", (PARTS,)),
    Option("feature_size", command.size, "window of a part, such as 12x12", (PARTS,)),
    Option("border", str, "whether parts may reach over the border", (PARTS,), ("full", "valid")),
    Option("algorithm", str, "soft is for parts as in scans", (PARTS,), names.ALGORITHMS),
    Option("p_S", float, "probability that a placement is on", (PARTS,)),
    Option("p_W", float, "probability that a weight is on", (PARTS,)),
    Option("p01", float, "probability that an on pixel is seen off", PASSING),
    Option("p10", float, "probability that an off pixel is seen on", PASSING),
    Option("n_parts", int, "number of parts", (TEMPLATES,)),
    Option("part_size", command.size, "window of a part, such as 7x7", (TEMPLATES,)),
    Option("pool", command.size, "window in which pixels of a part shift", (TEMPLATES,)),
    Option("template_pool", command.size, "window in which parts shift", (TEMPLATES,)),
    Option("pool_border", str, "same: parts may lie at the border", (TEMPLATES,), ("same", "full")),
    Option("variants", int, "deformed variants of every example to recognise by", (TEMPLATES,)),
    Option("placement", int, "pixels by which objects may be shifted", (TEMPLATES,)),
    Option("n_classes", int, "number of classes; without labels, of clusters", CLASSES),
    Option("templates_per_class", int, "number of templates of each class", CLASSES),
    Option("inference", str, "how known weights are used", (NETWORK,), names.METHODS),
    Option("vote", None, "whether passes vote about the weights", (NETWORK,)),
    Option("n_init", int, "number of starts", PASSING),
    Option("max_iter", int, "sweeps, passes or rounds per start", ALL),
    Option("max_seconds", float, "stop after about this time", ALL),
    Option("max_memory", command.amount, "largest memory for learning, such as 2GiB", ALL),
    Option("engine", str, "storage of the messages", PASSING, names.ENGINE_NAMES),
    Option("schedule", str, "order of the message updates", PASSING, names.SCHEDULE_NAMES),
    Option("damping", float, "share of a new message that is taken", (PARTS,)),
    Option("device", str, "processor or GPU", PASSING, names.DEVICE_NAMES),
    Option("random_state", command.seed, "seed: the same one gives the same result", ALL),
)


def add_learning_options(parser: argparse.ArgumentParser) -> None:
    """All options, in groups by estimator."""
    groups = {of: parser.add_argument_group(title) for of, title in TITLES.items()}
    groups[(NETWORK,)].add_argument(
        "--layer",
        dest="layers",
        action="append",
        type=layer,
        metavar="KEY=VALUE,…",
        help="a layer, from the image upwards, with the keys of hcnet.Layer: "
        "n_features=4,size=21; the last one is the word templates",
    )
    groups[(TEMPLATES,)].add_argument(
        "--templates",
        action="store_true",
        help="learn parts by search and keep examples as templates, for handwriting and drawings",
    )
    for option in OPTIONS:
        settings: dict[str, Any] = {"default": argparse.SUPPRESS, "help": option.help}
        if option.kind is None:
            settings["action"] = argparse.BooleanOptionalAction
        else:
            settings |= {"type": option.kind, "choices": option.choices}
            if option.choices is None:
                settings["metavar"] = "HxW" if option.kind is command.size else "N"
        groups[option.of].add_argument(f"--{option.name.replace('_', '-')}", **settings)


def layer(text: str) -> dict[str, Any]:
    """A layer as n_features=4,size=21x21,pool=3; the word templates leaves everything open."""
    found: dict[str, Any] = {}
    for word in text.split(","):
        key, equals, value = word.strip().partition("=")
        if key == LAST_LAYER and not equals:
            continue
        if key not in LAYER_KEYS or not equals:
            raise argparse.ArgumentTypeError(
                f"must be KEY=VALUE pairs with the keys {', '.join(LAYER_KEYS)}, or the word "
                f"{LAST_LAYER}, got {word.strip()!r}"
            )
        try:
            found[key] = LAYER_KEYS[key](value)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{key} cannot be {value!r}") from None
    return found


def parameters(options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """The name of the estimator, and its parameters that were given.

    The options of the engine make up one parameter.
    """
    if options.templates and options.layers:
        raise ValueError("--templates and --layer learn different models; leave one of them out.")
    kind = NETWORK if options.layers else TEMPLATES if options.templates else PARTS
    given = {o.name: getattr(options, o.name) for o in OPTIONS if hasattr(options, o.name)}
    for option in OPTIONS:
        if option.name in given and kind not in option.of:
            switches = {PARTS: "no --layer", NETWORK: "--layer", TEMPLATES: "--templates"}
            raise ValueError(
                f"{option.name} is a parameter of {' and '.join(option.of)}, and this command "
                f"learns a {kind}; leave it out, or use {switches[option.of[0]]}."
            )
    of_engine = {name: given.pop(name) for name in ENGINE_OPTIONS if name in given}
    if of_engine:
        from hcnet import Engine

        given["engine"] = Engine(given.get("engine", Engine().name), **of_engine)
    return kind, given


def _arguments(parser: argparse.ArgumentParser) -> None:
    command.add_images(parser)
    command.add_output(parser, "the model file to write, for example letters.hcn")
    parser.add_argument(
        "--labels",
        metavar="FILE",
        help="labels of a network: a line per image, a table of file and label, an array, or the "
        "word folders for the names of the folders that the images are in; -1 is no label",
    )
    command.add_mask(parser)
    parser.add_argument(
        "--stream", action="store_true", help="read each image once, in memory that does not grow"
    )
    for name, (kind, text) in STREAM_OPTIONS.items():
        option = f"--{name.replace('_', '-')}"
        help = f"with --stream: {text}"
        parser.add_argument(option, type=kind, default=argparse.SUPPRESS, metavar="N", help=help)
    help = "the file that keeps the state of learning, from which the same command goes on "
    help += "(default: beside the model, and removed at the end)"
    command.add_file(parser, "--checkpoint", help)
    help = "time between two checkpoints"
    parser.add_argument("--every", type=float, metavar="SECONDS", help=help)
    command.add_file(parser, "--sheet", "also draw all parts, the most used first (.png)")
    help = "also write a table of all places of parts, with the bits that each saves (.csv)"
    command.add_file(parser, "--table", help)
    command.add_file(parser, "--report", "also write a report (.html)")
    command.add_file(parser, "--live", "rewrite the report (.html) during learning")
    add_learning_options(parser)


@command.command(
    "hcnet learn scans/ --feature-size 12x12 --random-state 0 -o letters.hcn\n"
    "  hcnet learn shapes.npz --labels shapes.npz --layer n_features=4,size=21 "
    "--layer templates \\\n      --templates-per-class 2 -o shapes.hcn",
    _arguments,
    output="model",
    sheet="picture",
    table="table",
    report="report",
    live="report",
)
def learn(options: argparse.Namespace) -> int:
    """Learn the parts of images, or a network of them, and write a model file."""
    from hcnet.engine.driver import Status, interruptible
    from hcnet.image_files import files_of_images, read_labels
    from hcnet.plotting import save_picture, show_parts
    from hcnet.reporting import summary

    kind, given = parameters(options)
    _check(options, kind)
    began = time.perf_counter()
    images = command.read(options, options.mask, first=FIRST_IMAGES if options.stream else None)
    y = None
    if options.labels is not None:  # of all images of a stream: labels fit into memory
        files = files_of_images(options.images) if options.stream else images.files
        y = read_labels(options.labels, files)
    model = _estimator(options, kind, given, images)
    if kind == PARTS:
        running.tell_choices(options, model)
    with interruptible():  # a second Ctrl-C must not keep the model from being saved
        with running.watched(options, model):
            _fit(options, model, images, y)
        interrupted = model.status_ == Status.INTERRUPTED.value
        if interrupted and kind == PARTS and not len(model.features_):
            raise KeyboardInterrupt  # nothing to save yet
        running.save(options, model, interrupted)
    if interrupted:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # one more has nothing left to end
    seconds = time.perf_counter() - began
    if not interrupted:  # the rest takes its time
        if options.sheet is not None:
            save_picture(show_parts(model), options.sheet, options.force)
        if options.table is not None:
            _write_places(options, model, images)
        _write_reports(options, model, images, y)
    figures = summary(model) | {"seconds": round(seconds, 3), "model": str(options.output)}
    if kind == PARTS:
        figures["algorithm"] = getattr(model, "algorithm_", model.algorithm)
    command.print_result(options, figures, _text(figures))
    return command.INTERRUPTED if interrupted else command.DONE


def _check(options: argparse.Namespace, kind: str) -> None:
    for name in {} if options.stream else _stream_options(options):
        raise ValueError(f"{name} is an option of a stream; add --stream, or leave it out.")
    if options.stream and kind == TEMPLATES:
        raise ValueError("Templates are not learned from a stream; leave --stream out.")
    for option in ("sheet", "table"):
        if getattr(options, option) is not None and kind != PARTS:
            raise ValueError(f"--{option} shows parts, and a {kind} has layers; leave it out.")
    if options.stream and options.table is not None:
        raise ValueError(
            "A stream does not keep the places of parts; leave --table out, and use hcnet encode."
        )
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
        command.note(options, f"watch {options.live} in a browser.")
    if kind == NETWORK:
        given["layers"] = [hcnet.Layer(**layer) for layer in options.layers]
    model: Model = getattr(hcnet, kind)(**given)
    return model


def _stream_options(options: argparse.Namespace) -> dict[str, Any]:
    """The given options of a stream."""
    return {name: getattr(options, name) for name in STREAM_OPTIONS if hasattr(options, name)}


def _fit(
    options: argparse.Namespace, model: Model, images: ImageSet, y: NDArray[Any] | None
) -> None:
    keep: dict[str, Any] = {"checkpoint": running.checkpoint(options)}
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
        from hcnet.validation.parameters import check_labels

        keep["classes"] = check_labels(y, len(y), getattr(options, "n_classes", None)).classes
        stream = zip(stream, y.tolist(), strict=True)
    model.fit_stream(stream, **_stream_options(options), **keep)


def _write_places(options: argparse.Namespace, model: FeatureLearner, images: ImageSet) -> None:
    """A row per placement: page, part, top left corner of the part's own box, bits saved."""
    from hcnet.images import part_boxes

    bits = model._bits_saved(images.X, images.mask)
    n, part, row, column = model.placements_.T
    top, left = part_boxes(model.features_)[part, :2].T
    columns = zip(n, part, row + top, column + left, bits, strict=True)
    table = [(images.names[k], *place, f"{saved:.1f}") for k, *place, saved in sorted(columns)]
    command.write_text(options.table, command.as_csv(PLACES, table), options.force)


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
        size, algorithm = "{}×{}".format(*figures["feature_size"]), figures["algorithm"]
        kind = f"in windows of {size}, {algorithm}"
        if algorithm == "soft":
            kind = f"of at most {size} pixels, which repeat approximately (soft)"
        rows += [("Parts", f"{figures['parts']} {kind}")]
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
    return command.aligned(rows)


COMMANDS = (learn,)
