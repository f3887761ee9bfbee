"""Trees without ink: no messages are stored for them, theirs follow from beliefs alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcnet.images import BoolArray, FloatArray

# Trees whose median evidence is called common.  Any would do, since trees with other evidence are
# listed; the more have it, the shorter the list.
_SAMPLE = 1001


@dataclass(frozen=True)
class TreesWithoutInk:
    """The evidence of trees without ink, and a list of those with another than most of them have.

    Trees that have messages are listed as well, with evidence 0: from here they say nothing.
    """

    evidence: FloatArray  # (images, channels, height, width); 0 where a tree says nothing
    common: np.float32
    lines: NDArray[np.int64]  # where each row of each plane begins in the two below
    columns: NDArray[np.int32]
    listed: FloatArray

    @property
    def arrays(self) -> tuple[Any, ...]:
        """For compiled code."""
        return self.evidence, self.common, self.lines, self.columns, self.listed


def trees_without_ink(evidence: FloatArray) -> TreesWithoutInk:
    """All of it is against the pixels; 0 is none, and of trees that have messages."""
    against = evidence[evidence < 0]
    sample = np.sort(against[:: max(len(against) // _SAMPLE, 1)])
    common = sample[len(sample) // 2] if len(sample) else np.float32(0)
    rows, width = int(np.prod(evidence.shape[:3])), evidence.shape[3]
    flat = evidence.reshape(-1)
    found = np.flatnonzero(flat != common)
    lines = np.searchsorted(found, np.arange(rows + 1) * width)
    return TreesWithoutInk(evidence, common, lines, (found % width).astype(np.int32), flat[found])


def evidence_against(evidence: FloatArray, has_messages: BoolArray) -> FloatArray:
    """Evidence of trees without ink, which cannot be for a pixel; 0 for trees with messages."""
    against = np.minimum(evidence, np.float32(0), dtype=np.float32)
    against[has_messages] = 0
    return np.ascontiguousarray(against)
