"""``hcnet compress`` and ``decompress``: black-and-white image files without loss, and back."""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hcnet.commands import command
from hcnet.commands.running import FIRST_LINE, LINES

if TYPE_CHECKING:
    from hcnet.codec import Reader
    from hcnet.images import BoolArray, PageInfo, Resolution

# Most characters of a file name and of its ending: few enough for every file system.
MOST_NAME, MOST_SUFFIX = 60, 8
# Resolution of a PDF page whose file has none.
DPI = 300.0


class PageProgress:
    """A bar of pages on a terminal, or a line every few seconds elsewhere."""

    def __init__(self, options: argparse.Namespace, name: str, total: int) -> None:
        self._quiet, self._name, self._total = options.quiet, name, total
        self._began = time.perf_counter()
        self._next_line = self._began + FIRST_LINE
        self._bar: Any = None
        if command.on_a_terminal(options):
            from tqdm.auto import tqdm

            form = "{desc}: {percentage:3.0f}%|{bar}| {n:.1f}/{total} pages [{elapsed}<{remaining}]"
            self._bar = tqdm(total=total, desc=name, bar_format=form, dynamic_ncols=True)

    def __call__(self, done: float) -> None:
        """So many pages are done."""
        now = time.perf_counter()
        if self._bar is not None:
            self._bar.update(done - self._bar.n)
        elif not self._quiet and now > self._next_line and done < self._total:
            left = (now - self._began) * (self._total - done) / max(done, 1e-9)
            about = f"{done:.1f} of {self._total} pages, about {left:,.0f} s left"
            print(f"hcnet: {now - self._began:.0f} s, {about}.", file=sys.stderr, flush=True)
            self._next_line = now + LINES

    def __enter__(self) -> PageProgress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()


def _compress_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "images",
        nargs="+",
        type=command.path,
        metavar="IMAGES",
        help="black-and-white image files, TIFF files with many pages, folders",
    )
    command.add_output(parser, "the file to write (.hcz)")
    parser.add_argument(
        "--fast", action="store_true", help="search for parts in one pass; a few percent larger"
    )
    parser.add_argument(
        "--no-verify",
        dest="verify",
        action="store_false",
        help="do not decode and compare what was written",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--jbig2", action="store_true", help="write a JBIG2 file instead")
    form.add_argument("--pdf", action="store_true", help="write a PDF file with JBIG2 in it")


@command.command(
    "hcnet compress page.tif more.png -o pages.hcz", _compress_arguments, output="file"
)
def compress(options: argparse.Namespace) -> int:
    """Compress black-and-white pages without loss."""
    from hcnet.image_files.reading import count_pages, find_files

    began = time.perf_counter()
    files = find_files(options.images)
    total = sum(map(count_pages, files))
    before = sum(file.stat().st_size for file in files)
    if options.jbig2 or options.pdf:
        _write_jbig2(options, files)
    else:
        _write_pages(options, files, total)
    after, seconds = options.output.stat().st_size, time.perf_counter() - began
    result = {
        "file": str(options.output),
        "pages": total,
        "bytes": after,
        "bytes_before": before,
        "ratio": after / before,
        "seconds": seconds,
        "verified": options.verify and not (options.jbig2 or options.pdf),
    }
    pages = f"{total} page{'s' * (total != 1)}"
    text = (
        f"{options.output}: {pages}, {after:,} bytes, {after / before:.1%} of the {before:,} bytes "
        f"of the image file{'s' * (len(files) != 1)}, {seconds:.1f} s"
    )
    return command.print_result(options, result, text)


def _pages(files: list[Path]) -> Iterator[tuple[BoolArray, PageInfo]]:
    from hcnet.image_files.bilevel import read_pages

    for file in files:
        yield from read_pages(file)


def _write_pages(options: argparse.Namespace, files: list[Path], total: int) -> None:
    from hcnet.codec import Writer

    with (
        PageProgress(options, "Compressing", total) as progress,
        Writer(
            options.output,
            fast=options.fast,
            verify=options.verify,
            overwrite=options.force,
            progress=progress,
        ) as writer,
    ):
        for page, info in _pages(files):
            writer.add(page, info)


def _write_jbig2(options: argparse.Namespace, files: list[Path]) -> None:
    from hcnet.atomic_files import write_atomically
    from hcnet.codec import jbig2

    found = list(_pages(files))
    pages = [page for page, _ in found]
    dots = [_dots_per_inch(info.resolution) for _, info in found]
    if options.pdf:
        if None in dots:
            command.note(options, f"pages without a resolution are taken as {DPI:g} dpi.")
        given = [(DPI, DPI) if one is None else one for one in dots]
        data = jbig2.write_pdf(pages, given, parts=not options.fast)
    else:
        data = jbig2.write_file(pages, dots, parts=not options.fast)
    write_atomically(options.output, lambda file: file.write(data), options.force)


def _dots_per_inch(resolution: Resolution | None) -> tuple[float, float] | None:
    """Down and across."""
    if resolution is None or resolution.unit == "none":
        return None
    scale = 2.54 if resolution.unit == "centimetre" else 1.0
    (a, b), (c, d) = resolution.y, resolution.x
    return (scale * a / b, scale * c / d) if a and b and c and d else None


def _decompress_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=command.path, metavar="FILE", help="a file of compress (.hcz)")
    command.add_folder(parser, "folder for the images, which is created")
    command.add_force(parser)
    parser.add_argument(
        "--page",
        type=command.seed,
        action="append",
        metavar="N",
        help="only this page, counted from 0; may be repeated",
    )
    parser.add_argument(
        "--salvage", action="store_true", help="write the complete pages of a damaged file"
    )


@command.command("hcnet decompress pages.hcz -o folder/ --page 7", _decompress_arguments)
def decompress(options: argparse.Namespace) -> int:
    """Write the pages of a compressed file as image files."""
    from hcnet.atomic_files import refuse_existing
    from hcnet.codec import Reader

    if not options.file.exists():
        raise FileNotFoundError(f"{options.file} is not there; pass a file that compress wrote.")
    lost: list[str] = []
    with Reader(options.file, salvage=options.salvage) as reader:
        if reader.damage is not None:
            lost.append(f"{reader.damage.partition(';')[0]}.")
        pages = _found_pages(reader, options, lost)
        files = _files(pages, single=options.page is not None)
        for name in files:
            refuse_existing(options.output / name, options.force)
        options.output.mkdir(parents=True, exist_ok=True)
        with PageProgress(options, "Decompressing", len(pages)) as progress:
            done = _write_files(options, reader, files, progress, lost)
    for sentence in lost:
        print(f"hcnet: error: {sentence}", file=sys.stderr)
    result = {"files": [str(path) for path, _ in done], "pages": sum(n for _, n in done)}
    rows = [(str(path), f"{n} page{'s' * (n != 1)}") for path, n in done]
    text = command.aligned(rows) or "Nothing was written."
    code = command.print_result(options, result | {"errors": lost}, text)
    return command.FAILED if lost else code


def _found_pages(
    reader: Reader, options: argparse.Namespace, lost: list[str]
) -> dict[int, tuple[PageInfo, bool]]:
    """The wanted pages: what the file says of each, and whether its file has others."""
    infos: dict[int, PageInfo] = {}
    for number in range(len(reader)):
        try:
            infos[number] = reader.info(number)
        except ValueError as error:
            _keep_error(options, error, lost)
    for number in options.page or ():
        if number >= len(reader):
            try:
                reader.info(number)
            except IndexError as error:
                raise ValueError(str(error)) from None
    return {
        number: (info, info.same_file or (number + 1 in infos and infos[number + 1].same_file))
        for number, info in infos.items()
        if options.page is None or number in options.page
    }


def _keep_error(options: argparse.Namespace, error: ValueError, lost: list[str]) -> None:
    if not options.salvage:
        raise error
    lost.append(str(error))


def _files(pages: dict[int, tuple[PageInfo, bool]], single: bool) -> dict[str, list[int]]:
    """Names of files, none of which leads out of its folder, and the pages of each.

    If pages are `single`, each has a file of its own.
    """
    from hcnet.image_files.bilevel import pages_path

    groups: list[list[int]] = []
    for number, (info, _) in pages.items():
        if groups and info.same_file and not single:
            groups[-1].append(number)
        else:
            groups.append([number])
    files: dict[str, list[int]] = {}
    taken: set[str] = set()
    for group in groups:
        info, others = pages[group[0]]
        name = pages_path(_safe(info.file) or f"page-{group[0]}", len(group) > 1)
        stem, suffix = name[: -len(Path(name).suffix)], Path(name).suffix
        if single and others:
            name = stem = f"{stem}-{group[0]}"
            name += suffix
        again = 1
        while name.casefold() in taken:  # two files of one name, from different folders
            again += 1
            name = f"{stem}-{again}{suffix}"
        taken.add(name.casefold())
        files[name] = group
    return files


def _safe(name: str) -> str:
    """The last part of a path, without characters that have a meaning elsewhere."""
    name = re.split(r"[/\\]", name)[-1]
    name = re.sub(r'[\x00-\x1f\x7f<>:"|?*]', "_", name).strip(" .") if name.strip(" .") else ""
    suffix = Path(name).suffix[:MOST_SUFFIX]
    return name[: -len(suffix)][:MOST_NAME] + suffix if suffix else name[:MOST_NAME]


def _write_files(
    options: argparse.Namespace,
    reader: Reader,
    files: dict[str, list[int]],
    progress: PageProgress,
    lost: list[str],
) -> list[tuple[Path, int]]:
    """Decode and write; the paths, and the number of pages in each."""
    from hcnet.image_files.bilevel import write_pages

    done: list[tuple[Path, int]] = []
    tried = 0

    def decoded(numbers: list[int]) -> Iterator[tuple[BoolArray, PageInfo]]:
        nonlocal tried
        for number in numbers:
            try:
                page = reader[number]
            except ValueError as error:
                _keep_error(options, error, lost)
            else:
                count[0] += 1
                yield page, reader.info(number)
            tried += 1
            progress(tried)

    for name, numbers in files.items():
        count = [0]
        pages = decoded(numbers)
        first = next(pages, None)
        if first is not None:
            path = options.output / name
            write_pages(path, itertools.chain([first], pages), overwrite=options.force)
            done.append((path, count[0]))
    return done


COMMANDS = (compress, decompress)
