"""The search: try moves in turn, keep what shortens the code, stop when nothing helps."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hcnet.archive import kinds
from hcnet.archive.kinds import Kind
from hcnet.archive.state import Fields, Stateful
from hcnet.engine.driver import Measurement
from hcnet.engine.threads import LookAhead
from hcnet.refine import moves, rounds
from hcnet.refine.moves import Proposal
from hcnet.refine.rounds import Attempt
from hcnet.solutions.explanation import Explanation
from hcnet.solutions.improver import Improver
from hcnet.solutions.stored import explanation_kind

# Rounds without any success after which the search is over.
PATIENCE = 3
# Proposals that are worked out at the same time: a third of the work is Python's, which only one
# thread can do at a time, so that more would wait for each other.  Bytes that they may take.
AT_ONCE, ROOM = 4, 2**30


@dataclass
class MoveStatistics:
    """How often a move was tried and accepted, and how many bits it saved."""

    tried: int = 0
    accepted: int = 0
    bits_saved: float = 0.0


@dataclass(frozen=True, eq=False)
class _Trial:
    """A proposal that was worked out."""

    key: tuple[object, ...] | None
    found: Explanation


@dataclass
class Search(Stateful):
    """A process for the driver: from a starting explanation, one step tries one move.

    While a proposal is worked out, other threads begin with those that are next if it fails, as
    most do.  Every attempt has random numbers of its own, so that it comes to the same whoever
    makes it, and when.
    """

    improver: Improver
    now: Explanation
    rng: np.random.Generator
    max_features: int | None = None
    statistics: dict[str, MoveStatistics] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._seed = int(self.rng.integers(2**32))
        self._failed: set[tuple[object, ...] | None] = set()
        self._idle = 0
        self._done = 0
        self._round_began = 0
        self._opened = False  # whether what comes before the first round is over
        self._helped = False  # whether anything in this round was a success
        self._order: list[int] | None = None  # of deletions, once they are begun
        self._resort = False  # whether the last resort is reached
        self._at = 0  # the attempt of the current part that is next
        self._part = rounds.opening()
        self._ahead: LookAhead[_Trial | None] = LookAhead()
        self._changed = True  # since others began with what comes next

    def step(self) -> bool:
        """Try one move; False when the search is over."""
        self._done += 1
        if self._idle == PATIENCE:
            self._tidy()
            return False
        attempt = self._part[self._at]
        better = self._try(attempt)
        self._helped |= better
        self._at += attempt.go_on if better else 1
        if self._at >= len(self._part):
            self._next_part()
        return True

    def close(self) -> None:
        """No thread is at work for it any more; the next step starts anew."""
        self._ahead.stop()
        self._changed = True

    def measure(self) -> Measurement:
        """Joint log-probability of the best solution so far."""
        note = f"{len(self.now.features)} parts, {self.now.bits:,.0f} bits"
        return Measurement(-self.now.bits * math.log(2), note=note)

    def state(self) -> Explanation:
        """The best solution so far."""
        return self.now

    def saved_fields(self, finished: bool) -> Fields:
        """The solution, and how far the search has come."""
        statistics = kinds.object_of(
            MoveStatistics,
            tried=kinds.whole_number(),
            accepted=kinds.whole_number(),
            bits_saved=kinds.number(),
        )
        return {
            "rng": kinds.generator(),
            "_seed": kinds.whole_number(),
            "now": self.saved_best,
            "statistics": kinds.dict_of(statistics),
            "_idle": kinds.whole_number(),
            "_done": kinds.whole_number(),
            "_round_began": kinds.whole_number(),
            "_opened": kinds.flag(),
            "_helped": kinds.flag(),
            "_order": kinds.optional(kinds.list_of(kinds.whole_number())),
            "_resort": kinds.flag(),
            "_at": kinds.whole_number(),
            # Keys hold the numbers of placements, and may be too many for a header.
            "_failed": kinds.constant(set()) if finished else _KEYS,
        }

    @property
    def saved_best(self) -> Kind:
        """A solution."""
        return explanation_kind(self.improver)

    def after_restore(self, finished: bool) -> None:
        """The attempts of the current part follow from the fields."""
        self._part = self._attempts()
        if self._at >= len(self._part):
            raise ValueError(f"its at is {self._at}, but there are {len(self._part)} attempts")
        self._changed = True

    @property
    def expected_steps(self) -> int:
        """How many steps there will be in all, if nothing more is found."""
        a_round = len(rounds.changes(False)) + 2 * len(self.now.features) + 2
        rest = max(a_round - (self._done - self._round_began), 0)
        return self._done + rest + a_round * (PATIENCE - 1 - self._idle)

    def _attempts(self) -> list[Attempt]:
        """The current part of the round: what is tried unless something changes."""
        if not self._opened:
            return rounds.opening()
        if self._resort:
            return rounds.last_resort()
        if self._order is not None:
            return rounds.deletions(self._order)
        return rounds.changes(thorough=self._idle > 0)

    def _next_part(self) -> None:
        if not self._opened:
            self._opened = True
            self._helped = False
        elif self._order is None:
            random = np.random.default_rng([self._seed, self._done])
            self._order = random.permutation(len(self.now.features)).tolist()
        elif not (self._helped or self._idle or self._resort):
            self._resort = True  # once is enough while nothing changes
        else:
            self._idle = 0 if self._helped else self._idle + 1
            self._helped, self._order, self._resort = False, None, False
            self._round_began = self._done
        self._part, self._at, self._changed = self._attempts(), 0, True

    def _tidy(self) -> None:
        """Among solutions of the same length, prefer the one whose features are in one piece."""
        again = True
        while again:
            again = False
            pieces = moves.count_pieces(self.now)
            for proposal in moves.tidy(self.now, self.improver, self.rng):
                found = self.improver.evaluate(proposal.features, proposal.placements)
                # Fewer pieces: a pixel must not go to and fro between two features for ever.
                saved = self.now.bits - found.bits
                if saved > 1e-6 or (saved >= -1e-6 and moves.count_pieces(found) < pieces):
                    self.now = found
                    again = True
                    break

    def _try(self, attempt: Attempt) -> bool:
        """Work out a few proposals of a move; keep the first that is better.

        What has failed is not tried again before something changes, so that a move with many
        proposals gets further down its list each time.
        """
        record = self.statistics.setdefault(attempt.name, MoveStatistics())
        if self._changed:
            self._ahead.start(self._calls(), self._at_once())
            self._changed = False
        while (trial := self._ahead.next()) is not None:
            record.tried += 1
            fits = self.max_features is None or len(trial.found.features) <= self.max_features
            if fits and trial.found.bits < self.now.bits - 1e-6:
                record.accepted += 1
                record.bits_saved += self.now.bits - trial.found.bits
                self.now = trial.found
                self._failed.clear()
                self._changed = True
                return True
            if trial.key is not None:
                self._failed.add(trial.key)
        return False

    def _calls(self) -> Iterator[Callable[[], _Trial | None]]:
        """The work of all attempts from the present one on, None after each of them."""
        for number, attempt in enumerate(self._part[self._at :], self._done):
            random = np.random.default_rng([self._seed, number])
            tries = 0
            for k, proposal in enumerate(attempt.move(self.now, self.improver, random)):
                if proposal.key in self._failed:
                    continue
                if tries == attempt.limit:
                    break
                tries += 1
                yield partial(self._work_out, self.now, proposal, (self._seed, number, k))
            yield _nothing_more

    def _work_out(self, now: Explanation, proposal: Proposal, seed: tuple[int, ...]) -> _Trial:
        found = self.improver.improve(
            proposal.features,
            proposal.placements,
            now.counts,
            np.random.default_rng(seed),
            proposal.rounds,
            now.features,
        )
        return _Trial(proposal.key, found)

    def _at_once(self) -> int:
        """How many proposals there is room for at the same time."""
        candidates = sum(feature.candidates.fits.size for feature in self.now.features)
        # Of each, twice: where it is and how well it fits.
        needed = self.now.cover.nbytes + 32 * candidates
        return min(AT_ONCE, max(ROOM // (needed + 1), 1))


def _nothing_more() -> None:
    return None


def _keys_to_bytes(keys: set[tuple[object, ...] | None]) -> NDArray[np.uint8]:
    plain = [[p.item() if isinstance(p, np.generic) else p for p in key or ()] for key in keys]
    return np.frombuffer(json.dumps(plain).encode(), np.uint8)


def _keys_from_bytes(text: NDArray[np.uint8]) -> set[tuple[object, ...] | None]:
    return {tuple(key) for key in json.loads(text.tobytes())}


_KEYS = kinds.converted(kinds.array(np.uint8, (None,)), _keys_to_bytes, _keys_from_bytes)
