"""Asso on planted matrices, and its greedy cover against the plainest way of doing it."""

import numpy as np
import pytest

from benchmarks.baselines.asso import asso, associations, cover_greedily
from hcnet.datasets import boolean_matrix


def blocks():
    X = np.zeros((9, 10), bool)
    X[:3, :4], X[3:5, 4:7], X[5:, 7:] = True, True, True
    return X


def test_disjoint_blocks_are_recovered():
    found = asso(blocks(), 3)
    assert found.error == 0
    np.testing.assert_array_equal(found.product(), blocks())
    wanted = {tuple(row) for row in np.unique(blocks(), axis=0)}
    assert {tuple(row) for row in found.components} == wanted


def test_missing_entries_of_blocks_are_filled_in():
    mask = np.zeros((9, 10), bool)
    mask[0, 1] = mask[4, 5] = mask[7, 8] = mask[2, 9] = True
    X = blocks()
    X[mask] ^= True  # what is masked must not matter
    np.testing.assert_array_equal(asso(X, 3, mask).product(), blocks())


def test_associations_are_confidences():
    X = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1]], bool)
    everywhere = np.ones(X.shape, bool)
    wanted = [[1, 2 / 3, 1 / 3], [1, 1, 1 / 2], [1, 1, 1]]
    np.testing.assert_allclose(associations(X, everywhere), wanted)
    seen = everywhere.copy()
    seen[1, 1] = False  # of the two rows that remain, both have column 1 on
    assert associations(X, seen)[0, 1] == 1
    assert (associations(np.zeros((3, 3), bool), everywhere) == 0).all()


def plain_cover(X, observed, candidates, rank, bonus, malus):
    """Rows, candidates and entries one by one."""
    covered = np.zeros(X.shape, bool)
    codes, components = [], []
    for _ in range(rank):
        best, best_total, best_users = None, 0.0, None
        for candidate in candidates:
            total, users = 0.0, []
            for n in range(len(X)):
                gain = 0.0
                for j in np.flatnonzero(candidate):
                    if observed[n, j] and not covered[n, j]:
                        gain += bonus if X[n, j] else -malus
                users.append(gain > 0)
                total += max(gain, 0.0)
            if total > best_total:
                best, best_total, best_users = candidate, total, users
        if best is None:
            best, best_users = np.zeros(X.shape[1], bool), [False] * len(X)
        codes.append(best_users)
        components.append(best)
        covered |= np.outer(best_users, best)
    return np.array(codes).T, np.array(components)


@pytest.mark.parametrize("seed", range(10))
def test_greedy_cover_is_that_of_plain_loops(seed):
    rng = np.random.default_rng(seed)
    X, observed = rng.random((8, 6)) < 0.5, rng.random((8, 6)) < 0.8
    candidates = rng.random((7, 6)) < 0.5
    bonus = (0.5, 1.0, 2.0)[seed % 3]
    found = cover_greedily(X, observed, candidates, 4, bonus, 1.0)
    for got, wanted in zip(found, plain_cover(X, observed, candidates, 4, bonus, 1.0), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_settings_are_chosen_by_training_error():
    data = boolean_matrix(shape=(60, 50), rank=3, flips=0.05, random_state=0)
    best = asso(data.table, 3)
    for threshold in (0.3, 0.6, 0.9):
        for bonus in (0.5, 1.0):
            assert best.error <= asso(data.table, 3, None, (threshold,), (bonus,)).error
    assert best.error == (best.product() != data.table).mean()


def test_more_components_than_pay_stay_empty():
    found = asso(blocks(), 5)
    assert not found.components[3:].any()
    assert not found.codes[:, 3:].any()
    np.testing.assert_array_equal(found.product(), blocks())
