"""Progress with an estimate, on the terminal."""

from __future__ import annotations

from typing import Any, Protocol

from tqdm.auto import tqdm

from hcnet.engine.driver import Measurement


class Progress(Protocol):
    """Told about every step of a run."""

    def stage(self, name: str, total: int | None) -> None:
        """Start a stage of `total` expected steps."""
        ...

    def step(self, measurement: Measurement, total: int | None = None) -> None:
        """One step is done; `total` corrects the expected number."""
        ...

    def close(self) -> None:
        """The run is over."""
        ...


class Silence:
    """Shows nothing."""

    def stage(self, name: str, total: int | None) -> None:
        """Ignore."""

    def step(self, measurement: Measurement, total: int | None = None) -> None:
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

    def step(self, measurement: Measurement, total: int | None = None) -> None:
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
