"""Pages as other programs decode them."""

import shutil
import subprocess

import numpy as np
import pytest
from PIL import Image

needs_jbig2dec = pytest.mark.skipif(
    shutil.which("jbig2dec") is None, reason="jbig2dec is not installed (Debian: jbig2dec)"
)
needs_poppler = pytest.mark.skipif(
    shutil.which("pdftoppm") is None, reason="Poppler is not installed (Debian: poppler-utils)"
)


def run(*command, folder):
    """Run a program, which must have nothing to complain about."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return done.stdout


def pixels(path):
    """A picture as a boolean array, True for black."""
    with Image.open(path) as image:
        return np.array(image.convert("L")) < 128


def decoded(content, folder):
    """The pages of a JBIG2 file, as jbig2dec decodes them: one PBM after the other."""
    (folder / "pages.jb2").write_bytes(content)
    run("jbig2dec", "-t", "pbm", "-o", "pages.pbm", "pages.jb2", folder=folder)
    left = (folder / "pages.pbm").read_bytes()
    pages = []
    while left:
        kind, width, height = left.split(None, 3)[:3]
        assert kind == b"P4"
        width, height, n = int(width), int(height), -(-int(width) // 8) * int(height)
        start = left.index(b"\n", 3) + 1
        rows = np.frombuffer(left[start : start + n], np.uint8).reshape(height, -1)
        pages.append(np.unpackbits(rows, axis=1)[:, :width] > 0)
        left = left[start + n :]
    return pages


def embedded(content, folder):
    """The images in a PDF, as Poppler decodes them."""
    for old in folder.glob("image-*"):
        old.unlink()
    (folder / "pages.pdf").write_bytes(content)
    run("pdfimages", "pages.pdf", "image", folder=folder)
    return [pixels(path) for path in sorted(folder.glob("image-*"))]


def rendered(content, folder, dpi):
    """The pages of a PDF, as Poppler renders them."""
    for old in folder.glob("page-*"):
        old.unlink()
    (folder / "pages.pdf").write_bytes(content)
    run("pdftoppm", "-r", str(dpi), "-mono", "pages.pdf", "page", folder=folder)
    return [pixels(path) for path in sorted(folder.glob("page-*"))]
