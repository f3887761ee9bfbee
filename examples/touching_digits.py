"""Read lines of handwritten digits that touch each other, from ten examples of each digit.

python examples/touching_digits.py [picture.png]

Nobody says where a digit ends.  Every stretch of a line is compared with all examples; then the
cheapest way to cut the line into stretches is found by dynamic programming.  So the line is cut and
read at once.  The digits are those of MNIST: downloaded (11 MB), or from the folder that HCNET_DATA
names.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from hcnet import ShapeClassifier
from hcnet.datasets import mnist
from hcnet.plotting.drawing import framed, tile_grid

PER_CLASS, LINES, LENGTH = 10, 6, 5
# Cuts are tried at every second column; a digit is so many columns wide.
STEP, NARROWEST, WIDEST = 2, 4, 24
# Cost of one more digit: with less, a stroke is often taken for a 1.
ONE_MORE = 0.15


def main() -> None:
    """Learn, write lines of new digits, read them, and draw where they were cut."""
    path = sys.argv[1] if len(sys.argv) > 1 else "touching_digits.png"
    data = mnist()
    train = data.first(PER_CLASS)
    model = ShapeClassifier(40, candidates=5).fit(train.images, train.labels)
    rng = np.random.default_rng(0)
    panels, captions, right = [], [], 0
    for _ in range(LINES):
        chosen = rng.choice(len(data.test_images), LENGTH, replace=False)
        line = write(data.test_images[chosen])
        found, cuts = read(line, model)
        truth = "".join(map(str, data.test_labels[chosen]))
        right += found == truth
        print(f"{truth} read as {found}")
        panels.append(framed(picture(line, cuts), 3))
        captions.append(f"{truth}, read as {found}")
    print(f"{right} of {LINES} lines read without an error")
    tile_grid(panels, columns=2, captions=captions, margin=8, gap=16).save(path)
    print(f"picture: {path}")


def write(digits: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Digits on a line, each so close to the one before that their ink touches."""
    line = np.zeros((28, 28 * len(digits)), np.uint8)
    end = 0
    for digit in digits:
        columns = np.flatnonzero((digit > 100).any(axis=0))
        own = digit[:, columns.min() : columns.max() + 1]
        place = end + 1
        # Move to the left until the two touch.
        while place > max(end - 6, 0) and not touches(line, own, place):
            place -= 1
        part = line[:, place : place + own.shape[1]]
        np.maximum(part, own, out=part)
        end = place + own.shape[1]
    return line[:, :end]


def touches(line: NDArray[np.uint8], digit: NDArray[np.uint8], place: int) -> bool:
    """Whether ink of the digit lies beside ink of the line, or on it."""
    ink = line > 100
    near = ink.copy()
    near[:, 1:] |= ink[:, :-1]
    return bool((near[:, place : place + digit.shape[1]] & (digit > 100)).any())


def read(line: NDArray[np.uint8], model: ShapeClassifier) -> tuple[str, list[int]]:
    """The digits of a line, and where it was cut."""
    width = line.shape[1]
    cuts = [*range(0, width - 1, STEP), width]
    ink = (line > 100).sum(axis=0).cumsum()
    ink = np.concatenate([[0], ink])
    # Every stretch between two cuts, alone on paper.
    stretches = [(a, b) for a in cuts for b in cuts if NARROWEST <= b - a <= WIDEST]
    stretches = [(a, b) for a, b in stretches if ink[b] > ink[a]]
    images = np.zeros((len(stretches), line.shape[0], WIDEST), np.uint8)
    for image, (a, b) in zip(images, stretches, strict=True):
        image[:, : b - a] = line[:, a:b]
    scores = model.decision_function(images)
    # The cost of the best way to read the line up to each cut; its last stretch and its digit.
    best = {0: 0.0}
    last: dict[int, tuple[int, str]] = {}
    for (a, b), score in sorted(zip(stretches, scores, strict=True), key=lambda one: one[0][1]):
        share = (ink[b] - ink[a]) / ink[-1]
        cost = best.get(a, np.inf) - share * score.max() + ONE_MORE
        if cost < best.get(b, np.inf):
            best[b], last[b] = cost, (a, str(model.classes_[score.argmax()]))
    text, places, at = "", [width], width
    while at:
        at, digit = last[at]
        text = digit + text
        places.append(at)
    return text, places[::-1]


def picture(line: NDArray[np.uint8], cuts: list[int]) -> NDArray[np.uint8]:
    """The line in black on white, and the cuts in red."""
    canvas = np.repeat((255 - line)[:, :, None], 3, axis=2)
    for cut in cuts[1:-1]:
        canvas[:, cut] = np.minimum(canvas[:, cut], (255, 90, 60))
    return canvas


if __name__ == "__main__":
    main()
