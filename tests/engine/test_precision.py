"""Float32 and float64 give the same decoded weights on the benchmarks' data.

Both are the engine and the learners as they are: another process sets `grid.FLOAT` first.
"""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from precision_runs import bars_beliefs, factorize, learn, learn_network, pattern_beliefs

import hcnet
from hcnet.engine.schedules import SCHEDULE_NAMES
from hcnet.grid import tree_share

LONG = pytest.mark.long
ROOT = Path(__file__).resolve().parents[2]
IN_DOUBLE = """
import numpy
import hcnet.grid
hcnet.grid.FLOAT = numpy.float64
import precision_runs
precision_runs.answer()
"""


class Precisions:
    """Calls functions of `precision_runs` in float32, here, and in float64, in another process."""

    def __init__(self):
        paths = Path(__file__).parent, Path(hcnet.__file__).parents[1], ROOT
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            # Types are constants of compiled code, and no part of the name under which it is kept.
            "NUMBA_CACHE_DIR": str(ROOT / ".numba_cache" / "double"),
        }
        command, pipe = [sys.executable, "-c", IN_DOUBLE], subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment)

    def close(self):
        with self._process:
            self._process.stdin.close()

    def double(self, function, *arguments):
        """The result in float64."""
        self._ask(function, arguments)
        return pickle.load(self._process.stdout)

    def both(self, function, *arguments):
        """The results in float32 and in float64, computed at the same time."""
        self._ask(function, arguments)
        return function(*arguments), pickle.load(self._process.stdout)

    def _ask(self, function, arguments):
        pickle.dump((function.__name__, arguments), self._process.stdin)
        self._process.stdin.flush()


@pytest.fixture(scope="module")
def precisions():
    running = Precisions()
    yield running
    running.close()


@pytest.mark.parametrize("schedule", SCHEDULE_NAMES)
def test_the_engine_in_float64_is_the_reference_to_twelve_digits(precisions, schedule):
    """So what is compared here is float64 throughout, and nothing else is different."""
    engine, reference = (
        precisions.double(pattern_beliefs, name, schedule, 3) for name in ("dense", "reference")
    )
    largest = np.abs(reference).max()
    np.testing.assert_allclose(engine, reference, rtol=0, atol=1e-12 * largest)


def same(one, other):
    """Whether two fits give the same parts, weight by weight, code length and image without noise.

    In any order: parts come by use, and where two parts explain the same pixels equally well, which
    of them is used there, and so the more often, may be either.
    """
    parts = [sorted(part.tobytes() for part in fit.features) for fit in (one, other)]
    clean = np.array_equal(one.reconstruction, other.reconstruction)
    return parts[0] == parts[1] and one.ratio == other.ratio and clean


@pytest.mark.parametrize(
    ("data", "seed", "algorithm"),
    [
        ("two bars", 0, "refined"),
        ("symbols", 0, "refined"),
        ("clean letters", 0, "refined"),
        ("deconvolution", 0, "refined"),
        *(("two bars", seed, "mpmp") for seed in range(3)),
        ("deconvolution", 0, "mpmp"),
        ("clean letters", 5, "mpmp"),  # keeps an active set, which an exploration leads
        *(pytest.param("two bars", seed, "mpmp", marks=LONG) for seed in range(3, 12)),
        *(pytest.param("deconvolution", seed, "mpmp", marks=LONG) for seed in range(1, 8)),
        *(
            pytest.param(data, seed, "mpmp", marks=LONG)
            for data in ("symbols", "clean letters", "noisy letters", "text")
            for seed in range(4)
        ),
    ],
)
def test_parts_learned_in_float64_are_the_same(precisions, data, seed, algorithm):
    small, large = precisions.both(learn, data, seed, algorithm)
    assert len(small.features) > 1
    assert same(small, large)


@LONG
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize(
    ("data", "seeds"),
    [
        ("two bars", 20),
        ("symbols", 20),
        ("clean letters", 20),
        ("noisy letters", 20),
        ("deconvolution", 20),
        ("text", 5),
    ],
)
def test_parts_of_so_many_seeds_are_the_same_in_float64(precisions, data, seeds):
    different = [seed for seed in range(seeds) if not same(*precisions.both(learn, data, seed))]
    assert different == []


def test_parts_learned_with_any_damping_are_the_same(precisions):
    small, large = precisions.both(learn, "two bars", 1, "mpmp", 0.3)
    assert len(small.features) > 1
    assert same(small, large)


@pytest.mark.parametrize(
    ("kind", "size", "seed"),
    [
        ("clusters", 19, 0),
        ("labels", 21, 0),
        *(pytest.param("clusters", 19, seed, marks=LONG) for seed in range(1, 10)),
        *(pytest.param("labels", 19, seed, marks=LONG) for seed in range(10)),
        *(
            pytest.param(kind, size, seed, marks=LONG)
            for kind in ("clusters", "labels", "noisy", "few labels", "stream", "templates")
            for size in (20, 21)
            for seed in range(1, 4)
        ),
        *(
            pytest.param(kind, 19, seed, marks=LONG)
            for kind in ("active set", *SCHEDULE_NAMES[1:])
            for seed in range(2)
        ),
    ],
)
def test_networks_learned_in_float64_have_the_same_weights(precisions, kind, size, seed):
    small, large = precisions.both(learn_network, kind, size, seed)
    assert len(small) == 2
    for one, other in zip(small, large, strict=True):
        assert one.any()
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("rank", "flips", "mode", "seed"),
    [
        (5, 0.3, "mpmp", 0),
        (5, 0.3, "refined", 0),
        *(
            pytest.param(rank, flips, mode, seed, marks=LONG)
            for rank in (5, 10)
            for flips in (0.0, 0.1, 0.2, 0.3, 0.4)
            for mode in ("mpmp", "refined", "automatic rank")
            for seed in range(1, 3)
        ),
    ],
)
def test_tables_factorized_in_float64_have_the_same_factors(precisions, rank, flips, mode, seed):
    small, large = precisions.both(factorize, rank, flips, mode, seed)
    for one, other in zip(small, large, strict=True):
        assert one.any()
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(k, marks=LONG) for k in range(2, 20))])
@pytest.mark.parametrize("damping", [0.3, 0.5])
def test_damped_messages_are_those_of_float64(precisions, seed, damping):
    """By any share that there is: the nearest one is exact."""
    small, large = precisions.both(bars_beliefs, seed, tree_share(damping), 30)
    assert (small.dtype, large.dtype) == (np.float32, np.float64)
    np.testing.assert_array_equal(small, large)
