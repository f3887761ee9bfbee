"""Random positions for parts, apart from each other or on top of each other."""

import math
from collections.abc import Sequence

import numpy as np

from hcnet.datasets.parts_data import BoolArray

__all__ = ["scatter"]

# While there is much room a random corner is found at once; after this many misses it is cheaper
# to list all free corners and draw one of them. Both draw uniformly from the free corners.
_RANDOM_TRIES = 30


class _Board:
    """The free corners of each part; a part may overlap others, but not itself exactly."""

    def __init__(self, size: tuple[int, int], shapes: Sequence[tuple[int, int]]) -> None:
        self.shapes = shapes
        # Number of corners along each axis that keep the part inside; none if it is too large.
        self.spans = [(size[0] - h + 1, size[1] - w + 1) for h, w in shapes]
        self.taken: set[tuple[int, int, int]] = set()

    def is_free(self, part: int, row: int, column: int) -> bool:
        return (part, row, column) not in self.taken

    def free_corners(self, part: int) -> BoolArray:
        free = np.ones(self.spans[part], dtype=bool)
        for other, row, column in self.taken:
            if other == part:
                free[row, column] = False
        return free

    def put(self, part: int, row: int, column: int) -> None:
        self.taken.add((part, row, column))


class _SpacedBoard(_Board):
    """Bounding boxes keep one blank pixel between them, diagonals included."""

    def __init__(self, size: tuple[int, int], shapes: Sequence[tuple[int, int]]) -> None:
        super().__init__(size, shapes)
        # A margin of one pixel, so that a box and its blank frame never leave the array.
        self.occupied = np.zeros((size[0] + 2, size[1] + 2), dtype=bool)

    def is_free(self, part: int, row: int, column: int) -> bool:
        height, width = self.shapes[part]
        return not self.occupied[row : row + height + 2, column : column + width + 2].any()

    def free_corners(self, part: int) -> BoolArray:
        height, width = self.shapes[part]
        sums = np.pad(self.occupied, ((1, 0), (1, 0))).cumsum(axis=0).cumsum(axis=1)
        rows = sums[height + 2 :] - sums[: -height - 2]
        boxes = rows[:, width + 2 :] - rows[:, : -width - 2]
        free: BoolArray = boxes == 0
        return free

    def put(self, part: int, row: int, column: int) -> None:
        height, width = self.shapes[part]
        self.occupied[row + 1 : row + 1 + height, column + 1 : column + 1 + width] = True


def scatter(
    shapes: Sequence[tuple[int, int]],
    *,
    size: tuple[int, int],
    n_placements: int,
    rng: np.random.Generator,
    overlap: bool,
    balanced: bool = False,
) -> list[tuple[int, int, int]]:
    """Place parts of the given shapes at random, inside an image.

    Args:
        shapes: height and width of each part.
        size: height and width of the image.
        n_placements: how many to place; fewer if no more fit.
        rng: source of randomness.
        overlap: whether parts may lie on top of each other; if not, one blank pixel stays between
            their bounding boxes. The same part never lies twice at the same place.
        balanced: take the parts in turn instead of at random.

    Returns:
        (part, row, column) of the top-left corner of each placed part.

    Raises:
        ValueError: if not a single part fits into the image.

    """
    board = (_Board if overlap else _SpacedBoard)(size, shapes)
    # A part that once found no room never will again, because the board only fills up.
    fitting = [part for part, span in enumerate(board.spans) if min(span) > 0]
    if not fitting:
        smallest = min(shapes, key=math.prod)
        raise ValueError(
            f"No part fits into an image of {size[0]} x {size[1]} pixels, since the smallest "
            f"measures {smallest[0]} x {smallest[1]}: pass a larger size or smaller parts."
        )
    placed: list[tuple[int, int, int]] = []
    while len(placed) < n_placements and fitting:
        turn = len(placed) if balanced else int(rng.integers(len(fitting)))
        part = fitting[turn % len(fitting)]
        corner = _draw_corner(board, part, rng)
        if corner is None:
            fitting.remove(part)
            continue
        board.put(part, *corner)
        placed.append((part, *corner))
    return placed


def _draw_corner(board: _Board, part: int, rng: np.random.Generator) -> tuple[int, int] | None:
    """A corner drawn uniformly from those that are free, or None."""
    rows, columns = board.spans[part]
    for _ in range(_RANDOM_TRIES):
        row, column = int(rng.integers(rows)), int(rng.integers(columns))
        if board.is_free(part, row, column):
            return row, column
    free = np.argwhere(board.free_corners(part))
    if not len(free):
        return None
    row, column = free[int(rng.integers(len(free)))]
    return int(row), int(column)
