"""``hcnet name`` stores the names of parts in a model, with which ``hcnet read`` prints text."""

from __future__ import annotations

import argparse
from collections import Counter

from hcnet.commands import command


def _name_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_model(parser)
    help = "a table with the columns part and name (.csv), as a report saves it"
    parser.add_argument("names", type=command.path, metavar="NAMES", help=help)
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


def _read_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_images(parser)
    help = "a model whose parts have names (.hcn)"
    parser.add_argument("--model", type=command.path, required=True, metavar="MODEL", help=help)
    command.add_output(parser, "write the text to this file (default: to the terminal)", False)


@command.command("hcnet read page.tif --model page.hcn", _read_arguments, output="file")
def read(options: argparse.Namespace) -> int:
    """Print the text of pages, line by line, by the names of their parts."""
    from hcnet.reading import PLACEHOLDER, read_pages

    model = command.load_model(options.model, "read", "parts")
    if not (model.part_names_ != "").any():
        raise ValueError(
            f"No part of {options.model} has a name; type names into its report (hcnet report), "
            f"and store them with hcnet name."
        )
    images = command.read(options)
    pages = read_pages(model, images.X, images.mask)
    unnamed = sum((page.unnamed for page in pages), Counter())
    unexplained = sum(page.unexplained for page in pages)
    if unnamed:
        often = ", ".join(str(part) for part, _ in unnamed.most_common(5))
        about = f"{unnamed.total():,}× for parts without a name (most often part {often})"
        command.note(options, f"{PLACEHOLDER} stands {about}.")
    if unexplained:
        about = f"{unexplained:,}× for ink that no part explains"
        command.note(options, f"{PLACEHOLDER} stands {about}.")
    result = {
        "pages": [
            {"page": name, "lines": page.lines}
            for name, page in zip(images.names, pages, strict=True)
        ],
        "unnamed": {str(part): count for part, count in unnamed.most_common()},
        "unexplained": unexplained,
    }
    text = "\n\n".join("\n".join(page.lines) for page in pages)
    if options.output is None:
        return command.print_result(options, result, text)
    text = command.as_json(result) if options.json else text
    command.write_text(options.output, f"{text}\n", options.force, options.json)
    return command.DONE


COMMANDS = (name, read)
