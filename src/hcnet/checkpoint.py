"""Checkpoints: a fit is saved at intervals, so that it can be resumed after its process was killed.

A fit is a number of stages: runs of the driver, one after the other.  A checkpoint holds the
outcomes of finished stages, and the whole state of the one that is running.  To resume a fit, call
it as the first time: it takes the same way, but finished stages return at once.
"""

from __future__ import annotations

import hashlib
import math
import secrets
import time
import warnings
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hcnet.archive import kinds
from hcnet.archive.files import Reader, write
from hcnet.archive.kinds import Contents, Kind, Node, Stateful, restore, save
from hcnet.atomic_files import Claim
from hcnet.engine.driver import JOINT, Outcome, Record, Status
from hcnet.version import VERSION

KIND = "checkpoint"
# Seconds between two checkpoints.
EVERY = 60.0
_SEED = 2**128
_AGAIN = "or move the file away to start anew"


class Resumable(Stateful, Protocol):
    """A process that can be saved and resumed."""

    @property
    def saved_best(self) -> Kind:
        """The kind of the states that `state` returns."""
        ...


@dataclass(frozen=True)
class Identity:
    """Facts that must be the same for a fit to be the same."""

    method: str  # estimator and method
    parameters: dict[str, Any]
    data: str | None  # a digest; None if data come as a stream
    generator: str | None  # a digest; None if random_state is a seed or None


@dataclass(eq=False)
class Checkpoint:
    """Keeps the fit within a `with` block in a file (`engine.driver.Keeper`)."""

    path: Path
    every: float
    identity: Identity
    # Processes that are not running now, but will continue later.
    paused: list[Resumable] = field(default_factory=list)
    _seed: int = field(default_factory=lambda: secrets.randbelow(_SEED))
    _finished: list[Contents] = field(default_factory=list)  # stages
    _stage: int = 0  # the number of the next one
    _cut_short: bool = False
    _stepped: bool = False  # otherwise the file is up to date
    _empty: bool = False  # the file has no stage yet

    def __post_init__(self) -> None:
        self._reader = Reader(self.path, KIND, f"choose another name, {_AGAIN}")
        self._file: Node | None = None
        self._claim = Claim(self.path)
        try:
            self._begin()
        except BaseException:
            self.close()
            self._claim.release()
            raise
        self._written_at = time.perf_counter()

    def _begin(self) -> None:
        """Open the file, or write one."""
        while True:
            there = self.path.exists()
            if not self._claim.take():
                raise ValueError(
                    f"{self.path} is the checkpoint of another fit that is running; wait for its "
                    f"end, or choose another name."
                )
            try:
                if there:
                    self._file = self._reader.__enter__()
                    self._check(self._file)
                if self._file is None:  # if it cannot be written, better now than after an hour
                    self._write(overwrite=there or self.path.is_symlink())
                return
            except FileExistsError:
                self._empty = False  # another fit was faster
            except FileNotFoundError:
                if not there or self.path.exists():
                    raise
                # Another fit has come to its end.

    def generator(self, random_state: Any) -> Any:
        """The same random numbers as the first time, also if no seed was given."""
        return np.random.default_rng(self._seed) if random_state is None else random_state

    def resume(self, process: Resumable) -> Outcome[Any] | None:
        """Bring a process to the state in the file, if it has one; its outcome so far."""
        stage = self._stage
        self._stage += 1
        if self._file is None:
            return None
        try:
            stages = [*self._file["stages"]]
            if stage >= len(stages):
                self.close()
                return None
            outcome = self._restore(process, stages[stage])
        except OtherDataError as error:
            raise ValueError(f"{self.path} {error}") from None
        except Exception as error:
            raise self._reader.explained(error) from error
        if outcome.status is Status.RUNNING:
            self.close()
        else:
            self._finished.append(self._stage_contents(process, outcome))
        return outcome

    def keep(self, process: Resumable, so_far: Outcome[Any], intact: bool = True) -> None:
        """Write a checkpoint if it is time, or if the run was cut short, which can be resumed.

        If a step was given up halfway, the last checkpoint stays.
        """
        self._stepped = True
        if so_far.status.cut_short:
            self._cut_short = True
            if not intact:
                return
            so_far = replace(so_far, status=Status.RUNNING)
        elif so_far.status is not Status.RUNNING:
            self._finished.append(self._stage_contents(process, so_far))
            return
        elif time.perf_counter() - self._written_at < self.every:
            return
        self._try_to_write(self._stage_contents(process, so_far))
        self._written_at = time.perf_counter()

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        """The same call returns the same at once, if the fit is over and was not cut short.

        Otherwise its last checkpoint stays, but not a file without any stage.
        """
        self.close()
        try:
            if error is None and self._stepped and not self._cut_short:
                self._try_to_write()
            elif self._empty:
                self.path.unlink(missing_ok=True)
        finally:
            self._claim.release()

    def close(self) -> None:
        """Close the file that is read."""
        if self._file is not None:
            self._reader.__exit__(None, None, None)
        self._file = None

    def _stage_contents(self, process: Resumable, so_far: Outcome[Any]) -> Contents:
        running = so_far.status is Status.RUNNING
        parts = {
            "process": Contents(type(process).__name__),
            "outcome": _outcome_kind(process).write(so_far),
            "state": save(process, not running),
        }
        if running:
            parts["paused"] = Contents.of_list(map(save, self.paused))
        return Contents.of(parts)

    def _restore(self, process: Resumable, stage: Node) -> Outcome[Any]:
        kinds.choice(type(process).__name__).read(stage["process"])
        outcome: Outcome[Any] = _outcome_kind(process).read(stage["outcome"])
        running = outcome.status is Status.RUNNING
        restore(process, stage["state"], not running)
        if running:
            for other, node in zip(self.paused, stage["paused"], strict=True):
                restore(other, node)
        return outcome

    def _write(self, *running: Contents, overwrite: bool = True) -> None:
        stages = [*self._finished, *running]
        contents = {
            "identity": _IDENTITY.write(self.identity),
            "seed": Contents(self._seed),
            "stages": Contents.of_list(stages),
        }
        self._empty = not stages  # before, so that no Ctrl-C comes between a file and this
        write(self.path, KIND, Contents.of(contents), overwrite=overwrite, claim=self._claim)

    def _try_to_write(self, *running: Contents) -> None:
        try:
            self._write(*running)
        except OSError as error:
            warnings.warn(
                f"The checkpoint {self.path} could not be written ({error}); learning goes on, but "
                f"can only be resumed from the last checkpoint: make room for the next.",
                RuntimeWarning,
                stacklevel=2,
            )

    def _check(self, file: Node) -> None:
        """Raise an error unless the file is a checkpoint of this fit."""
        if self._reader.kind != KIND:
            raise ValueError(
                f"{self.path} is a model of {self._reader.kind} and no checkpoint; choose another "
                f"name for the checkpoint."
            )
        if file.value.get("stages") == []:  # nothing is lost: it may be of another fit
            self.close()
            return
        try:
            difference = self._difference(file)
        except Exception as error:
            raise self._reader.explained(error) from error
        if difference:
            raise ValueError(f"{self.path} is a checkpoint of {difference}, {_AGAIN}.")

    def _difference(self, file: Node) -> str | None:
        """The difference between the fit of a file and this one, and what to do about it."""
        library, now = self._reader.library, self.identity
        if library != VERSION:
            return (
                f"hcnet {library}, and this is hcnet {VERSION}, which may take other steps; go on "
                f"with that version"
            )
        self._seed = kinds.whole_number(0, _SEED).read(file["seed"])
        before = _IDENTITY.read(file["identity"])
        if before.method != now.method:
            return f"{before.method}, not of {now.method}; choose another name"
        old, new = before.parameters, now.parameters
        changed = [n for n in sorted({*old, *new}) if old.get(n, ...) != new.get(n, ...)]
        if changed:
            return f"a fit with another {', another '.join(changed)}; set back what you changed"
        if before.generator != now.generator:
            return (
                "a fit that began with another state of random_state; pass a generator with the "
                "same seed"
            )
        if before.data != now.data:
            return "a fit of other data; pass the same X, labels and mask"
        return None


class OtherDataError(ValueError):
    """A process gets other data than the first time."""

    def __init__(self) -> None:
        super().__init__(
            "is a checkpoint of a fit of another stream; pass the same images in the same order, "
            f"{_AGAIN}."
        )


def digest(*parts: NDArray[Any] | str | None) -> str:
    """A fingerprint of texts and arrays; other shapes or types make another one."""
    sum_ = hashlib.sha256()
    for part in parts:
        if not isinstance(part, np.ndarray):
            sum_.update(f"{part!r};".encode())
            continue
        sum_.update(f"{part.dtype.str}{part.shape};".encode())
        packed = np.packbits(part) if part.dtype == bool else np.ascontiguousarray(part)
        sum_.update(packed.reshape(-1).view(np.uint8).data if packed.size else b"")
    return sum_.hexdigest()


_ANY_TEXT = kinds.optional(kinds.text())
_IDENTITY = kinds.object_of(
    Identity,
    method=kinds.text(),
    parameters=kinds.dict_of(kinds.plain("a parameter", lambda value: True)),
    data=_ANY_TEXT,
    generator=_ANY_TEXT,
)


def _outcome_kind(process: Resumable) -> Kind:
    """The outcome of a run of a process so far."""
    status, table = kinds.choice(*Status.__members__), kinds.array(float, (None, 5), finite=False)
    history = kinds.each_of([table, kinds.text()])
    return kinds.object_of(
        Outcome,
        best=process.saved_best,
        objective=kinds.number_or(-math.inf),
        status=kinds.converted(status, lambda status: status.name, Status.__getitem__),
        n_iter=kinds.whole_number(),
        seconds=kinds.number(),
        history=kinds.converted(history, _table, _records),
        best_at=kinds.whole_number(),
    )


def _table(history: list[Record]) -> tuple[NDArray[np.float64], str]:
    """Records as a table, in which None is NaN, and the name of their figure."""
    table = np.array([astuple(record)[:5] for record in history], float).reshape(-1, 5)
    return table, history[-1].figure if history else JOINT


def _records(stored: tuple[NDArray[np.float64], str]) -> list[Record]:
    table, figure = stored
    return [
        Record(int(n), s, value, int(changed), None if math.isnan(change) else change, figure)
        for n, s, value, changed, change in table.tolist()
    ]
