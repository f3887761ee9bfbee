"""What learning from a stream is the same for, whatever is learned."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

from hcnet.checkpoint import Checkpoint
from hcnet.engine.driver import Record, Status, interruptible
from hcnet.online.process import feed, later
from hcnet.progress import Progress, watching
from hcnet.validation.parameters import check_count, check_flag, check_max_memory, check_positive


class Streaming:
    """The half of an estimator that learns from streams."""

    _stream: Any = None
    _default_batch_size: int
    _training: tuple[str, ...]  # attributes that learning leaves behind besides the model

    if TYPE_CHECKING:  # of the estimator
        n_images_seen_: int
        n_iter_: int
        history_: list[Record]
        status_: str

        def __getattr__(self, name: str) -> Any: ...

    def _forget(self) -> None:
        """Start anew: what was learned before is gone."""
        self._stream = None
        for name in self._training:
            self.__dict__.pop(name, None)

    def _copy(self) -> Self:
        """The same parameters, and nothing learned."""
        return type(self)(**self.get_params(deep=False))

    def _watching(self) -> Progress:
        """Who watches a stream, or what is done at the end of it."""
        verbose = check_flag("verbose", self.verbose)
        return watching(verbose, self.callback, lambda model: self._copy()._publish(model))

    def _minibatch_size(self) -> int:
        default = self._default_batch_size
        return check_count("batch_size", self.batch_size, 1, f"None for {default}") or default

    def _feed(
        self,
        stream: Any,
        batches: Iterator[Any],
        total: int | None,
        finish: Callable[[float | None, Progress, Checkpoint | None], Any] | None = None,
        keeper: Checkpoint | None = None,
    ) -> None:
        """Learn from minibatches, go on with `stream` from then on, and publish its model.

        `finish` makes the model where the stream came to its end, within the seconds that are left.
        Nothing that was there before is touched until a first minibatch has been learned from.
        """
        fresh, steps = stream is not self._stream, stream.n_batches
        seconds = check_positive("max_seconds", self.max_seconds)
        began = time.perf_counter()
        progress = self._watching()
        records: list[Record] = []
        status, model = Status.BROKEN_OFF, None
        try:
            with interruptible():
                outcome = feed(
                    stream,
                    batches,
                    progress,
                    total=total,
                    max_seconds=seconds,
                    max_memory=check_max_memory(self.max_memory),
                    keeper=keeper,
                )
                records, status = outcome.history, outcome.status
                if finish is not None and not status.cut_short:
                    spent = time.perf_counter() - began
                    left = None if seconds is None else max(seconds - spent, 1e-3)
                    model = finish(left, progress, keeper)
        finally:
            progress.close()
            if stream.n_batches > steps:  # also if an item in the middle could not be read
                before = [] if fresh else list(getattr(self, "history_", []))
                self._forget()
                self._stream = stream
                self._publish(model or stream.model())
                self.n_images_seen_, self.n_iter_ = stream.n_images, stream.n_batches
                self.history_, self.status_ = later(records, before, steps), status.value
