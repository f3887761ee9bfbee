"""`Estimator`: the base class of all estimators, with model files, checkpoints and streams."""

from __future__ import annotations

import inspect
import json
import math
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hcnet import checkpoint as checkpoints
from hcnet.archive import kinds
from hcnet.archive.files import Reader, write
from hcnet.archive.kinds import Contents, Kind, Node, save, shown
from hcnet.checkpoint import Checkpoint, Identity, digest
from hcnet.checks import check_flag, check_number, check_path, check_random_state
from hcnet.engine.driver import Record, Status, interruptible
from hcnet.engine.engines import Engine
from hcnet.online.stream import Minibatch, Stream, feed, later
from hcnet.progress import Callback, Progress
from hcnet.validation.parameters import check_max_memory, check_positive

# Parameters that change neither the steps nor the result of a fit.
_WITHOUT_INFLUENCE = ("max_seconds", "max_memory", "verbose")
# Attributes about learning that a file holds.
_SUMMARY: dict[str, Kind] = {
    "n_iter_": kinds.whole_number(),
    "memory_": kinds.whole_number(),
    "n_images_seen_": kinds.whole_number(),
    "seconds_": kinds.number(),
    "log_joint_": kinds.number(),
    "cost_": kinds.number(),
    "errors_": kinds.number(least=0),
    "feature_names_in_": kinds.converted(
        kinds.list_of(kinds.text()), list, lambda names: np.array(names, object)
    ),
    "compression_ratio_": kinds.number(),
    "status_": kinds.converted(
        kinds.choice(*Status.__members__),
        lambda sentence: Status(sentence).name,
        lambda name: Status[name].value,
    ),
}
# All attributes that learning sets, besides the model.
_TRAINING = (
    *(*_SUMMARY, "codes_", "history_", "moves_", "placements_"),
    *("row_names_", "coverage_"),
)


class Estimator(BaseEstimator):
    """Files, checkpoints and streams, the same for all estimators.

    A subclass is a dataclass of its parameters, but compared and printed as scikit-learn does.  It
    sets `_model_kind`, and has `_publish`, which takes a model over, and `_check_parameters`.  If
    it learns from streams, it also has `_read_stream`.
    """

    _kind: ClassVar[str]  # the name of the estimator in files
    _model_kind: ClassVar[Kind]  # of what was learned, for files
    _model: Any
    _stream: Any = None  # a Stream, after `partial_fit` and `fit_stream`

    random_state: int | np.random.Generator | None
    max_seconds: float | None
    max_memory: int | None
    verbose: bool
    callback: Callback | None

    n_iter_: int
    history_: list[Record]
    status_: str
    seconds_: float

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Write what was learned to a file (no pickle); `load` and `hcnet.load` read it.

        The file is replaced as a whole or not at all.  After `partial_fit` or `fit_stream` it also
        holds the state of the stream, so that a loaded estimator can continue with it.
        """
        check_is_fitted(self)
        self._check_parameters()
        learning = {name: plain(getattr(self, name, None)) for name in _SUMMARY}
        written = {
            name.removesuffix("_"): _SUMMARY[name].write(value)
            for name, value in learning.items()
            if value is not None
        }
        parts = {
            "parameters": Contents(self._plain_parameters()),
            "training": Contents.of(written),
            "model": self._model_contents(),
        }
        if self._stream is not None:
            parts["stream"] = save(self._stream)
        return write(path, self._kind, Contents.of(parts), overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read an estimator that was saved; if it had a stream, `partial_fit` continues it."""
        loaded: Self = read_estimator(path, {cls._kind: cls})
        return loaded

    def _model_contents(self) -> Contents:
        """What was learned, for files and dictionaries."""
        return self._model_kind.write(self._model)

    def _publish(self, model: Any) -> Self:
        """Set the model and the public attributes that show it."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        """Raise an error unless learning could start with these parameters."""
        raise NotImplementedError

    def _read_stream(self, file: Node) -> None:
        """Set the stream of a file."""
        raise ValueError(f"it has a stream, which {self._kind} has not")

    def _copy(self) -> Self:
        """An estimator with the same parameters that has learned nothing."""
        return type(self)(**self.get_params(deep=False))

    def _forget(self) -> None:
        """Drop what was learned before."""
        self._stream = None
        for name in _TRAINING:
            self.__dict__.pop(name, None)

    def _store_run(self, learned: Any) -> Self:
        """Set the attributes about a run of learning."""
        self.n_iter_, self.history_ = learned.n_iter, learned.history
        self.status_, self.seconds_ = learned.status.value, learned.seconds
        return self

    def _progress(self, estimator: Callable[[Any], Any]) -> Progress:
        """The progress bar and the callback; `estimator` makes an estimator of a state."""
        return Progress(check_flag("verbose", self.verbose), self.callback, estimator)

    def _keeping(
        self,
        path: str | os.PathLike[str] | None,
        every: float,
        method: str,
        *data: Any,
        settings: dict[str, Any] | None = None,
    ) -> AbstractContextManager[Checkpoint | None]:
        """Keep a fit in a checkpoint, if a path is given.

        `data` are texts and arrays that must be the same, `settings` arguments of the method.
        """
        note, hint = " seconds", "0: every step"
        waiting = check_number("every", every, least=0, most=1e9, note=note, hint=hint)
        if path is None:
            return nullcontext()
        self._check_parameters()  # before there is a file
        seed, generator = self.random_state, None
        if not (seed is None or isinstance(seed, int | np.integer)):
            state = kinds.generator().write(check_random_state(seed)).header
            generator = digest(json.dumps(state))
        parameters = self._plain_parameters() | (settings or {})
        parameters = {k: v for k, v in parameters.items() if k not in _WITHOUT_INFLUENCE}
        known = digest(*data) if data else None
        identity = Identity(f"{self._kind}.{method}", parameters, known, generator)
        return Checkpoint(check_path("checkpoint", path), waiting, identity)

    def _generator(self, keeper: Checkpoint | None) -> np.random.Generator:
        """The random numbers of a fit; the same again if it continues from a checkpoint."""
        seed = self.random_state
        return check_random_state(seed if keeper is None else keeper.generator(seed))

    def _learn_stream(
        self,
        stream: Stream,
        batches: Iterator[Minibatch],
        total: int | None = None,
        finish: Callable[[float | None, Progress, Checkpoint | None], Any] | None = None,
        keeper: Checkpoint | None = None,
    ) -> Self:
        """Learn from minibatches, and set the stream and its model.

        `total` is their number, if it is known.  `finish` makes the model at the end of the stream,
        within the seconds that are left.  Nothing changes before the first minibatch was learned.
        """
        before = [] if stream is not self._stream else list(getattr(self, "history_", []))
        steps, began = stream.n_batches, time.perf_counter()
        seconds = check_positive("max_seconds", self.max_seconds)
        progress = self._progress(lambda model: self._copy()._publish(model))
        records: list[Record] = []
        status, model = Status.BROKEN_OFF, None
        if steps == 0 and stream.problem:
            warnings.warn(stream.problem, UserWarning, stacklevel=3)
        try:
            with interruptible():
                limits = seconds, check_max_memory(self.max_memory)
                outcome = feed(stream, batches, progress, total, *limits, keeper)
                records, status = outcome.history, outcome.status
                if finish is not None and not status.cut_short:
                    spent = time.perf_counter() - began
                    model = finish(seconds and max(seconds - spent, 1e-3), progress, keeper)
        finally:
            progress.close()
            if stream.n_batches > steps:  # also if an item in the middle could not be read
                self._forget()
                self._stream = stream
                self._publish(model or stream.model())
                self.n_images_seen_, self.n_iter_ = stream.n_images, stream.n_batches
                self.history_, self.status_ = later(records, before, steps), status.value
        if stream.n_batches == 0:  # there is no model to return
            if status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            raise ValueError(
                f"The first minibatch was not learned within max_seconds={seconds:g}; raise "
                f"max_seconds, or lower batch_size."
            )
        return self

    def _plain_parameters(self) -> dict[str, Any]:
        """Parameters as JSON can hold them, without the callback and without a generator."""
        found = self.get_params(deep=False)
        del found["callback"]
        if not isinstance(found["random_state"], int | np.integer):
            found["random_state"] = None
        return {name: plain(value) for name, value in found.items()}

    @classmethod
    def _from_file(cls, file: Node) -> Self:
        loaded = cls._from_model(file["parameters"], file["model"])
        if "stream" in file:
            loaded._read_stream(file["stream"])
            loaded.n_images_seen_ = loaded._stream.n_images
            loaded.n_iter_ = loaded._stream.n_batches
        training = file["training"]
        for name in training.names():
            if f"{name}_" not in _SUMMARY:
                raise ValueError(f"its training has an unknown entry {shown(name)}")
            setattr(loaded, f"{name}_", _SUMMARY[f"{name}_"].read(training[name]))
        return loaded

    @classmethod
    def _from_model(cls, parameters: Node, model: Node) -> Self:
        """An estimator from plain values that may come from anybody."""
        given = list(parameters.names())
        known = {*inspect.signature(cls.__init__).parameters} - {"self", "callback"}
        strange = [name for name in given if name not in known]
        if strange:
            raise ValueError(f"it has a parameter {shown(strange[0])}, which {cls._kind} has not")
        made = cls(**{name: cls._parameter(name, parameters[name]) for name in given})
        made._check_parameters()
        return made._publish(cls._model_kind.read(model))

    @classmethod
    def _parameter(cls, name: str, node: Node) -> Any:
        """A parameter of a file."""
        if name == "engine" and isinstance(node.value, dict):
            return Engine(**{key: node[key].value for key in node.names()})
        return tuple(node.value) if isinstance(node.value, list) else node.value


def read_estimator(path: str | os.PathLike[str], classes: dict[str, Any]) -> Any:
    """The estimator of a file, which must be of one of these kinds."""
    reader = Reader(path)
    with reader as file:
        if reader.kind in classes:
            return classes[reader.kind]._from_file(file)
    if reader.kind == checkpoints.KIND:
        raise ValueError(
            f"{path} is a checkpoint of a fit and not a model; call that fit again with "
            f"checkpoint={str(path)!r}, and save what it returns."
        )
    raise ValueError(
        f"{path} is a file of {shown(reader.kind)}, not of {' or '.join(classes)}; read it with "
        f"hcnet.load."
    )


def plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return {name: plain(one) for name, one in asdict(value).items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None  # no limit
    return value


def takes_images(tags: Any) -> Any:
    """The tags of an estimator whose input are binary images, with NaN for missing pixels."""
    tags.input_tags.two_d_array = tags.input_tags.three_d_array = True
    tags.input_tags.positive_only = tags.input_tags.allow_nan = True
    return tags
