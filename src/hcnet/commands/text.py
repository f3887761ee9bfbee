"""``hcnet name`` stores the names of parts in a model."""

from __future__ import annotations

import argparse
from pathlib import Path

from hcnet.commands import command


def _name_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_model(parser)
    help = "a table with the columns part and name (.csv), as a report saves it"
    parser.add_argument("names", type=Path, metavar="NAMES", help=help)
    command.add_output(parser, "write the named model here (default: into MODEL)", required=False)


@command.command("hcnet name page.hcn names.csv", _name_arguments, output="file")
def name(options: argparse.Namespace) -> int:
    """Store names of parts in a model, so that read can print text."""
    from hcnet.reading import name_parts, read_names

    model = command.load_model(options.model, "name", "parts")
    names = read_names(options.names)
    try:
        name_parts(model, names)
    except ValueError as error:
        raise ValueError(f"{options.names} does not fit {options.model}: {error}") from None
    elsewhere = options.output is not None and options.output != options.model
    path = model.save(options.output or options.model, overwrite=options.force or not elsewhere)
    named, total = int((model.part_names_ != "").sum()), len(model.part_names_)
    result = {"model": str(path), "named": named, "parts": total}
    return command.print_result(options, result, f"{named} of {total} parts have names in {path}")


COMMANDS = (name,)
