"""What a search tries, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from hcnet.refine import moves
from hcnet.refine.moves import Move
from hcnet.refine.placing import place_by_messages

# How often a random move is tried in one round, and how many proposals of one that has many.
TRIES = 4
# Pairs that stand together often are many in a text, and most are no part: look further.
MERGES = 12


@dataclass(frozen=True)
class Attempt:
    """A move to be tried.

    `limit`: proposals to work out; None: all.  `go_on`: how many attempts further the search is
    after a success: 0 is the same once more, 2 leaves the next one out.
    """

    name: str
    move: Move
    limit: int | None = TRIES
    go_on: int = 1


def opening() -> list[Attempt]:
    """Before the first round."""
    return [Attempt("scratch", moves.scratch), Attempt("polish", moves.polish)]


def changes(thorough: bool) -> list[Attempt]:
    """The first part of a round; thorough: with all proposals of the moves that have many."""
    return [
        Attempt("merge", moves.merge, None if thorough else MERGES, go_on=0),
        Attempt("divide", moves.divide, None if thorough else TRIES, go_on=0),
        *[Attempt("birth", moves.birth)] * TRIES,
        *[Attempt("split", moves.split)] * TRIES,
        Attempt("shift", moves.shift),
        Attempt("trim", moves.trim),
        Attempt("grow", moves.grow),
        Attempt("subtract", moves.subtract, None if thorough else TRIES),
        Attempt("complete", moves.complete),
        *[Attempt("crop", moves.crop)] * TRIES,
    ]


def deletions(order: Sequence[int]) -> list[Attempt]:
    """The second part: take features away, in this order, and place the others anew."""
    return [
        *[
            Attempt("delete", partial(moves.delete, f=f, absorb=absorb), go_on=2 if absorb else 1)
            for f in order
            for absorb in (True, False)
        ],
        Attempt("scratch", moves.scratch),
    ]


def last_resort() -> list[Attempt]:
    """The end of a round in which nothing helped."""
    return [Attempt("message passing", place_by_messages)]
