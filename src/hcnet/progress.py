"""The progress of a fit: a bar on the terminal, and the user's callback."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tqdm.auto import tqdm

from hcnet.engine.driver import Measurement, Record, record

# Steps whose records a callback gets, the last ones.
HISTORY = 10_000

# The state of a process, worked out only if the callback asks for the model.
State = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Step:
    """The argument of a callback, after each step of learning."""

    stage: str  # the name of the stage
    iteration: int  # from 1, within the stage
    total: int | None  # steps that the stage will probably have
    seconds: float  # since learning began
    objective: float
    figure: str  # the name of the objective
    note: str
    history: Sequence[Record]  # of all stages so far
    model: Callable[[], Any]  # makes an estimator of the current state; it can be used and saved


Callback = Callable[[Step], object]


class Progress:
    """The progress of a fit, for a bar on the terminal and for a callback; either may be missing.

    `estimator` makes an estimator of a state of learning, for the callback.
    """

    def __init__(
        self,
        verbose: bool = False,
        callback: Callback | None = None,
        estimator: Callable[[Any], Any] | None = None,
    ) -> None:
        if callback is not None and not callable(callback):
            raise TypeError(
                f"callback must be a function that takes a Step, or None, got {callback!r}; pass "
                f"for example steps.append of a list."
            )
        self._verbose, self._callback, self._estimator = verbose, callback, estimator
        self._bar: Any = None
        self._history: deque[Record] = deque(maxlen=HISTORY)
        self._stage, self._iteration = "", 0
        self._total: int | None = None
        self._began = time.perf_counter()

    def stage(self, name: str, total: int | None) -> None:
        """Start a stage of `total` expected steps, with a bar of its own."""
        self.close()
        self._stage, self._iteration, self._total = name, 0, total
        if self._verbose:
            self._bar = tqdm(total=total, desc=name, unit="step", dynamic_ncols=True, leave=True)

    def step(self, measurement: Measurement, state: State, total: int | None = None) -> None:
        """Count a step; `total` corrects the expected number."""
        self._iteration += 1
        if total is not None:
            self._total = max(total, self._iteration)
        if self._bar is not None:
            self._bar.total = self._total
            if measurement.note:
                self._bar.set_postfix_str(measurement.note, refresh=False)
            self._bar.update()
        if self._callback is None:
            return
        assert self._estimator is not None
        estimator, seconds = self._estimator, time.perf_counter() - self._began
        number = self._history[-1].iteration + 1 if self._history else 1
        self._history.append(record(measurement, number, seconds))
        step = Step(
            stage=self._stage,
            iteration=self._iteration,
            total=self._total,
            seconds=seconds,
            objective=measurement.objective,
            figure=measurement.figure,
            note=measurement.note,
            history=list(self._history),
            model=lambda: estimator(state()),
        )
        self._callback(step)

    def close(self) -> None:
        """Leave the finished bar on the screen."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
