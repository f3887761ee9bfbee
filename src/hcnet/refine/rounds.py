"""The order in which a search tries moves."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from hcnet.refine import moves
from hcnet.refine.moves import Move

# How often a random move is tried in one round, and how many proposals of one that has many.
TRIES = 4
# Pairs that stand together often are many in a text, and most are no part: look further.
MERGES = 12


@dataclass(frozen=True)
class Attempt:
    """A move to be tried.

    `limit` is how many proposals are improved before the next attempt (None: all).  `skip` is how
    many attempts further the search is after a success: 0 tries the same move once more, 2 leaves
    the next one out.  A move that is not `random` makes the same proposals as long as the solution
    stays; `key` names it then.  `second` is a move to go on with from a proposal that has failed,
    but by less than the bits of a feature.
    """

    name: str
    move: Move
    limit: int | None = TRIES
    skip: int = 1
    random: bool = False
    feature: int | None = None
    second: Move | None = None

    @property
    def key(self) -> str:
        """A name that no other attempt of a round has, random ones aside."""
        return self.name if self.feature is None else f"{self.name} {self.feature}"


def opening() -> list[Attempt]:
    """Attempts before the first round."""
    return [Attempt("scratch", moves.scratch), Attempt("polish", moves.polish)]


def changes(thorough: bool) -> list[Attempt]:
    """The first part of a round; thorough: with all proposals of the moves that have many."""
    return [
        *[Attempt("message passing", moves.place_by_messages)] * thorough,
        Attempt("merge", moves.merge, None if thorough else MERGES, skip=0),
        Attempt("divide", moves.divide, None if thorough else TRIES, skip=0),
        *[Attempt("birth", moves.birth, random=True)] * TRIES,
        *[Attempt("split", moves.split, random=True)] * TRIES,
        Attempt("shift", moves.shift),
        Attempt("trim", moves.trim),
        Attempt("grow", moves.grow),
        Attempt("subtract", moves.subtract, None if thorough else TRIES),
        Attempt("complete", moves.complete),
        *[Attempt("crop", moves.crop, random=True)] * TRIES,
    ]


def deletions(order: Sequence[int]) -> list[Attempt]:
    """The second part: take features away, in this order, and place the others anew."""
    return [
        *itertools.chain.from_iterable(
            (
                Attempt("absorb", partial(moves.absorb, f=f), skip=3, feature=f),
                Attempt("delete", partial(moves.delete, f=f), 1, 2, False, f, moves.regroup),
                Attempt("dissolve", partial(moves.dissolve, f=f), 1, 1, False, f, moves.regroup),
            )
            for f in order
        ),
        Attempt("scratch", moves.scratch),
    ]
