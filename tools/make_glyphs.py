"""Remake the glyph bitmaps that the data sets are built from.

    python tools/make_glyphs.py [--font DejaVuSans-Bold.ttf] [--output FILE]

The bits depend on the version of FreeType inside Pillow, which is why they are stored with the
package instead of being drawn at run time. Remaking them with another version may move pixels,
and with them the bits of every data set: the tests then ask for new digests.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@&%$#?!+*="
SIZES = (8, 9, 10, 11, 12, 13, 16, 20, 24)
OUTPUT = Path(__file__).parents[1] / "src/hcnet/datasets/glyphs/dejavu-sans-bold.npz"


def default_font() -> Path:
    """The copy of DejaVu Sans Bold that matplotlib carries."""
    import matplotlib

    return Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans-Bold.ttf"


def rasterise(character: str, font: ImageFont.FreeTypeFont) -> tuple[np.ndarray, int]:
    """The cropped bitmap of a character and how many rows its top lies above the baseline."""
    margin = 3 * int(font.size)
    canvas = Image.new("L", (2 * margin, 2 * margin))
    ImageDraw.Draw(canvas).text((margin, margin), character, fill=255, font=font, anchor="ls")
    ink = np.asarray(canvas) > 127
    rows, columns = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
    bitmap = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return bitmap, margin - int(rows[0])


def main() -> None:
    """Write heights, widths, tops (one row per size) and all bitmaps as one packed bit string."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--font", type=Path, default=None)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    path = arguments.font or default_font()

    table = []
    for size in SIZES:
        # The basic layout engine: Raqm is not part of every Pillow.
        font = ImageFont.truetype(str(path), size, layout_engine=ImageFont.Layout.BASIC)
        table.append([rasterise(character, font) for character in CHARACTERS])
    np.savez_compressed(
        arguments.output,
        characters=np.array(list(CHARACTERS)),
        sizes=np.array(SIZES, dtype=np.int16),
        heights=np.array([[bitmap.shape[0] for bitmap, _ in row] for row in table], dtype=np.int16),
        widths=np.array([[bitmap.shape[1] for bitmap, _ in row] for row in table], dtype=np.int16),
        tops=np.array([[top for _, top in row] for row in table], dtype=np.int16),
        bits=np.packbits(np.concatenate([bitmap.ravel() for row in table for bitmap, _ in row])),
    )
    print(f"{arguments.output}: {len(SIZES)} sizes of {len(CHARACTERS)} characters")


if __name__ == "__main__":
    main()
