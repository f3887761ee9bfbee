"""What all estimators have in common: model files, and checkpoints of what they learn."""

from __future__ import annotations

import inspect
import json
import math
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hcnet import checkpoint as checkpoints
from hcnet.archive.contents import Contents
from hcnet.archive.fields import named, number, shown, whole, word
from hcnet.archive.generators import generator_state
from hcnet.archive.reading import Reader, Section
from hcnet.archive.writing import write
from hcnet.checkpoint import Checkpoint, Identity, checkpointed, text_digest
from hcnet.engine.driver import Status
from hcnet.validation.parameters import check_path, check_random_state, check_waiting

# Parameters that say how long or how loud a fit is, not which way it takes.
_OTHERWISE = ("max_seconds", "max_memory", "verbose")
# What is told about how a model was learned.
_COUNTS = ("n_iter_", "memory_", "n_images_seen_")
_NUMBERS = ("seconds_", "log_joint_", "compression_ratio_")


class Saving:
    """The half of an estimator that outlives its process."""

    _kind: ClassVar[str]  # the name of the estimator in files

    if TYPE_CHECKING:  # of the estimator

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...  # noqa: D102

        # What was learned, and taking it up again, with the stream if there is one.
        def _model_contents(self) -> Contents: ...
        def _read_model(self, file: Section) -> None: ...

        # An error unless learning could start with these parameters.
        def _check_parameters(self) -> None: ...

        def __getattr__(self, name: str) -> Any: ...

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Write what was learned to a file (no pickle); `load` and `hcnet.load` read it.

        The file is there whole, or as it was before.  After `partial_fit` or `fit_stream` it also
        holds the state of the stream: what is loaded goes on learning as if nothing had happened.
        """
        check_is_fitted(self)
        self._check_parameters()
        header = {"parameters": self._plain_parameters(), "training": self._training_summary()}
        contents = Contents(header).with_part("model", self._model_contents())
        stream = getattr(self, "_stream", None)
        if stream is not None:
            contents = contents.with_part("stream", stream.contents())
        return write(path, self._kind, contents, overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what was learned: ready to use, and to go on with its stream if it had one."""
        loaded: Self = read_estimator(path, {cls._kind: cls})
        return loaded

    def _keeping(
        self,
        path: str | os.PathLike[str] | None,
        every: float,
        method: str,
        data: str | None = None,
    ) -> AbstractContextManager[Checkpoint | None]:
        """Keep a fit in a file, if one is named; `data` is a digest of what it learns from."""
        waiting = check_waiting("every", every)
        if path is None:
            return checkpointed(None, waiting, Identity("", {}, None, None))
        self._check_parameters()  # before there is a file
        seed, generator = self.random_state, None
        if not (seed is None or isinstance(seed, int | np.integer)):
            generator = text_digest(json.dumps(generator_state(check_random_state(seed))))
        parameters = self._plain_parameters()
        for name in _OTHERWISE:
            parameters.pop(name)
        identity = Identity(f"{self._kind}.{method}", parameters, data, generator)
        return checkpointed(check_path("checkpoint", path), waiting, identity)

    def _generator(self, keeper: Checkpoint | None) -> np.random.Generator:
        """The random numbers of a fit: after it was broken off the same again."""
        seed = self.random_state
        return check_random_state(seed if keeper is None else keeper.generator(seed))

    def _plain_parameters(self) -> dict[str, Any]:
        """Parameters as plain values; a random generator is none."""
        found = {}
        for name, value in self.get_params(deep=False).items():
            if name == "callback":  # a function is of this process only
                continue
            whole_ = name != "random_state" or isinstance(value, int | np.integer)
            found[name] = plain(value) if whole_ else None
        return found

    def _training_summary(self) -> dict[str, Any]:
        """How it was learned: iterations, seconds, why it stopped, and how good it is."""
        found = {name: getattr(self, name, None) for name in (*_COUNTS, *_NUMBERS)}
        told = {name: plain(value) for name, value in found.items()}
        if hasattr(self, "status_"):
            told["status_"] = Status(self.status_).name
        return {name.removesuffix("_"): value for name, value in told.items() if value is not None}

    @classmethod
    def _from_file(cls, file: Section) -> Self:
        loaded = cls._with_parameters(file.header["parameters"])
        loaded._read_model(file)
        for name, value in _summary(named("training", file.header["training"])):
            setattr(loaded, name, value)
        return loaded

    @classmethod
    def _with_parameters(cls, values: Any) -> Self:
        """An estimator from plain values that anybody may have written."""
        given = named("parameters", values)
        known = [*inspect.signature(cls.__init__).parameters][1:]
        known = [name for name in known if name != "callback"]
        strange = [name for name in given if name not in known]
        if strange:
            raise ValueError(f"it has a parameter {shown(strange[0])}, which {cls._kind} has not")
        made = cls(**{name: cls._parameter(name, value) for name, value in given.items()})
        made._check_parameters()
        return made

    @classmethod
    def _parameter(cls, name: str, value: Any) -> Any:
        """A parameter from a plain value."""
        return tuple(value) if isinstance(value, list) else value


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
        return {name: plain(each) for name, each in asdict(value).items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None  # no limit
    return value


def _summary(told: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in told.items():
        if f"{name}_" in _COUNTS:
            yield f"{name}_", whole(name, value)
        elif f"{name}_" in _NUMBERS:
            yield f"{name}_", number(name, value)
        elif name == "status":
            yield "status_", Status[word(name, value, list(Status.__members__))].value
        else:
            raise ValueError(f"it tells of a {shown(name)}, which learning has not")
