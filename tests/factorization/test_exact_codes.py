"""Annealing with the best code of every row, against enumeration and plain counts."""

import numpy as np
import pytest

from hcnet.factorization.binary_factors import Factors, Table
from hcnet.factorization.exact_codes import ExactCodes, affordable_sweeps
from hcnet.factorization.fewest_errors import EXACT_RANK, coded, errors_of
from hcnet.factorization.packed import Packed, unpacked
from tests.factorization.test_fewest_errors import fewest, largest, random_table, wrong


def annealed(table, start, seed=0, effort=0.05):
    process = ExactCodes(
        Packed.of(table, largest(table)), start, np.random.default_rng(seed), effort
    )
    while process.step():
        pass
    return process


@pytest.mark.parametrize("weights", [None, 5])
@pytest.mark.parametrize(
    ("seed", "shape", "rank"), [(0, (9, 4), 2), (1, (4, 6), 2), (2, (7, 4), 3)]
)
def test_annealing_finds_the_optimum_of_small_tables(seed, shape, rank, weights):
    table, _ = random_table(seed, shape, weights=weights)
    process = annealed(table, Factors.zeros(table, rank))
    assert process.wrong == wrong(table, process.state()) == fewest(table, rank)


@pytest.mark.parametrize("weights", [None, 5, 4095])
@pytest.mark.parametrize("shape", [(70, 20), (20, 70), (300, 260)])
def test_the_errors_of_annealing_are_those_of_the_best_codes(shape, weights):
    """A byte holds the errors of a row, unless there are weights or very many columns."""
    table, rng = random_table(3, shape, weights=weights)
    start = Factors(*((rng.random((n, 4)) < 0.3).astype(np.int8) for n in shape))
    packed = Packed.of(table, largest(table))
    process = ExactCodes(packed, start, rng, 0.05)
    before = process.wrong
    for _ in range(3):
        process.step()
        now = (process._now[:, None] >> np.arange(4) & 1).astype(np.int8)
        on, off = (packed.on, packed.off) if process._tall else (packed.on_T, packed.off_T)
        other = coded(on, off, now)
        factors = Factors(other, now) if process._tall else Factors(now, other)
        assert process._values[0] == errors_of(packed, factors)
    assert process.wrong == errors_of(packed, process.state()) <= before
    assert before <= errors_of(packed, start)


def test_equal_rows_count_as_often_as_they_are_there():
    few, rng = random_table(4, (20, 12))
    many = Table(np.repeat(few.values, 3, axis=0), np.repeat(few.observed, 3, axis=0))
    start = Factors(*((rng.random((n, 3)) < 0.3).astype(np.int8) for n in many.shape))
    process = annealed(many, start)
    assert process.wrong == wrong(many, process.state())
    assert process._change.shape[1] == 32


def test_good_factors_stay_where_annealing_finds_no_better_ones():
    values = np.kron(np.eye(4), np.ones((8, 6))).astype(bool)
    table = Table(values, np.ones(values.shape, bool))
    S, W = (np.repeat(np.eye(4), n, axis=0).astype(np.int8) for n in (8, 6))
    found = annealed(table, Factors(S, W))
    assert found.wrong == 0
    np.testing.assert_array_equal(found.state().S, S)


def test_annealing_is_left_where_all_combinations_would_take_too_long():
    table, _ = random_table(5, (30, 20))
    packed = Packed.of(table)
    assert affordable_sweeps(packed, 10, 1.0) > 1000
    assert affordable_sweeps(packed, 10, 1e-3) == 0  # too few to cool down
    assert affordable_sweeps(packed, EXACT_RANK + 1, 1.0) == 0
    large = Packed.of(Table(np.zeros((3000, 1000), bool), np.ones((3000, 1000), bool)))
    assert affordable_sweeps(large, 10, 1.0) == 0


@pytest.mark.parametrize("weights", [None, 4095])
def test_unpacked_bits_are_the_weights_of_the_entries(weights):
    table, _ = random_table(6, (40, 130), weights=weights)
    packed = Packed.of(table, largest(table))
    each = table.observed * (1 if table.weights is None else table.weights)
    np.testing.assert_array_equal(unpacked(packed.on, 130), each * table.values)
    np.testing.assert_array_equal(unpacked(packed.off_T, 40), (each * ~table.values).T)
