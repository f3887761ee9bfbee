"""The options of ``learn`` that are parameters of the estimators, under the same names.

Defaults and checks stay with the estimators: an option that is not given is not passed on.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

from hcnet import names
from hcnet.commands import arguments

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
    "size": arguments.size,
    "pool": arguments.size,
    "pool_border": str,
    "perturbation": float,
    "p_W": float,
    "damping": float,
}
LAST_LAYER = "templates"
# Options that together make up the parameter `engine`.
ENGINE_OPTIONS = ("schedule", "damping")


class Option(NamedTuple):
    """A parameter of some estimators; its kind converts the text, None is a switch."""

    name: str
    kind: Callable[[str], Any] | None
    help: str
    of: tuple[str, ...]
    choices: tuple[str, ...] | None = None


OPTIONS = (
    Option("n_features", int, "largest number of parts", (PARTS,)),
    Option("feature_size", arguments.size, "window of a part, such as 12x12", (PARTS,)),
    Option("border", str, "whether parts may reach over the border", (PARTS,), ("full", "valid")),
    Option("algorithm", str, "message passing, or refined by moves", (PARTS,), names.ALGORITHMS),
    Option("p_S", float, "probability that a placement is on", (PARTS,)),
    Option("p_W", float, "probability that a weight is on", (PARTS,)),
    Option("p01", float, "probability that an on pixel is seen off", PASSING),
    Option("p10", float, "probability that an off pixel is seen on", PASSING),
    Option("n_parts", int, "number of parts", (TEMPLATES,)),
    Option("part_size", arguments.size, "window of a part, such as 7x7", (TEMPLATES,)),
    Option("pool", arguments.size, "window in which pixels of a part shift", (TEMPLATES,)),
    Option("template_pool", arguments.size, "window in which parts shift", (TEMPLATES,)),
    Option("pool_border", str, "same: parts may lie at the border", (TEMPLATES,), ("same", "full")),
    Option("n_classes", int, "number of classes; without labels, of clusters", CLASSES),
    Option("templates_per_class", int, "number of templates of each class", CLASSES),
    Option("inference", str, "how known weights are used", (NETWORK,), names.METHODS),
    Option("vote", None, "whether passes vote about the weights", (NETWORK,)),
    Option("n_init", int, "number of starts", PASSING),
    Option("max_iter", int, "sweeps, passes or rounds per start", ALL),
    Option("max_seconds", float, "stop after about this time", ALL),
    Option("max_memory", arguments.amount, "largest memory for learning, such as 2GiB", ALL),
    Option("engine", str, "storage of the messages", PASSING, names.ENGINE_NAMES),
    Option("schedule", str, "order of the message updates", PASSING, names.SCHEDULE_NAMES),
    Option("damping", float, "share of a new message that is taken", (PARTS,)),
    Option("device", str, "processor or GPU", PASSING, names.DEVICE_NAMES),
    Option("random_state", arguments.seed, "seed: the same one gives the same result", ALL),
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
                settings["metavar"] = "HxW" if option.kind is arguments.size else "N"
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
