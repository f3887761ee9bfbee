"""``hcnet info``: versions, engines, processor, memory and graphics cards."""

from __future__ import annotations

import argparse

from hcnet.commands.command import DONE, Command, aligned, print_result


def _arguments(parser: argparse.ArgumentParser) -> None:
    """There are no arguments."""


def _run(options: argparse.Namespace) -> int:
    from hcnet.environment import environment

    found = environment()
    memory = found["memory"]
    engines = [
        f"{name} (default)" if name == found["default_engine"] else name
        for name in found["engines"]
    ]
    rows = [
        *found["versions"].items(),
        ("engines", ", ".join(engines)),
        ("system", found["system"]),
        ("processor", found["processor"]),
        ("cores", str(found["cores"])),
        ("memory", "unknown" if memory is None else f"{memory / 2**30:.1f} GiB"),
        ("gpu", "; ".join(found["gpus"]) or "none"),
        ("device=cuda", "ready" if found["cuda"] is None else f"not here: {found['cuda']}"),
    ]
    print_result(options, found, aligned(rows))
    return DONE


COMMANDS = (
    Command(
        "info",
        "versions, engines, processor, memory and graphics cards",
        "hcnet info --json",
        _arguments,
        _run,
    ),
)
