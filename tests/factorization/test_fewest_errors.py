"""The search for the fewest wrong entries, against enumeration, and its kernels."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from hcnet import BooleanMatrixFactorization
from hcnet.datasets import boolean_matrix
from hcnet.factorization.binary_factors import Factors, Table
from hcnet.factorization.coverage import coverage
from hcnet.factorization.error_kernels import best_codes, climb, mix
from hcnet.factorization.fewest_errors import FewestErrors, best_responses, coded, errors_of, grown
from hcnet.factorization.packed import Packed, SparseTable, packed_bits, weight_of, whole_weights


def random_table(seed, shape, missing=0.15, weights=None):
    rng = np.random.default_rng(seed)
    table = Table(rng.random(shape) < 0.5, rng.random(shape) >= missing)
    if weights is None:
        return table, rng
    steps = rng.integers(0, weights + 1, shape).astype(np.float32)
    return Table(table.values, table.observed & (steps > 0), steps), rng


def wrong(table, factors):
    """The weight of wrong entries, entry by entry."""
    R = (factors.S.astype(int) @ factors.W.T.astype(int)) > 0
    each = np.ones(table.shape) if table.weights is None else table.weights
    return float(each[(table.values != R) & table.observed].sum())


def fewest(table, rank):
    """The optimum, by enumeration of all W; each row has its best code."""
    columns = table.shape[1]
    each = np.ones(table.shape) if table.weights is None else table.weights
    codes = np.array(list(itertools.product((0, 1), repeat=rank)))
    best = np.inf
    for bits in itertools.product((0, 1), repeat=rank * columns):
        R = codes @ np.array(bits).reshape(columns, rank).T > 0
        unlike = (R[None] != table.values[:, None]) & table.observed[:, None]
        best = min(best, (unlike * each[:, None]).sum(axis=2).min(axis=1).sum())
    return best


def largest(table):
    return None if table.weights is None else float(table.weights.max())


def searched(table, rank, seed=0):
    packed = Packed.of(table, largest(table))
    process = FewestErrors(packed, rank, np.random.default_rng(seed), effort=0.05)
    while process.step():
        pass
    return process.state(), process.wrong


@pytest.mark.parametrize("weights", [None, 5])
@pytest.mark.parametrize(
    ("seed", "shape", "rank"), [(0, (9, 4), 2), (1, (5, 6), 2), (2, (7, 4), 3)]
)
def test_the_search_finds_the_optimum_of_small_tables(seed, shape, rank, weights):
    table, _ = random_table(seed, shape, weights=weights)
    factors, errors = searched(table, rank)
    assert errors == wrong(table, factors) == fewest(table, rank)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("weights", [None, 9])
def test_errors_are_counted_as_entry_by_entry(seed, weights):
    table, rng = random_table(seed, (70, 130), weights=weights)
    factors = Factors(*((rng.random((n, 5)) < 0.3).astype(np.int8) for n in table.shape))
    packed = Packed.of(table, largest(table))
    assert errors_of(packed, factors) == wrong(table, factors)
    rows = packed_bits(factors.S.T)
    none = np.ones(1, np.uint64)
    both = climb(packed.on_T, packed.off_T, factors.W, rows, 0, none)
    assert sum(both) == wrong(table, factors)
    c = factors.counts(table)
    assert both == (c.missed, c.false)
    assert (c.hit + c.missed, c.false + c.empty) == (packed.n_ones, packed.n_zeros)
    assert packed.n_ones == weight_of(packed.on_T)


def test_best_codes_are_the_best_of_all_combinations():
    table, rng = random_table(3, (40, 12))
    W = (rng.random((12, 3)) < 0.4).astype(np.int8)
    packed = Packed.of(table)
    found = coded(packed.on, packed.off, W)
    each = [
        [wrong(Table(table.values[[n]], table.observed[[n]]), Factors(np.int8([code]), W))
         for code in itertools.product((0, 1), repeat=3)]
        for n in range(40)
    ]  # fmt: skip
    assert wrong(table, Factors(found, W)) == np.min(each, axis=1).sum()
    bits = np.zeros((40, 3), np.int8)
    total = best_codes(packed.on, packed.off, bits, packed_bits(W.T), 0, 40)
    assert total == np.min(each, axis=1).sum()


def test_responses_in_turn_never_make_more_errors():
    table, rng = random_table(4, (30, 25))
    factors = Factors(*((rng.random((n, 4)) < 0.3).astype(np.int8) for n in table.shape))
    before = wrong(table, factors)
    after = best_responses(Packed.of(table), factors)
    assert after == wrong(table, factors) < before


def test_mixing_two_solutions_takes_the_components_that_gain_most():
    table = Table(np.kron(np.eye(3), np.ones((4, 5))).astype(bool), np.ones((12, 15), bool))
    S = np.repeat(np.eye(3), 4, axis=0).astype(np.int8)
    W = np.repeat(np.eye(3), 5, axis=0).astype(np.int8)
    many = Factors(np.hstack([1 - S, S]), np.hstack([W, W]))
    packed, chosen = Packed.of(table), np.zeros(3, np.int64)
    state = np.array([5], np.uint64)
    mix(packed.on, packed.off, many.S, packed_bits(many.W.T), 0.0, state, chosen)
    assert sorted(chosen) == [3, 4, 5]
    assert wrong(table, many.keep(chosen)) == 0


def test_sparse_and_dense_tables_have_the_same_bits():
    values = np.random.default_rng(0).random((300, 70)) < 0.1
    dense = Packed.of(Table(values, np.ones(values.shape, bool)))
    thin = Packed.of(SparseTable(sparse.csr_array(values)))
    for name in ("on", "off", "on_T", "off_T"):
        np.testing.assert_array_equal(getattr(dense, name), getattr(thin, name))


def test_whole_weights_stay_and_others_keep_their_proportions():
    steps, unit = whole_weights(np.array([0.0, 3.0, 4095.0]))
    np.testing.assert_array_equal(steps * unit, [0, 3, 4095])
    steps, unit = whole_weights(np.array([0.0, 1e-9, 0.25, 1.0]))
    np.testing.assert_allclose(steps * unit, [0, 1 / 4095, 0.25, 1], atol=2e-4)
    assert steps[1] == 1


def test_coverage_is_that_of_a_plain_count():
    table, rng = random_table(5, (30, 20))
    factors = Factors(*((rng.random((n, 3)) < 0.4).astype(np.int8) for n in table.shape))
    counts = factors.S.astype(int) @ factors.W.T.astype(int)
    for k, (rows, covers, alone, shared, false) in enumerate(coverage(factors, table).tolist()):
        inside = np.outer(factors.S[:, k], factors.W[:, k]) > 0
        assert rows == factors.S[:, k].sum()
        assert covers == (inside & table.on).sum()
        assert alone == (inside & table.on & (counts == 1)).sum()
        assert shared == covers - alone
        assert false == (inside & table.off).sum()


def test_factors_grow_by_empty_components():
    factors = Factors(np.ones((3, 2), np.int8), np.ones((4, 2), np.int8))
    assert grown(factors, 3).S.tolist() == [[1, 1, 0]] * 3
    assert grown(factors, 1).W.tolist() == [[1]] * 4


@pytest.mark.parametrize(
    ("stage", "stop"), [("Moves", 1), ("Moves", 7), ("Exact codes", 1), ("Exact codes", 3)]
)
def test_a_search_that_was_broken_off_goes_on_from_its_checkpoint(tmp_path, stage, stop):
    table = boolean_matrix(shape=(40, 30), rank=4, flips=0.1, random_state=0).table
    model = BooleanMatrixFactorization(4, objective="error", n_init=2, random_state=0)
    whole = model.fit(table)
    components, codes = whole.components_, whole.codes_

    class BrokenError(Exception):
        pass

    steps = 0

    def breaking(step):
        nonlocal steps
        steps += step.stage.startswith(stage)
        if steps == stop:
            raise BrokenError

    path = tmp_path / "fit.ckpt"
    again = BooleanMatrixFactorization(
        4, objective="error", n_init=2, random_state=0, callback=breaking
    )
    with pytest.raises(BrokenError):
        again.fit(table, checkpoint=path, every=0)
    model.fit(table, checkpoint=path, every=0)
    np.testing.assert_array_equal(model.components_, components)
    np.testing.assert_array_equal(model.codes_, codes)
