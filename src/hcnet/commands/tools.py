"""``hcnet demo``, ``hcnet info`` and ``hcnet completion``."""

from __future__ import annotations

import argparse
from pathlib import Path

from hcnet.commands import arguments
from hcnet.commands.command import DONE, Command, aligned, on_a_terminal, print_result

SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")


def _demo_arguments(parser: argparse.ArgumentParser) -> None:
    help = "folder for pictures and model"
    parser.add_argument("--output", "-o", type=Path, required=True, metavar="DIR", help=help)
    parser.add_argument(
        "--seed", type=arguments.seed, default=0, metavar="N", help="another picture (default: 0)"
    )
    arguments.add_force(parser)


def _info_arguments(parser: argparse.ArgumentParser) -> None:
    """There are no arguments."""


def _completion_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


def _demo(options: argparse.Namespace) -> int:
    from hcnet.demo import run_demo

    found = run_demo(options.output, options.seed, on_a_terminal(options), options.force)
    print_result(options, found.result, found.text)
    return DONE


def _info(options: argparse.Namespace) -> int:
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
    print_result(options, found, aligned(rows))
    return DONE


def _completion(options: argparse.Namespace) -> int:
    try:
        import shtab
    except ImportError:
        raise ImportError(
            "Completion scripts are made by the package shtab; install it with "
            "pip install 'hcnet[completion]'."
        ) from None
    for parser in options.parsers.values():
        for action in parser._actions:
            if action.type is Path or action.metavar == "FILE":
                action.complete = shtab.FILE
    print(shtab.complete(options.parser, options.shell))
    return DONE


COMMANDS = (
    Command(
        "demo",
        "learn the letters of a noisy picture, and draw the result",
        "hcnet demo --output demo-output",
        _demo_arguments,
        _demo,
    ),
    Command(
        "info",
        "print versions, engines, processor, memory and graphics cards",
        "hcnet info --json",
        _info_arguments,
        _info,
    ),
    Command(
        "completion",
        "print a script that completes hcnet's commands and options in a shell",
        'eval "$(hcnet completion bash)"      # in ~/.bashrc; zsh: after compinit in ~/.zshrc\n'
        "  hcnet completion fish | source       # in ~/.config/fish/config.fish",
        _completion_arguments,
        _completion,
    ),
)
