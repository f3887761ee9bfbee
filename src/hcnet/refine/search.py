"""The search: try moves in turn, keep what shortens the code, stop when nothing helps."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np

from hcnet.archive.contents import Contents
from hcnet.archive.fields import flag, listed, named, whole
from hcnet.archive.generators import generator_state, restore_generator
from hcnet.archive.reading import Section
from hcnet.engine.driver import Measurement
from hcnet.refine import moves
from hcnet.refine.moves import Move
from hcnet.refine.placing import place_by_messages
from hcnet.solutions.explanation import Explanation
from hcnet.solutions.improver import Improver
from hcnet.solutions.written import read_explanation, written

# How often a random move is tried in one round, and how many proposals of one that has many.
TRIES = 4
# Pairs that stand together often are many in a text, and most are no part: look further.
MERGES = 12
# Rounds without any success after which the search is over.
PATIENCE = 3


@dataclass
class MoveStatistics:
    """How often a move was tried and accepted, and how many bits it saved."""

    tried: int = 0
    accepted: int = 0
    bits_saved: float = 0.0


@dataclass
class Search:
    """A process for the driver: from a starting explanation, one step tries one move."""

    improver: Improver
    now: Explanation
    rng: np.random.Generator
    max_features: int | None = None
    statistics: dict[str, MoveStatistics] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._plan = self._rounds()
        self._failed: set[tuple[object, ...] | None] = set()
        self._idle = 0
        self._done = 0
        self._round_began = 0
        self._opened = False  # whether what comes before the first round is over
        # What each attempt of the current round brought, and the order of its deletions: with them
        # a search that was written down finds its place in the round again.
        self._brought: list[bool] = []
        self._order: list[int] | None = None
        self._known: deque[bool] = deque()  # attempts that were made before it was written down

    def step(self) -> bool:
        """Try one move; False when the search is over."""
        self._done += 1
        return next(self._plan, None) is not None

    def measure(self) -> Measurement:
        """Joint log-probability of the best solution so far."""
        note = f"{len(self.now.features)} parts, {self.now.bits:,.0f} bits"
        return Measurement(-self.now.bits * math.log(2), note=note)

    def state(self) -> Explanation:
        """The best solution so far."""
        return self.now

    def contents(self, finished: bool) -> Contents:
        """The solution, and how far the search has come."""
        header = {
            "generator": generator_state(self.rng),
            "statistics": {name: asdict(record) for name, record in self.statistics.items()},
            "opened": self._opened,
            "idle": self._idle,
            "done": self._done,
            "round_began": self._round_began,
            "brought": [] if finished else self._brought,
            "order": None if finished else self._order,
        }
        # Keys hold the numbers of placements, and may be many: too long for a header.
        keys = [[_plain(part) for part in key or ()] for key in self._failed]
        text = np.frombuffer(json.dumps([] if finished else keys).encode(), np.uint8)
        return Contents(header, {"failed": text}).with_part("now", self.pack(self.now))

    def restore(self, file: Section, finished: bool) -> None:
        """Become what `contents` were of."""
        header = file.header
        restore_generator(self.rng, header["generator"])
        self.now = self.unpack(file.part("now"))
        self.statistics.clear()
        for name, record in named("statistics", header["statistics"]).items():
            self.statistics[name] = MoveStatistics(**named("statistics", record))
        self._opened = flag("opened", header["opened"])
        self._idle, self._done = whole("idle", header["idle"]), whole("done", header["done"])
        text = file.array("failed", np.uint8, (None,)).tobytes()
        self._failed = {tuple(listed("failed", key)) for key in listed("failed", json.loads(text))}
        brought = [flag("brought", better) for better in listed("brought", header["brought"])]
        order = header["order"]
        if order is not None:
            self._order = [whole("order", f) for f in listed("order", order)]
        self._known = deque(brought)
        self._plan = self._rounds()
        for _ in brought:
            next(self._plan, None)
        self._round_began = whole("round_began", header["round_began"])

    def pack(self, state: Explanation) -> Contents:
        """A solution, for a file."""
        return written(state, self.improver)

    def unpack(self, file: Section) -> Explanation:
        """The solution of a file."""
        return read_explanation(file, self.improver)

    @property
    def expected_steps(self) -> int:
        """How many steps there will be in all, if nothing more is found."""
        a_round = 2 * len(self.now.features) + 3 * TRIES + 7
        rest = max(a_round - (self._done - self._round_began), 0)
        return self._done + rest + a_round * (PATIENCE - 1 - self._idle)

    def _rounds(self) -> Iterator[bool]:
        if not self._opened:
            yield self._attempt("scratch", moves.scratch)
            yield self._attempt("polish", moves.polish)
            self._opened = True
            self._brought = []
        while self._idle < PATIENCE:
            self._round_began = self._done
            helped = False
            for better in self._round():
                helped |= better
                yield better
            if not helped and self._idle == 0:  # once is enough while nothing changes
                helped = self._attempt("message passing", place_by_messages)
                yield helped
            self._idle = 0 if helped else self._idle + 1
            self._brought, self._order = [], None
        self._tidy()

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

    def _round(self) -> Iterator[bool]:
        for _ in range(60):  # merges open new merges; the bound only guards against a bug
            better = self._attempt("merge", moves.merge, self._limit(MERGES))
            yield better
            if not better:
                break
        for _ in range(TRIES):
            better = self._attempt("divide", moves.divide, self._limit(TRIES))
            yield better
            if not better:
                break
        for name, move in (("birth", moves.birth), ("split", moves.split)):
            for _ in range(TRIES):
                yield self._attempt(name, move)
        yield self._attempt("shift", moves.shift)
        yield self._attempt("grow", moves.grow)
        yield self._attempt("subtract", moves.subtract, self._limit(TRIES))
        yield self._attempt("complete", moves.complete)
        for _ in range(TRIES):
            yield self._attempt("crop", moves.crop)
        yield from self._deletions()
        yield self._attempt("scratch", moves.scratch)

    def _limit(self, tries: int) -> int | None:
        """Proposals of a move that has many: all of them before the search gives up."""
        return tries if self._idle == 0 else None

    def _deletions(self) -> Iterator[bool]:
        if self._order is None:
            self._order = self.rng.permutation(len(self.now.features)).tolist()
        for f in self._order:
            for absorb in (True, False):
                better = self._attempt("delete", partial(moves.delete, f=f, absorb=absorb))
                yield better
                if better:
                    break

    def _attempt(self, name: str, move: Move, limit: int | None = TRIES) -> bool:
        better = self._known.popleft() if self._known else self._try(name, move, limit)
        self._brought.append(better)
        return better

    def _try(self, name: str, move: Move, limit: int | None) -> bool:
        """Work out a few proposals of a move; keep the first that is better.

        What has failed is not tried again before something changes, so that a move with many
        proposals gets further down its list each time.
        """
        record = self.statistics.setdefault(name, MoveStatistics())
        tries = 0
        for proposal in move(self.now, self.improver, self.rng):
            if proposal.key in self._failed:
                continue
            if tries == limit:
                break
            tries += 1
            record.tried += 1
            found = self.improver.improve(
                proposal.features,
                proposal.placements,
                self.now.counts,
                self.rng,
                proposal.rounds,
                self.now.features,
            )
            if proposal.key is not None:
                self._failed.add(proposal.key)
            fits = self.max_features is None or len(found.features) <= self.max_features
            if fits and found.bits < self.now.bits - 1e-6:
                record.accepted += 1
                record.bits_saved += self.now.bits - found.bits
                self.now = found
                self._failed.clear()
                return True
        return False


def _plain(part: Any) -> Any:
    return part.item() if isinstance(part, np.generic) else part
