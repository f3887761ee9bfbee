"""Asso on planted matrices, and its greedy cover against plain loops."""

import numpy as np
import pytest

from benchmarks.baselines.asso import asso, associations, cover_greedily


def blocks():
    X = np.zeros((9, 10), bool)
    X[:3, :4], X[3:5, 4:7], X[5:, 7:] = True, True, True
    return X


def test_disjoint_blocks_are_recovered_below_missing_entries():
    mask = np.zeros((9, 10), bool)
    mask[0, 1] = mask[4, 5] = mask[7, 8] = mask[2, 9] = True
    X = blocks()
    X[mask] ^= True  # masked values must not matter
    found = asso(X, 5, mask)
    np.testing.assert_array_equal(found.product(), blocks())
    assert not found.components[3:].any()  # components that do not pay stay empty


def test_associations_are_confidences():
    X = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1]], bool)
    observed = np.ones(X.shape, bool)
    wanted = [[1, 2 / 3, 1 / 3], [1, 1, 1 / 2], [1, 1, 1]]
    np.testing.assert_allclose(associations(X, observed), wanted)
    observed[1, 1] = False  # both of the remaining rows have column 1 on
    assert associations(X, observed)[0, 1] == 1


def plain_cover(X, observed, candidates, rank, bonus, malus):
    """Rows, candidates and entries one by one."""
    covered = np.zeros(X.shape, bool)
    codes, components = [], []
    for _ in range(rank):
        best, best_total, best_users = np.zeros(X.shape[1], bool), 0.0, [False] * len(X)
        for candidate in candidates:
            worth = np.where(X, bonus, -malus) * (observed & ~covered & candidate)
            gains = [sum(row.tolist()) for row in worth]
            if (total := sum(max(gain, 0.0) for gain in gains)) > best_total:
                best, best_total, best_users = candidate, total, [gain > 0 for gain in gains]
        codes.append(best_users)
        components.append(best)
        covered |= np.outer(best_users, best)
    return np.array(codes).T, np.array(components)


@pytest.mark.parametrize("seed", range(6))
def test_greedy_cover_is_that_of_plain_loops(seed):
    rng = np.random.default_rng(seed)
    X, observed = rng.random((8, 6)) < 0.5, rng.random((8, 6)) < 0.8
    candidates = rng.random((7, 6)) < 0.5
    bonus = (0.5, 1.0, 2.0)[seed % 3]
    found = cover_greedily(X, observed, candidates, 4, bonus, 1.0)
    for got, wanted in zip(found, plain_cover(X, observed, candidates, 4, bonus, 1.0), strict=True):
        np.testing.assert_array_equal(got, wanted)
