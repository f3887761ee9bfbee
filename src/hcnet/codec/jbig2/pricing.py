"""Bits of copies given symbols, as compiled loops: what JBIG2's refinement contexts will cost."""

from __future__ import annotations

import numpy as np

from hcnet.codec.jbig2.regions import MARGIN, context_of, draw, offsets_of
from hcnet.engine.cpu_compilation import entry

# Bits of a copy that reaches over its symbol: its size, and where the symbol lies.
GROWN = 8.0


@entry
def refined_bits(pairs, symbols, copies, own, others, cost, counts, boards):
    """Bits of each copy given a symbol; also counts pixels by context, if `counts` has room.

    Pairs are rows of copy, symbol, and where the copy's corner lies from that of the symbol.  The
    bitmap that is coded holds both.
    """
    bits = np.zeros(pairs.shape[0])
    for j in range(pairs.shape[0]):
        i, k, down, right = pairs[j]
        top, left = min(0, down), min(0, right)
        height = max(symbols[2][k], down + copies[2][i]) - top
        width = max(symbols[3][k], right + copies[3][i]) - left
        draw(copies, i, boards[0], height, width, down - top, right - left)
        draw(symbols, k, boards[1], height, width, -top, -left)
        if height != symbols[2][k] or width != symbols[3][k]:
            bits[j] = GROWN
        stride = width + 2 * MARGIN
        near, far = offsets_of(own, stride), offsets_of(others, stride)
        for y in range(MARGIN, MARGIN + height):
            for q in range(y * stride + MARGIN, y * stride + MARGIN + width):
                context = context_of(boards[0], q, near)
                context |= context_of(boards[1], q, far) << near.size
                bits[j] += cost[context, boards[0][q]]
                if counts.size:
                    counts[context, boards[0][q]] += 1
    return bits
