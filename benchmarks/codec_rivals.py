"""Lossless coders of binary pages that stand beside ours: other people's programs, if installed."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import numpy as np
from PIL import Image

from hcnet.images import BoolArray

# The words of a command that a folder is put before.  minidjvu goes by the endings; others do not
# look at them.
PAGE, CODE, BACK = "page.pbm", "code.djvu", "back.pbm"
T = TypeVar("T")
ROWS_PER_STRIP = 278  # a tag of TIFF


class Unusable(Exception):  # noqa: N818 - not an error: the rival is left out
    """Says in a sentence why a rival has no figure."""


@dataclass(frozen=True)
class Coded:
    """A page, or several, compressed: bytes, and seconds of the processor."""

    bytes: int
    compress_seconds: float
    decompress_seconds: float


@dataclass(frozen=True)
class Rival:
    """A program that compresses one page; of several settings the smallest file counts.

    Without ``CODE`` in a command the program writes to its output.
    """

    name: str
    source: str  # the package or repository, to say where a missing program comes from
    encoders: tuple[tuple[str, ...], ...]
    decoder: tuple[str, ...]

    def missing(self) -> str | None:
        """A sentence if a program is not there."""
        programs = sorted({command[0] for command in (*self.encoders, self.decoder)})
        lacking = [program for program in programs if shutil.which(program) is None]
        if not lacking:
            return None
        return f"{self.name} is left out: {' and '.join(lacking)} not found ({self.source})."

    def run(self, page: BoolArray) -> Coded:
        """Compress a page, decompress it, and compare."""
        tried = []
        for encoder in self.encoders:
            with TemporaryDirectory() as folder:
                files = {word: str(Path(folder, word)) for word in (PAGE, CODE, BACK)}
                write_pbm(page, files[PAGE])
                there = execute(encoder, files)
                back = execute(self.decoder, files)
                self.compare(page, files[BACK])
                tried.append(Coded(Path(files[CODE]).stat().st_size, there, back))
        return min(tried, key=lambda coded: coded.bytes)

    def compare(self, page: BoolArray, path: str) -> None:
        """Stop unless a decoded file has the pixels of the page."""
        if not np.array_equal(read_pbm(path), page):
            raise Unusable(f"{self.name} is left out: it did not give the page back.")


def rivals(jbig2enc: str | None = None, paq8px: str | None = None) -> list[Rival]:
    """All of them with their lossless settings; programs from the path unless given here."""
    jbig2 = jbig2enc or os.environ.get("JBIG2ENC") or "jbig2"
    paq = paq8px or os.environ.get("PAQ8PX") or "paq8px"
    jbig1 = "pbmtojbg"
    return [
        Rival(
            "JBIG1",
            "Debian's package jbigkit-bin",
            # One layer is smaller for text, several layers for some drawings; 72 is the template
            # of two lines, which is smaller where staves are repeated line by line.
            ((jbig1, "-q", PAGE, CODE), (jbig1, PAGE, CODE), (jbig1, "-q", "-p", "72", PAGE, CODE)),
            ("jbgtopbm", CODE, BACK),
        ),
        Rival(
            "cjb2",
            "Debian's package djvulibre-bin",
            (("cjb2", "-lossless", "-dpi", "300", PAGE, CODE),),
            ("ddjvu", "-format=pbm", CODE, BACK),
        ),
        Rival(
            "minidjvu",
            "Debian's packages minidjvu and djvulibre-bin",
            (("minidjvu", "-d", "300", PAGE, CODE),),
            ("ddjvu", "-format=pbm", CODE, BACK),
        ),
        Rival(
            "jbig2enc",
            "github.com/agl/jbig2enc, or --jbig2enc PATH; jbig2dec is a package of Debian",
            # Generic regions: its symbols are lossy.  With -d a line may repeat the one above.
            ((jbig2, PAGE), (jbig2, "-d", PAGE)),
            ("jbig2dec", "-t", "pbm", "-o", BACK, CODE),
        ),
        Rival(
            "paq8px",
            "github.com/hxim/paq8px, or --paq8px PATH",
            ((paq, "-8", PAGE, CODE),),
            (paq, "-d", CODE, BACK),
        ),
    ]


def g4(page: BoolArray) -> Coded:
    """Group 4 in a TIFF file of one strip, by Pillow's libtiff.

    The codes expect long runs of 0, so ink is 1.  Pillow then calls ink white in one tag of the
    header.  The file has the same size as one with the other tag, which Pillow writes by a slow
    loop; with 0 for ink it is 3 % larger.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder, "page.tif")
        picture = Image.fromarray(page)
        strip = {ROWS_PER_STRIP: len(page)}
        _, there = clocked(lambda: picture.save(path, compression="group4", tiffinfo=strip))
        back, again = clocked(lambda: np.asarray(Image.open(path)))
        if not np.array_equal(back, page):
            raise Unusable("G4 is left out: it did not give the page back.")
        return Coded(path.stat().st_size, there, again)


def minidjvu_document(pages: Sequence[BoolArray]) -> int:
    """Bytes of several pages in one file that share a dictionary of shapes.

    Unlike single pages, documents are lossy by default; aggression 0 replaces no shape by another.
    """
    with TemporaryDirectory() as folder:
        names = [str(Path(folder, f"{k}.pbm")) for k in range(len(pages))]
        for page, name in zip(pages, names, strict=True):
            write_pbm(page, name)
        code, back = str(Path(folder, "all.djvu")), str(Path(folder, "back.pbm"))
        execute(("minidjvu", "-d", "300", "-a", "0", "-p", str(len(pages)), *names, code), {})
        for k, page in enumerate(pages, 1):
            execute(("ddjvu", "-format=pbm", f"-page={k}", code, back), {})
            if not np.array_equal(read_pbm(back), page):
                raise Unusable("minidjvu is left out: it did not give a document back.")
        return Path(code).stat().st_size


def execute(command: Sequence[str], files: dict[str, str]) -> float:
    """Run a command; seconds of the processor."""
    words = [files.get(word, word) for word in command]
    before = _child_seconds()
    done = subprocess.run(words, capture_output=True)
    seconds = _child_seconds() - before
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()[-200:]
        raise Unusable(f"{Path(words[0]).name} failed: {said or done.returncode}")
    if files and CODE not in command:
        Path(files[CODE]).write_bytes(done.stdout)
    return seconds


def clocked(work: Callable[[], T]) -> tuple[T, float]:
    """Result, and seconds of this process's processor time."""
    began = time.process_time()
    result = work()
    return result, time.process_time() - began


def write_pbm(page: BoolArray, path: str) -> None:
    """Write a page as a raw portable bitmap, in which 1 is ink."""
    height, width = page.shape
    header = f"P4\n{width} {height}\n".encode()
    Path(path).write_bytes(header + np.packbits(page, axis=1).tobytes())


def read_pbm(path: str) -> BoolArray:
    """Read a portable bitmap, with any comments in its header."""
    with Image.open(path) as picture:
        return ~np.asarray(picture.convert("1"), bool)


def _child_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
