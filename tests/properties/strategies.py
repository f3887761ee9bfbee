"""What the property tests draw from, and what they hold every outcome against."""

import os
import warnings

import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from hcnet.memory import NotEnoughMemoryError

# Public names that some property test is about; `test_properties_complete` compares.
COVERED = set()
# How many times the usual number of examples: `make test-long` asks for more.
FACTOR = int(os.environ.get("HCNET_EXAMPLES", "1"))


def about(*names, examples=25):
    """Which public names a property is about, and how many examples it takes."""
    COVERED.update(names)
    return settings(
        max_examples=examples * FACTOR,
        # A failure must be the same for everybody, and the next run must not depend on this one.
        derandomize=FACTOR == 1,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )


def outcome(call, *arguments, **options):
    """The answer, or None where a sentence says why there is none; nothing else may happen.

    Warnings about numbers are errors (UserWarning is how hcnet itself speaks).
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)
        try:
            return call(*arguments, **options)
        except (ValueError, TypeError, NotEnoughMemoryError) as error:
            assert_is_a_sentence(str(error))
            return None


def assert_is_a_sentence(text):
    """What was expected, what came, what to do: some words and a full stop."""
    assert text.endswith((".", "…)", ".)")), text
    assert len(text.split()) >= 6, text


# --- good images ------------------------------------------------------------------------------

DTYPES = (bool, np.uint8, np.int8, np.int32, np.int64, np.float16, np.float32, np.float64)


@st.composite
def pixels(draw, shape):
    """Zeros and ones: any, all off, all on, or one single pixel on."""
    kind = draw(st.sampled_from(["any", "any", "any", "off", "on", "one"]))
    if kind == "any":
        return draw(hnp.arrays(bool, shape, elements=st.booleans(), fill=st.nothing()))
    image = np.full(shape, kind == "on")
    if kind == "one":
        image.reshape(-1)[draw(st.integers(0, image.size - 1))] = True
    return image


def image_shapes(side=6, most=3):
    """(height, width), (n, height, width) and (n, channels, height, width)."""
    sides = st.tuples(st.integers(1, side), st.integers(1, side))
    n = st.integers(1, most)
    return st.one_of(
        sides,
        st.tuples(n, sides).map(lambda x: (x[0], *x[1])),
        st.tuples(n, st.integers(1, 2), sides).map(lambda x: (x[0], x[1], *x[2])),
    )


def images(side=6, most=3):
    """Valid images of any of the three shapes."""
    return image_shapes(side, most).flatmap(pixels)


def masks(shape):
    """No mask, or some pixels missing; rarely all."""
    some = hnp.arrays(bool, shape, elements=st.booleans())
    return st.one_of(st.none(), st.just(np.zeros(shape, bool)), some)


def _backwards(array):
    return np.ascontiguousarray(array[..., ::-1])[..., ::-1]


def _strided(array):
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    wide[..., ::2] = array
    return wide[..., ::2]


def _read_only(array):
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def _swapped(array):
    return array.astype(array.dtype.newbyteorder(">"))


LAYOUTS = (np.ascontiguousarray, np.asfortranarray, _backwards, _strided, _read_only, _swapped)


@st.composite
def alike(draw, array):
    """The same zeros and ones as another type, in another layout, or as nested lists."""
    dtype = draw(st.sampled_from(DTYPES))
    layout = draw(st.sampled_from((*LAYOUTS, np.ndarray.tolist)))
    return layout(np.asarray(array).astype(dtype))


# --- bad images -------------------------------------------------------------------------------

ODD = (np.nan, np.inf, -np.inf, -1, 2, 0.5, 255, 1e300, -1e-300)


@st.composite
def _with_odd_values(draw):
    array = draw(images()).astype(np.float64)
    for value in draw(st.lists(st.sampled_from(ODD), min_size=1, max_size=3)):
        array.reshape(-1)[draw(st.integers(0, array.size - 1))] = value
    return array


def anything():
    """What people pass by mistake."""
    shapes = hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=3)
    kinds = (bool, np.uint8, np.float32, np.complex128, "U2", "S2", "M8[s]", "m8[s]", object)
    blank = st.tuples(shapes, st.sampled_from(kinds)).map(lambda x: np.zeros(*x))
    scalars = st.sampled_from([None, 0, 1, True, "x", b"x", 3.5, float("nan"), {}, [], [[]], ()])
    ragged = st.just([[0, 1], [1]])
    huge = st.sampled_from([2**63, 2**64 - 1, 10**30]).map(lambda x: [[x, 0], [0, 1]])
    records = st.just(np.zeros((3, 3), [("a", "i4")]))
    return st.one_of(_with_odd_values(), blank, scalars, ragged, huge, records)


def odd_parameters():
    """Values for a parameter, right ones among them."""
    numbers = [0, 1, 2, 3, -1, 0.5, 0.1, 1.0, 1e-300, 1e300, float("nan"), float("inf"), 10**30]
    others = [None, True, False, "1", "full", "", (), (2,), (2, 2), (2, 2, 2), [1, 2], {}, 1j]
    arrays = [np.int64(2), np.float32(0.25), np.array(2), np.array([2, 2])]
    return st.sampled_from([*numbers, *others, *arrays])


def arrays(answer):
    """An answer as dense arrays."""
    parts = answer if isinstance(answer, list | tuple) else [answer]
    return [part.toarray() if sparse.issparse(part) else np.asarray(part) for part in parts]


def assert_finite(answer):
    """No NaN and no infinity in an answer."""
    assert all(part.dtype.kind in "US" or np.isfinite(part).all() for part in arrays(answer))


def same_answers(model, methods, X, given_X, mask):
    """The same data in two forms have the same answers; whether there are any."""
    unchanged = untouched(given_X.toarray() if sparse.issparse(given_X) else given_X)
    answered = True
    for method in methods:
        if method == "inpaint" and mask is None:
            continue
        a, b = (outcome(getattr(model, method), one, mask=mask) for one in (given_X, X))
        unchanged()
        assert (a is None) == (b is None)
        if a is None:
            answered = False
            continue
        for x, y in zip(arrays(a), arrays(b), strict=True):
            np.testing.assert_array_equal(x, y)
        if method != "compression_ratio":  # infinite if the image itself costs nothing
            assert_finite(a)
    return answered


def untouched(array):
    """A call that compares an array with what it was."""
    before = np.array(array, copy=True)

    def compare():
        np.testing.assert_array_equal(np.asarray(array), before)

    return compare
