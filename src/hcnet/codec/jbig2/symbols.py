"""Symbol dictionaries (T.88, 6.5) and text regions (6.4) of JBIG2, compiled.

``bitmaps`` is (ink, start, height, width): bitmaps of different sizes one after the other.  Every
sort of number has contexts of its own, which are a row of `numbers`.
"""

from __future__ import annotations

from hcnet.codec.jbig2.arithmetic import OUT_OF_BAND, code_name, code_number
from hcnet.codec.jbig2.regions import MARGIN, code_bitmap, code_refined, draw
from hcnet.engine.cpu_compilation import entry

# Numbers of a dictionary: steps of height and of width, runs of exported symbols, references of a
# symbol, and the place of the reference.
HEIGHT, WIDTH, EXPORTED, REFERENCES, REF_X, REF_Y = range(6)
# Numbers of a text region: steps from strip to strip, along the first symbols of strips, and from
# symbol to symbol; rows within the strip; whether a symbol is refined, by how much the copy is
# larger, and the place of the reference.
STRIP, FIRST, STEP, ROW, REFINED, MORE_X, MORE_Y, PLACE_X, PLACE_Y = range(9)
SORTS = 9
# Columns of instances in a text region: reference corner, symbol, bitmap (-1: the symbol as it is),
# and where the symbol's corner lies from that of the bitmap.
BOTTOM, LEFT, SYMBOL, BITMAP, DOWN, RIGHT = range(6)


@entry
def code_symbols(coder, bitmaps, numbers, generic, pixels, board):
    """Code a dictionary of bitmaps, which are sorted by height, each by itself."""
    _, _, tall, wide = bitmaps
    n, k, height = tall.size, 0, 0
    while k < n:
        code_number(coder, numbers[HEIGHT], tall[k] - height)
        height, width = tall[k], 0
        while k < n and tall[k] == height:
            code_number(coder, numbers[WIDTH], wide[k] - width)
            width = wide[k]
            draw(bitmaps, k, board, height, width, 0, 0)
            code_bitmap(coder, generic, board, height, width, pixels)
            k += 1
        code_number(coder, numbers[WIDTH], OUT_OF_BAND)
    code_number(coder, numbers[EXPORTED], 0)
    code_number(coder, numbers[EXPORTED], n)


@entry
def code_variants(
    coder, bitmaps, given, first, numbers, names, n_bits, refined, own, others, boards
):
    """Code a dictionary of the bitmaps from `first` on, each given an earlier one.

    Rows of `given` are the number of the earlier bitmap, and where its corner lies.
    """
    _, _, tall, wide = bitmaps
    n, k, height = tall.size, first, 0
    while k < n:
        code_number(coder, numbers[HEIGHT], tall[k] - height)
        height, width = tall[k], 0
        while k < n and tall[k] == height:
            code_number(coder, numbers[WIDTH], wide[k] - width)
            width = wide[k]
            other, down, right = given[k - first]
            code_number(coder, numbers[REFERENCES], 1)
            code_name(coder, names, other, n_bits)
            code_number(coder, numbers[REF_X], right)
            code_number(coder, numbers[REF_Y], down)
            draw(bitmaps, k, boards[0], height, width, 0, 0)
            draw(bitmaps, other, boards[1], height, width, down, right)
            code_refined(coder, refined, boards[0], boards[1], height, width, own, others)
            k += 1
        code_number(coder, numbers[WIDTH], OUT_OF_BAND)
    code_number(coder, numbers[EXPORTED], first)
    code_number(coder, numbers[EXPORTED], n - first)


@entry
def code_text(
    coder, rows, symbols, copies, strip, numbers, names, n_bits, refined, own, others, boards
):
    """Code a text region: rows sorted by strip and by left side (see BOTTOM, LEFT, …)."""
    tall, wide = symbols[2], symbols[3]
    code_number(coder, numbers[STRIP], 0)
    at = first = side = 0
    n = rows.shape[0]
    for j in range(n):
        bottom, left, symbol, bitmap, down, right = rows[j]
        if j == 0 or bottom // strip != rows[j - 1, BOTTOM] // strip:
            if j:
                code_number(coder, numbers[STEP], OUT_OF_BAND)
            code_number(coder, numbers[STRIP], bottom // strip - at)
            code_number(coder, numbers[FIRST], left - first)
            at, first = bottom // strip, left
        else:
            code_number(coder, numbers[STEP], left - side)
        if strip > 1:
            code_number(coder, numbers[ROW], bottom - at * strip)
        code_name(coder, names, symbol, n_bits)
        code_number(coder, numbers[REFINED], 0 if bitmap < 0 else 1)
        height, width = tall[symbol], wide[symbol]
        if bitmap >= 0:
            more_y, more_x = copies[2][bitmap] - height, copies[3][bitmap] - width
            height, width = height + more_y, width + more_x
            code_number(coder, numbers[MORE_X], more_x)
            code_number(coder, numbers[MORE_Y], more_y)
            code_number(coder, numbers[PLACE_X], right - (more_x >> 1))
            code_number(coder, numbers[PLACE_Y], down - (more_y >> 1))
            draw(copies, bitmap, boards[0], height, width, 0, 0)
            draw(symbols, symbol, boards[1], height, width, down, right)
            code_refined(coder, refined, boards[0], boards[1], height, width, own, others)
        side = left + width - 1
    if n:
        code_number(coder, numbers[STEP], OUT_OF_BAND)


def room(heights: int, widths: int) -> int:
    """Pixels of a board for a bitmap of this size."""
    return (heights + 2 * MARGIN) * (widths + 2 * MARGIN)
