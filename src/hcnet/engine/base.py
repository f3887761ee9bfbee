"""Protocols of what an engine consists of: updates of messages, and layers that store them."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hcnet.archive.kinds import Stateful
from hcnet.engine.schedules import Schedule
from hcnet.factors import HUGE
from hcnet.images import FloatArray
from hcnet.messages import PoolMessages


class PoolUpdater(Protocol):
    """Updates messages of pools and classes in place; knows nothing of learning or stopping.

    Steps are those of the paper's Algorithm 1.  Messages between layers are arrays of shape
    (images, channels, height, width), in the memory in which the engine works: `hold` brings arrays
    there, `fetch` back.
    """

    def hold(self, array: FloatArray) -> FloatArray:
        """The array where the engine works with it: here the same."""
        return array

    def fetch(self, array: FloatArray) -> FloatArray:
        """The array for everybody else: here the same."""
        return array

    def largest(self, array: FloatArray) -> float:
        """The largest number of an array, without its sign."""
        return float(np.abs(array).max(initial=0.0))

    def or_to_U(self, pools: PoolMessages, below: FloatArray) -> None:
        """Step 1: messages from OR to U, given the messages up to the S below."""
        ...

    def pool_to_R(self, pools: PoolMessages, damping: float) -> float:
        """Step 2: messages from POOL to R; the largest change of one."""
        ...

    def pool_to_U(self, pools: PoolMessages, above: FloatArray) -> None:
        """Step 5: messages from POOL to U, given the messages that R sends down."""
        ...

    def or_to_S(self, pools: PoolMessages) -> FloatArray:
        """Step 6: messages from OR down to the S below."""
        ...

    def class_to_S(self, log_prior: FloatArray, up: FloatArray, exclusive: bool) -> FloatArray:
        """Messages from the class layer to the templates, given those that come up.

        `log_prior` is that of `messages.class_log_prior`; they are `exclusive` if exactly one
        template is on.
        """
        ...


class FeaturePassing(Stateful, Protocol):
    """The messages of one feature layer and its variables, however many of them are stored."""

    def set_evidence(self, evidence: FloatArray) -> None:
        """New evidence for R: (images, channels, height, width)."""
        ...

    def set_placement_prior(self, placement_prior: FloatArray) -> None:
        """Another prior of S: (images, features, height, width)."""
        ...

    def sweep(self, schedule: Schedule, rng: np.random.Generator, damping: float = 1.0) -> float:
        """Update every tree once; the largest change of a belief."""
        ...

    def up(self) -> FloatArray:
        """Sums of the messages to S: (images, features, height, width)."""
        ...

    def down(self, least: float = -HUGE) -> FloatArray:
        """Messages to R, all of which must be observed: (images, channels, height, width).

        Those below `least` change nothing, and may be given as minus infinity.
        """
        ...

    def placement_beliefs(self) -> FloatArray:
        """Max-marginal differences of S: (images, features, height, width)."""
        ...

    def weight_beliefs(self) -> FloatArray:
        """Max-marginal differences of W: (channels, features, height, width)."""
        ...

    def placements(self) -> NDArray[np.int64]:
        """(placements, 4): image, feature, row and column of the S that are on."""
        ...


class ActiveSet(FeaturePassing, Protocol):
    """A feature layer of which only what is undecided has messages."""

    def add_to_weights(self, beliefs: FloatArray) -> None:
        """Add what was learned elsewhere to the beliefs of W: until the next call."""
        ...
