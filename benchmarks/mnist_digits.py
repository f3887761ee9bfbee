"""Which digits of MNIST may be used for what."""

from __future__ import annotations

from collections.abc import Iterator

from hcnet.datasets import LabelledDigits, MnistData
from hcnet.datasets.corruptions import CORRUPTIONS

PER_CLASS = 40  # as in the paper
# Nobody learns from more than so many of each class, so that all others are never seen in learning.
MOST_PER_CLASS = 100
# By these settings are chosen, and by those after them one can see how well that went.
N_HELD_OUT, N_VALIDATION = 1000, 2000
CLEAN = "clean"
SETS = (CLEAN, *CORRUPTIONS)


class Split:
    """MNIST in parts that share no digit.

    ``learning(k)``: the first k training digits of each class, which learners get.
    ``held_out``: later training digits, by which rivals choose their settings.
    ``validation``: still later ones, to look at while a learner is developed.
    ``test``: the test digits, for final figures and nothing else.
    """

    def __init__(self, data: MnistData) -> None:
        self._data = data
        later = data.beyond(MOST_PER_CLASS, N_HELD_OUT + N_VALIDATION)
        self.held_out = LabelledDigits(later.images[:N_HELD_OUT], later.labels[:N_HELD_OUT])
        self.validation = LabelledDigits(later.images[N_HELD_OUT:], later.labels[N_HELD_OUT:])
        self.test = LabelledDigits(data.test_images, data.test_labels)

    def learning(self, per_class: int) -> LabelledDigits:
        """The first so many training digits of each class."""
        if per_class > MOST_PER_CLASS:
            raise ValueError(
                f"Learners get at most {MOST_PER_CLASS} digits of each class, got {per_class}; the "
                f"others are there to choose settings by."
            )
        return self._data.first(per_class)


def corrupted(
    digits: LabelledDigits, names: tuple[str, ...], seed: int
) -> Iterator[tuple[str, LabelledDigits]]:
    """The digits as they are, and after each corruption."""
    for name in names:
        if name == CLEAN:
            yield name, digits
        else:
            changed = CORRUPTIONS[name](digits.images, random_state=seed)
            yield name, LabelledDigits(changed, digits.labels)
