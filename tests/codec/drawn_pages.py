"""Pages of all kinds for the codec, drawn by Hypothesis or from a seed."""

import numpy as np
from hypothesis import strategies as st


def noise(rng, h, w):
    return rng.random((h, w)) < rng.choice([0.01, 0.1, 0.5, 0.9])


def white(rng, h, w):
    return np.zeros((h, w), bool)


def black(rng, h, w):
    return np.ones((h, w), bool)


def checkerboard(rng, h, w):
    step = int(rng.integers(1, 4))
    y, x = np.indices((h, w)) // step
    return (y + x) % 2 == int(rng.integers(2))


def stripes(rng, h, w):
    y, x = np.indices((h, w))
    a, b = rng.integers(0, 4, 2)
    return (a * y + b * x) % int(rng.integers(2, 7)) == 0


def one_pixel(rng, h, w):
    page = np.zeros((h, w), bool)
    page[rng.integers(h), rng.integers(w)] = True
    return page ^ bool(rng.integers(2))


def blocks(rng, h, w):
    return np.kron(noise(rng, h // 5 + 1, w // 5 + 1), np.ones((5, 5), bool))[:h, :w]


def text(rng, h, w):
    """A few shapes that come again and again, with a few flips."""
    page = np.zeros((h, w), bool)
    letters = [rng.random((9, 6)) < 0.5 for _ in range(4)]
    for top in range(2, h - 10, 13):
        for left in range(2, w - 7, 8):
            page[top : top + 9, left : left + 6] = letters[rng.integers(4)]
    return page ^ (rng.random((h, w)) < 0.005)


KINDS = (noise, white, black, checkerboard, stripes, one_pixel, blocks, text)


def side(most):
    """Often a single pixel."""
    return st.one_of(st.just(1), st.integers(1, 9), st.integers(1, most))


@st.composite
def pages(draw, most=40):
    """A page of any kind."""
    kind, seed = draw(st.sampled_from(KINDS)), draw(st.integers(0, 2**32 - 1))
    return kind(np.random.default_rng(seed), draw(side(most)), draw(side(most)))


def random_page(rng, most=40):
    """The same without Hypothesis, which takes longer to draw than the codec to code."""
    sides = [int(rng.integers(1, rng.choice([2, 10, most + 1]))) for _ in range(2)]
    return KINDS[rng.integers(len(KINDS))](rng, *sides)
