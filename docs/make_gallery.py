"""Runs all examples and keeps their pictures for docs/gallery.md: python docs/make_gallery.py."""

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
COLOURS = 64  # enough for all of them; a palette takes a third of the bytes


def main() -> None:
    """One picture per example."""
    chosen = sys.argv[1:] or sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen:
            path = Path(folder) / f"{name}.png"
            subprocess.run([sys.executable, ROOT / "examples" / f"{name}.py", path], check=True)
            target = IMAGES / f"gallery-{name.replace('_', '-')}.png"
            with Image.open(path) as picture:
                picture.quantize(COLOURS, dither=Image.Dither.NONE).save(target, optimize=True)
            print(f"{target.name}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
