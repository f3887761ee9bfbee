"""Beliefs of weights that outlive the images that they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hcnet.archive import Contents, Section
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
        arrays = {f"initial-{k}": array for k, array in enumerate(self.initial)}
        arrays |= {f"now-{k}": array for k, array in enumerate(self.now or [])}
        return Contents({"forgetting": self.forgetting, "started": self.now is not None}, arrays)

    @classmethod
    def read(cls, file: Section, shapes: Sequence[tuple[int, ...]]) -> Beliefs:
        """The beliefs of a file, which must have these shapes."""

        def arrays(name: str) -> list[FloatArray]:
            found = [file.array(f"{name}-{k}") for k in range(len(shapes))]
            for array, shape in zip(found, shapes, strict=True):
                if array.shape != shape or array.dtype != np.float32:
                    raise ValueError("its beliefs do not fit the features")
                if not np.isfinite(array).all():
                    raise ValueError("its beliefs are not finite")
            return found

        now = arrays("now") if file.header["started"] else None
        forgetting = float(file.header["forgetting"])
        if not 0 <= forgetting <= 1:
            raise ValueError("its forgetting is no share")
        return cls(arrays("initial"), forgetting, now)

    def prior(self) -> list[FloatArray]:
        """What the next minibatch starts from."""
        if self.now is None:
            return self.initial
        keep = np.float32(self.forgetting)
        return [
            keep * now + (1 - keep) * initial
            for now, initial in zip(self.now, self.initial, strict=True)
        ]

    def update(self, beliefs: list[FloatArray]) -> float:
        """Take up the beliefs at the end of a minibatch; the largest change since the last."""
        before = self.now or self.initial
        self.now = [np.array(one, dtype=np.float32) for one in beliefs]
        return max(
            float(np.abs(new - old).max()) for new, old in zip(self.now, before, strict=True)
        )
