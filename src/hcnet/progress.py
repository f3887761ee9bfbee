"""Watching a run: a bar on the terminal, and callbacks that people write."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tqdm.auto import tqdm

from hcnet.engine.driver import Measurement, Record, record

# Steps of a run whose records a callback can look back at.
HISTORY = 10_000

# The state of a process, worked out only if somebody asks for it.
State = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Step:
    """What a callback is told after each step of learning."""

    stage: str  # what is being done, for people
    iteration: int  # from 1, within the stage
    total: int | None  # steps that the stage will probably have
    seconds: float  # since learning began
    objective: float
    figure: str  # the name of the objective
    note: str
    history: Sequence[Record]  # of all stages so far
    model: Callable[[], Any]  # makes an estimator of what is known by now; it can be used and saved


Callback = Callable[[Step], object]


class Progress(Protocol):
    """Told about every step of a run."""

    def stage(self, name: str, total: int | None) -> None:
        """Start a stage of `total` expected steps."""
        ...

    def step(self, measurement: Measurement, state: State, total: int | None = None) -> None:
        """One step is done; `total` corrects the expected number."""
        ...

    def close(self) -> None:
        """The run is over."""
        ...


class Silence:
    """Shows nothing."""

    def stage(self, name: str, total: int | None) -> None:
        """Ignore."""

    def step(self, measurement: Measurement, state: State, total: int | None = None) -> None:
        """Ignore."""

    def close(self) -> None:
        """Ignore."""


class Bar:
    """A progress bar per stage, with the time that is probably left."""

    def __init__(self) -> None:
        self._bar: Any = None

    def stage(self, name: str, total: int | None) -> None:
        """Start a new bar."""
        self.close()
        self._bar = tqdm(total=total, desc=name, unit="step", dynamic_ncols=True, leave=True)

    def step(self, measurement: Measurement, state: State, total: int | None = None) -> None:
        """Advance the bar."""
        if self._bar is None:
            return
        if total is not None:
            self._bar.total = max(total, self._bar.n + 1)
        if measurement.note:
            self._bar.set_postfix_str(measurement.note, refresh=False)
        self._bar.update()

    def close(self) -> None:
        """Leave the finished bar on the screen."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class Told:
    """Tells a callback about every step, as a `Step`."""

    def __init__(self, callback: Callback, model: Callable[[Any], Any]) -> None:
        self._callback, self._model = callback, model
        self._history: deque[Record] = deque(maxlen=HISTORY)
        self._stage, self._iteration = "", 0
        self._total: int | None = None
        self._began = time.perf_counter()

    def stage(self, name: str, total: int | None) -> None:
        """Count from 1 again."""
        self._stage, self._iteration, self._total = name, 0, total

    def step(self, measurement: Measurement, state: State, total: int | None = None) -> None:
        """Call the callback."""
        self._iteration += 1
        seconds = time.perf_counter() - self._began
        m, n = measurement, self._history[-1].iteration + 1 if self._history else 1
        if total is not None:
            self._total = max(total, self._iteration)
        self._history.append(record(m, n, seconds))
        self._callback(
            Step(
                self._stage,
                self._iteration,
                self._total,
                seconds,
                m.objective,
                m.figure,
                m.note,
                list(self._history),
                lambda: self._model(state()),
            )
        )

    def close(self) -> None:
        """Nothing is open."""


class Several:
    """Tells several about every step."""

    def __init__(self, *watching: Progress) -> None:
        self._watching = watching

    def stage(self, name: str, total: int | None) -> None:
        """Tell all."""
        for one in self._watching:
            one.stage(name, total)

    def step(self, measurement: Measurement, state: State, total: int | None = None) -> None:
        """Tell all."""
        for one in self._watching:
            one.step(measurement, state, total)

    def close(self) -> None:
        """Tell all."""
        for one in self._watching:
            one.close()


def watching(verbose: bool, callback: Callback | None, model: Callable[[Any], Any]) -> Progress:
    """A bar if `verbose`, the callback if there is one; `model` makes an estimator of a state."""
    if callback is not None and not callable(callback):
        raise TypeError(
            f"callback must be a function that takes a Step, or None, got {callback!r}; pass for "
            f"example steps.append of a list."
        )
    bar: Progress = Bar() if verbose else Silence()
    return bar if callback is None else Several(bar, Told(callback, model))
