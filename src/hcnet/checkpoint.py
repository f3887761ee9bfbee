"""Checkpoints: where a fit is, written down every so often, so that a killed one can go on.

A fit is a number of runs of the driver, one after the other.  A checkpoint holds what is left of
those that are over, and everything of the one that is under way.  A fit that goes on is called as
it was the first time: it takes the same way, but runs that are over return at once.
"""

from __future__ import annotations

import hashlib
import math
import os
import secrets
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hcnet.archive.contents import Contents
from hcnet.archive.fields import named, number, whole, word
from hcnet.archive.reading import Reader, Section
from hcnet.archive.writing import write
from hcnet.engine.driver import JOINT, Outcome, Record, Status
from hcnet.version import VERSION
from hcnet.whole_files import remove_unfinished

KIND = "checkpoint"
# Seconds between two checkpoints.
EVERY = 60.0
_SEED = 2**128
_AGAIN = "or delete the file to start anew"


class Resumable(Protocol):
    """A process that can be written down."""

    def contents(self, finished: bool) -> Contents:
        """Everything that a further step depends on, the random generator included.

        Once it is `finished`, only what is still asked for.
        """
        ...

    def restore(self, file: Section, finished: bool) -> None:
        """Become what `contents` were of."""
        ...

    def pack(self, state: Any) -> Contents:
        """A state that `state` returned."""
        ...

    def unpack(self, file: Section) -> Any:
        """The same state again."""
        ...


@dataclass(frozen=True)
class Identity:
    """What must be the same for a fit to be the same."""

    method: str  # estimator and method
    parameters: dict[str, Any]
    data: str | None  # a digest; None where data come one after the other
    generator: str | None  # a digest; None where the seed is left open


@dataclass(eq=False)
class Checkpoint:
    """Keeps a fit in a file (`engine.driver.Keeper`)."""

    path: Path
    every: float
    identity: Identity
    # Processes that are not running now, but will go on later.
    beside: list[Resumable] = field(default_factory=list)
    _seed: int = field(default_factory=lambda: secrets.randbelow(_SEED))
    _over: list[Contents] = field(default_factory=list)
    _stage: int = 0
    _cut_short: bool = False
    _stepped: bool = False  # otherwise the file says it all
    _empty: bool = False  # the file only says that a fit has begun

    def __post_init__(self) -> None:
        self._reader = Reader(self.path, KIND, f"choose another name, {_AGAIN}")
        self._found: Section | None = None
        if self.path.exists():
            self._found = self._reader.__enter__()
            try:
                self._check()
            except BaseException:
                self.close()
                raise
            remove_unfinished(self.path)
        if self._found is None:
            self._write(None)  # if it cannot be written, better now than after an hour
        self._written = time.perf_counter()

    def generator(self, random_state: Any) -> Any:
        """The same random numbers as the first time, also where nobody chose a seed."""
        return np.random.default_rng(self._seed) if random_state is None else random_state

    def resume(self, process: Resumable) -> Outcome[Any] | None:
        """Bring a process to where it was left, if it was; how far it had come."""
        stage = f"stage-{self._stage}"
        self._stage += 1
        if self._found is None:
            return None
        if stage not in self._found.header:
            self.close()
            return None
        try:
            outcome = self._restore(process, self._found.part(stage))
        except _OtherDataError as error:
            raise ValueError(f"{self.path} {error}") from None
        except Exception as error:
            raise self._reader.damaged(error) from error
        if outcome.status is Status.RUNNING:
            self.close()
        else:
            self._over.append(_written_down(process, outcome, finished=True))
        return outcome

    def keep(self, process: Resumable, so_far: Outcome[Any]) -> None:
        """Write it down if it is time, or if the run was cut short: then it can go on."""
        self._stepped = True
        if so_far.status.cut_short:
            self._cut_short = True
            so_far = replace(so_far, status=Status.RUNNING)
        elif so_far.status is not Status.RUNNING:
            self._over.append(_written_down(process, so_far, finished=True))
            return
        elif time.perf_counter() - self._written < self.every:
            return
        running = _written_down(process, so_far, finished=False)
        for k, other in enumerate(self.beside):
            running = running.with_part(f"beside-{k}", other.contents(finished=False))
        try:
            self._write(running)
        except OSError as error:
            self._warn(error)
        self._written = time.perf_counter()

    def finish(self) -> None:
        """The fit is over: the same call returns the same at once, unless it was cut short."""
        if self._stepped and not self._cut_short:
            try:
                self._write(None)
            except OSError as error:
                self._warn(error)

    def _restore(self, process: Resumable, file: Section) -> Outcome[Any]:
        header = file.header
        if header["of"] != type(process).__name__:
            raise ValueError(f"it does not go on with {type(process).__name__}")
        status = Status[word("status", header["status"], list(Status.__members__))]
        process.restore(file.part("process"), status is not Status.RUNNING)
        if status is Status.RUNNING:
            for k, other in enumerate(self.beside):
                other.restore(file.part(f"beside-{k}"), False)
        objective = header["objective"]
        records = file.array("history", np.float64, (None, 5), finite=False)
        return Outcome(
            best=process.unpack(file.part("best")),
            objective=-math.inf if objective is None else number("objective", objective),
            status=status,
            n_iter=whole("n_iter", header["n_iter"]),
            seconds=number("seconds", header["seconds"]),
            history=_records(records, str(header["figure"])),
            best_at=whole("best_at", header["best_at"]),
        )

    def _write(self, running: Contents | None) -> None:
        stages = [*self._over, *([] if running is None else [running])]
        contents = Contents({"identity": asdict(self.identity), "seed": self._seed})
        for k, stage in enumerate(stages):
            contents = contents.with_part(f"stage-{k}", stage)
        self._empty = not stages  # before, so that no Ctrl-C comes between a file and this
        write(self.path, KIND, contents, overwrite=True)

    def abandon(self) -> None:
        """The fit has failed: what it came to stays, but not a file that nobody can go on from."""
        if self._empty:
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Read no further."""
        if self._found is not None:
            self._reader.__exit__(None, None, None)
        self._found = None

    def _check(self) -> None:
        """The file goes on with this very fit."""
        assert self._found is not None
        if self._reader.kind != KIND:
            raise ValueError(
                f"{self.path} is a model of {self._reader.kind} and no checkpoint; choose another "
                f"name for the checkpoint."
            )
        if "stage-0" not in self._found.header:  # nothing is lost: it may as well be another fit
            self.close()
            return
        if self._reader.library != VERSION:
            raise ValueError(
                f"{self.path} is a checkpoint of hcnet {self._reader.library}, and this is hcnet "
                f"{VERSION}, which may take other steps; go on with that version, {_AGAIN}."
            )
        try:
            was = named("identity", self._found.header["identity"])
            self._seed = whole("seed", self._found.header["seed"], 0, _SEED)
            old, new = named("parameters", was["parameters"]), self.identity.parameters
            others = sorted(k for k in {*old, *new} if old.get(k, _NOTHING) != new.get(k, _NOTHING))
            data, generator, method = was["data"], was["generator"], was["method"]
        except Exception as error:
            raise self._reader.damaged(error) from error
        if method != self.identity.method:
            raise ValueError(
                f"{self.path} is a checkpoint of {method}, not of {self.identity.method}; choose "
                f"another name, {_AGAIN}."
            )
        if others:
            raise ValueError(
                f"{self.path} is a checkpoint of a fit with another {', another '.join(others)}; "
                f"set back what you changed, {_AGAIN}."
            )
        if generator != self.identity.generator:
            raise ValueError(
                f"{self.path} is a checkpoint of a fit that began with another state of "
                f"random_state; pass a generator with the same seed, {_AGAIN}."
            )
        if data != self.identity.data:
            raise ValueError(
                f"{self.path} is a checkpoint of a fit of other data; pass the same X, labels and "
                f"mask, {_AGAIN}."
            )

    def _warn(self, error: OSError) -> None:
        warnings.warn(
            f"The checkpoint {self.path} could not be written ({error}); learning goes on, and a "
            f"fit that is broken off now goes back to the last checkpoint: make room for the next.",
            RuntimeWarning,
            stacklevel=2,
        )


_NOTHING = object()


class _OtherDataError(ValueError):
    """A stream does not begin as it did."""


def other_data() -> ValueError:
    """To be raised by a process whose data come as it goes, and are not what they were."""
    return _OtherDataError(
        "is a checkpoint of a fit of another stream; pass the same images in the same order, "
        f"{_AGAIN}."
    )


@contextmanager
def checkpointed(
    path: str | os.PathLike[str] | None, every: float, identity: Identity
) -> Iterator[Checkpoint | None]:
    """Keep the fit within this block in a file, if one is named."""
    if path is None:
        yield None
        return
    checkpoint = Checkpoint(Path(path), every, identity)
    try:
        yield checkpoint
        checkpoint.finish()
    except BaseException:
        checkpoint.abandon()
        raise
    finally:
        checkpoint.close()


def digest(*arrays: NDArray[Any] | None) -> str:
    """A fingerprint of arrays; other shapes or types make another one."""
    sum_ = hashlib.sha256()
    for array in arrays:
        if array is None:
            sum_.update(b"none;")
            continue
        sum_.update(f"{array.dtype.str}{array.shape};".encode())
        packed = np.packbits(array) if array.dtype == bool else np.ascontiguousarray(array)
        sum_.update(packed.reshape(-1).view(np.uint8).data if packed.size else b"")
    return sum_.hexdigest()


def text_digest(text: str) -> str:
    """A fingerprint of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def _written_down(process: Resumable, so_far: Outcome[Any], finished: bool) -> Contents:
    header = {
        "of": type(process).__name__,
        "status": so_far.status.name,
        "n_iter": so_far.n_iter,
        "seconds": so_far.seconds,
        "objective": so_far.objective if math.isfinite(so_far.objective) else None,
        "figure": so_far.history[-1].figure if so_far.history else JOINT,
        "best_at": so_far.best_at,
    }
    history = np.array([astuple(record)[:5] for record in so_far.history], float).reshape(-1, 5)
    return (
        Contents(header, {"history": history})
        .with_part("process", process.contents(finished))
        .with_part("best", process.pack(so_far.best))
    )


def _records(table: NDArray[np.float64], figure: str) -> list[Record]:
    """Inverse of how `_written_down` stores a history: None is NaN."""
    return [
        Record(int(n), float(seconds), float(objective), int(changed), _or_none(change), figure)
        for n, seconds, objective, changed, change in table
    ]


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
