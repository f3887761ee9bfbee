"""The one loop: steps any process, measures it, keeps its best state, knows when to stop."""

from __future__ import annotations

import enum
import math
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

State = TypeVar("State")
StateOut = TypeVar("StateOut", covariant=True)

# The name of the objective of message passing and of the search for parts.
JOINT = "joint log-probability"
# A step may go on for so many seconds when the time is up or Ctrl-C was pressed: most are done by
# then.  Longer ones are given up, within two seconds if they look often enough.
GRACE = 0.5
# Seconds to put a result together in when the time is up.
FINISH = 0.7
# Further presses of Ctrl-C within so many seconds mean the same as the first.
SAME_PRESS = 2.0


class Status(enum.Enum):
    """Why a run stopped; the value is a sentence for people."""

    RUNNING = "Running; this is the best state so far."
    CONVERGED = "Converged: a further sweep would change nothing."
    FINISHED = "Finished: no move improves the solution any more."
    PASSES_DONE = "Finished: all passes are done."
    END_OF_STREAM = "Finished: the stream has ended."
    BROKEN_OFF = "Stopped by an error; what was learned before it is kept."
    STALLED = "Stopped: the joint log-probability has not improved for a while."
    ITERATION_LIMIT = "Stopped at the iteration limit; raise max_iter to go on."
    TIME_LIMIT = "Stopped at the time limit; raise max_seconds to go on."
    INTERRUPTED = "Interrupted from the keyboard; this is the best state so far."

    @property
    def converged(self) -> bool:
        """True unless a limit or a person cut the run short."""
        return self in (
            Status.CONVERGED,
            Status.FINISHED,
            Status.PASSES_DONE,
            Status.END_OF_STREAM,
            Status.STALLED,
        )

    @property
    def cut_short(self) -> bool:
        """True if the time is up or a person wants the run to end: start no other."""
        return self in (Status.TIME_LIMIT, Status.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class Measurement:
    """The figures of a step."""

    objective: float  # the higher, the better
    changed_weights: int = 0
    belief_change: float | None = None  # None: the process has no beliefs
    note: str = ""
    figure: str = JOINT  # the name of the objective


class Process(Protocol[StateOut]):
    """Something that can be stepped."""

    def step(self) -> bool:
        """Go one step; False if there was nothing left to do."""
        ...

    def measure(self) -> Measurement:
        """How good the current state is, and how much the last step changed."""
        ...

    def state(self) -> StateOut:
        """The current state, safe to keep while the process goes on."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop at the latest, and what counts as converged."""

    max_iter: int | None = None
    max_seconds: float | None = None
    patience: int | None = None  # steps without a better objective
    tolerance: float = 1e-3  # belief change below which a state counts as a fixed point
    history: int | None = None  # steps whose records are kept, the last ones; None: all


@dataclass(frozen=True, slots=True)
class Record:
    """One step of a run's history."""

    iteration: int
    seconds: float
    objective: float
    changed_weights: int
    belief_change: float | None
    figure: str = JOINT  # the name of the objective


def record(m: Measurement, iteration: int, seconds: float) -> Record:
    """A measurement as a step of a history."""
    return Record(iteration, seconds, m.objective, m.changed_weights, m.belief_change, m.figure)


@dataclass
class Outcome(Generic[State]):
    """The best state of a run, why it stopped, and how it got there."""

    best: State
    objective: float
    status: Status
    n_iter: int
    seconds: float
    history: list[Record] = field(default_factory=list)
    best_at: int = 0  # the step after which the best state was reached


Report = Callable[[int, Measurement, float], None]


class Keeper(Protocol):
    """Writes down where a run is, so that another can go on from there."""

    def resume(self, process: Any) -> Outcome[Any] | None:
        """Bring a process to where it was left, if it was; how far it had come."""
        ...

    def keep(self, process: Any, so_far: Outcome[Any], intact: bool = True) -> None:
        """Told after every step, and when the run is over; not `intact` is a step given up."""
        ...


def run(
    process: Process[State],
    limits: Limits,
    report: Report | None = None,
    keeper: Keeper | None = None,
    earlier: Outcome[State] | None = None,
) -> Outcome[State]:
    """Step `process` until it converges or a limit is met; Ctrl-C stops it after the step.

    A step that calls `look` between pieces of its work is given up if it lasts `GRACE` seconds
    longer; the best state stays.  Of equally good states the first is kept.

    With a `keeper` a run that was broken off goes on where it was; the limit of time then counts
    from there.  `earlier` is the outcome of an earlier run of the same process: this run continues
    it, and `max_iter` counts the steps of both.
    """
    now: Outcome[State] | None = keeper.resume(process) if keeper is not None else None
    if now is None and earlier is not None:
        now = replace(earlier, status=Status.RUNNING)
    if now is None:
        now = Outcome(process.state(), process.measure().objective, Status.RUNNING, 0, 0.0)
    before, began = now.seconds, time.perf_counter()
    deadline = began + (math.inf if limits.max_seconds is None else limits.max_seconds)
    history = deque(now.history, maxlen=limits.history)
    with interruptible() as interrupted:
        while now.status is Status.RUNNING:
            if limits.max_iter is not None and now.n_iter >= limits.max_iter:
                now.status = Status.ITERATION_LIMIT
            else:
                try:
                    with _watching(deadline, interrupted):
                        alive = process.step()
                except (CutShort, KeyboardInterrupt) as cut:
                    now.seconds = before + time.perf_counter() - began
                    now.status = _reason(cut, interrupted)
                    if keeper is not None:
                        now.history = list(history)
                        keeper.keep(process, now, getattr(cut, "intact", False))
                    break
                now.n_iter += 1
                m = process.measure()
                now.seconds = before + time.perf_counter() - began
                history.append(record(m, now.n_iter, now.seconds))
                if m.objective > now.objective:
                    now.best, now.objective, now.best_at = process.state(), m.objective, now.n_iter
                if report is not None:
                    report(now.n_iter, m, now.seconds)
                if not alive:
                    now.status = Status.FINISHED
                elif (
                    m.belief_change is not None
                    and m.belief_change < limits.tolerance
                    and not m.changed_weights
                ):
                    now.status = Status.CONVERGED
                elif limits.patience is not None and now.n_iter - now.best_at >= limits.patience:
                    now.status = Status.STALLED
                # What would have been the end anyway comes first: nothing is left to go on with.
                elif interrupted.is_set():
                    now.status = Status.INTERRUPTED
                elif limits.max_seconds is not None and now.seconds - before >= limits.max_seconds:
                    now.status = Status.TIME_LIMIT
            if keeper is not None:
                now.history = list(history)
                keeper.keep(process, now)
    now.history = list(history)
    return now


class CutShort(BaseException):
    """The step under way is given up.  `intact` says that its process is as it was before."""

    intact = False


class Interrupt(threading.Event):
    """A handler of Ctrl-C: the first press sets it, a second takes the grace from the step.

    If the first was not answered for a while, another raises as usual.
    """

    since = limit = math.inf  # when it was pressed, and when the step under way is given up

    def __call__(self, number: int, frame: Any) -> None:
        """Handle a signal."""
        now = time.perf_counter()
        if not self.is_set():
            self.since, self.limit = now, now + GRACE
            self.set()
        elif now - self.since < SAME_PRESS:
            self.limit = now
        else:
            raise KeyboardInterrupt


class Press:
    """A handler of Ctrl-C that raises while it is `heard`, once for presses that mean the same.

    What is put in order after the first is not cut off by a second.
    """

    heard = True
    came = False  # whether there was a press
    _since = -math.inf

    def again(self) -> None:
        """Raise at the next press, too: what was raised at the last one is lost."""
        self._since = -math.inf

    def __call__(self, number: int, frame: Any) -> None:
        """Handle a signal."""
        now, self.came = time.perf_counter(), True
        if now - self._since >= SAME_PRESS:
            self._since = now
            if self.heard:
                raise KeyboardInterrupt


class _Watch(threading.local):
    """Limits of the step under way in this thread."""

    deadline = math.inf
    interrupt: Interrupt | None = None


_watch = _Watch()


def look() -> None:
    """Give the step under way up if its time was up, or Ctrl-C pressed, a while ago.

    Long steps call this between pieces of work of less than half a second.  Outside the steps of a
    `run` it does nothing: there Ctrl-C raises by itself.
    """
    interrupt = _watch.interrupt
    if interrupt is not None:
        limit = min(_watch.deadline + GRACE, interrupt.limit)
        if time.perf_counter() > limit:
            raise CutShort


@contextmanager
def _watching(deadline: float, interrupt: Interrupt) -> Iterator[None]:
    """`look` can end a step in this block; one within a step of another run has both limits."""
    outer = _watch.deadline, _watch.interrupt
    _watch.deadline, _watch.interrupt = min(outer[0], deadline), interrupt
    try:
        yield
    finally:
        _watch.deadline, _watch.interrupt = outer


@dataclass
class Bound:
    """Why work was given up, if it was."""

    status: Status | None = None


@contextmanager
def bounded(deadline: float | None) -> Iterator[Bound]:
    """Let `look` end this block, which is not a step of a run, when the time is up or by Ctrl-C.

    Where that is so already, the block puts a result together, and has `FINISH` seconds for it.
    """
    bound = Bound()
    with interruptible() as interrupt:
        now, limit = time.perf_counter(), math.inf if deadline is None else deadline
        late = interrupt.is_set() or now > limit
        watched = (now + FINISH - GRACE, Interrupt()) if late else (limit, interrupt)
        try:
            with _watching(*watched):
                yield bound
        except CutShort:
            look()  # the step of a run around this one is to be given up as well
            bound.status = Status.INTERRUPTED if interrupt.is_set() else Status.TIME_LIMIT


def _reason(cut: BaseException, interrupt: Interrupt) -> Status:
    """Why a step was given up; raise again if that is not for this run to say."""
    if isinstance(cut, KeyboardInterrupt):
        if not interrupt.is_set():
            raise cut
        return Status.INTERRUPTED
    look()  # the step of another run, around this one, is to be given up as well
    return Status.INTERRUPTED if interrupt.is_set() else Status.TIME_LIMIT


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Turn Ctrl-C into a flag within this block, as `Interrupt` says.

    Blocks may be nested: those inside share the flag of the outermost, so that several runs
    and what lies between them stop together.
    """
    if threading.current_thread() is not threading.main_thread():
        yield Interrupt()  # only the main thread may handle signals
        return
    previous = signal.getsignal(signal.SIGINT)
    if isinstance(previous, Interrupt):
        yield previous
        return
    if previous is not signal.default_int_handler and not isinstance(previous, Press):
        yield Interrupt()  # somebody else handles Ctrl-C: leave it to them
        return
    interrupt = Interrupt()
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, previous)
