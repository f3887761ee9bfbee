"""What every engine offers."""

from __future__ import annotations

from typing import Protocol

from hcnet.engine.schedules import Batch
from hcnet.messages import Messages


class Engine(Protocol):
    """Updates messages in place; knows nothing of learning, priors or stopping."""

    def update(self, messages: Messages, batch: Batch, damping: float) -> None:
        """Update the messages of the trees of a batch and the beliefs that they enter."""
        ...

    def rebuild(self, messages: Messages) -> None:
        """Recompute the beliefs from the messages, against the drift of float32."""
        ...
