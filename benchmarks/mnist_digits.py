"""Which digits of MNIST may be used for what."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

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


def further_sets(file: Path) -> dict[str, LabelledDigits]:
    """Further digits from an archive of arrays: uint8 (n, 28, 28) by name, and their labels ``y``.

    A ValueError says what is wrong with the file.
    """
    try:
        with np.load(file, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{file} must be a file of np.savez with arrays of digits, but it cannot be read "
            f"({error}); write it with np.savez, without objects."
        ) from None
    labels = arrays.pop("y", None)
    if labels is None or labels.ndim != 1 or labels.dtype.kind not in "iu" or not arrays:
        names = ", ".join(arrays) or "nothing else"
        raise ValueError(
            f"{file} must hold the labels y, whole numbers (n,), and arrays of digits, but y is "
            f"{'missing' if labels is None else f'{labels.dtype} {labels.shape}'} beside {names}; "
            f"write it with np.savez(file, y=labels, some_name=images)."
        )
    for name, images in arrays.items():
        if images.dtype != np.uint8 or images.shape != (len(labels), 28, 28):
            raise ValueError(
                f"{name} in {file} must be uint8 of shape {(len(labels), 28, 28)}, as y has "
                f"{len(labels)} labels, but it is {images.dtype} of shape {images.shape}; write "
                f"the digits as they are in MNIST."
            )
    return {name: LabelledDigits(images, labels) for name, images in arrays.items()}
