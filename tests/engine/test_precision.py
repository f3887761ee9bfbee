"""Float32 and float64 give the same decoded weights on the benchmarks' data.

Both are the engine and the learner as they are: `double_precision` compiles them for float64.
"""

import numpy as np
import pytest
from double_precision import Precisions
from precision_runs import bars_beliefs, learn, learn_shapes

LONG = pytest.mark.long


@pytest.fixture(scope="module")
def precisions():
    running = Precisions()
    yield running
    running.close()


def fits(**seeds):
    """Data and seeds: few of each for every day, the others for `make test-long`."""
    later = (LONG, pytest.mark.timeout(3600))
    return [
        pytest.param(name.replace("_", " "), seed, marks=() if seed < few else later)
        for name, (few, all_of_them) in seeds.items()
        for seed in range(all_of_them)
    ]


@pytest.mark.parametrize(
    ("data", "seed"),
    fits(
        two_bars=(2, 20),
        symbols=(1, 20),
        clean_letters=(1, 20),
        noisy_letters=(0, 20),
        text=(0, 5),
        deconvolution=(1, 20),
    ),
)
def test_parts_learned_in_float64_are_the_same(precisions, data, seed):
    small, large = precisions.both(learn, data, seed)
    assert len(small.features) > 1
    np.testing.assert_array_equal(small.features, large.features)
    np.testing.assert_array_equal(small.reconstruction, large.reconstruction)
    assert small.ratio == large.ratio


def decided(beliefs):
    return beliefs[-1] > 0


@pytest.mark.parametrize(
    "seed", [0, 1, 2, *(pytest.param(seed, marks=LONG) for seed in range(3, 20))]
)
def test_damped_messages_decide_as_in_float64(precisions, seed):
    small, large = precisions.both(bars_beliefs, seed, 0.5, 30)
    assert (small.dtype, large.dtype) == (np.float32, np.float64)
    np.testing.assert_array_equal(decided(small), decided(large))


@pytest.mark.parametrize("seed", range(3))
def test_undamped_sweeps_magnify_any_difference_alike(precisions, seed):
    """What float32 and float64 differ by is not lost digits: it is what sweeps make of any change.

    In float64, priors that are changed a thousand times less give beliefs that differ a thousand times
    less, after two sweeps still: nothing is rounded away.  But each sweep magnifies the difference by a
    thousand or more.  What float32 rounds off at the start is magnified as much as a change of that size.
    """
    exact = precisions.double(bars_beliefs, seed, 1.0, 2)

    def apart(beliefs):
        return np.abs(beliefs - exact).max(axis=(1, 2, 3, 4))

    changes = {size: precisions.double(bars_beliefs, seed, 1.0, 2, size) for size in (1e-10, 1e-13)}
    large, small = (apart(beliefs) for beliefs in changes.values())
    np.testing.assert_allclose(large / small, 1000, rtol=0.2)
    assert (small > [1e-10, 1e-7]).all()
    rounded = apart(bars_beliefs(seed, 1.0, 2))[0]
    like_rounding = large[0] / 1e-10 * np.finfo(np.float32).eps
    assert like_rounding / 100 < rounded < 100 * like_rounding


@LONG
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("supervised", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_networks_learned_in_float64_are_the_same(precisions, supervised, seed):
    small, large = precisions.both(learn_shapes, 19, supervised, seed)
    for one, other in zip(small[0], large[0], strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(small[1], large[1])
