"""The five single images of the paper's Table 1, as our generators make them, and its figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from hcnet.datasets import PartsData, letters, symbols, text, two_bars


@dataclass(frozen=True)
class PaperImage:
    """How one of them is made, and what the paper reports about its own."""

    make: Callable[..., PartsData]  # takes random_state
    window: tuple[int, int] | None  # to learn with; None: that of the true parts
    n_features: int  # for message passing alone, which does not find out
    ratio: float  # of the paper
    minutes: float  # of the paper

    def feature_size(self, data: PartsData) -> tuple[int, int]:
        """The window to learn with."""
        return self.window or data.feature_size


PAPER_IMAGES = {
    "two bars": PaperImage(two_bars, None, 4, 0.83, 0.07),
    "symbols": PaperImage(symbols, None, 6, 0.11, 0.42),
    "clean letters": PaperImage(letters, (12, 12), 12, 0.38, 25),
    "noisy letters": PaperImage(partial(letters, noise=0.03), (12, 12), 12, 0.73, 24),
    "text": PaperImage(text, None, 32, 0.28, 31),
}
