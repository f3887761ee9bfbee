"""Bitmaps of the characters that the data sets are made of.

They were drawn once from DejaVu Sans Bold (licence beside this file) and are stored as bits, so
that a seed gives the same image on every machine, whatever fonts and libraries it has.
"""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Glyph:
    """One character.

    Attributes:
        character: the character.
        bitmap: bool (h, w), cropped to its ink; read-only.
        top: how many rows the first row of the bitmap lies above the baseline.

    """

    character: str
    bitmap: NDArray[np.bool_]
    top: int


@cache
def _font() -> dict[int, dict[str, Glyph]]:
    """All glyphs, by size and character."""
    with (
        (files(__name__) / "dejavu-sans-bold.npz").open("rb") as file,
        np.load(file, allow_pickle=False) as stored,
    ):
        characters = [str(character) for character in stored["characters"]]
        sizes = [int(size) for size in stored["sizes"]]
        heights, widths, tops = stored["heights"], stored["widths"], stored["tops"]
        bits = np.unpackbits(stored["bits"]).astype(bool)
    bits.flags.writeable = False
    font: dict[int, dict[str, Glyph]] = {size: {} for size in sizes}
    start = 0
    for (row, column), height in np.ndenumerate(heights):
        width = int(widths[row, column])
        stop = start + int(height) * width
        bitmap = bits[start:stop].reshape(int(height), width)
        character = characters[column]
        font[sizes[row]][character] = Glyph(character, bitmap, int(tops[row, column]))
        start = stop
    return font


def available_sizes() -> tuple[int, ...]:
    """The glyph sizes (pixels per em; capitals are about three quarters of that high)."""
    return tuple(_font())


def available_characters() -> str:
    """The characters that exist at every size."""
    return "".join(next(iter(_font().values())))


def load_glyphs(characters: object, size: object) -> list[Glyph]:
    """The glyphs of a string of characters, in its order.

    Raises:
        ValueError: if the size or a character is not stored, or two characters look the same.

    """
    font = _font()
    if not isinstance(characters, str) or not characters:
        raise ValueError(
            f"characters must be a string of at least one character, got {characters!r}; "
            f'pass for example "ABC".'
        )
    if not isinstance(size, int | np.integer) or size not in font:
        raise ValueError(
            f"glyph_size must be one of the stored sizes {', '.join(map(str, font))}, "
            f"got {size!r}; choose one of these."
        )
    known = font[int(size)]
    missing = sorted(set(characters) - set(known))
    if missing:
        raise ValueError(
            f"characters must have a stored glyph, but {', '.join(map(repr, missing))} "
            f"has none: choose from {available_characters()}"
        )
    seen: dict[tuple[tuple[int, ...], bytes], str] = {}
    for character in characters:
        key = known[character].bitmap.shape, known[character].bitmap.tobytes()
        other = seen.setdefault(key, character)
        # Two parts that look the same would be one part with two names.
        if other != character:
            raise ValueError(
                f"characters must look different, but {other!r} and {character!r} have the same "
                f"bitmap at this glyph_size: drop one of them or choose another size."
            )
    if len(set(characters)) < len(characters):
        twice = next(c for c in characters if characters.count(c) > 1)
        raise ValueError(f"characters must be distinct, but {twice!r} occurs twice: pass it once.")
    return [known[character] for character in characters]
