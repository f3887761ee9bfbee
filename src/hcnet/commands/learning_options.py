"""The options of ``learn`` that are parameters of the estimators, under the same names.

Only names, kinds and one line of help are here: what is not given is left to the estimator, which
has the defaults and the checks.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hcnet.commands import arguments

PARTS, NETWORK = "FeatureLearner", "HCN"
BOTH = (PARTS, NETWORK)
SCHEDULES = ("sequential", "per-image", "blocks", "flooding")
ENGINES = ("active", "beliefs", "dense", "reference")
ENGINE_OPTIONS = ("schedule", "damping", "deterministic")
# Keys of a layer, as the parameters of `hcnet.Layer`, and how their texts become values.
LAYER_KEYS: dict[str, Callable[[str], Any]] = {
    "n_features": int,
    "size": arguments.size,
    "pool": arguments.size,
    "pool_border": str,
    "perturbation": float,
    "p_W": float,
    "damping": float,
}
TEMPLATES = "templates"


@dataclass(frozen=True)
class Option:
    """A parameter of one estimator, or of both."""

    name: str
    kind: Callable[[str], Any] | None  # None: a switch
    help: str
    of: tuple[str, ...] = BOTH
    choices: tuple[str, ...] | None = None


OPTIONS = (
    Option("n_features", int, "the most parts to learn", (PARTS,)),
    Option("feature_size", arguments.size, "window of a part, as 12x12", (PARTS,)),
    Option("border", str, "may parts reach over the border?", (PARTS,), ("full", "valid")),
    Option(
        "algorithm",
        str,
        "message passing (mpmp), also refined by discrete moves",
        (PARTS,),
        ("refined", "mpmp"),
    ),
    Option("p_S", float, "probability that a placement is on", (PARTS,)),
    Option("p_W", float, "probability that a weight is on", (PARTS,)),
    Option("p01", float, "probability that an on pixel is seen off"),
    Option("p10", float, "probability that an off pixel is seen on"),
    Option("n_classes", int, "classes; without labels, clusters", (NETWORK,)),
    Option("templates_per_class", int, "templates that each class has", (NETWORK,)),
    Option(
        "inference",
        str,
        "how known weights are used",
        (NETWORK,),
        ("explain", "forward", "passing", "match"),
    ),
    Option("vote", None, "whether passes vote about the weights", (NETWORK,)),
    Option("n_init", int, "number of starts"),
    Option("max_iter", int, "sweeps or passes per start"),
    Option("max_seconds", float, "stop after about this time"),
    Option("max_memory", arguments.amount, "most memory of the messages, as 2GiB"),
    Option("schedule", str, "order of the message updates", BOTH, SCHEDULES),
    Option("damping", float, "share of a new message that is taken", (PARTS,)),
    Option("engine", str, "what passes the messages", BOTH, ENGINES),
    Option("device", str, "where messages are passed", BOTH, ("cpu", "cuda", "auto")),
    Option("deterministic", None, "whether a GPU must give the same bits on every run"),
    Option("random_state", arguments.seed, "seed: the same one gives the same result"),
)


def add_learning_options(parser: argparse.ArgumentParser) -> None:
    """All of them, and the layers of a network."""
    titles = {
        (PARTS,): "parts (without --layer)",
        (NETWORK,): "networks (with --layer)",
        BOTH: "both",
    }
    groups = {of: parser.add_argument_group(title) for of, title in titles.items()}
    groups[(NETWORK,)].add_argument(
        "--layer",
        dest="layers",
        action="append",
        type=layer,
        metavar="KEY=VALUE,…",
        help="a layer, from the image upwards, with the keys of hcnet.Layer: "
        "n_features=4,size=21; the last one is the word templates",
    )
    for option in OPTIONS:
        flag = f"--{option.name.replace('_', '-')}"
        common: dict[str, Any] = {"default": argparse.SUPPRESS, "help": option.help}
        if option.kind is None:
            common["action"] = argparse.BooleanOptionalAction
        else:
            common["type"] = option.kind
            common["choices"] = option.choices
            if option.choices is None:
                common["metavar"] = "HxW" if option.kind is arguments.size else "N"
        groups[option.of].add_argument(flag, **common)


def layer(text: str) -> dict[str, Any]:
    """A layer as n_features=4,size=21x21,pool=3; the word templates leaves everything open."""
    found: dict[str, Any] = {}
    for word in text.split(","):
        key, equals, value = word.strip().partition("=")
        if key == TEMPLATES and not equals:
            continue
        if key not in LAYER_KEYS or not equals:
            raise argparse.ArgumentTypeError(
                f"must be KEY=VALUE pairs with the keys {', '.join(LAYER_KEYS)}, or the word "
                f"{TEMPLATES}, got {word.strip()!r}"
            )
        try:
            found[key] = LAYER_KEYS[key](value)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{key} cannot be {value!r}") from None
    return found


def parameters(options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Which estimator is meant, and the parameters that were given.

    The options of the engine make up one parameter.
    """
    kind = NETWORK if options.layers else PARTS
    given = {o.name: getattr(options, o.name) for o in OPTIONS if hasattr(options, o.name)}
    for option in OPTIONS:
        if option.name in given and kind not in option.of:
            other = "has layers" if kind == NETWORK else "has no layers"
            raise ValueError(
                f"{option.name} is a parameter of {option.of[0]}, and this model {other}, which "
                f"makes it a {kind}; leave it out{'' if kind == NETWORK else ', or add --layer'}."
            )
    about_engine = {name: given.pop(name) for name in ENGINE_OPTIONS if name in given}
    if about_engine:
        from hcnet import Engine

        given["engine"] = Engine(given.get("engine", "active"), **about_engine)
    return kind, given
