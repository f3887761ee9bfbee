"""``hcnet sample``: draw new images from a network."""

from __future__ import annotations

import argparse

from hcnet.commands import arguments
from hcnet.commands.command import DONE, Command, say


def _arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_model(parser)
    parser.add_argument("--n", "-n", type=int, default=1, metavar="N", help="images (default: 1)")
    parser.add_argument("--label", metavar="CLASS", help="of this class only")
    parser.add_argument(
        "--random-state", type=arguments.seed, default=None, metavar="N", help="seed"
    )
    parser.add_argument(
        "--clean", action="store_true", help="without noise and shifts of single pixels"
    )
    parser.add_argument(
        "--ink",
        choices=("bright", "dark"),
        default="dark",
        help="how on pixels are drawn (default: dark on white)",
    )
    arguments.add_output(parser, arguments.IMAGES_OUT)


def _run(options: argparse.Namespace) -> int:
    from hcnet.commands.models import load_network
    from hcnet.commands.outputs import check_images
    from hcnet.image_files import write_images

    check_images(options.force, options.output)
    model = load_network(options.model, "sample")
    by_name = {str(name): name for name in model.classes_.tolist()}
    label = by_name.get(options.label, options.label)
    images, classes = model.sample(options.n, label, options.random_state, options.clean)
    files = write_images(
        options.output, list(images), dark=options.ink == "dark", overwrite=options.force
    )
    told = {"classes": classes.tolist(), "files": [str(file) for file in files]}
    several = "image" if options.n == 1 else "images"
    say(options, told, f"{options.n} {several} written to {options.output}")
    return DONE


COMMANDS = (
    Command(
        "sample",
        "draw new images from a network",
        "hcnet sample shapes.hcn -n 16 --random-state 0 -o samples.tif",
        _arguments,
        _run,
    ),
)
