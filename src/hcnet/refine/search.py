"""The search: try moves in turn, keep what shortens the code, stop when nothing helps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

import numpy as np

from hcnet.archive import kinds
from hcnet.archive.kinds import Fields, Kind, Stateful
from hcnet.engine.driver import CutShort, Measurement
from hcnet.refine import moves
from hcnet.refine.moves import Move
from hcnet.solutions.explanation import Explanation
from hcnet.solutions.improver import Improver

# The search is over after so many rounds without any success.
PATIENCE = 3
# Code lengths that differ by less are the same.
SAME = 1e-6
# How often a random move is tried in one round, and how many proposals of one that has many.
TRIES = 4
# Pairs that stand together often are many in a text, and most are no part: look further.
MERGES = 12


@dataclass
class MoveStatistics:
    """How often a move was tried and accepted, and how many bits it saved."""

    tried: int = 0
    accepted: int = 0
    bits_saved: float = 0.0


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


@dataclass
class Search(Stateful):
    """A process for the driver: from a starting explanation, one step tries one move.

    `known_ends` are the code lengths at which other searches of the same images ended.  This search
    ends where it comes to such a code: it would only fail again to find a shorter one.
    """

    improver: Improver
    now: Explanation
    rng: np.random.Generator
    max_features: int | None = None
    known_ends: Sequence[float] = ()
    statistics: dict[str, MoveStatistics] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._seed = int(self.rng.integers(2**32))
        # Proposals of a move that have failed since the last success; None: all that it has.
        self._failed: dict[str, int | None] = {}
        self._idle = 0
        self._done = 0
        self._round_began = 0
        self._opened = False  # whether the attempts before the first round are over
        self._helped = False  # whether anything in this round was a success
        self._order: list[int] | None = None  # of deletions, once they are begun
        self._at = 0  # the attempt of the current part that is next
        self._part = self._attempts()

    def step(self) -> bool:
        """Try one move: improve some of its proposals, keep the first that is better.

        Proposals that have failed are not tried again before something changes, so that a move
        with many proposals gets further down its list each time.  False when the search is over.
        A move that is given up counts for nothing.
        """
        self._done += 1
        before = {name: replace(of_move) for name, of_move in self.statistics.items()}
        try:
            return self._try_move()
        except CutShort as cut:
            self._done -= 1
            self.statistics = before
            cut.intact = True
            raise

    def _try_move(self) -> bool:
        known = any(abs(self.now.bits - bits) < SAME for bits in self.known_ends)
        if known or self._idle == PATIENCE:
            self._tidy()
            return False
        attempt = self._part[self._at]
        record = self.statistics.setdefault(attempt.name, MoveStatistics())
        failed = 0 if attempt.random else self._failed.get(attempt.key, 0)
        better, rng = False, np.random.default_rng([self._seed, self._done])
        if failed is not None:
            last = None if attempt.limit is None else failed + attempt.limit
            proposals = islice(attempt.move(self.now, self.improver, rng), failed, last)
            for proposal in proposals:
                record.tried += 1
                start = proposal.features, proposal.placements
                found = self.improver.improve(*start, self.now, rng, proposal.rounds)
                lost = found.bits - self.now.bits
                if attempt.second is not None and -SAME < lost < self.now.feature_bits:
                    for way in attempt.second(found, self.improver, rng):
                        start = way.features, way.placements
                        other = self.improver.improve(*start, self.now, rng, way.rounds)
                        if self._better(other):
                            found = other
                            break
                better = self._better(found)
                if better:
                    record.accepted += 1
                    record.bits_saved += self.now.bits - found.bits
                    self.now = found
                    self._failed.clear()
                    break
                failed += 1
            else:
                self._failed[attempt.key] = None if failed != last else failed
        self._helped |= better
        self._at += attempt.skip if better else 1
        if self._at >= len(self._part):
            self._next_part()
        return True

    def _better(self, found: Explanation) -> bool:
        fits = self.max_features is None or len(found.features) <= self.max_features
        return fits and found.bits < self.now.bits - SAME

    def measure(self) -> Measurement:
        """Joint log-probability of the best solution so far."""
        note = f"{len(self.now.features)} parts, {self.now.bits:,.0f} bits"
        return Measurement(-self.now.bits * math.log(2), note=note)

    def state(self) -> Explanation:
        """The best solution so far."""
        return self.now

    def saved_fields(self, finished: bool) -> Fields:
        """The solution, and how far the search has come."""
        number = kinds.whole_number()
        statistics = kinds.object_of(
            MoveStatistics, tried=number, accepted=number, bits_saved=kinds.number()
        )
        failed = kinds.dict_of(kinds.optional(number))
        return {
            "rng": kinds.generator(),
            "now": self.saved_best,
            "statistics": kinds.dict_of(statistics),
            **dict.fromkeys(("_seed", "_idle", "_done", "_round_began", "_at"), number),
            **dict.fromkeys(("_opened", "_helped"), kinds.flag()),
            "_order": kinds.optional(kinds.list_of(number)),
            "_failed": kinds.constant({}) if finished else failed,
        }

    @property
    def saved_best(self) -> Kind:
        """A solution."""
        return self.improver.explanation_kind

    def after_restore(self, finished: bool) -> None:
        """The attempts of the current part follow from the fields."""
        self._part = self._attempts()
        if self._at >= len(self._part):
            raise ValueError(f"its at is {self._at}, but there are {len(self._part)} attempts")

    @property
    def expected_steps(self) -> int:
        """How many steps there will be in all, if nothing more is found."""
        a_round = len(_changes(thorough=False)) + len(_deletions(range(len(self.now.features))))
        rest = max(a_round - (self._done - self._round_began), 0)
        return self._done + rest + a_round * (PATIENCE - 1 - self._idle)

    def _attempts(self) -> list[Attempt]:
        """All attempts of the current part of the round."""
        if not self._opened:
            return [Attempt("scratch", moves.scratch), Attempt("polish", moves.polish)]
        if self._order is not None:
            return _deletions(self._order)
        return _changes(thorough=self._idle > 0)

    def _next_part(self) -> None:
        if not self._opened:
            self._opened = True
            self._helped = False
        elif self._order is None:
            random = np.random.default_rng([self._seed, self._done])
            self._order = random.permutation(len(self.now.features)).tolist()
        else:
            self._idle = 0 if self._helped else self._idle + 1
            self._helped, self._order = False, None
            self._round_began = self._done
        self._part, self._at = self._attempts(), 0

    def _tidy(self) -> None:
        """Among solutions of the same length, prefer the one whose features are in one piece."""
        pieces = math.inf
        while (now := moves.count_pieces(self.now)) < pieces:
            pieces = now
            for proposal in moves.tidy(self.now, self.improver, self.rng):
                found = self.improver.evaluate(proposal.features, proposal.placements)
                # Fewer pieces: a pixel must not go to and fro between two features for ever.
                if found.bits <= self.now.bits + SAME and moves.count_pieces(found) < pieces:
                    self.now = found
                    break


def _changes(thorough: bool) -> list[Attempt]:
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


def _deletions(order: Sequence[int]) -> list[Attempt]:
    """The second part: take features away, in this order, and place the others anew."""
    attempts = []
    for f in order:
        attempts += [
            Attempt("absorb", partial(moves.absorb, f=f), skip=3, feature=f),
            Attempt("delete", partial(moves.delete, f=f), 1, 2, False, f, moves.second_step),
            Attempt("dissolve", partial(moves.dissolve, f=f), 1, 1, False, f, moves.second_step),
        ]
    return [*attempts, Attempt("scratch", moves.scratch)]
