"""Beliefs of weights that outlive the images that they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hcnet.archive.contents import Contents
from hcnet.archive.fields import flag, share
from hcnet.archive.reading import Section
from hcnet.grid import on_grid
from hcnet.images import FloatArray


@dataclass
class Beliefs:
    """Max-marginal differences of the weights of some levels, carried from minibatch to minibatch.

    A minibatch starts from λ times what the one before it ended with, and 1 - λ times the initial
    beliefs (the paper's forgetting factor): what was seen n minibatches ago counts λⁿ.
    """

    initial: list[FloatArray]
    forgetting: float  # λ
    now: list[FloatArray] | None = None  # after the last minibatch

    def contents(self) -> Contents:
        """What goes into a file."""
        header = {"forgetting": self.forgetting, "started": self.now is not None}
        return Contents(header).with_all("initial", self.initial).with_all("now", self.now or [])

    @classmethod
    def read(cls, file: Section, shapes: Sequence[tuple[int, ...]]) -> Beliefs:
        """The beliefs of a file, which must have these shapes."""

        def arrays(name: str) -> list[FloatArray]:
            return [file.array(f"{name}-{k}", np.float32, shape) for k, shape in enumerate(shapes)]

        now = arrays("now") if flag("started", file.header["started"]) else None
        return cls(arrays("initial"), share("forgetting", file.header["forgetting"]), now)

    def prior(self) -> list[FloatArray]:
        """What the next minibatch starts from."""
        if self.now is None:
            return self.initial
        keep = self.forgetting
        return [
            on_grid(keep * now.astype(np.double) + (1 - keep) * initial.astype(np.double))
            for now, initial in zip(self.now, self.initial, strict=True)
        ]

    def update(self, beliefs: list[FloatArray]) -> float:
        """Take up the beliefs at the end of a minibatch; the largest change since the last."""
        before = self.now or self.initial
        self.now = [np.array(one, dtype=np.float32) for one in beliefs]
        return max(
            float(np.abs(new - old).max()) for new, old in zip(self.now, before, strict=True)
        )
