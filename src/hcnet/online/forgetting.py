"""Beliefs of weights that are carried from minibatch to minibatch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hcnet.archive import kinds
from hcnet.archive.kinds import Kind
from hcnet.grid import on_grid
from hcnet.images import FloatArray


@dataclass
class Beliefs:
    """Max-marginal differences of the weights, per layer.

    A minibatch starts from λ times the beliefs at the end of the one before, plus 1 - λ times the
    initial beliefs (the paper's forgetting factor).  Evidence of n minibatches ago has weight λⁿ.
    """

    initial: list[FloatArray]
    forgetting: float  # λ
    now: list[FloatArray] | None = None  # after the last minibatch

    @staticmethod
    def kind(shapes: Sequence[tuple[int, ...]]) -> Kind:
        """Beliefs of these shapes, for files."""
        arrays = kinds.each_of([kinds.array(np.float32, shape) for shape in shapes])
        return kinds.object_of(
            Beliefs, initial=arrays, forgetting=kinds.number(0, 1), now=kinds.optional(arrays)
        )

    def prior(self) -> list[FloatArray]:
        """The beliefs that the next minibatch starts from."""
        if self.now is None:
            return self.initial
        keep = self.forgetting
        return [
            on_grid(keep * now.astype(np.double) + (1 - keep) * initial.astype(np.double))
            for now, initial in zip(self.now, self.initial, strict=True)
        ]

    def update(self, beliefs: list[FloatArray]) -> float:
        """Set the beliefs at the end of a minibatch; return the largest change."""
        before = self.now or self.initial
        self.now = [np.array(one, dtype=np.float32) for one in beliefs]
        return max(
            float(np.abs(new - old).max()) for new, old in zip(self.now, before, strict=True)
        )
