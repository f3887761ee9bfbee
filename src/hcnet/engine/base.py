"""What every engine offers."""

from __future__ import annotations

from typing import Protocol

from hcnet.engine.schedules import Batch
from hcnet.images import BoolArray, FloatArray
from hcnet.layers import ClassLayer
from hcnet.messages import Messages
from hcnet.pool_messages import PoolMessages


class Engine(Protocol):
    """Updates messages in place; knows nothing of learning, priors or stopping.

    Steps are those of the paper's Algorithm 1.  Messages between layers are arrays of shape
    (images, channels, height, width).
    """

    def update(self, messages: Messages, batch: Batch, damping: float) -> None:
        """Step 3: messages of the trees of a batch, and the beliefs that they enter."""
        ...

    def collect(self, messages: Messages) -> None:
        """Put the sums of all messages, without the priors, in place of the beliefs."""
        ...

    def trees_to_R(self, messages: Messages) -> FloatArray:
        """Step 4: messages from the trees to R, one per tree."""
        ...

    def or_to_U(self, pools: PoolMessages, below: FloatArray) -> None:
        """Step 1: messages from OR to U, given the messages up to the S below."""
        ...

    def pool_to_R(self, pools: PoolMessages, damping: float) -> None:
        """Step 2: messages from POOL to R."""
        ...

    def pool_to_U(self, pools: PoolMessages, above: FloatArray) -> None:
        """Step 5: messages from POOL to U, given the messages that R sends down."""
        ...

    def or_to_S(self, pools: PoolMessages) -> FloatArray:
        """Step 6: messages from OR down to the S below."""
        ...

    def class_to_S(self, layer: ClassLayer, up: FloatArray, allowed: BoolArray) -> FloatArray:
        """Messages from the class layer to the templates, given those that come up.

        `allowed` (images, templates) leaves out what contradicts a label.
        """
        ...


def rebuild(engine: Engine, messages: Messages) -> None:
    """Recompute the beliefs from the messages, against the drift of float32."""
    engine.collect(messages)
    messages.add_priors()
